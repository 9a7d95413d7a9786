r"""What labels cost: (ε, δ) of the class of the largest noisy count, for any number of classes and of answers.

Whoever sees only which noisy count is largest learns less about a vote than whoever sees all counts. `winners` says how
much less by a game that is played out; here one number bounds it: by how much an answer can raise the moment
Σ P^(1+λ)·Q^(−λ) of the laws of all answers, for one order λ. That is a little more than the game's price, and it holds
for any number of classes and of answers and can be followed in plain arithmetic. Proofs: docs/proofs/label_moments.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.rounding import LIBRARY, at_most, up
from .accounting import gnmax_delta, gnmax_sigma

_LEAST, _MOST = 0.5, 2e4
"""The noise for which moments are computed."""

_MOST_ORDER = 5.0
"""The largest λ in multiples of the noise: beyond it labels hardly cost less than counts."""

_FINE, _ROUGH = 100, 8
"""Cells per standard deviation of a difference; so few are enough to choose λ."""

_USUAL, _SHARE = 0.65, 0.9
"""About the moments of many answers, in multiples of λ(1 + λ)/σ², and their share of rough ones: with these the search
for λ begins."""

_NEAR, _FAR = 8, 12
"""Cells reach to this many standard deviations, tables of weights to that many."""

_GROUP, _LEAST_GROUP = 0.16, 3
"""Pairs of thresholds are grouped by the sum of their cells' numbers, by this many standard deviations: those of one
query lie in two groups, side by side, as these sums differ by 3 at most."""

_SUMS = 8
"""The known sum is averaged to this many of its standard deviations."""

_BEYOND = 3e-14
"""More than the chance of a sum beyond that, 2·exp(−32)."""

_UNIT = 2.0**-53

_GRANTED = 2.0**-42
"""Added to every moment's logarithm, so that who computes it another way, and rounds up, finds no more."""

_STEPS, _CLOSE, _NEARLY = 12, 0.98, 5e-4
"""Looks of a search for σ at most, the share of δ at which it ends, and the share of σ that is not looked for."""

_Floats = NDArray[np.float64]


@at_most
def labels_delta(
    epsilon: float,
    *,
    sigma: float,
    answers: int,
    classes: int | None = None,
    test_sigma: float = 1.0,
    tests: int = 0,
    order: float | None = None,
) -> float:
    r"""δ(ε) of N labels, each the class of the largest noisy count, and A tests of the largest count.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ of the noise on each count of an answer.
    answers
        The number N of answers.
    classes
        2 if there are no more than two classes; None, or any other number, for all numbers of classes.
    test_sigma
        The standard deviation σ₁ of the noise on the largest count in a test.
    tests
        The number A of tests; 0 for answers without a test.
    order
        λ > 0, any of which is valid; by default about the best.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ λ^λ/(1+λ)^(1+λ)·exp(N·g + A·g₁ − λε), where exp(g) is an upper bound on Σ P^(1+λ)·Q^(−λ) over all
    pairs (P, Q) of laws of one label under neighbouring data sets, and exp(g₁) the same for whether a noisy count
    reaches a threshold. Without tests these are labels of noisy vote counts, with them labels of noisy vote counts
    behind a noisy threshold.

    Assumptions. One record changes at most one vote a query; fresh discrete Gaussian noise of σ on every count of an
    answer and σ₁ on the largest count of a test; nothing else is released than the class of the largest noisy count, of
    equals the first, and whether a test was passed; at most N answers and A tests, stopped by counts that are fixed
    beforehand (caller).

    Where `gnmax_delta`, which charges for all noisy counts, is smaller, it is returned; so it is where moments are not
    computed, for σ below ½ or above 20000, or λ above 5σ/√2.

    Direction. An upper bound, rounded up, at most 1.

    References
    ----------
    docs/proofs/label_moments.md.
    """
    counts = gnmax_delta(epsilon, sigma=sigma, answers=answers, test_sigma=test_sigma, tests=tests)
    two = classes is not None and validate.whole("classes", classes, at_least=2, remedy="count the classes") == 2
    epsilon, sigma, test_sigma = float(epsilon), float(sigma), float(test_sigma)
    if order is None:
        found = _order(epsilon, sigma, int(answers), two, test_sigma, int(tests))
    else:
        found = validate.number("order", order, above=0, at_most=1e6, remedy="leave it out")
    if found is None:
        return counts
    return min(counts, _bound(epsilon, sigma, int(answers), two, test_sigma, int(tests), found, _FINE))


@at_most
def labels_sigma(
    epsilon: float, delta: float, *, answers: int, classes: int | None = None, tests: int = 0, ratio: float = 1.0
) -> float:
    r"""A standard deviation of the noise at which labels keep to a budget; the tests' is `ratio` times as large.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    answers
        The number N of answers.
    classes
        2 if there are no more than two classes; None, or any other number, for all numbers of classes.
    tests
        The number A of tests; 0 for answers without a test.
    ratio
        The ratio σ₁/σ of the tests' noise to that of the answers.

    Returns
    -------
    float
        The standard deviation σ.

    Notes
    -----
    Statement. A σ, at most that of `gnmax_sigma`, with δ(ε) ≤ delta, δ(ε) of `labels_delta` with σ₁ = ratio·σ.

    Assumptions. Those of `labels_delta`; epsilon > 0, delta in (0, 1), ratio > 0 (checked).

    Direction. The σ returned was itself checked with `labels_delta`, or is that of `gnmax_sigma`; if labels cost less
    than counts, δ(ε) is at least 0.98·delta there, unless the search ended early.

    References
    ----------
    docs/proofs/label_moments.md.
    """
    counts = gnmax_sigma(epsilon, delta, answers=answers, tests=tests, ratio=ratio)
    ratio = float(ratio)
    best, low, aimed = counts, _LEAST * max(1.0, 1 / ratio if tests else 1.0), 0.9 * counts
    for _ in range(_STEPS):
        if low >= (1 - _NEARLY) * best:
            break
        tried = aimed if low < aimed < best else (low + best) / 2
        spent = labels_delta(
            epsilon, sigma=tried, answers=answers, classes=classes, test_sigma=ratio * tried, tests=tests
        )
        if spent <= delta:
            best = min(best, tried)
            if spent >= _CLOSE * delta:
                break
        else:
            low = max(low, tried)
        order = _order(float(epsilon), tried, int(answers), classes == 2, ratio * tried, int(tests))
        if order is None:
            break
        # λ is the best, so ln δ falls with ln σ as its exponent does alone, which is about a multiple of 1/σ².
        paid = math.log(max(spent, 1e-300)) - _constant(order) + order * epsilon
        aimed = tried * math.exp((math.log(max(spent, 1e-300) / delta) + 0.5 * (1 - _CLOSE)) / max(2 * paid, 1.0))
    return best


@lru_cache(maxsize=2048)
def labels_order(
    epsilon: float, *, sigma: float, answers: int, classes: int | None = None, test_sigma: float = 1.0, tests: int = 0
) -> float | None:
    """The λ by which `labels_delta` bounds δ(ε), no bound itself; None where counts cost no more.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ of the noise on each count of an answer.
    answers
        The number N of answers.
    classes
        2 if there are no more than two classes.
    test_sigma
        The standard deviation σ₁ of the noise on the largest count in a test.
    tests
        The number A of tests.

    Returns
    -------
    float or None
        λ, a number of five binary digits, as a certificate states it.
    """
    counts = gnmax_delta(epsilon, sigma=sigma, answers=answers, test_sigma=test_sigma, tests=tests)  # checks them
    epsilon, sigma, test_sigma = float(epsilon), float(sigma), float(test_sigma)  # moments, which are kept, need floats
    answers, tests = int(answers), int(tests)
    found = _order(epsilon, sigma, answers, classes == 2, test_sigma, tests)
    if found is None or _bound(epsilon, sigma, answers, classes == 2, test_sigma, tests, found, _FINE) >= counts:
        return None
    return found


def _constant(order: float) -> float:
    """ln of the least C with C·y^(−λ) ≥ (1 − y)⁺."""
    return order * math.log(order) - (1 + order) * math.log1p(order)


def _bound(
    epsilon: float, sigma: float, answers: int, two: bool, test_sigma: float, tests: int, order: float, fine: int
) -> float:
    """The bound at one order, rounded up; 1 where it is not computed."""
    if not _computed(sigma, order) or (tests and not _computed(test_sigma, order)):
        return 1.0
    paid = answers * _label_moment(sigma, order, two, fine)
    paid += tests * _vote_moment(test_sigma, order, fine) if tests else 0.0
    parts = order * math.log(order), (1 + order) * math.log1p(order), paid, order * epsilon
    log = parts[0] - parts[1] + parts[2] - parts[3] + 4 * LIBRARY * sum(map(abs, parts))
    return min(1.0, up(math.exp(min(log, 1.0)), relative=LIBRARY))


def _computed(sigma: float, order: float) -> bool:
    return _LEAST <= sigma <= _MOST and order <= _MOST_ORDER * sigma / math.sqrt(2)


@lru_cache(maxsize=4096)
def _order(epsilon: float, sigma: float, answers: int, two: bool, test_sigma: float, tests: int) -> float | None:
    """About the best λ, by rough moments, put right at one λ; None where moments are not computed or of no use."""
    least, most = (min(sigma, test_sigma), max(sigma, test_sigma)) if tests else (sigma, sigma)
    if not _LEAST <= least <= most <= _MOST:
        return None

    def paid(order: float, fine: int) -> float:
        found = answers * _label_moment(sigma, order, two, fine)
        return found + tests * _vote_moment(test_sigma, order, fine) if tests else found

    def log(place: int, share: float) -> float:
        order = _orders(place)
        return _constant(order) + share * paid(order, _ROUGH) - order * epsilon if _computed(least, order) else math.inf

    def best(place: int, share: float) -> int:
        step = 4
        while step:
            here, *moved = (log(place + way * step, share) for way in (0, 1, -1))
            if min(moved) < here:
                place += step if moved[0] <= moved[1] else -step
            else:
                step //= 2
        return place

    rho = (answers + tests * (sigma / test_sigma) ** 2 / 2 if tests else answers) * _USUAL / sigma**2
    limit = 0.9 * _MOST_ORDER * least / math.sqrt(2)
    place = best(_place(min(max((epsilon / rho - 1) / 2, 0.05), limit, 1e6)), _SHARE)
    order = _orders(place)
    if log(place, _SHARE) == math.inf:
        return None
    return _orders(best(place, paid(order, _FINE) / paid(order, _ROUGH)))


def _orders(place: int) -> float:
    """Numbers of five binary digits, in order: sixteen between a power of 2 and the next."""
    return math.ldexp(16 + place % 16, place // 16 - 4)


def _place(order: float) -> int:
    share, power = math.frexp(order)
    return 16 * (power - 1) + int(32 * share) - 16


class _Cells:
    """Thresholds for a discrete Gaussian on Z or Z + ½ that the data set shifts by 1, in cells of k of them.

    Within a cell all values that thresholds may lie between are told, so that one number holds for every threshold
    of the cell. The first cell holds all that are lower, the last all that are higher.
    """

    def __init__(self, double: float, order: float, fine: int, offset: float = 0.0) -> None:
        tau = math.sqrt(double / 2)
        self.order, self.size = order, math.ceil(tau / fine)
        self.group = max(_LEAST_GROUP, math.ceil(_GROUP * tau / self.size))
        low, high, more = math.ceil(order + _NEAR * tau), math.ceil(_NEAR * tau), math.ceil((_FAR - _NEAR) * tau) + 1
        number = math.ceil((low + high) / self.size) + 1
        last, before = -low + (number - 1) * self.size, more + 1  # of values lower than the first threshold
        values = np.arange(-low - before, last + more + 1) + offset
        weights: _Floats = np.exp(-(values**2) / double)
        here, there = weights[1:], weights[:-1]  # of the same value under either data set
        told = here * np.exp(order * (1 - 2 * values[1:]) / double)
        self.total = float(weights.sum())
        main = before - 1 + self.size * np.arange(number)  # where values g, g + k, … stand in `here`
        below, above = np.cumsum(np.stack([here, there]), 1), np.cumsum(np.stack([here, there])[:, ::-1], 1)[:, ::-1]
        self.left = np.append(0.0, self.moment(*below[:, main]))
        self.right = np.append(self.moment(*above[:, main]), 0.0)
        inner = told[main[0] + 1 : main[-1] + 1].reshape(number - 1, self.size)[:, :-1].sum(axis=1)
        self.inside = np.concatenate([[told[: main[0]].sum()], inner, [told[main[-1] + 1 :].sum()]])
        self.point = np.stack([here[main], there[main]])
        pairs = np.stack([here, there])[:, main[0] + 1 : main[-1] + 1].reshape(2, number - 1, self.size)
        self.block = np.concatenate([self.point[:, :1], pairs.sum(axis=2)], axis=1)
        # Sums of so many positive terms; tails beyond the table hold less than 2^-50 of those that are summed.
        self.slack = 1 + (1 + 2 * order) * (2 * len(values) * _UNIT + 8e-14) + LIBRARY

    def moment(self, here: _Floats, there: _Floats) -> _Floats:
        """p^(1+λ)·q^(−λ)."""
        found: _Floats = here * (here / there) ** self.order
        return found

    @property
    def one(self) -> float:
        """Of two outcomes, the most that any threshold gives."""
        return float((self.left + self.inside + self.right).max()) / self.total * self.slack

    def two(self) -> tuple[_Floats, _Floats]:
        """Of three outcomes: by the sum of the numbers of both thresholds' cells, in groups, and by their difference.

        The second result is the most with a threshold in the first cell or the last, by the group and the next one.
        """
        last = len(self.left) - 1
        ends = self.inside + self.right
        single = self.left + ends
        groups = 2 * last // self.group + 2
        found, low, high = np.zeros((groups, last)), np.zeros(last + 1), np.zeros(last + 1)
        low[0], high[last] = single[0], single[last]
        for place in range(1, last):
            group = 2 * place // self.group
            found[group, 0] = max(found[group, 0], single[place])
        for first in range(last):  # the lower threshold's cell; what lies between begins with its next value
            masses = np.concatenate([self.point[:, first : first + 1], self.block[:, first + 1 :]], axis=1)
            both = self.left[first] + self.inside[first] + self.moment(*np.cumsum(masses, axis=1)) + ends[first + 1 :]
            high[first] = both[-1]
            if first == 0:
                low[1:] = both
            else:
                apart = np.arange(1, len(both))
                groups_of = (2 * first + apart) // self.group
                found[groups_of, apart] = np.maximum(found[groups_of, apart], both[:-1])
        # Cells beyond the first belong to it, so that its other one may be any from the sum on, or a lower one for sums
        # that are beyond all; likewise beyond the last.
        upwards, downwards = np.maximum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)
        starts = self.group * np.arange(groups)
        ups = np.where(starts <= last, upwards[np.minimum(starts, last)], 0.0)
        stops = starts + 2 * self.group - 1 - last
        downs = np.where(stops >= 0, downwards[np.clip(stops, 0, last)], 0.0)
        return found / self.total * self.slack, np.maximum(ups, downs) / self.total * self.slack


@lru_cache(maxsize=4096)
def _vote_moment(sigma: float, order: float, fine: int) -> float:
    """ln of the moment of one count that reaches a threshold or not, from above."""
    return _log(_Cells(2 * sigma * sigma, order, fine).one)


@lru_cache(maxsize=4096)
def _label_moment(sigma: float, order: float, two: bool, fine: int) -> float:
    """ln of the moment of one label, from above."""
    both = [_Cells(sigma * sigma, order, fine, offset) for offset in (0.0, 0.5)]
    alone = _vote_moment(sigma, order, fine)
    if two:
        return max(alone, _log(max(cells.one for cells in both)))
    (even, far), (odd, farther) = (cells.two() for cells in both)
    k, far, either = both[0].size, np.maximum(far, farther)[:-1], np.maximum(even, odd)
    over = np.maximum(np.maximum(either[:-1], either[1:]) - far[:, None], 0.0)
    if k > 1:  # a block of sums meets three neighbouring numbers of cells
        padded = np.pad(over, ((0, 0), (1, 1)))
        over = np.maximum(over, np.maximum(padded[:, :-2], padded[:, 2:]))
    reach = math.ceil(_SUMS * math.sqrt(2) * sigma / k)
    sums = np.arange(-reach * k, (reach + 1) * k)
    weights = np.exp(-(sums**2) / (4 * sigma * sigma)) * np.where(sums % 2, both[1].total, both[0].total)
    masses = weights.reshape(-1, k).sum(axis=1) / weights.sum()
    beyond = np.append(np.cumsum(masses[:0:-1])[::-1], 0.0)  # of larger sums
    tops = far + over.max(axis=1)
    most = max(float((far + over[:, 0]).max()), float(far.max()))
    for group in np.argsort(-tops, kind="stable"):
        if tops[group] <= most:
            break
        met = over[group, : int(np.flatnonzero(over[group])[-1]) + 1]
        averages = np.convolve(met, masses)
        averages[: len(masses)] += met[0] * beyond
        most = max(most, float(far[group] + averages.max()))
    slack = 1 + 8 * len(sums) * _UNIT + 10 * LIBRARY
    return max(alone, _log(most * slack + _BEYOND * float(tops.max())))


def _log(moment: float) -> float:
    return up(math.log(moment), relative=LIBRARY) + _GRANTED
