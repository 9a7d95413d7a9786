"""A folder of teachers that `tacit learn` wrote, and a session for them."""

import os
import shutil

import numpy as np
import pytest
import serving
from commands import SERVICE, Warm

from tacit.learning.study.run import learn_files
from tacit.ledger import Ledger
from tacit.service.session import open_session
from tacit.service.tokens import Tokens

TEACHERS = 60


def write_table(path, random, rows, *, labelled):
    """Two columns of numbers and one of text; the label is the sign of the first, with little doubt."""
    x, y = random.normal(size=rows), random.normal(size=rows)
    colours = random.choice(["red", "green"], size=rows)
    lines = ["height,weight,colour" + ",kind" * labelled]
    for one, two, colour in zip(x, y, colours, strict=True):
        lines.append(f"{one:.6f},{two:.6f},{colour}" + (f",{'tall' if one > 0 else 'short'}" if labelled else ""))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    """The folder of a run whose ledger can pay for more; copy it, as services write to it."""
    place = tmp_path_factory.mktemp("learned")
    random = np.random.default_rng(0)
    write_table(place / "private.csv", random, 1200, labelled=True)
    write_table(place / "public.csv", random, 60, labelled=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        learn_files(
            place / "private.csv",
            label="kind",
            epsilon=1.0,
            delta=1e-5,
            budget_epsilon=300.0,
            budget_delta=1e-3,
            public=place / "public.csv",
            out=place / "run",
            learner="sklearn.linear_model:LogisticRegression",
            student="sklearn.linear_model:LogisticRegression",
            teachers=TEACHERS,
            classes="short,tall",
            queries="20",
        )
    return place / "run"


@pytest.fixture
def folder(learned, tmp_path):
    """A folder of one's own."""
    return shutil.copytree(learned, tmp_path / "run")


@pytest.fixture
def session(folder):
    """A session of twenty refusals, which answers sixty teachers who agree."""
    return open_session(folder, epsilon=200.0, delta=1e-5, refusals=20, every=0.01, mechanism="svt")


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run whose ledger is a file, and has room for many sessions; tests share it, each with sessions of its own."""
    return served_run(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def database():
    """A PostgreSQL server that tests may kill."""
    try:
        server = serving.PostgreSQL()
    except Exception as failure:
        if os.environ.get("CI") == "true":
            raise  # there a skip would hide that nothing was tested
        pytest.skip(f"PostgreSQL cannot start here: {failure}")
    yield server
    server.close()


@pytest.fixture(scope="session")
def stored(tmp_path_factory, database):
    """A run whose ledger is in PostgreSQL, and the file with its address."""
    place = tmp_path_factory.mktemp("stored")
    address = place / "address"
    address.touch(mode=0o600)
    address.write_text(database.address)
    return served_run(place, ledger=address), address


@pytest.fixture(scope="session")
def warm():
    """What starts services in little time."""
    found = Warm(*SERVICE)
    yield found
    found.close()


def served_run(place, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        patch.setenv("TACIT_FITS", f"12345678901 {place / 'fits.jsonl'}")
        run = serving.learned(place, **options)
    (run / "token").write_text(Tokens(run).add("ann"))
    return run


@pytest.fixture
def account(tmp_path):
    """A ledger with an anchor, and the entry of a session in it."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=10, delta=1e-4, anchor=tmp_path / "anchor.json")
    return ledger, ledger.spend("a session", epsilon=8, delta=1e-5)
