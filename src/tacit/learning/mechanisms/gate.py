"""Mechanisms that answer for free while teachers agree: a table of probabilities decides, and only refusals cost.

`Gate` refuses a query with a probability that falls with the votes to flip, and otherwise answers with the winner; the
T-th refusal ends it. `Confirm` takes a proposed label that does not depend on private records, and denies it with a
probability that falls with its lead, or confirms it; the T-th denial ends it.

Probabilities are multiples of 2⁻⁶³, drawn exactly. `theory.gate` checks the cost of a table when a guarantee is asked
for, once in a process; proofs are in docs/proofs/gate.md.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import validate
from ...core.errors import InputError
from ...core.guarantee import Assumption, Guarantee
from ...theory.gate import ONE, confirm_delta, gate_delta
from ..votes import checked_counts
from . import gate_design
from .candidates import Candidate, Wanted, flawless
from .expectations import Floats, Votes
from .kind import PlannedKind
from .session import Answer, Noise, Session, check_budget, loss_guarantee, one_distance
from .setting import Constants, Run, Setting

_RAREST_REFUSAL = 1e-12
"""No table refuses with a smaller probability."""

_CHECKED_REFUSALS = 20
"""Certificates of more take more than a minute to check without the library, which refuses to begin."""

_PROPOSED = Assumption(
    text="proposed labels depend on private records through earlier answers alone", checked_by="caller"
)


@dataclass(frozen=True, kw_only=True)
class Tabled(ABC):
    """A mechanism that refuses by a table of probabilities, which has a certificate."""

    epsilon: float
    delta: float
    refusals: int

    labels: ClassVar[bool]
    """Whether an answer names a class, rather than confirming or denying one."""
    unit: ClassVar[int] = ONE
    """Chances are whole numbers over this."""
    keeps_noise: ClassVar[bool] = False
    """No noise is kept between queries, so an interrupted run loses none."""

    def __post_init__(self) -> None:
        check_budget(self)
        gate_design.checked_budget(self.epsilon, self.delta, self.refusals)

    @cached_property
    def design(self) -> gate_design.Design:
        """The table and its certificate: stored for common budgets, else searched for within about a minute."""
        return gate_design.find_design(self.epsilon, self.delta, refusals=self.refusals, labels=self.labels)

    def prove(self, advance: gate_design.Advance) -> Guarantee:
        """Search for the table, unless it is stored, and check its certificate, reporting progress."""
        gate_design.find_design(self.epsilon, self.delta, refusals=self.refusals, labels=self.labels, advance=advance)
        advance("proving what the table of chances costs")
        return self.guarantee

    @property
    @abstractmethod
    def first(self) -> int:
        """The distance, or the lead, with which the table begins."""

    @property
    @abstractmethod
    def table(self) -> tuple[int, ...]:
        """The chances of a refusal, of 2⁶³, from there on."""

    def place(self, *, chance: float) -> int:
        """The distance, or the lead, from which a refusal has at most this chance."""
        return self.first + _first_below(self.table, chance)

    def constants(self) -> dict[str, Any]:
        """What a certificate states: the table, and the function that proves what it costs."""
        found = self.design.certificate()
        return {
            "mechanism": "gate" if self.labels else "confirm",
            "refusals": self.refusals,
            "table": list(self.table),
            "corners": [list(corner) for corner in found.corners],
            "nodes": found.nodes.tolist(),
            "levels": found.values[:, 1:].T.tolist(),
        }

    @property
    def stated(self) -> Callable[[], dict[str, Any]] | None:
        """These, unless the checker would refuse to begin: a certificate then says that there is nothing to check."""
        return self.constants if self.refusals <= _CHECKED_REFUSALS else None

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""

    @abstractmethod
    def session(self, noise: Noise | None = None) -> Session:
        """Begin one run."""


@dataclass(frozen=True, kw_only=True)
class Gate(Tabled):
    """Answer any number of stable queries with their winner, until the last refusal.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session.
    refusals
        The number of refusals after which the session stops.
    """

    labels: ClassVar[bool] = True
    first: ClassVar[int] = 0

    @property
    def table(self) -> tuple[int, ...]:
        """The chances of a refusal, of 2⁶³, by votes to flip; the last serves beyond."""
        return self.design.table

    def chance(self, distance: int) -> float:
        """The probability that a query with this many votes to flip is refused."""
        return self.table[min(distance, len(self.table) - 1)] / ONE

    def distance(self, *, chance: float) -> int:
        """The votes to flip from which a query is refused with at most this probability."""
        return self.place(chance=chance)

    @property
    def delta_spent(self) -> float:
        """δ of the table as it is drawn from, proven by its certificate."""
        return _proven(gate_delta, self.epsilon, self.table, self.refusals, self.design)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""
        detail = {
            "refusals": self.refusals,
            "votes_to_flip_99": self.distance(chance=0.01),
            "table": _drawn(self.table),
        }
        theorem = ("gate", "theory.gate.gate_delta")
        return loss_guarantee(self, self.delta_spent, theorem, detail, constants=self.stated)

    def session(self, noise: Noise | None = None) -> Session:
        """Begin one run."""
        return Session(self, noise)

    @property
    def undecided(self) -> tuple[int, int]:
        """Two top counts at which a refusal is as likely as not."""
        return 2 * self.distance(chance=0.5) + 2, 0

    @property
    def spread(self) -> float:
        """The votes over which a refusal goes from likely to unlikely."""
        return float(self.distance(chance=0.25) - self.distance(chance=0.75))

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The winner, unless a coin of the distance's chance refuses."""
        distance = one_distance(counts)
        refused = session.noise.coin(self.table[min(distance, len(self.table) - 1)])
        return None if refused else int(counts.argmax())

    def finished(self, session: Session) -> bool:
        """At the T-th refusal."""
        return session.refused >= self.refusals


@dataclass(frozen=True, kw_only=True)
class Confirm(Tabled):
    """Confirm any number of proposed labels that lead the vote, until the last denial.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session.
    refusals
        The number of denials after which the session stops.
    """

    labels: ClassVar[bool] = False

    @property
    def first(self) -> int:
        """The smallest lead that the table knows."""
        return self.design.leads[0]

    @property
    def table(self) -> tuple[int, ...]:
        """The chances of a denial, of 2⁶³, by leads; the first and the last serve beyond."""
        return self.design.leads[1]

    def chance(self, lead: int) -> float:
        """The probability that a label with this lead is denied."""
        return self._of(lead) / ONE

    def lead(self, *, chance: float) -> int:
        """The lead from which a label is denied with at most this probability."""
        return self.place(chance=chance)

    @property
    def delta_spent(self) -> float:
        """δ of the table as it is drawn from, proven by its certificate."""
        return _proven(confirm_delta, self.epsilon, self.table, self.refusals, self.design)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive proposals."""
        detail = {"refusals": self.refusals, "lead_99": self.lead(chance=0.01), "table": _drawn(self.design.leads)}
        theorem = ("confirm or deny", "theory.gate.confirm_delta")
        return loss_guarantee(self, self.delta_spent, theorem, detail, constants=self.stated, assumed=(_PROPOSED,))

    def session(self, noise: Noise | None = None) -> ConfirmSession:
        """Begin one run."""
        return ConfirmSession(self, noise)

    @property
    def undecided(self) -> tuple[int, int]:
        """A tie, high enough for one vote to move."""
        return 2, 2

    @property
    def spread(self) -> float:
        """The leads over which a denial goes from likely to unlikely."""
        return float(self.lead(chance=0.25) - self.lead(chance=0.75))

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The first class, unless a coin of its lead's chance denies it; sessions put the proposed class first."""
        first, *others = counts.tolist()
        return None if session.noise.coin(self._of((first - max(others, default=0)) // 2)) else 0

    def finished(self, session: Session) -> bool:
        """At the T-th denial."""
        return session.refused >= self.refusals

    def _of(self, lead: int) -> int:
        least, table = self.design.leads
        return table[min(max(lead - least, 0), len(table) - 1)]


class ConfirmSession(Session):
    """One run of `Confirm`, in which each query comes with a proposed label."""

    def answer(self, counts: ArrayLike, *, proposed: int = 0) -> Answer:
        """Answer one query.

        Parameters
        ----------
        counts
            The number of votes for each class.
        proposed
            The proposed class.

        Returns
        -------
        The proposed class if it is confirmed, None if it is denied.
        """
        row = checked_counts(counts, dimensions=1)
        label = validate.whole("proposed", proposed, at_least=0, remedy="propose one of the classes")
        if label >= len(row):
            raise InputError("proposed", label, requirement=f"must be below {len(row)}", remedy="propose a class")
        if label:
            row = np.concatenate([row[label : label + 1], row[:label], row[label + 1 :]])
        return None if self._answered(row) is None else label


@cache
def _proven(
    theorem: Callable[..., float], epsilon: float, table: tuple[int, ...], refusals: int, design: gate_design.Design
) -> float:
    """δ of a table by its certificate; what was checked in this process is not checked again."""
    return theorem(epsilon, table=table, refusals=refusals, certificate=design.certificate())


def _drawn(chances: object) -> str:
    """A digest of a table, so that no session goes on with another one than it began with."""
    return hashlib.sha256(repr(chances).encode()).hexdigest()


def _first_below(table: tuple[int, ...], chance: float) -> int:
    wanted = validate.number("chance", chance, at_least=1e-12, at_most=1, remedy="use 0.01 for 99 % answered")
    return bisect_right([-entry for entry in table], -int(wanted * ONE) - 1)


class _TabledKind(PlannedKind):
    """What refusals end, by a table of chances."""

    made: ClassVar[type[Gate | Confirm]]

    def checkable(self, refusals: int | None) -> bool:
        """In a minute."""
        return refusals is not None and refusals <= _CHECKED_REFUSALS

    def available(self, epsilon: float, delta: float, *, proposals: bool) -> bool:
        """Where the search manages."""
        return super().available(epsilon, delta, proposals=proposals) and gate_design.manageable(epsilon, delta)

    def possible(self, refusals: int, setting: Setting) -> bool:
        """Tables are searched for up to some refusals, and refuse easy queries."""
        rare = setting.share / setting.queries < _RAREST_REFUSAL
        manageable = gate_design.manageable(setting.epsilon, setting.delta)
        return manageable and not rare and refusals <= gate_design.MOST_REFUSALS

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """Those of a stored table, which may end at more refusals, or about those of one to be searched for."""
        chance = max(setting.share / setting.queries, _RAREST_REFUSAL)
        return _constants(self.made, setting.epsilon, setting.delta, refusals, chance)

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """All points, and the refusals for which tables are stored; none for more than tables can have."""
        asked = wanted.most
        common = [count for count in gate_design.STORED_REFUSALS if count <= asked]
        stops = common if wanted.refusals is None else [wanted.refusals]
        for stop in (count for count in stops if count <= gate_design.MOST_REFUSALS):
            noise = 1 / gate_design.likely_step(wanted.epsilon, wanted.delta, refusals=stop)
            yield Candidate(
                made=partial(self.made, epsilon=wanted.epsilon, delta=wanted.delta, refusals=stop),
                queries=asked,
                refusals=stop,
                expected=self.in_each(wanted, queries=asked, noise=noise, refusals=stop),
            )

    def tried_refusals(self, setting: Setting) -> Sequence[int]:
        """Those for which tables are stored."""
        return gate_design.STORED_REFUSALS

    def obstacle(self, run: Run, needed: int | None, setting: Setting) -> str:
        """Why no table can be enough, however many the teachers."""
        if setting.share / setting.queries < _RAREST_REFUSAL:
            failure = f"a failure probability of {setting.failure_probability:.10g}"
            return f"no table refuses as rarely as {failure} needs for {setting.queries} queries"
        error = setting.error(setting.teachers or 1)
        teachers = 2 if setting.teachers else 3  # of whom none may be wrong: half at most, a third for what is needed
        least = self.hard_queries(error, setting, teachers=teachers, outvoted=0)
        most = gate_design.MOST_REFUSALS
        return f"{least} queries may be in doubt, and tables end at {most} refusals" if least >= most else ""


class GateKind(_TabledKind):
    """Winners of stable queries."""

    name = "gate"
    caveat = "The numbers for gate are estimates at each ε for which no table is stored."
    made = Gate

    def chances(
        self, votes: Votes, *, noise: float, threshold: int | None, refusals: int | None
    ) -> tuple[Floats, Floats]:
        """The winner, unless it is refused; the noise is the votes by which refusals become rarer e times."""
        return gate_design.likely_answered(votes.distance, step=1 / noise, labels=True), votes.right


class ConfirmKind(_TabledKind):
    """Confirmations of proposed labels."""

    name = "confirm"
    proposed = True
    made = Confirm

    def chances(
        self, votes: Votes, *, noise: float, threshold: int | None, refusals: int | None
    ) -> tuple[Floats, Floats]:
        """The proposed label, right or wrong, unless it is denied."""
        wrong = votes.proposer_error
        agreed, disputed = (
            gate_design.likely_answered(np.floor(sign * votes.lead / 2), step=1 / noise, labels=False)
            for sign in (1, -1)
        )
        answered = (1 - wrong) * agreed + wrong * disputed
        right = np.divide((1 - wrong) * agreed, answered, out=np.ones_like(agreed), where=answered > 0)
        return answered, right

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """Less what the proposals alone are worth, by the measure of answers."""
        known = flawless(1.0, 1 - wanted.votes[0].proposer_error)
        return (replace(found, known=known) for found in super().candidates(wanted))

    def hard_queries(self, error: float, setting: Setting, *, teachers: int, outvoted: int) -> int:
        """Those, and the ones whose proposal is wrong."""
        hard = super().hard_queries(error, setting, teachers=teachers, outvoted=outvoted)
        return hard + math.ceil(setting.proposer_error * setting.queries)

    def condition(self, setting: Setting) -> str:
        """The proposals' error."""
        return f" and proposals err on {100 * setting.proposer_error:.3g} % at most"


@cache
def _constants(made: type[Gate | Confirm], epsilon: float, delta: float, refusals: int, chance: float) -> Constants:
    """Their noise is the number of votes by which refusals become rarer e times; `chance` is that of a refusal."""
    stored = gate_design.stored_refusals(epsilon, delta, at_least=refusals, labels=made.labels)
    if stored is None:
        step = gate_design.likely_step(epsilon, delta, refusals=refusals)
        distance = max(0, gate_design.likely_distance(chance, step=step, labels=made.labels))
        return Constants(noise=1 / step, refusals=refusals, distance=distance, estimated=True)
    table = made(epsilon=epsilon, delta=delta, refusals=stored)
    return Constants(noise=1 / table.design.step, refusals=stored, distance=max(0, table.place(chance=chance)))
