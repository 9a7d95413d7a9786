"""Mechanisms that answer for free while teachers agree: a table of chances decides, and only refusals are paid for.

    Gate      refuses with a chance that falls with the votes to flip, else gives the winner; the T-th refusal ends it
    Confirm   a label is proposed that owes nothing to private records; it is denied with a chance that falls with its
              lead, else confirmed; the T-th denial ends it

Chances are whole numbers of 2⁻⁶³, drawn exactly. What a table costs is checked anew by `theory.gate` whenever a
guarantee is asked for; proofs in docs/proofs/gate.md.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import validate
from ...core.errors import InputError
from ...core.guarantee import Assumption, Guarantee
from ...theory.gate import ONE, confirm_delta, gate_delta
from ..votes import checked_counts
from . import gate_design
from .session import Answer, Noise, Session, loss_guarantee, one_distance

_PROPOSED = Assumption(
    text="proposed labels depend on private records through earlier answers alone", checked_by="caller"
)


@dataclass(frozen=True, kw_only=True)
class _Tabled(ABC):
    """A mechanism whose coins come from a table with a certificate, and which `refusals` end."""

    epsilon: float
    delta: float
    refusals: int

    labels: ClassVar[bool]
    """Whether an answer names a class, or says yes or no."""
    keeps_noise: ClassVar[bool] = False
    """Every query has its own coin: a run that goes on loses nothing."""

    def __post_init__(self) -> None:
        gate_design.checked_budget(self.epsilon, self.delta, self.refusals)

    @cached_property
    def design(self) -> gate_design.Design:
        """The table and its certificate: stored for common budgets, else searched for, which may take a minute."""
        return gate_design.found(self.epsilon, self.delta, refusals=self.refusals, labels=self.labels)

    def prove(self, advance: gate_design.Advance) -> None:
        """Search for the table, unless it is stored, and check its certificate, telling how far this is."""
        gate_design.found(self.epsilon, self.delta, refusals=self.refusals, labels=self.labels, advance=advance)
        advance("proving what the table of chances costs")
        self.guarantee()

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""


@dataclass(frozen=True, kw_only=True)
class Gate(_Tabled):
    """Gives the winner of stable queries, any number of them, until `refusals` were refused."""

    labels: ClassVar[bool] = True

    @property
    def table(self) -> tuple[int, ...]:
        """The chances of a refusal, of 2⁶³, by votes to flip; the last serves beyond."""
        return self.design.table

    def chance(self, distance: int) -> float:
        """The chance that a query so many votes from a flip is refused."""
        return self.table[min(distance, len(self.table) - 1)] / ONE

    def distance(self, *, chance: float) -> int:
        """The votes to flip from which a query is refused with at most this chance."""
        return _first_below(self.table, chance)

    @cached_property
    def delta_spent(self) -> float:
        """δ of the table as it is drawn from, proven by its certificate."""
        certificate = self.design.certificate()
        return gate_delta(self.epsilon, table=self.table, refusals=self.refusals, certificate=certificate)

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""
        detail = {
            "refusals": self.refusals,
            "votes_to_flip_99": self.distance(chance=0.01),
            "table": _drawn(self.table),
        }
        return loss_guarantee(self, self.delta_spent, ("gate", "theory.gate.gate_delta"), detail)

    def session(self, noise: Noise | None = None) -> Session:
        """One run."""
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
        return None if refused else int(np.argmax(counts))

    def finished(self, session: Session) -> bool:
        """At the T-th refusal."""
        return session.refused >= self.refusals


@dataclass(frozen=True, kw_only=True)
class Confirm(_Tabled):
    """Confirms proposed labels that lead, any number of them, until `refusals` were denied."""

    labels: ClassVar[bool] = False

    @property
    def table(self) -> tuple[int, ...]:
        """The chances of a denial, of 2⁶³, by leads; the first and the last serve beyond."""
        return self.design.leads[1]

    def chance(self, lead: int) -> float:
        """The chance that a label of this lead is denied."""
        return self._of(lead) / ONE

    def lead(self, *, chance: float) -> int:
        """The lead from which a label is denied with at most this chance."""
        return self.design.leads[0] + _first_below(self.table, chance)

    @cached_property
    def delta_spent(self) -> float:
        """δ of the table as it is drawn from, proven by its certificate."""
        certificate = self.design.certificate()
        return confirm_delta(self.epsilon, table=self.table, refusals=self.refusals, certificate=certificate)

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive proposals."""
        detail = {"refusals": self.refusals, "lead_99": self.lead(chance=0.01), "table": _drawn(self.design.leads)}
        theorem = ("confirm or deny", "theory.gate.confirm_delta")
        return loss_guarantee(self, self.delta_spent, theorem, detail, assumed=(_PROPOSED,))

    def session(self, noise: Noise | None = None) -> ConfirmSession:
        """One run."""
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
    """One run of `Confirm`: each query comes with the label that is proposed for it."""

    def answer(self, counts: ArrayLike, *, proposed: int = 0) -> Answer:
        """The proposed class if the teachers confirm it, None if they deny it."""
        row = checked_counts(counts, dimensions=1)
        label = validate.whole("proposed", proposed, at_least=0, remedy="propose one of the classes")
        if label >= len(row):
            raise InputError("proposed", label, requirement=f"must be below {len(row)}", remedy="propose a class")
        order = [label, *(other for other in range(len(row)) if other != label)]
        return None if super().answer(row[order]) is None else label


def _drawn(chances: object) -> str:
    """What tells one table from another, so that no session goes on with one that it did not begin with."""
    return hashlib.sha256(repr(chances).encode()).hexdigest()


def _first_below(table: tuple[int, ...], chance: float) -> int:
    wanted = validate.number("chance", chance, at_least=1e-12, at_most=1, remedy="use 0.01 for 99 % answered")
    return bisect_right([-entry for entry in table], -int(wanted * ONE) - 1)
