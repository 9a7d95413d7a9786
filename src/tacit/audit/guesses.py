"""Certificates for secrets of several values and for secret numbers: what nobody who sees an output can guess."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ..core import validate
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import up
from ..core.wording import safe_text
from ..theory import guessing
from .guess_counts import ClassCounts, NumberCounts, drawing_order

COUNTS, PAIRS = 0.7, 0.3
"""What the limits by counts and by pairs of rows use of the failure probability of a certificate for classes."""

GUESS_SCOPE = (
    "The certificate covers exactly this output, not people who also see the input, labels, other queries or models.",
    "It is not differential privacy.",
    "It is about secrets with the shares of the table: with others, guesses are right more or less often.",
)
"""What such a certificate does not say; every report ends its summary with these sentences, and those of its kind."""
CLASS_SCOPE = (
    "It is about naming the exact value: the output may tell with certainty to which group of values a secret belongs, "
    "or that it is the most frequent one. Whether it does is a question about a secret of two values."
)
NUMBER_SCOPE = (
    "It is about squared errors, in which a few far numbers may count for more than all others: these others may be "
    "known exactly even where the advantage is small."
)

Reading = tuple[str, float, Literal["up", "down"]]
"""A name, a number, and "up" for what nobody exceeds or "down" for what nobody gets below."""

_TOLD_APART = 0.1  # an advantage in telling one value from the others that is worth a caution
_CLOSE = 0.5  # standard deviations within which half of the numbers are close together
_SPARE = 3.5  # standard deviations by which a class may exceed its expected part
_MOST_DRAWN = 10**9 - 1
_OWN_STREAM = 0xC1A55


@dataclass(frozen=True, kw_only=True, repr=False)
class GuessCertificate(Carded):
    """An upper bound on how well anyone who sees an output, and nothing else, guesses a secret.

    The advantage is the share of the error of the best blind guess that anyone can save: 0 is guessing without the
    output, 1 is certainty. It holds except with probability `failure_probability`, whatever the adversary's method, for
    secrets as frequent as in the table.

    Attributes
    ----------
    secret, output
        What is guessed and what the adversary sees, in words.
    limit
        The bound: on the share of right guesses of a `ClassCertificate`, on R² of a `NumberCertificate`.
    plug_in
        The same quantity as measured on the table itself.
    rows, cells
        Rows, and different outputs.
    failure_probability
        The chance that the rows of the table were so unusual that the bound is false.
    theorem
        The functions of `tacit.theory` that lead from the table to the bound.
    assumptions
        What the bound rests on.
    caution
        A doubt that the table itself raises; empty if there is none.
    """

    secret: str
    output: str
    limit: float
    plug_in: float
    rows: int
    cells: int
    failure_probability: float
    theorem: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    caution: str = ""

    method = "discrete"
    condition = ""
    scope: ClassVar[tuple[str, ...]] = GUESS_SCOPE

    @property
    @abstractmethod
    def advantage(self) -> float:
        """Upper bound on the share of the best blind guess's error that anyone saves."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """The bound in one sentence, beside what a blind guess reaches."""

    @property
    @abstractmethod
    def readings(self) -> tuple[Reading, ...]:
        """What the bound means."""

    @abstractmethod
    def quantity(self, reading: str = "advantage") -> str:
        """Name the quantity that is bounded; attacks that are compared with it must name the same."""

    @property
    def guarantee(self) -> Guarantee:
        """The main guarantee: nobody's advantage exceeds a bound."""
        return Guarantee(
            quantity=self.quantity("advantage"),
            side="at_most",
            value=self.advantage,
            adversary=Adversary.OUTPUT.scoped(self.output),
            theorem=self.theorem,
            assumptions=self.assumptions,
            failure_probability=self.failure_probability,
            detail={
                "limit": self.limit,
                "plug_in": self.plug_in,
                "rows": self.rows,
                "outputs": self.cells,
                **{name.replace(" ", "_"): number for name, number, _ in self.readings},
                "caution": self.caution,
                "scope": self.scope,
            },
        )

    def meets(self, *, advantage: float) -> bool:
        """Say whether the certificate proves that nobody's advantage exceeds a ceiling.

        A certificate that bounds nothing proves no ceiling, not even 1.

        Parameters
        ----------
        advantage
            The ceiling, in [0, 1].
        """
        ceiling = validate.number("advantage", advantage, at_least=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
        return self.limit < 1 and self.advantage <= ceiling

    def _card(self) -> tuple[str, Rows]:
        readings = tuple(f"{name}: {safe_text(number, toward=side)}" for name, number, side in self.readings)
        scope = (*([self.caution] if self.caution else []), *self.scope)
        chance = self.guarantee.chance_text
        return self.in_words, [(f"proven, {chance}", readings), *self.guarantee.facts[1:], ("mind", scope)]


@dataclass(frozen=True, kw_only=True, repr=False)
class ClassCertificate(GuessCertificate):
    """An upper bound on how often anyone who sees an output names a secret of several values.

    Attributes
    ----------
    values
        How many values the secret takes.
    blind
        The share of the most frequent one, which is what the best guess without the output reaches.
    shares
        The share of every value in the table, for attacks.
    """

    values: int
    blind: float
    shares: dict[Any, float]

    scope = (*GUESS_SCOPE, CLASS_SCOPE)

    @property
    def accuracy(self) -> float:
        """Upper bound on the share of right guesses: the Bayes vulnerability."""
        return self.limit

    @property
    def gain(self) -> float:
        """Upper bound on the factor by which the output makes right guesses more frequent."""
        return max(1.0, up(self.limit / self.blind, relative=1e-14))

    @property
    def added(self) -> float:
        """Upper bound on the share of right guesses that the output adds."""
        return max(0.0, up(self.limit - self.blind + 1e-15))

    @property
    def advantage(self) -> float:
        """Upper bound on the share of the best blind guess's errors that anyone saves."""
        return min(1.0, up(self.added / (1 - self.blind), relative=1e-14))

    @property
    def in_words(self) -> str:
        """The bound in one sentence, beside what a blind guess reaches."""
        return (
            f"nobody who sees only {self.output} names {self.secret} rightly in more than "
            f"{safe_text(100 * self.limit, toward='up')} % of all cases; the best guess without it is right in "
            f"{safe_text(100 * self.blind, toward='nearest')} %"
        )

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What the bound means."""
        return (
            ("advantage", self.advantage, "up"),
            ("share of right guesses", self.accuracy, "up"),
            ("gain over the best blind guess", self.gain, "up"),
            ("right guesses added to it", self.added, "up"),
        )

    def quantity(self, reading: str = "advantage") -> str:
        """Name the quantity that is bounded; attacks that are compared with it must name the same."""
        return f"{reading} (share of a blind guess's errors saved) in naming {self.secret} by {self.output}"


@dataclass(frozen=True, kw_only=True, repr=False)
class NumberCertificate(GuessCertificate):
    """An upper bound on how well anyone who sees an output estimates a secret number.

    Attributes
    ----------
    deviation
        The standard deviation of the secrets: the error of the best guess without the output.
    low, high
        The stated range of the secrets.
    """

    deviation: float
    low: float
    high: float

    scope = (*GUESS_SCOPE, NUMBER_SCOPE)

    @property
    def explained(self) -> float:
        """Upper bound on R²: 1 − (least mean squared error)/(variance of the secrets)."""
        return self.limit

    @property
    def error(self) -> float:
        """Lower bound on everyone's root mean squared error, in the secret's unit."""
        return max(0.0, self.deviation * math.sqrt(max(0.0, 1 - self.limit)) * (1 - 1e-12))

    @property
    def advantage(self) -> float:
        """Upper bound on the share of the best blind guess's squared error that anyone saves, which is R²."""
        return self.limit

    @property
    def in_words(self) -> str:
        """The bound in one sentence, beside what a blind guess reaches."""
        return (
            f"whoever sees only {self.output} estimates {self.secret} with a root mean squared error of at least "
            f"{safe_text(self.error, toward='down')}; the best guess without it has "
            f"{safe_text(self.deviation, toward='nearest')}"
        )

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What the bound means."""
        return (
            ("advantage", self.advantage, "up"),
            ("share of the variance explained", self.explained, "up"),
            ("root mean squared error", self.error, "down"),
        )

    def quantity(self, reading: str = "advantage") -> str:
        """Name the quantity that is bounded; attacks that are compared with it must name the same."""
        return f"{reading} (R², the share of the variance explained) in estimating {self.secret} by {self.output}"


def certify_classes(
    secret: object,
    output: object,
    *,
    failure_probability: float = 0.05,
    weights: object = None,
    name: str = "the output",
    about: str = "the secret",
) -> ClassCertificate:
    """Certify how often anyone who sees an output names a secret of two, three or more values.

    Every different output counts as a category, as in `certify` without noise. For a secret of two values `certify`
    says more: true and false positive rates, whatever the shares of the two.

    Parameters
    ----------
    secret
        A column of 2 to 1000 values; of 20 at most where they are numbers.
    output
        What the adversary sees: a column, or several that are seen together.
    failure_probability
        The chance that the rows were so unusual that the certificate is false.
    weights
        Multiplicities of rows, whole numbers.
    name, about
        The output and the secret in words, for reports.

    Raises
    ------
    InputError
        Where a column or an option cannot be used.

    References
    ----------
    Cherubin, Chatzikokolakis and Palamidessi 2019, *F-BLEAU*, estimate the same quantity; docs/proofs/guessing.md.
    """
    counts = ClassCounts().add(secret, output, weights=weights)
    return certify_class_counts(counts, failure_probability=failure_probability, name=name, about=about)


def certify_class_counts(counts: ClassCounts, *, failure_probability: float, name: str, about: str) -> ClassCertificate:
    """Certify counts that were gathered batch by batch; the rest is as in `certify_classes`."""
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    output = validate.text("name", name, remedy="name what the adversary sees")
    words = validate.text("about", about, remedy="name what is secret")
    cells, classes, found = counts.triples()
    rows = int(found.sum())
    _check_values(counts.values, rows)
    sizes = np.bincount(classes, weights=found).astype(np.int64)
    best = np.zeros(counts.cells, dtype=np.int64)
    np.maximum.at(best, cells, found)
    correct = int(best.sum())
    by_counts = guessing.accuracy_upper(correct, rows=rows, failure_probability=COUNTS * failure)
    by_pairs = _by_pairs(cells, classes, found, sizes, failure_probability=PAIRS * failure)
    blind = int(sizes.max()) / rows
    theorem = ["theory.guessing.accuracy_upper"]
    if by_pairs is not None:
        theorem += ["theory.guessing.collision_upper", "theory.guessing.accuracy_from_collisions"]
        if by_pairs < by_counts:
            theorem = [theorem[2], theorem[1], theorem[0]]
    # Nobody does worse than blindly.
    limit = max(blind, by_counts if by_pairs is None else min(by_counts, by_pairs))
    return ClassCertificate(
        secret=words,
        output=output,
        limit=limit,
        plug_in=correct / rows,
        rows=rows,
        cells=counts.cells,
        failure_probability=failure,
        theorem=("Bayes vulnerability, by counts and by pairs of rows", *theorem),
        assumptions=_assumptions("the secret takes two values or more, and nothing is missing"),
        caution=_told_apart(cells, classes, found, sizes, shown=(limit - blind) / (1 - blind)),
        values=counts.values,
        blind=blind,
        shares={label: int(size) / rows for label, size in zip(sorted(counts.labels), sizes, strict=True)},
    )


def _told_apart(cells: Any, classes: Any, found: Any, sizes: Any, *, shown: float) -> str:
    """A caution where the output tells values from all others, which the share of right guesses need not show.

    The advantage TPR − FPR of one value against the rest, averaged over the values by their shares; as measured, less
    what chance adds to it at most: ½√(k(1/n_s + 1/(n − n_s))) for k outputs.
    """
    rows, outputs = int(sizes.sum()), np.bincount(cells, weights=found)
    others = rows - sizes
    # Where a value never occurs nothing is added: both laws add up to 1, so one sign is enough.
    mine, rest = found / sizes[classes], (outputs[cells] - found) / others[classes]
    apart = np.bincount(classes, weights=np.maximum(0.0, mine - rest))
    told = float((sizes / rows * (apart - np.sqrt(len(outputs) * (1 / sizes + 1 / others)) / 2)).sum())
    if told <= max(_TOLD_APART, shown):
        return ""
    return (
        f"The output tells a value from all others with an advantage (TPR − FPR) of about {told:.2f}, averaged over "
        "values, on this table, which is more than right guesses show. Audit single values, or groups of them, as "
        "secrets of two values."
    )


def _by_pairs(cells: Any, classes: Any, found: Any, sizes: Any, *, failure_probability: float) -> float | None:
    """The limit from pairs of rows of a random part in which secrets are independent draws; None if there is none."""
    rows = int(sizes.sum())
    reach = (np.sqrt(_SPARE**2 + 4 * sizes) - _SPARE) / 2
    part = int(rows * float((reach**2 / sizes).min()))
    if part < 2 or rows > _MOST_DRAWN:
        return None
    order, seed = drawing_order(cells, classes, found)
    cells, found = cells[order], found[order]
    held = np.split(found, np.flatnonzero(np.diff(classes[order])) + 1)
    sizes = np.array([one.sum() for one in held])
    rng = np.random.default_rng([seed, _OWN_STREAM])
    wanted = rng.multinomial(part, sizes / rows)
    if (wanted > sizes).any():
        return None
    drawn = np.concatenate(
        [
            rng.multivariate_hypergeometric(one, size, method="marginals")
            for one, size in zip(held, wanted.tolist(), strict=True)
        ]
    )
    of_cells = np.bincount(cells, weights=drawn)
    agreeing = np.bincount(cells, weights=drawn * (drawn - 1.0))
    several = of_cells > 1
    total = math.fsum(agreeing[several] / (of_cells[several] - 1)) + float((of_cells == 1).sum())
    agreement = min(1.0, up(total / part, relative=1e-12))
    collision = guessing.collision_upper(agreement, rows=part, failure_probability=failure_probability)
    return guessing.accuracy_from_collisions(collision, classes=len(sizes))


def _check_values(values: int, rows: int) -> None:
    if values < 2:
        raise InputError(
            "secret", "one", requirement="must take two values or more in the table", remedy="add rows of another class"
        )
    if 2 * values > rows:
        raise InputError(
            "secret",
            f"{values} values in {rows} rows",
            requirement="must take no more values than half of the rows",
            remedy="name a column whose values repeat, or group them into fewer classes",
        )


def certify_number(
    secret: object,
    output: object,
    *,
    secret_range: tuple[float, float],
    failure_probability: float = 0.05,
    weights: object = None,
    name: str = "the output",
    about: str = "the secret",
) -> NumberCertificate:
    """Certify how well anyone who sees an output estimates a secret number.

    Every different output counts as a category, as in `certify` without noise.

    Parameters
    ----------
    secret
        A column of numbers.
    output
        What the adversary sees: a column, or several that are seen together.
    secret_range
        The least and the largest number that the secret can be at all, known without the table. Numbers beyond are
        refused. The narrower it is, the smaller is the bound.
    failure_probability
        The chance that the rows were so unusual that the certificate is false.
    weights
        Multiplicities of rows, whole numbers.
    name, about
        The output and the secret in words, for reports.

    Raises
    ------
    InputError
        Where a column or an option cannot be used.
    """
    counts = NumberCounts(*range_of(secret_range)).add(secret, output, weights=weights)
    return certify_number_counts(counts, failure_probability=failure_probability, name=name, about=about)


def certify_number_counts(
    counts: NumberCounts, *, failure_probability: float, name: str, about: str
) -> NumberCertificate:
    """Certify sums that were gathered batch by batch; the rest is as in `certify_number`."""
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    output = validate.text("name", name, remedy="name what the adversary sees")
    words = validate.text("about", about, remedy="name what is secret")
    cells, deviation = counts.centred()
    half = counts.shortest_half()
    caution = (
        f"Half of the numbers lie within {safe_text(half, toward='up')} of each other, where the standard deviation of "
        f"all is {safe_text(deviation, toward='nearest')}: they hardly count in it, and may be known exactly. Audit "
        "them without the far ones, or classes of the number."
    )
    return NumberCertificate(
        secret=words,
        output=output,
        limit=guessing.explained_upper(*cells, failure_probability=failure),
        plug_in=min(1.0, float((cells[1] ** 2 / cells[0]).sum() / cells[2].sum())),
        rows=counts.rows,
        cells=counts.cells,
        failure_probability=failure,
        theorem=("share of a secret number's variance", "theory.guessing.explained_upper"),
        assumptions=_assumptions("every secret lies within the range stated, and nothing is missing"),
        caution=caution if half < _CLOSE * deviation else "",
        deviation=deviation,
        low=counts.low,
        high=counts.high,
    )


def range_of(given: object) -> tuple[float, float]:
    """The two ends of a range that was passed as a pair."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise InputError(
            "secret_range", given, requirement="must be two numbers", remedy="write the smaller one first: (0, 120)"
        )
    return given[0], given[1]


def _assumptions(checked: str) -> tuple[Assumption, ...]:
    return (
        Assumption(
            text="rows are independent, and given the secret the output is drawn from one law for its value",
            checked_by="caller",
        ),
        Assumption(text="columns, range, groups and seed were chosen before this table was seen", checked_by="caller"),
        Assumption(text=checked, checked_by="code"),
    )
