"""The code of README.md and of the documentation, run as it stands there."""

import contextlib
import re
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from test_architecture import DOCUMENTS, ROOT, blocks_of

from tacit import cli


def page_script(path):
    """The page's Python in order; in tutorials, whose readers type all of it, the commands between as well."""
    if path.parent.name != "tutorials":
        return [text for _, text in blocks_of(path, "python")]
    return [
        text if language == "python" else f'typed(r"""\n{text}""")\n'
        for language, text in blocks_of(path, "python", "sh")
    ]


BESIDE = []
"""Processes that a page has begun with &, which `kill %1` ends."""


def typed(text):
    """Run lines as a shell does, but `tacit` itself in this process, which has loaded what it needs."""
    for line in text.replace("\\\n", " ").splitlines():
        command, rest = re.fullmatch(r"(.*?)((?: (?:\|\||&&) .*)?)", line).groups()
        words = shlex.split(command, comments=True)
        if words[-1:] == ["&"]:
            process = subprocess.Popen([sys.executable, "-m", *words[:-1]], stdout=subprocess.PIPE, text=True)
            BESIDE.append(process)
            assert process.stdout.readline()  # it says that it has begun
            continue
        if words[:1] == ["kill"]:
            BESIDE[-1].send_signal(signal.SIGKILL if "-9" in words else signal.SIGTERM)
            BESIDE.pop().communicate(timeout=60)
            continue
        if words[:1] == ["tacit"]:
            with contextlib.ExitStack() as into:
                if ">" in words:
                    *words, _, file = words
                    into.enter_context(contextlib.redirect_stdout(into.enter_context(Path(file).open("w"))))
                line = f"(exit {cli._run(words[1:])}){rest}"
        subprocess.run(line, shell=True, check=True)  # noqa: S602


ELSEWHERE = ROOT / "docs" / "tutorials" / "reconstruction.md"
"""A page that takes long, and no commands: test_shares.py runs it, and checks what it prints as well."""


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if page_script(path) and path != ELSEWHERE],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_code_of_the_documents_runs_and_prints_what_it_says(path, tmp_path, monkeypatch, capfd):
    """One script a page, in order; every `# → text` beside a print must be a line that it prints.

    In this process, which has loaded what most pages use.
    """
    blocks = page_script(path)
    script = tmp_path / "page.py"
    with socket.create_server(("127.0.0.1", 0)) as free:
        text = "\n".join(blocks).replace("8710", str(free.getsockname()[1]))  # another may have the service's port
    script.write_text(text)
    monkeypatch.chdir(tmp_path)
    try:
        with warnings.catch_warnings(action="default"):  # as a reader's interpreter has them
            runpy.run_path(str(script), init_globals={"typed": typed}, run_name="__main__")
    finally:
        while BESIDE:
            typed("kill %1")
    printed = capfd.readouterr().out.splitlines()
    for promised in re.findall(r"# → (.*)", "\n".join(blocks)):
        assert promised in printed, f"{promised!r} is not among {printed}"


def test_the_page_that_runs_elsewhere_is_python_alone():
    assert blocks_of(ELSEWHERE, "python")
    assert not blocks_of(ELSEWHERE, "sh")
