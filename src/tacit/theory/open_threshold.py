r"""What sparse vector costs if its threshold is open: the exact price of T refusals, for any number of answers.

A query at distance d is refused if d + Y ≤ w, where w is known to everybody and Y has P(Y ≤ y) = 1 − exp(−exp(y/s)), a
Gumbel law turned round. Then a query is refused as if a clock had run for its *hazard* exp((w − d)/s), and one vote
changes how fast the clock runs by exp(1/s) at most. The worst adversary of such clocks is known, and what it gains is a
sum of Poisson probabilities. Proofs: docs/proofs/open_threshold.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import LIBRARY, SPECIAL, at_most, last_true, up

_DELTA = "use about 1/n², e.g. 1e-10 for 100000 records"
_EPSILON = "give the privacy loss that is allowed, e.g. 1.0"
_UNIT = float(np.finfo(float).eps)

SLACK = 1e-12
"""The logarithm of how much faster than exp(1/s) a clock may run, which is room for the rounding of chances."""

_FINEST, _COARSEST = 1 / 500, 1e9
"""Scales: below the first exp(1/s) leaves what floats hold, beyond the other `SLACK` would matter."""

_SUMMED = 10_000
"""Up to so many refusals the exact price is added up; beyond, a bound on it in closed form serves."""

_MOST_STEPS = 10**8

_FOR_LABELS = 0.02
"""The share of δ that is left to labels; their threshold grows with the logarithm of a logarithm of it."""

HAZARDS = 2.0**-100, 69.0
"""The least and the largest hazard that is drawn: no chance may be 0 or 1, and all must be drawn exactly."""

_RAREST = 1e-29
"""Below this, chances of a refusal, and of a telling label, end."""

LEAST_DELTA = 1e-27
"""The least δ, for each refusal, for which there is a design: labels are left enough of it."""


@at_most
def open_threshold_delta(epsilon: float, *, scale: float, threshold: int, refusals: int) -> float:
    r"""δ(ε) of sparse vector with an open threshold: answers until T refusals, for any adaptive queries.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    scale
        The scale s of the noise on each distance.
    threshold
        The threshold w, in whole votes, which anybody may know.
    refusals
        The number T of refusals after which the mechanism stops.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ 1 − (1 − exp(−min(69, exp(w/s))))^T + F, where F = tanh h · exp(ε/2) · Σ over n < T of
    cosh(h)^(−n) (P(N = n) − η·P(N < n)), h = 1/(2s), η = h·coth h − 1 and N is Poisson with the mean
    ε·coth(h)/2 + n(1 + η). F is attained without labels; beyond 10000 refusals it is replaced by
    exp(−λ(ε + (T − 1)/s)) (1 − (exp(1/s) − 1)λ)^(1 − T)/(1 + 2λ) at the best λ found.

    Assumptions. One record changes at most one vote a query; the distance is `votes_to_flip`; a query at distance d is
    refused with the chance 1 − exp(−H(d)), drawn exactly, where H(0) ≥ min(69, exp(w/s)), and H of neighbouring
    distances differs by a factor of exp(1/s + 1e-12) at most; the winner is released otherwise; no answer after the
    T-th refusal (caller); epsilon ≥ 0, 1/500 ≤ scale ≤ 1e9, 1 ≤ refusals ≤ 1e8 (checked).

    Direction. An upper bound, rounded up.

    References
    ----------
    docs/proofs/open_threshold.md.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=0, at_most=1e4, remedy="use 0 for total variation")
    scale, t = _scale(scale), _refusals(refusals)
    w = validate.whole("threshold", threshold, at_least=0, remedy="give the threshold as a whole number of votes")
    return _either(_telling(w, scale), t, _price(epsilon, scale, t))


@at_most
def open_threshold_scale(epsilon: float, delta: float, *, refusals: int) -> float:
    r"""The least noise scale s at which T refusals spend at most 0.98 of δ; the rest is for labels.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    refusals
        The number T of refusals after which the mechanism stops.

    Returns
    -------
    float
        The scale s, rounded up.

    Notes
    -----
    Statement. inf{s : F ≤ 0.98 δ}, F as in `open_threshold_delta`.

    Assumptions. Those of `open_threshold_delta`; epsilon > 0, delta in (0, 1), delta ≥ 1e-27·refusals (checked).

    Direction. Rounded up: the s returned was itself checked against the claim.

    References
    ----------
    docs/proofs/open_threshold.md.
    """
    epsilon, delta, t = _budget(epsilon, delta, refusals)
    allowed, enough = (1 - _FOR_LABELS) * delta, 1.0
    while _price(epsilon, enough, t) > allowed:
        enough *= 2
        if enough > _COARSEST:
            raise NoTheoremError(
                f"noise must have a scale of at most {_COARSEST:g}, got a larger one for {t} refusals at "
                f"epsilon = {epsilon:g} and delta = {delta:g}; allow fewer refusals, or a larger budget"
            )
    return last_true(lambda s: _price(epsilon, s, t) <= allowed, holds=enough, fails=max(_FINEST, enough / 2 / 1024))


@at_most
def open_threshold_votes(epsilon: float, delta: float, *, scale: float, refusals: int) -> int:
    r"""The least open threshold w, in votes, with which sparse vector is (ε, δ)-DP at the noise scale given.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    scale
        The scale s of the noise on each distance.
    refusals
        The number T of refusals after which the mechanism stops.

    Returns
    -------
    int
        The threshold w, in votes.

    Notes
    -----
    Statement. min{w ≥ 0 : δ(ε) ≤ δ}, δ(ε) of `open_threshold_delta`.

    Assumptions. Those of `open_threshold_delta`; epsilon > 0, delta in (0, 1), delta ≥ 1e-27·refusals (checked).

    Direction. The w returned was itself checked against the claim.

    References
    ----------
    docs/proofs/open_threshold.md.
    """
    epsilon, delta, t = _budget(epsilon, delta, refusals)
    scale = _scale(scale)
    spent = _price(epsilon, scale, t)
    if spent >= delta:
        raise NoTheoremError(
            f"a threshold must find something of delta left for labels, got nothing at scale = {scale:g} and "
            f"{t} refusals; use more noise, fewer refusals or a larger budget"
        )
    left = -math.log((delta - spent) / t)
    near = max(0, math.floor(scale * math.log(max(left, 1.0))) - 1)
    while near and _either(_telling(near, scale), t, spent) <= delta:
        near -= 1
    while _either(_telling(near, scale), t, spent) > delta:
        near += 1
    return near


@at_most
def open_threshold_distance(*, scale: float, threshold: int, queries: int, failure_probability: float) -> int:
    r"""The least distance from a flip at which all queries are answered, except with a small probability.

    Parameters
    ----------
    scale
        The scale s of the noise on each distance.
    threshold
        The threshold w, in whole votes.
    queries
        The number m of queries.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    int
        The distance d, in votes.

    Notes
    -----
    Statement. P(any of m queries at distance ≥ d is refused) ≤ m(1 − exp(−exp((w − d)/s))) ≤ failure_probability.

    Assumptions. Noise as in `open_threshold_delta`, and no stop by other queries' refusals before (caller);
    failure_probability ≥ 1e-29·queries (checked).

    Direction. Upper bound on the least distance, by a union over queries.

    References
    ----------
    docs/proofs/open_threshold.md.
    """
    scale = _scale(scale)
    w = validate.whole("threshold", threshold, at_least=0, remedy="give the threshold as a whole number of votes")
    m = _steps("queries", queries, remedy="say how many queries are asked")
    beta = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.01")
    if beta < _RAREST * m:
        raise InputError(
            "failure_probability",
            beta,
            requirement=f"must be at least {_RAREST:g} for each of {m} queries",
            remedy="use a larger one such as 0.01",
        )
    beyond = up(-scale * math.log(-math.log1p(-beta / m)), relative=8 * LIBRARY) + SLACK * scale
    return max(0, w + math.ceil(beyond))


@at_most
def telling_chance(threshold: int, *, scale: float) -> float:
    r"""The chance with which a label is released that tells two data sets apart, where one vote decides.

    Parameters
    ----------
    threshold
        The threshold w, in whole votes.
    scale
        The scale s of the noise on each distance.

    Returns
    -------
    float
        The chance.

    Notes
    -----
    Statement. exp(−min(69, exp(w/s))).

    Assumptions. Chances are drawn as `open_threshold_delta` has them (caller); 1/500 ≤ scale ≤ 1e9 (checked).

    Direction. An upper bound, rounded up.

    References
    ----------
    docs/proofs/open_threshold.md.
    """
    w = validate.whole("threshold", threshold, at_least=0, remedy="give the threshold as a whole number of votes")
    return _telling(w, _scale(scale))


def _price(epsilon: float, scale: float, refusals: int) -> float:
    """F, the δ(ε) of T refusals without labels, rounded up."""
    step = up(up(1 / scale) + SLACK)  # a faster clock costs more
    return _summed(epsilon, step, refusals) if refusals <= _SUMMED else _enclosed(epsilon, step, refusals)


def _summed(epsilon: float, step: float, refusals: int) -> float:
    """Chances are added up that one vote moves the likelihoods so far in n refusals, for each n < T."""
    h = step / 2
    eta = _excess(h)
    n = np.arange(1.0, refusals)
    start = epsilon / (2 * math.tanh(h))
    mean, fall = start + n * (1 + eta), math.log(math.cosh(h)) if h < 300 else h - math.log(2)
    log = n * np.log(mean) - mean - special.gammaln(n + 1) + epsilon / 2 - n * fall
    error = 64 * _UNIT * (n * np.abs(np.log(mean)) + mean + special.gammaln(n + 1) + epsilon + n * fall + 8)
    larger = np.exp(np.minimum(log + error, 700.0))
    with np.errstate(divide="ignore"):
        less = np.log(special.gammaincc(n, mean)) + epsilon / 2 - n * fall + math.log(eta)  # −∞ where it is too small
    smaller = np.exp(np.minimum(less - error, 700.0)) * (1 - SPECIAL)
    first = math.exp(min(700.0, epsilon / 2 - start + 64 * _UNIT * (start + epsilon)))
    total = first + float(np.sum(np.maximum(larger - smaller, 0.0)))
    return min(1.0, up(math.tanh(h) * total, relative=(refusals + 16) * _UNIT + 8 * LIBRARY))


def _excess(h: float) -> float:
    """η = h·coth h − 1, without cancellation."""
    if h > 1:
        return h / math.tanh(h) - 1
    # h·cosh h − sinh h = Σ 2i·h^(2i + 1)/(2i + 1)!, all of whose terms are positive
    terms = (2 * i * h ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(1, 12))
    return math.fsum(terms) / math.sinh(h)


def _enclosed(epsilon: float, step: float, refusals: int) -> float:
    """A bound on F in closed form, from its generating function at the best point found."""
    times, faster = refusals - 1, math.expm1(step)

    def exponent(share: float) -> tuple[float, float]:
        rate = share / faster  # λ, between 0 and 1/(e^θ − 1)
        parts = -rate * (epsilon + times * step), -times * math.log1p(-share), -math.log1p(2 * rate)
        return sum(parts), 16 * _UNIT * sum(map(abs, parts)) + 8 * _UNIT * times

    found = optimize.minimize_scalar(lambda share: exponent(share)[0], bounds=(1e-9, 1 - 1e-9), method="bounded")
    best, error = exponent(float(found.x))
    return min(1.0, up(math.exp(min(0.0, best + error)), relative=LIBRARY))


def _telling(threshold: int, scale: float) -> float:
    """The chance with which a label is released where the other data set has another one, rounded up."""
    hazard = min(HAZARDS[1], math.exp(min(700.0, threshold / scale))) * (1 - 1e-13)
    return up(math.exp(-hazard), relative=LIBRARY) + 5e-324


def _either(chance: float, times: int, delta: float) -> float:
    """1 − (1 − chance)^times + delta, rounded up."""
    if chance >= 1:
        return 1.0
    return min(1.0, up(up(-math.expm1(times * math.log1p(-chance)), relative=8 * LIBRARY) + delta))


def _budget(epsilon: object, delta: object, refusals: object) -> tuple[float, float, int]:
    t = _refusals(refusals)
    budget = validate.number("epsilon", epsilon, at_least=1e-9, at_most=1e4, remedy=_EPSILON)
    allowed = validate.probability("delta", delta, remedy=_DELTA)
    least = LEAST_DELTA * t
    if allowed < least:
        raise InputError("delta", allowed, requirement=f"must be at least {least:.3g} for {t} refusals", remedy=_DELTA)
    return budget, allowed, t


def _scale(value: object) -> float:
    remedy = "give the scale of the noise on distances, e.g. 10/epsilon"
    return validate.number("scale", value, at_least=_FINEST, at_most=_COARSEST, remedy=remedy)


def _refusals(value: object) -> int:
    return _steps("refusals", value, remedy="say after how many refusals it stops")


def _steps(name: str, value: object, *, remedy: str) -> int:
    steps = validate.whole(name, value, at_least=1, remedy=remedy)
    if steps > _MOST_STEPS:
        raise InputError(name, steps, requirement=f"must be at most {_MOST_STEPS:g}", remedy="plan a smaller release")
    return steps
