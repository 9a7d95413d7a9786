"""The examples that `--help` begins with, run as they stand there."""

import shlex

import pytest
from test_help import examples, folder

from tacit.ledger import Ledger

__all__ = ["folder"]  # a fixture


@pytest.mark.usefixtures("quick_attacks")
@pytest.mark.parametrize("name", ["plan", "audit", "ledger", "proof", "bound", "learn"])
def test_the_examples_run(here, parser, folder, name):
    if name == "ledger":
        anchor = folder / "elsewhere" / "anchor.json"
        Ledger.open(folder / "bought" / "ledger.sqlite", epsilon=1, delta=0, anchor=anchor).spend("x", epsilon=1)
    for place, example in enumerate(examples(parser.commands[name])):
        words = shlex.split(example)[1:]
        if name == "learn":  # each example in a place of its own
            words[words.index("bought", words.index("--out"))] = f"bought{place}"
        finished = here(folder, *words)
        assert finished.returncode in ((0, 1) if "--require-advantage" in words else (0,)), finished.stderr
        assert finished.stdout
