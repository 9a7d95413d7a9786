"""How much of what the tutorials and the README print somebody else can check, with the checker alone."""

import io
import itertools
import re
import shlex
from pathlib import Path

import pytest
from test_readme import folder

from tacit import Guarantee
from tacit.certificate import certified, verify
from tacit.ledger import Ledger
from tacit.report import Report

__all__ = ["folder"]  # a fixture

pytestmark = pytest.mark.usefixtures("quick_attacks")

ROOT = Path(__file__).resolve().parents[2]
FOLLOW = {"audit": (3, 3), "learning": (3, 3), "reconstruction": (4, 4), "README": (5, 8), "demo": (6, 8)}
"""Of each page the guarantees that follow, and all that it prints; test_demo_whole.py counts the demo's."""


def commands(text):
    """The command lines of tacit in a block, without what a shell does with their exit codes."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("tacit "):
            yield shlex.split(re.split(r" (?:\|\||&&) ", line)[0])[1:]


def guarantees_in(value):
    """The guarantees of a result that a page's Python holds or prints."""
    found = getattr(value, "identification", value)  # of what `calibrate` chose
    if isinstance(found, Report):
        return [comparison.guarantee for comparison in found.comparisons]
    return [found] if isinstance(found, Guarantee) else []


def verdicts_of(path, folder, here):
    """What the checker says of everything that a page proves; every `# → text` of its Python must be printed."""
    said, numbers, held, printed = [], itertools.count(), {}, io.StringIO()

    def note(*values):
        held.update((id(one), one) for value in values for one in guarantees_in(value))

    def noted_print(*values, **options):
        note(*values)
        print(*values, **options, file=printed)

    names = {"__name__": "__main__", "print": noted_print}
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for language, text in blocks:
        if language == "python":
            exec(compile(text, path.name, "exec"), names)  # noqa: S102 — the page's own code
            note(*names.values(), getattr(names.get("found"), "guarantee", None))
            continue
        for words in commands(text):
            if words[0] == "ledger":  # prints one guarantee, and has no option that writes it
                note(Ledger.open(folder / words[1]).guarantee)
            elif words[0] in ("bound", "learn", "plan", "audit"):
                file = folder / f"{next(numbers)}.json"
                more = ["--reveal-draws", "--limit", "8"] if words[0] == "bound" else []
                ran = here(folder, *words, "--certificate", file, *more, "--quiet")
                assert ran.returncode in (0, 1), ran.stderr
                said += [verdict for verdict, _ in verify(file).verdicts]
    if held:
        file = folder / "held.json"
        file.write_text(certified(list(held.values()), title=path.name, reveal=True).to_json())
        said += [verdict for verdict, _ in verify(file).verdicts]
    promised = {line for language, text in blocks if language == "python" for line in re.findall(r"# → (.*)", text)}
    assert promised <= set(printed.getvalue().splitlines())
    return said


@pytest.mark.parametrize("name", ["audit", "learning", "reconstruction"])
def test_what_a_tutorial_prints_can_be_checked(name, tmp_path, monkeypatch, here):
    monkeypatch.chdir(tmp_path)
    said = verdicts_of(ROOT / "docs" / "tutorials" / f"{name}.md", tmp_path, here)
    assert (said.count("follows"), len(said)) == FOLLOW[name]


def test_what_the_readme_prints_can_be_checked_but_for_unbiased_estimates_and_two_points(folder, monkeypatch, here):
    """Of two methods that bound unbiased estimates alone, and of two points, the checker has no rule."""
    monkeypatch.chdir(folder)
    said = verdicts_of(ROOT / "README.md", folder, here)
    assert (said.count("follows"), len(said)) == FOLLOW["README"]
    assert said.count("does not follow") == 0


def test_four_fifths_of_all_can_be_checked():
    follow, printed = (sum(counts) for counts in zip(*FOLLOW.values(), strict=True))
    assert follow >= 0.8 * printed
