"""What could be released instead: mechanisms that change an output record by record, all certified on one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.wording import chance_text, safe_text
from .certificate import Certificate
from .certifying import certify
from .columns import column, output_columns, spelled_numbers

MENU_ROWS = 100_000
"""How many rows of a file certify a menu at most, drawn at random, as many of either class."""

_MOST_OWN = 1_000  # rows that fix the scale
_MOST_ROUNDED = 20  # columns; with more, rounded vectors are all different
_MOST_PRICED = 20_000  # rows from which the accuracy is measured
_MOST_LABELS = 100
_NOISES = (0.1, 0.3)  # of the scale
_FARTHEST = 1e100
_ROUNDING = 1e-9  # of a step: smaller changes are those of multiplying in float64 alone
_HALF = 1e-6  # of a step and of the number of steps: more than float32 errs by

_Columns = list[NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class MenuOption:
    """A mechanism, and what is certified of its release.

    Attributes
    ----------
    what
        The mechanism in words: what is done to each record's output.
    certificate
        What nobody who sees its release exceeds.
    change
        By how much a number changes on average; None where only a label is left.
    accuracy
        How often the target is guessed from the release, measured; None without a target.
    """

    what: str
    certificate: Certificate
    change: float | None
    accuracy: float | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Menu(Carded):
    """Mechanisms that were certified on the same rows, so that all limits hold together.

    Attributes
    ----------
    options
        The mechanisms, those that change the output least first.
    accuracy
        How often the target is guessed from the output as it is; None without a target.
    rows
        How many rows certify the options.
    failure_probability
        The chance that any of the options' certificates is false.
    """

    options: tuple[MenuOption, ...]
    accuracy: float | None
    rows: int
    failure_probability: float

    def meeting(self, ceiling: float) -> tuple[MenuOption, ...]:
        """Options that are proven to keep a ceiling for the advantage, the cheapest first.

        Parameters
        ----------
        ceiling
            For the advantage.
        """

        def price(option: MenuOption) -> float:
            if option.accuracy is not None:
                return -option.accuracy
            return math.inf if option.change is None else option.change

        return tuple(sorted((one for one in self.options if one.certificate.meets(advantage=ceiling)), key=price))

    def _card(self) -> tuple[str, Rows]:
        lines = [
            f"{one.what}: advantage at most {safe_text(one.certificate.advantage, toward='up')}" for one in self.options
        ]
        said = f"What could be released instead; all limits hold together {chance_text(self.failure_probability)}"
        return said, [("options", tuple(lines))]


@dataclass(frozen=True, kw_only=True)
class _Mechanism:
    what: str
    applied: Callable[[_Columns], _Columns]
    step: float | None = None  # of rounding: what is applied counts steps
    halves: Callable[[_Columns], _Columns] = lambda _: []  # what rounding in another way could tell beside it
    noise: float | None = None


def release_menu(
    secret: object,
    output: object,
    *,
    target: object = None,
    failure_probability: float = 0.05,
    positive: object = None,
    name: str = "the output",
    seed: int = 0,
) -> Menu:
    """Certify a few mechanisms that could change an output of numbers before its release.

    They are rounding to a fixed grid, Gaussian noise of a fixed size, and releasing no more than which column is the
    largest (the first where several are), or whether a probability reaches one half. Numbers half-way between two
    multiples may be rounded to either: they are counted as if they were released as they are. The mechanisms' scale,
    a power of ten, is fixed on rows of its own: a tenth, 1000 at most. The other rows certify all of them, and each
    gets an equal share of the failure probability.

    Parameters
    ----------
    secret
        A column with two values.
    output
        A column of numbers, or several: a mapping, a data frame or a two-dimensional array.
    target
        The column that the output should predict, if the price is wanted as accuracy. It is measured by gradient
        boosting, fitted to half of the rows (20 000 at most) and tested on the others.
    failure_probability
        The chance that any of the certificates is false.
    positive
        The secret that is called positive; by default the one that sorts last.
    name
        The output in words, for reports.
    seed
        Of the rows that fix the scale, of draws, and of what is fitted.

    Raises
    ------
    InputError
        Where the output holds no fractions, or a column or an option cannot be used.
    """
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    secrets = column("secret", secret)
    columns = numbers(output_columns(output, rows=len(secrets)))
    if columns is None:
        raise InputError(
            "output",
            "categories",
            requirement="must hold finite numbers that float64 tells apart, some of them with fractions",
            remedy="release fewer categories, and audit those",
        )
    own, rest = _parts(len(secrets), seed)
    mechanisms = _mechanisms([one[own] for one in columns])
    kept, truth = [one[rest] for one in columns], secrets[rest]
    options: dict[str, Any] = {"failure_probability": failure / len(mechanisms), "positive": positive, "seed": seed}
    labels = None if target is None else _labels(target, len(secrets))[rest]
    found = []
    for mechanism in mechanisms:
        changed = mechanism.applied(kept)
        counted = [*changed, *mechanism.halves(kept)]
        seen = dict(enumerate(counted)) if len(counted) > 1 else counted[0]
        how = "discrete" if mechanism.noise is None else "noisy"
        what = name if mechanism.noise is not None else f"{name} {mechanism.what}"
        try:
            certificate = certify(truth, seen, noise=mechanism.noise, method=how, name=what, **options)
        except InputError:
            if mechanism.noise is None:
                raise
            continue  # out of the grid's reach, and its share of the failure probability is not spent
        found.append(
            MenuOption(
                what=mechanism.what,
                certificate=certificate,
                change=_change(mechanism, kept, changed),
                accuracy=None if labels is None else _accuracy(mechanism, changed, labels, seed),
            )
        )
    as_it_is = _Mechanism(what="as it is", applied=lambda seen: seen)
    return Menu(
        options=tuple(found),
        accuracy=None if labels is None else _accuracy(as_it_is, kept, labels, seed),
        rows=len(rest),
        failure_probability=failure,
    )


def numbers(columns: list[NDArray[Any]]) -> _Columns | None:
    """Columns as numbers, also where texts spell them; None where one holds categories, or none holds a fraction.

    Also None where different numbers are one to float64, as what is released could still tell them apart.
    """
    found: _Columns = []
    for one in columns:
        spelled = spelled_numbers(one) if one.dtype.kind == "U" else one.astype(np.float64)
        if spelled is None or not (np.abs(spelled) <= _FARTHEST).all() or _merged(one, spelled):
            return None
        found.append(spelled)
    return found if any((one != np.floor(one)).any() for one in found) else None


def _merged(column: NDArray[Any], spelled: NDArray[np.float64]) -> bool:
    """Whether different numbers became one."""
    if column.dtype.kind in "iu":
        return bool((np.abs(spelled) > 2**53).any())
    if column.dtype.kind != "U":
        return False
    texts, first = np.unique(column, return_index=True)
    _, places, times = np.unique(spelled[first], return_inverse=True, return_counts=True)
    twice = texts[times[places] > 1].tolist()  # 1.0 and 1.00 are one number
    return len({Decimal(text) for text in twice}) > len({float(text) for text in twice})


def _parts(rows: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that fix the scale and those that certify, by their number and the seed alone."""
    order = np.random.default_rng([seed, 0x3E90]).permutation(rows)
    own = min(_MOST_OWN, max(1, rows // 10))
    return np.sort(order[:own]), np.sort(order[own:])


def _mechanisms(own: _Columns) -> list[_Mechanism]:
    """The menu, by the rows that fix the scale."""
    most = max(float(np.abs(one).max()) for one in own)
    power = math.ceil(math.log10(most)) if most > 1 / _FARTHEST else 0
    unit = 10.0**power

    def size(share: float) -> str:
        return f"{unit * share:.12g}"

    def rounded(share: float) -> _Mechanism:
        # The sign of a zero is counted as released: rounding keeps it in most languages.
        step = float(size(share))
        return _Mechanism(
            what=f"rounded to multiples of {size(share)}",
            applied=lambda seen: [np.rint(one / step) for one in seen],
            halves=lambda seen: [halfway(one, step) for one in seen],
            step=step,
        )

    def noisy(share: float) -> _Mechanism:
        return _Mechanism(
            what=f"with Gaussian noise of {size(share)}",
            applied=lambda seen: seen,
            noise=float(size(share)),
        )

    found = [rounded(share) for share in (0.01, 0.1, 0.25)] if len(own) <= _MOST_ROUNDED else []
    if len(own) > 1:
        step = float(size(0.1))
        found += [
            _Mechanism(
                what=f"as the largest, rounded to {size(0.1)}",
                applied=lambda seen: [_largest(seen), np.rint(np.max(seen, axis=0) / step)],
                halves=lambda seen: [halfway(np.max(seen, axis=0), step)],
            ),
            _Mechanism(what="as the name of the largest alone", applied=lambda seen: [_largest(seen)]),
        ]
    elif own[0].min() >= 0 and unit == 1:
        half = unit / 2
        found.append(
            _Mechanism(
                what="as whether it is at least 0.5",
                applied=lambda seen: [(seen[0] >= half).astype(np.float64)],
            )
        )
    return found + [noisy(share) for share in _NOISES]


def halfway(column: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """The number itself where it is about half-way between two multiples of the step, else 0.

    Which of the two it is rounded to differs between languages, and to float32.
    """
    steps = column / step
    near = np.abs(steps - np.floor(steps) - 0.5) <= _HALF * (1 + np.abs(steps))
    return np.where(near, column, 0.0)


def _largest(columns: _Columns) -> NDArray[np.float64]:
    """The place of the largest number of each row, the first of them where several are."""
    places: NDArray[np.float64] = np.argmax(columns, axis=0).astype(np.float64)
    return places


def _change(mechanism: _Mechanism, before: _Columns, after: _Columns) -> float | None:
    """By how much a number changes on average, over all columns and rows."""
    if mechanism.noise is not None:
        return mechanism.noise * math.sqrt(2 / math.pi)
    step = mechanism.step
    if step is None:
        return None
    found = float(np.mean([np.abs(one * step - was).mean() for one, was in zip(after, before, strict=True)]))
    return found if found > _ROUNDING * step else 0.0


def _labels(target: object, rows: int) -> NDArray[Any]:
    found = column("target", target)
    values = np.unique(found)
    if len(found) != rows or found.dtype.kind == "f" or not 2 <= len(values) <= _MOST_LABELS:
        raise InputError(
            "target",
            f"{len(found)} rows, {len(values)} values",
            requirement=f"must be the label of each of the {rows} rows, with 2 to {_MOST_LABELS} values",
            remedy="name the column that the output should predict",
        )
    return found


def _accuracy(mechanism: _Mechanism, released: _Columns, labels: NDArray[Any], seed: int) -> float:
    """How often labels are guessed from what is released, on rows that the guess was not fitted to."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng([seed, 0xACC])
    order = rng.permutation(len(labels))[:_MOST_PRICED]
    features = np.stack(released, axis=1)[order]
    if mechanism.noise is not None:
        features = features + mechanism.noise * rng.standard_normal(features.shape)
    fit, test = np.array_split(np.arange(len(order)), 2)
    truth = labels[order]
    if len(np.unique(truth[fit])) < 2:
        return float((truth[test] == truth[fit][0]).mean())
    model = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=15, random_state=seed)
    return float((model.fit(features[fit], truth[fit]).predict(features[test]) == truth[test]).mean())
