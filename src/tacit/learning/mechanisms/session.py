"""The interface of mechanisms, and sessions: one run of a mechanism.

Noise is made of whole numbers drawn exactly (`tacit.runtime.entropy`), and nothing here turns private counts into
floats. Costs are proven in docs/proofs/accounting.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from numbers import Integral
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import validate
from ...core.errors import BudgetSpentError, InputError, NoTheoremError
from ...core.evidence import Evidence
from ...core.guarantee import Adversary, Assumption, Guarantee
from ...core.wording import text_above
from ...runtime import entropy
from ...theory.gate import ONE
from ..votes import checked_counts

Answer = int | tuple[int, ...] | None

_ONE_VOTE = Assumption(
    text="data that differ in what is protected (one record, or one label) differ in at most one teacher's vote on "
    "each query",
    checked_by="caller",
)
_ASSUMED = (
    Assumption(
        text="queries depend on private records through earlier answers alone",
        checked_by="caller",
    ),
    Assumption(
        text="one session is run; each further one is a release of its own, with its own cost",
        checked_by="caller",
    ),
    Assumption(
        text="nobody can foresee the noise, which comes from cryptographic generators that the operating system seeds; "
        "the adversary sees answers, not how long they took",
        checked_by="caller",
    ),
    Assumption(text="the session answers nothing after it has stopped", checked_by="code"),
    Assumption(text="counts are whole numbers", checked_by="code"),
)


class Noise(Protocol):
    """The source of a session's noise."""

    def laplace(self, scale: float) -> int:
        """One discrete Laplace number."""
        ...

    def gaussian(self, scale: float, *, size: int) -> Sequence[int]:
        """Independent discrete Gaussian numbers."""
        ...

    def coin(self, chance: int, *, of: int = ONE) -> bool:
        """True with probability chance/of."""
        ...


class SystemNoise:
    """Fresh, exact noise from `tacit.runtime.entropy`. Use no other for a release."""

    def laplace(self, scale: float) -> int:
        """One discrete Laplace number."""
        return int(entropy.discrete_laplace(scale, size=1)[0])

    def gaussian(self, scale: float, *, size: int) -> list[int]:
        """Independent discrete Gaussian numbers."""
        return [int(value) for value in entropy.discrete_gaussian(scale, size=size)]

    def coin(self, chance: int, *, of: int = ONE) -> bool:
        """True with probability chance/of."""
        return bool(entropy.bernoulli(Fraction(chance, of), size=1)[0])


class Mechanism(Protocol):
    """The interface of every mechanism."""

    @property
    def epsilon(self) -> float:
        """The privacy loss ε of one session."""
        ...

    @property
    def delta(self) -> float:
        """The δ of one session."""
        ...

    @property
    def undecided(self) -> tuple[int, int]:
        """Two largest counts at which its answer is about as likely as not, where attacks look first."""
        ...

    @property
    def spread(self) -> float:
        """The size of its noise in votes."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What is proven about one session; raises `NoTheoremError` if nothing is."""
        ...

    def session(self, noise: Noise | None = None) -> Session:
        """Begin one run."""
        ...

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The answer to one query; only sessions call it."""
        ...

    def finished(self, session: Session) -> bool:
        """Whether the session has stopped, by a rule fixed beforehand."""
        ...


class Session:
    """One run of a mechanism, which counts queries and refusals and stops for good.

    It cannot be copied, pickled, or used in a forked process: each copy would spend the same budget again.

    Parameters
    ----------
    mechanism
        The mechanism.
    noise
        The source of noise, for tests; fresh noise of the system unless given.

    Attributes
    ----------
    asked, answered, refused
        The numbers of queries, answers and refusals so far.
    memory
        What the mechanism keeps between queries, such as the noise of the current threshold. Private.
    """

    def __init__(self, mechanism: Mechanism, noise: Noise | None = None) -> None:
        self.mechanism = mechanism
        self.noise: Noise = SystemNoise() if noise is None else noise
        self.asked = self.answered = self.refused = 0
        self.memory: int | None = None
        self._broken = False
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def kept(self) -> dict[str, object]:
        """What follows from answers alone, and is noted beside them: a run that goes on must come to the same."""
        return {}

    @property
    def stopped(self) -> bool:
        """Whether the session has stopped: every further query raises `BudgetSpentError`."""
        return self._broken or self.mechanism.finished(self)

    def answer(self, counts: ArrayLike) -> Answer:
        """Answer one query.

        Parameters
        ----------
        counts
            The number of votes for each class.

        Returns
        -------
        The class, all noisy counts where the mechanism releases these, or None for a refusal.

        Raises
        ------
        BudgetSpentError
            If the session has stopped.
        """
        return self._answered(checked_counts(counts, dimensions=1))

    def _answered(self, row: NDArray[np.int64]) -> Answer:
        """The answer to counts that have been checked."""
        if os.getpid() != self._process:
            raise NoTheoremError(
                f"a session must stay in the process that began it ({self._process}), got process {os.getpid()}; "
                "ask through one process, or begin another session with a budget of its own"
            )
        with self._lock:
            if self.stopped:
                raise BudgetSpentError(
                    f"a session that has stopped must answer nothing more, got query {self.asked + 1} after "
                    f"{self.answered} answers and {self.refused} refusals; its budget is spent"
                )
            self.asked += 1
            self._broken = True  # unless the answer is whole: an interrupted query may have been a refusal
            result = self.mechanism.response(row, self)
            if result is None:
                self.refused += 1
            else:
                self.answered += 1
            self._broken = False
            return result

    def replay(self, answers: Sequence[Answer], *, charged: int) -> None:
        """Count the answers that an interrupted run has released, and the interruptions charged as refusals."""
        with self._lock:
            if self.asked:
                raise BudgetSpentError(
                    f"a session must begin with what was released before, got {self.asked} queries already; "
                    "replay once, before the first"
                )
            self.asked = len(answers)
            self.answered = sum(answer is not None for answer in answers)
            self.refused = self.asked - self.answered + charged

    def go_on(self, *, answered: int, refused: int) -> None:
        """Begin where a session ended whose every decision is on record, and whose noise was kept."""
        with self._lock:
            self.asked, self.answered, self.refused = answered + refused, answered, refused

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NoTheoremError(
            "a session must not be copied, got a copy or pickle of it; both would spend the same budget: "
            f"begin another with session() (protocol {protocol})"
        )


def one_distance(counts: NDArray[np.int64]) -> int:
    """`votes_to_flip` of one query, in Python's whole numbers."""
    second, first = sorted([0, *counts.tolist()])[-2:]
    return int(max(0, (first - second + 1) // 2 - 1))


def check_budget(mechanism: Any) -> None:
    """Check ε and δ of a mechanism, and make both floats, in which constants are computed; whole numbers become ints.

    NumPy's would overflow in a product, and no file could hold them.
    """
    epsilon = validate.budget("epsilon", mechanism.epsilon, at_least=1e-9, at_most=1e4, remedy="use about 1")
    remedy = "use about 1/n², e.g. 1e-10 for 100000 records"
    delta = validate.budget("delta", mechanism.delta, above=0, below=1, remedy=remedy)
    wholes = {
        field.name: int(value)
        for field in fields(mechanism)
        if isinstance(value := getattr(mechanism, field.name), Integral) and not isinstance(value, bool)
    }
    for name, value in {**wholes, "epsilon": epsilon, "delta": delta}.items():
        object.__setattr__(mechanism, name, value)  # of a frozen description, before anyone has seen it


def with_noise(sums: NDArray[np.int64], sigma: float, noise: Noise | None) -> NDArray[np.int64]:
    """Whole numbers, each with fresh discrete Gaussian noise, which would leave the fractions of others as they are."""
    if not (sums.dtype.kind in "iu" and np.can_cast(sums.dtype, np.int64)):
        raise InputError(
            "sums", f"{sums.dtype} ones", requirement="must be whole numbers", remedy="round before adding up"
        )
    source = SystemNoise() if noise is None else noise
    drawn = np.array(source.gaussian(sigma, size=sums.size), dtype=np.int64)
    return sums + drawn.reshape(sums.shape)


def loss_guarantee(
    mechanism: Mechanism,
    spent: float,
    theorem: tuple[str, ...],
    detail: dict[str, Any],
    *,
    constants: Callable[[], dict[str, Any]] | None = None,
    assumed: tuple[Assumption, ...] = (),
    voting: Assumption = _ONE_VOTE,
) -> Guarantee:
    """The guarantee of a mechanism; raises `NoTheoremError` if its constants spend more than its δ.

    `constants` returns what its certificate states: the name by which the checker knows the mechanism, and the inputs
    of its theorem; None for a mechanism that the checker has no rule for. `voting` says how votes may differ.
    """
    if not spent <= mechanism.delta:
        raise NoTheoremError(
            f"the constants of {type(mechanism).__name__} must give a δ of at most {mechanism.delta:.10g}, got "
            f"{spent:g} at epsilon = {mechanism.epsilon:.10g}; use a smaller epsilon, or variant='tight'"
        )
    return Guarantee(
        quantity=f"privacy loss ε at δ = {text_above(mechanism.delta)}",
        side="at_most",
        value=mechanism.epsilon,
        adversary=Adversary.ANY,
        theorem=theorem,
        assumptions=(*assumed, voting, *_ASSUMED),
        detail={"mechanism": type(mechanism).__name__, "delta": mechanism.delta, "delta_spent": spent, **detail},
        evidence=None if constants is None else _evidence(mechanism, constants),
    )


def _evidence(mechanism: Mechanism, constants: Callable[[], dict[str, Any]]) -> Evidence:
    return Evidence(
        rule="private answers",
        inputs=lambda: {
            "delta": mechanism.delta,
            "neighbours": "one record added or removed",
            "parts": [{**constants(), "epsilon": mechanism.epsilon, "delta": mechanism.delta}],
        },
    )
