"""Tokens: what is kept of them, and what they open."""

import multiprocessing
import os

import pytest

from tacit.core.errors import InputError
from tacit.service.tokens import Tokens


@pytest.fixture
def tokens(tmp_path):
    (tmp_path / "private").mkdir(mode=0o700)
    return Tokens(tmp_path)


def test_a_token_is_told_once_and_kept_as_a_digest(tokens, tmp_path):
    text = tokens.add("ann", quota=5)
    (path,) = (tmp_path / "private").iterdir()
    assert text not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    found = Tokens(tmp_path).find(text)
    assert (found.name, found.role, found.quota) == ("ann", "query", 5)
    assert tokens.find(text + "x") is None
    assert tokens.find("") is None


def test_roles_open_what_they_should(tokens):
    made = {role: tokens.find(tokens.add(role, role=role)) for role in ("query", "auditor", "admin")}
    opened = {role: [token.may(wanted) for wanted in made] for role, token in made.items()}
    assert opened == {
        "query": [True, False, False],
        "auditor": [False, True, False],
        "admin": [True, True, True],
    }


def test_a_token_that_is_taken_back_opens_nothing_in_processes_that_run(tokens, tmp_path):
    other = Tokens(tmp_path)
    text = tokens.add("ann")
    assert other.find(text) is not None
    other.remove("ann")
    assert tokens.find(text) is None
    with pytest.raises(InputError, match="must be that of a token"):
        tokens.remove("ann")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "a b"}, "must be 1 to 64 letters"),
        ({"name": ""}, "must be 1 to 64 letters"),
        ({"name": "ann", "role": "owner"}, "role must be one of"),
        ({"name": "ann", "quota": -1}, "quota must be a whole number"),
        ({"name": "taken"}, "name must be new"),
    ],
)
def test_what_makes_no_token_is_refused(tokens, options, says):
    tokens.add("taken")
    with pytest.raises(InputError, match=says):
        tokens.add(**options)


def test_a_file_of_tokens_that_was_damaged_lets_nobody_in(tokens, tmp_path):
    text = tokens.add("ann")
    path = tmp_path / "private" / "tokens.json"
    path.write_text(path.read_text()[:-5])
    os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match="must be as tacit token wrote them"):
        tokens.find(text)


def churn(folder, name, times):
    """In a process of its own: make tokens and take them back."""
    tokens = Tokens(folder)
    for number in range(times):
        tokens.add(f"{name}{number}")
        tokens.remove(f"{name}{number}")


def test_processes_that_change_tokens_at_once_lose_nothing(tokens, tmp_path):
    """A token that was taken back must not come back with what another process writes."""
    tokens.add("stays")
    context = multiprocessing.get_context("spawn")
    crowd = [context.Process(target=churn, args=(tmp_path, name, 15)) for name in "abc"]
    for process in crowd:
        process.start()
    for process in crowd:
        process.join(120)
    assert [process.exitcode for process in crowd] == [0, 0, 0]
    assert [token.name for token in tokens.all()] == ["stays"]
