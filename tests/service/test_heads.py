"""Signed heads: what an auditor who keeps one can tell."""

import copy
import json
import shutil

import pytest

from tacit.core.errors import InputError
from tacit.ledger import Ledger
from tacit.service import heads


@pytest.fixture
def kept(tmp_path):
    """A folder with its key, a ledger with two entries and notes, and the head after the first."""
    for name in ("private", "publish"):
        (tmp_path / name).mkdir(mode=0o700)
    signer = heads.signer(tmp_path)
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-4)
    entry = ledger.spend("first", epsilon=1)
    path = tmp_path / "head.json"
    path.write_text(json.dumps(heads.head(ledger, signer)))
    ledger.note(entry, {"decided": [["ab", 1, "ann"]]})
    ledger.spend("second", epsilon=1)
    return tmp_path, ledger, path, tmp_path / "publish" / "ledger-head.pem.pub"


def test_a_ledger_goes_on_from_its_head(kept):
    _, ledger, path, key = kept
    assert heads.check(path, key, ledger.to_dict()) == 2
    assert heads.check(path, key, json.loads(json.dumps(ledger.to_dict()))) == 2


def test_a_ledger_that_was_rolled_back_is_told(kept, tmp_path):
    folder, ledger, path, key = kept
    shutil.copy(folder / "ledger.sqlite", tmp_path / "earlier.sqlite")
    ledger.spend("third", epsilon=1)
    path.write_text(json.dumps(heads.head(ledger, heads.signer(folder))))
    with pytest.raises(InputError, match="rolled back or edited"):
        heads.check(path, key, Ledger.open(tmp_path / "earlier.sqlite").to_dict())


def test_a_ledger_that_was_made_anew_is_told(kept, tmp_path):
    _, _, path, key = kept
    other = Ledger.open(tmp_path / "other.sqlite", epsilon=5, delta=1e-4)
    other.spend("first", epsilon=1)
    with pytest.raises(InputError, match="rolled back or edited"):
        heads.check(path, key, other.to_dict())


@pytest.mark.parametrize(
    "edit",
    [
        lambda links: links.pop(1),
        lambda links: links[2]["detail"]["decided"].clear(),
        lambda links: links[0].update(epsilon="50"),
        lambda links: links[1].update(epsilon="0"),
        lambda links: links[3].update(digest="0" * 64),
        lambda links: links.clear(),
        lambda links: links.__setitem__(slice(None), ["nothing"]),
    ],
)
def test_an_edited_ledger_is_told(kept, edit):
    _, ledger, path, key = kept
    shown = copy.deepcopy(ledger.to_dict())
    edit(shown["links"])
    with pytest.raises(InputError):
        heads.check(path, key, shown)


def test_a_head_of_another_key_is_refused(kept, tmp_path):
    _, ledger, path, _ = kept
    for name in ("private", "publish"):
        (tmp_path / "thief" / name).mkdir(mode=0o700, parents=True)
    thief = heads.signer(tmp_path / "thief")
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(heads.head(ledger, thief)))
    with pytest.raises(InputError, match="must be signed with this key"):
        heads.check(forged, tmp_path / "publish" / "ledger-head.pem.pub", ledger.to_dict())
    whole = json.loads(path.read_text())
    forged.write_text(json.dumps({**whole, "payload": json.loads(forged.read_text())["payload"]}))
    assert heads.check(path, tmp_path / "publish" / "ledger-head.pem.pub", ledger.to_dict()) == 2
