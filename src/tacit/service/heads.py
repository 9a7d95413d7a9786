"""Signed heads: where the ledger ended at a moment, for auditors to keep elsewhere.

The ledger is a chain of digests, so its head stands for all of it. Whoever holds an earlier head and the owner's public
key can tell whether a later ledger goes on from there: one that was rolled back or edited does not hold that link.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..certificate import signatures
from ..core.errors import InputError
from ..ledger import Ledger
from ..ledger.entries import chain, digest_of
from ..runtime import private_files
from ..runtime.files import alone, write_whole

PREDICATE = "https://tacit-privacy.github.io/ledger-head/v1"
KEY = "ledger-head.pem"


def signer(folder: Path) -> signatures.Signer:
    """The key of the folder, which is made at the first call; its public part is written to `publish`."""
    key, public = folder / "private" / KEY, folder / "publish" / f"{KEY}.pub"
    with private_files.enclosed(folder / "private"), alone(folder / "private"):
        if not key.exists():
            signatures.new_key(key)
        found = signatures.Signer(key)
    if not public.exists():
        write_whole(public, found.public())
    return found


def head(ledger: Ledger, by: signatures.Signer) -> dict[str, Any]:
    """The ledger's last link, signed: an in-toto statement in a DSSE envelope."""
    return _signed(ledger.origin, ledger.last(), by)


def shown(ledger: Ledger, by: signatures.Signer) -> dict[str, Any]:
    """The whole ledger, with the head of what is shown, signed, under `head`."""
    found = ledger.to_dict()
    last = {name: found["links"][-1][name] for name in ("id", "digest", "time")}
    return {**found, "head": _signed(ledger.origin, last, by)}


def _signed(origin: str, link: Mapping[str, Any], by: signatures.Signer) -> dict[str, Any]:
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "the ledger's last link", "digest": {"sha256": link["digest"]}}],
        "predicateType": PREDICATE,
        "predicate": {"origin": origin, **link},
    }
    return by.envelope(json.dumps(statement, sort_keys=True).encode())


def check(path: Path, public_key: Path, ledger: Mapping[str, Any]) -> int:
    """Check that a ledger goes on from a head that somebody has kept.

    Parameters
    ----------
    path
        The file with the head.
    public_key
        The owner's public key, from a place that you trust.
    ledger
        What the service, or `Ledger.to_dict`, says of the whole ledger.

    Returns
    -------
    The number of links that came after the head.

    Raises
    ------
    InputError
        If the head is not signed with the key, or the ledger does not hold it or does not belong together.
    """
    opened = signatures.opened(path, public_key=public_key)
    found = opened.statement
    if opened.signature != "valid" or found is None or found["predicateType"] != PREDICATE:
        raise InputError(
            "head", path.name, requirement="must be signed with this key", remedy="compare the key with the owner's"
        )
    mark, links = found["predicate"], _links(ledger)
    if not any(link["id"] == mark["id"] and link["digest"] == mark["digest"] for link in links):
        raise InputError(
            "the ledger",
            f"one that ends with link {links[-1]['id']}",
            requirement=f"must hold link {mark['id']}, whose digest the head has",
            remedy="it was rolled back or edited since, or is another: tell its owner, and trust no answer after it",
        )
    return len(links) - 1 - int(mark["id"])


def _links(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The links of a ledger that somebody else shows, after checking that they form one chain."""
    try:
        first, *others = ledger["links"]
        if first["id"] != 0 or first["digest"] != digest_of(first):
            raise ValueError("a budget that does not fit its digest")
        last = others[-1] if others else {**first, "spent_epsilon": "0", "spent_delta": "0"}
        state = {
            **{name: first[name] for name in ("schema", "time", "epsilon", "delta")},
            **{name: last[name] for name in ("digest", "spent_epsilon", "spent_delta")},
            "last": last["id"],
        }
        rows = [{**link, "detail": json.dumps(link["detail"])} for link in others]
        return [first, *chain(state, rows, ledger="the ledger")]
    except (KeyError, TypeError, ValueError, IndexError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "the ledger",
            str(failure) or type(failure).__name__,
            requirement="must be a whole chain",
            remedy="ask for it again",
        ) from None
