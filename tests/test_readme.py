"""The commands of README.md, run as they stand there on small real cases, within the time that they state.

`make shown` runs the rest of what the page shows, from tests/documents: the demo, and its Python.
"""

import re
import shlex
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

PAGE = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
LINES = re.findall(r"^tacit .*$", PAGE, flags=re.MULTILINE)
COMMANDS = {words[1]: words[1:] for words in map(shlex.split, LINES)}
SLOWER = 10
"""How many times slower than the two cores that times are stated for a machine may be."""
UNSAID = 10.0
"""What a command takes at most, in seconds, where it states no time."""

MODEL = """
from torch import nn

def features():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8))
"""


def written(path, header, *columns):
    rows = zip(*(column.tolist() for column in columns), strict=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits under the names that the page uses."""
    place = tmp_path_factory.mktemp("readme")
    inputs, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    inputs, labels = inputs[order] / 16, labels[order]
    (place / "model.py").write_text(MODEL)
    torch.manual_seed(0)
    save_file(nn.Sequential(nn.Flatten(), nn.Linear(64, 8)).state_dict(), place / "weights.safetensors")
    np.savez(place / "images.npz", inputs[:100].reshape(-1, 1, 8, 8).astype(np.float32))

    few = inputs[:, 2::4]
    pixels = [f"p{number}" for number in range(few.shape[1])]
    bought = np.where(labels < 5, "yes", "no")
    written(place / "private.csv", ",".join([*pixels, "bought"]), *few[:1400].T, bought[:1400])
    written(place / "public.csv", ",".join(pixels), *few[1400:].T)

    predicted = LogisticRegression(C=1e-2).fit(inputs[:900], labels[:900]).predict(inputs)
    drawn = np.random.default_rng(1).integers([0, 900], [900, len(labels)], (10_000, 2))
    written(place / "scores.csv", "member,predicted", np.tile([1, 0], 10_000), predicted[drawn.ravel()])
    return place


def stated(said):
    """The seconds that a command says it takes."""
    found = re.search(r"this takes about (\d+) (second|minute|hour)", said)
    return UNSAID if found is None else int(found[1]) * {"second": 1, "minute": 60, "hour": 3600}[found[2]]


def test_the_page_has_a_command_for_each_question():
    assert list(COMMANDS) == ["bound", "learn", "audit", "verify"]


@pytest.mark.parametrize(
    ("name", "more"), [("bound", ("--seconds", "3")), ("learn", ()), ("audit", ()), ("verify", ())]
)
def test_the_command_ends_well_within_the_time_it_states(name, more, folder, here):
    if name == "verify" and not (folder / "audit.json").exists():
        here(folder, *COMMANDS["audit"])  # writes what is verified
    begun = time.monotonic()
    finished = here(folder, *COMMANDS[name], *more)
    taken = time.monotonic() - begun
    assert finished.returncode == 0, finished.stderr
    assert taken < SLOWER * stated(finished.stderr), finished.stderr
    page = {"bound": "bounds.html", "learn": "bought/publish/report.html", "audit": "audit.html"}.get(name)
    assert page is None or (folder / page).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {"bound": "stays hidden", "learn": "ε", "audit": "Met: ", "verify": "FOLLOWS"}[name] in finished.stdout


def test_the_proof_that_the_page_names_is_printed(folder, here):
    [name] = set(re.findall(r"`tacit proof (\w+)`", PAGE))
    finished = here(folder, "proof", name)
    assert finished.returncode == 0
    assert name in finished.stdout
