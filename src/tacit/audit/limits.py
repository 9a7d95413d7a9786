"""Confidence limits for v, mutual information and total variation, from their values on a table."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..core.errors import InputError, NoTheoremError
from ..core.rounding import down, up
from ..theory import certificates, kernels, leakage, pairs
from .cells import STEPS
from .fair_part import AGAIN, FairPart, fair_part, seed_of
from .plug_in import ROUNDING, PlugIns
from .row_pairs import row_pairs
from .tally import Tally

_LN2 = math.log(2)


class Bounds(NamedTuple):
    """Upper bounds on v, on mutual information in nats, and on total variation."""

    squared: float
    information: float
    variation: float


TRIVIAL = Bounds(1.0, up(_LN2), 1.0)
"""What holds for every output."""


def from_squared(squared: float) -> Bounds:
    """What follows from v alone."""
    return Bounds(squared, leakage.information_upper(squared), leakage.advantage_upper(squared))


def _from_information(nats: float) -> Bounds:
    squared = leakage.squared_from_information(min(nats, _LN2))
    return Bounds(squared, nats, leakage.advantage_upper(squared))


class Shares(NamedTuple):
    """What each limit may use of the failure probability; together they use it all."""

    squared: float
    pairs: float
    variation: float
    sticks: float
    kernel: float = 0.0


EPSILONS = (0.25, 0.5, 1.0, 2.0)
"""Where the largest P₁(A) − e^ε P₀(A) is measured directly, with both orders of the classes."""


def shares(loss: str, form: str, method: str, *, columns: int = 1) -> Shares:
    """How the limits of a certificate divide its failure probability: by these alone, never by the counts.

    For few outputs the advantage is by total variation, which gets so much that it is at most 3 % larger than with half
    of a failure probability of 0.05; for many, it is by pairs of rows. Low false positive rates are by sticks. For more
    noisy columns than fit on a grid, total variation leaves some to a kernel, for no more than 3 % again.
    """
    by_kernel = form == "sharp" and method == "noisy" and columns not in STEPS and columns <= kernels.MOST_COLUMNS
    if loss == "zero-one" and by_kernel:
        return Shares(0.0, 0.0, 0.85, 0.0, 0.15)
    if loss != "joint":
        return Shares(1.0, 1.0, 1.0, 0.0)  # there is one limit
    if form == "pairwise":
        return Shares(0.0, 0.5, 0.5, 0.0)
    if form == "sharp" and method == "discrete":
        return Shares(0.22, 0.28, 0.44, 0.06)
    if form == "sharp" and method in ("noisy", "noise added") and columns in STEPS:
        return Shares(0.47, 0.0, 0.47, 0.06)
    if by_kernel:
        return Shares(0.5, 0.0, 0.4, 0.0, 0.1)
    return Shares(0.5, 0.0, 0.5, 0.0)


class Limits(NamedTuple):
    """Bounds, and the limits among those they come from that need rows drawn: for v by pairs, for TV by a kernel."""

    bounds: Bounds
    by_pairs: ByPairs | None = None
    by_kernel: float | None = None


class ByPairs(NamedTuple):
    """A limit for v from pairs of rows, its λ, and the seed of the rows drawn."""

    squared: float
    rate: float
    seed: int


def confidence_limits(
    tally: Tally,
    plug_ins: PlugIns,
    failure_probability: float,
    *,
    loss: str,
    form: str,
    method: str,
    paired: bool,
) -> Limits:
    """All three from confidence limits for some of them."""
    sizes: dict[str, Any] = {"positives": tally.positives, "negatives": tally.negatives, "paired": paired}
    share = Shares(*(part * failure_probability for part in shares(loss, form, method, columns=tally.columns)))
    if loss == "log":
        limit = certificates.log_sharp if form == "sharp" else certificates.log_closed
        nats = limit(min(1.0, plug_ins.information), failure_probability=share.squared, **sizes)
        return Limits(_from_information(nats))
    bounds, by_pairs, by_kernel = TRIVIAL, None, None
    if loss != "zero-one" and share.pairs and (form == "pairwise" or loss == "joint"):
        by_pairs = _pairwise(tally, share.pairs, paired)
        bounds = from_squared(by_pairs.squared)
    if loss != "zero-one" and share.squared and form != "pairwise":
        limit = certificates.squared_sharp if form == "sharp" else certificates.squared_closed
        squared = limit(plug_ins.squared, failure_probability=share.squared, **sizes)
        bounds = min(bounds, from_squared(squared))
    if loss in ("zero-one", "joint"):
        if countable(tally, plug_ins, form, paired) and plug_ins.correct is not None:
            variation = certificates.variation_exact(plug_ins.correct, failure_probability=share.variation, **sizes)
        else:
            variation = certificates.variation_upper(plug_ins.variation, failure_probability=share.variation, **sizes)
        if share.kernel:
            noise = float(tally.noise or 0.0)
            by_kernel = kernels.variation_kernel(*row_pairs(tally), noise=noise, failure_probability=share.kernel)
            variation = min(variation, by_kernel)
        # v = E η² ≤ E |η| = TV, and then I ≤ v ln 2.
        squared = min(bounds.squared, variation)
        bounds = Bounds(squared, leakage.information_upper(squared), min(bounds.variation, variation))
    return Limits(bounds, by_pairs, by_kernel)


def _pairwise(tally: Tally, failure_probability: float, paired: bool) -> ByPairs:
    positive, negative = tally.counts()
    seed = seed_of(positive, negative)
    part = FairPart(positive, negative, False) if paired else fair_part(positive, negative, seed=seed)
    if part is None:
        return ByPairs(1.0, 0.0, seed)
    *counts, again = part
    failure = failure_probability * AGAIN if again else failure_probability
    rate = pairs.Pairs.of(*counts).rate(failure)
    return ByPairs(pairs.squared_pairwise(*counts, failure_probability=failure, rate=rate), rate, seed)


def countable(tally: Tally, plug_ins: PlugIns, form: str, paired: bool) -> bool:
    """Whether the limit for total variation comes from the number of correct guesses itself."""
    alike = paired or tally.positives == tally.negatives
    return form in ("sharp", "pairwise") and alike and plug_ins.correct is not None


def unsmoothed(bounds: Bounds, tally: Tally) -> Bounds:
    """Bounds for a column that holds noise, from those for the column with the extra noise it was counted with."""
    smooth: dict[str, Any] = {"noise": tally.noise_added, "dimensions": tally.columns}
    root = certificates.smoothing_root(float(tally.noise or 0.0), **smooth)
    hidden = certificates.smoothing_variation(float(tally.noise or 0.0), **smooth)
    moved = up(ROUNDING * math.sqrt(tally.columns))

    def whole(size: float, scale: float) -> float:
        return up((math.sqrt(size) + math.sqrt(scale) * root + moved) ** 2, relative=1e-13)

    variation = min(1.0, up(bounds.variation + hidden + moved, relative=1e-15))
    squared = min(1.0, variation, whole(bounds.squared, 2))
    return Bounds(
        squared,
        min(leakage.information_upper(squared), whole(bounds.information, 2 * _LN2)),
        min(variation, leakage.advantage_upper(squared)),
    )


def printed_limits(
    tally: Tally,
    plug_ins: PlugIns,
    failure_probability: float,
    loss: str,
    method: str,
    paired: bool,
    alphabet: int | None,
) -> Bounds:
    """All three by Theorems 2 and 3 of the paper, as printed."""
    if not paired or method != "discrete" or loss not in ("squared", "log"):
        raise NoTheoremError(
            "the printed theorems must have sampling='pairs', a discrete output and the squared or log loss, got "
            f"{'pairs' if paired else 'by class'!r}, {method!r} and {loss!r}; use form='sharp'"
        )
    rows = tally.positives + tally.negatives
    if loss == "squared":
        least = max(0.0, down(1 - plug_ins.squared))
        bound = certificates.printed_squared_loss(least, count=rows, failure_probability=failure_probability)
        return from_squared(min(1.0, up(1 - bound)))
    if alphabet is None or alphabet < tally.symbols:
        raise InputError(
            "alphabet",
            alphabet,
            requirement=f"must be the number of values that the output can take, {tally.symbols} or more",
            remedy="pass it, or use form='sharp', which does not need it",
        )
    least = max(0.0, down(_LN2 - plug_ins.information))
    bound = certificates.printed_log_loss(least, count=rows, alphabet=alphabet, failure_probability=failure_probability)
    return _from_information(min(up(_LN2), up(_LN2 - bound)))
