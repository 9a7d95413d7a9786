"""What `--help` shows: examples, options in groups, flags without values, and old names that go on working.

`make shown` runs the examples, from tests/documents.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from commands import assert_one_line_error, run
from typer.core import TyperOption

from tacit import cli

ORDER = ["demo", "plan", "bound", "learn", "audit", "audit-model", "verify", "certificate", "ledger"]
ORDER += ["serve", "query", "token", "reproduce", "proof"]


def commands(group, *path):
    """Every command and group of commands, with its words."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *path, name)


def described():
    return [pytest.param(path, id=" ".join(path) or "tacit") for path, _ in commands(typer.main.get_command(cli.app))]


def examples(command):
    return [example.replace("\\\n", "") for example in command.callback.examples]


@pytest.fixture
def help_of(here, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def text(path):
        finished = here(tmp_path, *path, "--help")
        assert finished.returncode == 0
        return finished.stdout

    return text


@pytest.mark.parametrize("path", described())
def test_help_begins_with_two_examples_and_fits_80_columns(help_of, path):
    first, *lines = help_of(path).splitlines()
    assert first.strip() == "Examples:"
    shown = lines[: next(number for number, line in enumerate(lines) if "Usage:" in line)]
    assert len([line for line in shown if line.lstrip().startswith("tacit ")]) == 2
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(line for line in lines if "│" in line and "A,B,…" not in line and "METHOD,…" not in line)


@pytest.mark.parametrize("path", described())
def test_options_stand_in_groups_and_flags_take_no_value(parser, help_of, path):
    command = dict(commands(parser))[path]
    text = help_of(path)
    assert "<bool>" not in text
    assert "{" not in text.partition("\n\n")[0]  # the usage names arguments as they are
    if not hasattr(command, "commands"):
        assert "─ Options ─" not in text  # where typer puts what has no group
        groups = re.findall(r"╭─ (.+?) ─+╮", text)
        assert groups[-1] == "Output"
        assert len(set(groups)) == len(groups)
    for option in command.params:
        assert not (isinstance(option, TyperOption) and option.secondary_opts)  # nor --no-flag beside --flag


def test_commands_come_in_the_order_in_which_they_are_needed(parser):
    found = parser.list_commands(None)
    assert found == [name for name in ORDER if name in found]
    assert {*ORDER} - {*found} <= {"verify"}


def test_the_files_of_bound_are_given_to_verify_in_the_same_way(parser):
    options = [{one.name: one for one in parser.commands[name].params} for name in ("bound", "verify")]
    for name in ("weights", "public", "attribute"):
        made, again = (found[name] for found in options)
        assert (made.opts, made.metavar, type(made.type)) == (again.opts, again.metavar, type(again.type))


@pytest.mark.parametrize("path", described())
def test_every_example_is_a_command(parser, path):
    """All of its options exist, and take such values."""
    for example in examples(dict(commands(parser))[path]):
        tacit, *words = shlex.split(example)
        assert tacit == "tacit"
        command, context = parser, typer.Context(parser)
        while hasattr(command, "commands"):
            command, context = command.commands[words.pop(0)], typer.Context(command)
        command.make_context("tacit", words, parent=context)


MODEL = """
import torch
from torch import nn

def features():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 4))

def embed():
    return lambda texts: [[float(len(text)), text.count("a") / 2, text.count("e") / 3] for text in texts]
"""


@pytest.fixture
def folder(tmp_path):
    """Small files with the names that the examples use."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "images.npz", rng.random((6, 1, 4, 4)))
    for name in ("model.py", "encoder.py"):
        (tmp_path / name).write_text(MODEL)
    words = ["a", "letter", "about", "an", "apple", "and", "all", "that", "came", "after", "it"]
    for name, count in (("letters.txt", 12), ("other.txt", 60)):
        (tmp_path / name).write_text("".join(" ".join(rng.choice(words, 4)) + "\n" for _ in range(count)))
    for name, count in (("private.csv", 3000), ("public.csv", 300)):
        points = rng.normal(size=(count, 2))
        labels = ["," + ("yes" if x > 0 else "no") if name == "private.csv" else "" for x, _ in points]
        head = "a,b,bought\n" if name == "private.csv" else "a,b\n"
        rows = [f"{x:.6f},{y:.6f}{label}\n" for (x, y), label in zip(points, labels, strict=True)]
        (tmp_path / name).write_text(head + "".join(rows))
    scores = "".join(f"{row % 2},{row // 2 % 3},{rng.random():.4f}\n" for row in range(2_000))
    (tmp_path / "scores.csv").write_text("member,predicted,score\n" + scores)
    (tmp_path / "bought").mkdir()
    (tmp_path / "elsewhere").mkdir()
    return tmp_path


def test_the_page_of_the_demo_opens_in_the_browser(tmp_path):
    """In the browser that the environment names, once it is written."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{seen}"\n')
    browser.chmod(0o755)
    script = (
        "import sys, types\nfrom pages import comparison, report\nfrom tacit import cli\n"
        "sys.modules['tacit.demo'] = types.SimpleNamespace(demo=lambda **_: report(comparison()), SECONDS=(1,))\n"
        "cli.main(sys.argv[1:])\n"
    )
    tests = Path(__file__).resolve().parent
    environment = {
        **os.environ,
        "BROWSER": str(browser),
        "PYTHONPATH": os.pathsep.join([str(tests / "support"), str(tests.parent / "src")]),
    }
    for arguments, page in (
        (("demo", "--open"), "tacit-demo.html"),
        (("demo", "--open", "--report", "p.html"), "p.html"),
    ):
        command = [sys.executable, "-c", script, *arguments, "--quiet"]
        finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (finished.returncode, finished.stderr) == (0, "")
        assert seen.read_text().strip() == (tmp_path / page).resolve().as_uri()
        assert (tmp_path / page).read_text().lower().startswith("<!doctype html")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("--beta", "--failure-probability", "plan --records 9000 --queries 9 --epsilon 1 --delta 1e-5 --beta 0.1"),
        (
            "--proposer-error",
            "--public-model-error",
            "plan --records 9000 --queries 9 --epsilon 1 --delta 1e-5 --proposer-error=0.1",
        ),
        (
            "--delta",
            "--failure-probability",
            "audit scores.csv --secret member --output predicted --attack-rows 0 --delta 0.1",
        ),
        (
            "--monotone",
            "--assume-one-direction",
            "audit scores.csv --secret member --output score --attack-rows 0 --monotone",
        ),
        (
            "--lipschitz",
            "--assume-max-slope",
            "audit scores.csv --secret member --output score --attack-rows 0 --lipschitz 0.5",
        ),
        (
            "--expected",
            "--teacher-accuracy",
            "learn private.csv --label bought --public public.csv --epsilon 1 --delta 1e-5 --out o --expected 0.3",
        ),
        (
            "--proposer",
            "--labelled-public",
            "learn private.csv --label bought --public public.csv --epsilon 1 --delta 1e-5 --out o --proposer=no.csv",
        ),
    ],
)
def test_an_old_name_goes_on_working_with_one_line(here, folder, help_of, old, new, words):
    words = words.split()
    before = here(folder, *(word.replace(old, new, 1) if word.partition("=")[0] == old else word for word in words))
    after = here(folder, *words)
    assert (after.returncode, after.stdout) == (before.returncode, before.stdout)
    assert after.stderr == f"tacit: {old} will be removed; use {new}\n" + before.stderr
    assert f"{old} " not in help_of(words[:1])
    both = here(folder, *words, new, "0.2")
    assert f"{old} must not stand beside {new}, its new name" in both.stderr
    assert both.returncode == 2


def test_a_value_that_is_spelled_like_an_old_name_stays_a_value(here, folder):
    finished = here(folder, "audit", "--secret", "member", "--output", "predicted", "--", "--monotone")
    assert_one_line_error(finished, "TABLE must name a file that exists, got '--monotone'; no such file")


def test_help_without_a_terminal_is_the_same_command():
    assert run("bound", "--help").stdout.splitlines()[0].strip() == "Examples:"
