"""A session of the service: the teachers of a run, the mechanism that answers for them, and what has paid for it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Assumption, Guarantee
from ..learning import interrupted
from ..learning.mechanisms import Gate, SparseVector
from ..learning.study import serving
from ..learning.study.serving import Served
from ..ledger import Ledger, named_place
from ..runtime import private_files, run_folder
from .decisions import Decisions
from .schedule import EVERY

MECHANISMS: dict[str, type[Gate] | type[SparseVector]] = {"gate": Gate, "svt": SparseVector}
REFUSALS = 20
_KEY_BYTES = 32

_SEEN_LATE = Assumption(
    text="the adversary sees answers when they leave, at moments that the schedule fixes, and neither the disk nor the "
    "memory of the service, nor its load",
    checked_by="caller",
)

_UNWRITTEN = Assumption(
    text="no process dies, and no disk fails, because of how a decision came out that was not yet written",
    checked_by="caller",
)


@dataclass(frozen=True, kw_only=True)
class ServiceSession:
    """One session, which may be open in several processes.

    Attributes
    ----------
    name
        Its name in the folder.
    served
        The teachers.
    mechanism
        What decides which queries are answered.
    guarantee
        What is proven about all answers together.
    ledger
        The ledger that has paid.
    decisions
        What was decided.
    every
        Seconds between the moments at which answers leave.
    """

    name: str
    served: Served
    mechanism: Gate | SparseVector
    guarantee: Guarantee
    ledger: Ledger
    decisions: Decisions
    every: float


def open_session(
    folder: Path | str,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = "gate",
    refusals: int = REFUSALS,
    session: str = "service",
    ledger: str | None = None,
    ledger_url_file: Path | str | None = None,
    anchor: Path | str | None = None,
    new_anchor: bool = False,
    every: float = EVERY,
    advance: Callable[[str], None] = lambda _: None,
) -> ServiceSession:
    """Begin a session for the teachers of a run of `tacit learn`, or go on with it.

    The whole session is paid for in the ledger when it begins, once.

    Parameters
    ----------
    folder
        The folder that the run was given as `out`.
    epsilon, delta
        The privacy loss of the session, however many queries are asked.
    mechanism
        "gate", or "svt" for the sparse vector of the paper.
    refusals
        The number of refusals after which the session stops for good.
    session
        The name of the session. Another name is another session, with a cost of its own.
    ledger, ledger_url_file
        The ledger that has paid for the run, or a file that holds its address; the one in `folder` unless given.
    anchor
        A file elsewhere that remembers the end of the ledger.
    new_anchor
        Create the anchor for a ledger that exists already.
    every
        Seconds between the moments at which answers leave.
    advance
        Called with a line about what begins.

    Returns
    -------
    The session.

    Raises
    ------
    BudgetSpentError
        If the ledger cannot pay for it.
    """
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", str(session)) is None:
        raise InputError(
            "session", session, requirement="must be a short name of small letters, digits and -", remedy="use service"
        )
    every = validate.number("every", every, at_least=0.001, at_most=60, remedy="use 0.05 for 20 times a second")
    validate.choice("mechanism", mechanism, tuple(MECHANISMS), remedy="use gate")
    made = MECHANISMS[mechanism](epsilon=epsilon, delta=delta, refusals=refusals)
    if isinstance(made, SparseVector) and made.keeps_noise:
        raise InputError(
            "refusals",
            refusals,
            requirement="must be at least 2 for svt: a session that ends at the first needs noise for its threshold",
            remedy="use 2 or more, or the mechanism gate",
        )
    if isinstance(made, Gate):
        made.prove(advance)
    advance("reading the teachers")
    served = serving.load(folder)
    proven = served.guarantee_of(made)
    first, *others = proven.assumptions
    proven = replace(proven, assumptions=(first, _SEEN_LATE, _UNWRITTEN, *others))
    place = Path(folder) / "private"
    with private_files.enclosed(place):
        kept = run_folder.record(place / f"session-{session}.json", _fresh)
        account = _ledger(
            served,
            named_place("ledger", ledger, None if ledger_url_file is None else Path(ledger_url_file)),
            anchor,
            new_anchor=new_anchor,
        )
        account = interrupted.anchored(account, place) or account
        cost = interrupted.Cost(
            what=f"tacit serve, session {session}",
            epsilon=Decimal(repr(made.epsilon)),
            delta=Decimal(repr(made.delta)),
            neighbours=served.neighbours,
        )
        task = run_folder.digest(json.dumps([repr(made), repr(made.guarantee.detail)]).encode())
        interrupted.require(account, kept["release"], [cost])
        interrupted.paid(
            account, kept["release"], cost, task=task, detail={"mechanism": mechanism, "refusals": refusals}
        )
        # Of two processes that began at once both have paid; the first entry is the session of both.
        notes = interrupted.paid(account, kept["release"], cost, task=task, detail={})
    if notes.entry is None:
        raise AssertionError("an entry was paid for")  # pragma: no cover
    advance("reading what was decided")
    decisions = Decisions(account, notes.entry, made, bytes.fromhex(kept["key"]))
    return ServiceSession(
        name=session,
        served=served,
        mechanism=made,
        guarantee=proven,
        ledger=account,
        decisions=decisions,
        every=every,
    )


def _fresh() -> dict[str, Any]:
    return {"key": secrets.token_hex(_KEY_BYTES), "release": secrets.token_hex(16)}


def _ledger(served: Served, named: str | None, anchor: Path | str | None, *, new_anchor: bool) -> Ledger:
    """The ledger of the run: costs in another one would not add up to a guarantee."""
    found = Ledger.open(named or served.folder / "ledger.sqlite", anchor=anchor, new_anchor=new_anchor)
    if found.origin != served.ledger:
        raise InputError(
            "ledger",
            "another ledger",
            requirement="must be the one that has paid for the run, as costs of the same records add up",
            remedy="name that one",
        )
    return found
