r"""How accurate private answers are: bounds on wrong answers and on the student's error, from the teachers' errors.

Theorems 3.2, 3.4, 3.5, 4.2 and 4.3 and Claim 4.1 of *Model-Agnostic Private Learning* with explicit constants. The
functions `printed_…` are as in the paper; the others replace steps of its proofs that do not hold, or are tighter.
Privacy does not depend on any of this: `accounting` proves it for any teachers. Proofs: docs/proofs/learnability.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, SPECIAL, at_least, at_most, up
from .accounting import printed_scale, printed_teachers

_FAILURE = "use a small one such as 0.05"
_MOST_RECORDS = 2**51
_MOST_QUERIES = 10**8
"""Beyond this the incomplete beta function may err by more than `SPECIAL` grants."""


@at_most
def log_growth(points: int, *, vc_dimension: int) -> float:
    r"""The logarithm of the number of ways in which a class of binary classifiers labels N points.

    Parameters
    ----------
    points
        The number N of points.
    vc_dimension
        The VC dimension V of the class.

    Returns
    -------
    float
        An upper bound on ln Π(N).

    Notes
    -----
    Statement. ln Π(N) ≤ min(N ln 2, V ln(eN/V) if N ≥ V).

    Assumptions. The class has VC dimension V (caller); points ≥ 1, vc_dimension ≥ 1 (checked).

    Direction. An upper bound, rounded up.

    References
    ----------
    Sauer 1972, doi:10.1016/0097-3165(72)90019-2; docs/proofs/learnability.md.
    """
    n = validate.whole("points", points, at_least=1, remedy="give a number of records")
    v = _dimension(vc_dimension)
    every = n * math.log(2)
    return up(min(every, v * (1 + math.log(n / v))) if n >= v else every, relative=8 * LIBRARY)


@at_most
def realizable_error(records: int, *, vc_dimension: int, failure_probability: float) -> float:
    r"""The error α of every classifier of the class that agrees with all its training records.

    Parameters
    ----------
    records
        The number s of records.
    vc_dimension
        The VC dimension V of the class.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    float
        An upper bound on the error.

    Notes
    -----
    Statement. α = (2/s) log₂(2 Π(2s)/β): with probability ≥ 1 − β no consistent classifier errs on more than α.

    Assumptions. s independent records, labelled by a member of the class; VC dimension V (caller); the rest checked.

    Direction. An upper bound, rounded up, at most 1.

    References
    ----------
    Blumer, Ehrenfeucht, Haussler and Warmuth 1989, doi:10.1145/76359.76371; docs/proofs/learnability.md.
    """
    s, v, beta = _records(records), _dimension(vc_dimension), _failure(failure_probability)
    log = log_growth(2 * s, vc_dimension=v) + math.log(2 / beta)
    return min(1.0, up(2 * log / (s * math.log(2)), relative=8 * LIBRARY))


@at_most
def agnostic_excess(records: int, *, vc_dimension: int, failure_probability: float) -> float:
    r"""The excess α of the classifier with the fewest training errors over the best of its class.

    Parameters
    ----------
    records
        The number s of records.
    vc_dimension
        The VC dimension V of the class.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    float
        An upper bound on the excess α.

    Notes
    -----
    Statement. α = √(2 ln Π(s)/s) + √(2 ln(2/β)/s): with probability ≥ 1 − β its error is at most γ + α.

    Assumptions. s independent records; the learner minimises training errors; VC dimension V (caller); rest checked.

    Direction. An upper bound, rounded up, at most 1.

    References
    ----------
    Bartlett and Mendelson 2002 with Massart's lemma; docs/proofs/learnability.md.
    """
    s, v, beta = _records(records), _dimension(vc_dimension), _failure(failure_probability)
    growth = math.sqrt(2 * log_growth(s, vc_dimension=v) / s)
    return min(1.0, up(growth + math.sqrt(2 * math.log(2 / beta) / s), relative=8 * LIBRARY))


@at_most
def sufficient_records(excess: float, *, vc_dimension: int, failure_probability: float, best_error: float = 0.0) -> int:
    r"""The number of records with which a learner is an (α, β, s)-learner in the sense of Definition 2.1.

    Parameters
    ----------
    excess
        The excess error α.
    vc_dimension
        The VC dimension V of the class.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.
    best_error
        The error γ of the best classifier of the class.

    Returns
    -------
    int
        The number s of records.

    Notes
    -----
    Statement. min{s : α(s) ≤ α}, α(s) of `realizable_error` if γ = 0 and of `agnostic_excess` otherwise.

    Assumptions. Those of the two; excess in (0, 1), best_error in [0, 1) (checked).

    Direction. An upper bound on the least number; the s returned was itself checked against the claim, and more records
    work too.

    References
    ----------
    docs/proofs/learnability.md.
    """
    alpha = validate.probability("excess", excess, remedy="give the error that is allowed, e.g. 0.05")
    v, beta, gamma = _dimension(vc_dimension), _failure(failure_probability), _best(best_error)
    return _least_records(realizable_error if gamma == 0 else agnostic_excess, alpha, v, beta)


@at_most
def hard_share(error: float, *, teachers: int, outvoted: int) -> float:
    r"""The chance that more than b of k teachers are wrong on a query.

    Parameters
    ----------
    error
        The teachers' average error, or anything larger.
    teachers
        The number k of teachers.
    outvoted
        The number b of teachers that may be wrong.

    Returns
    -------
    float
        An upper bound on the chance.

    Notes
    -----
    Statement. P(more than b of k are wrong) ≤ ēk/(b + 1), ē the teachers' average error.

    Assumptions. A query is drawn from the law that the errors refer to; ē ≤ error (caller); 0 ≤ b < k (checked).

    Direction. Exact in the worst case (Markov), rounded up, at most 1. With b = ⌊k/3⌋ it is at most 3(γ + α).

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Lemma 3.3 and Claim 4.1; docs/proofs/learnability.md.
    """
    e, k, b = _error(error), _teachers(teachers), _outvoted(outvoted, teachers)
    return min(1.0, up(up(e * k) / (b + 1)))


@at_most
def hard_queries(error: float, *, teachers: int, outvoted: int, queries: int, failure_probability: float) -> int:
    r"""The largest number of queries on which more than b of k teachers are wrong, except with a small probability.

    Parameters
    ----------
    error
        The teachers' average error, or anything larger.
    teachers
        The number k of teachers.
    outvoted
        The number b of teachers that may be wrong.
    queries
        The number m of queries.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    int
        The number of queries.

    Notes
    -----
    Statement. min{t : P(Bin(m, q) > t) ≤ β}, q of `hard_share`.

    Assumptions. Independent queries from the law that the errors refer to; the teachers' average error is at most
    `error` (caller); the rest checked.

    Direction. Exact in the worst case, rounded up, at most m.

    References
    ----------
    In place of the Chernoff step of Theorem 3.2; docs/proofs/learnability.md.
    """
    q = hard_share(error, teachers=teachers, outvoted=outvoted)
    m, beta = _queries(queries), _failure(failure_probability)
    if q >= 1:
        return m
    low, high = -1, m  # at m the claim holds: no more than all queries are hard
    while high - low > 1:
        t = (low + high) // 2
        good = up(float(special.betainc(t + 1, m - t, q)), relative=SPECIAL) <= beta
        low, high = (low, t) if good else (t, high)
    return high


@at_least
def tolerated_votes(teachers: int, *, distance: int) -> int:
    r"""How many of k teachers may be wrong while the right class stays d votes from a flip; −1 if none may.

    Parameters
    ----------
    teachers
        The number k of teachers.
    distance
        The distance d from a flip, in votes.

    Returns
    -------
    int
        The number b of teachers; −1 if none may be wrong.

    Notes
    -----
    Statement. b = ⌊(k − 2d − 1)/2⌋: if at most b of k are wrong or silent, ⌈(n₁ − n₂)/2⌉ − 1 ≥ d and the right class
    wins, with any number of classes.

    Assumptions. teachers ≥ 1, distance ≥ 0 (checked).

    Direction. Exact.

    References
    ----------
    docs/proofs/learnability.md.
    """
    k = _teachers(teachers)
    d = validate.whole("distance", distance, at_least=0, remedy="give the votes to flip")
    return max(-1, (k - 2 * d - 1) // 2)


@at_most
def stable_release_distance(*, scale: float, threshold: int, queries: int, failure_probability: float) -> int:
    r"""The least distance d such that Algorithm 1 answers all of m queries at least d votes from a flip.

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
    Statement. P(any is refused) ≤ m b^(d−w)/(1 + b) ≤ failure_probability, b = exp(−1/s), d > w.

    Assumptions. Discrete Laplace noise of scale s on every distance (caller); the rest checked.

    Direction. An upper bound, by a union over queries.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Theorem 2.5; docs/proofs/learnability.md.
    """
    s = validate.number("scale", scale, at_least=1e-4, at_most=2.0**40, remedy="give the scale of the noise, e.g. 10")
    w = validate.whole("threshold", threshold, at_least=0, remedy="give the threshold as a whole number of votes")
    m, beta = _queries(queries), _failure(failure_probability)
    log = math.log(m / beta) - math.log1p(math.exp(-1 / s))
    return w + max(1, math.ceil(up(s * log, relative=8 * LIBRARY)))


@at_most
def gnmax_distance(*, sigma: float, classes: int, queries: int, failure_probability: float) -> int:
    r"""The least distance d such that GNMax names the winner of all of m queries at least d votes from a flip.

    Parameters
    ----------
    sigma
        The standard deviation σ of the noise on each count.
    classes
        The number C of classes.
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
    Statement. P(any is named wrongly) ≤ m(C − 1) exp(−(2d + 1)²/(4σ²)) ≤ failure_probability.

    Assumptions. Independent discrete Gaussian noise of σ on each of C counts (caller); the rest checked.

    Direction. An upper bound, by a union over queries and classes.

    References
    ----------
    docs/proofs/learnability.md.
    """
    sigma, c = _sigma(sigma), _classes(classes)
    m, beta = _queries(queries), _failure(failure_probability)
    margin = up(2 * sigma * math.sqrt(math.log(m * (c - 1) / beta)), relative=8 * LIBRARY)
    return max(0, math.ceil((margin - 1) / 2))


@at_most
def gnmax_test_margin(*, test_sigma: float, queries: int, failure_probability: float) -> int:
    r"""The margin in votes by which largest counts must exceed the threshold for all of m queries to pass the test.

    Parameters
    ----------
    test_sigma
        The standard deviation σ₁ of the noise on the largest count.
    queries
        The number m of queries.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    int
        The margin g, in votes.

    Notes
    -----
    Statement. P(any fails) ≤ m exp(−g²/(2σ₁²)) ≤ failure_probability.

    Assumptions. Discrete Gaussian noise of σ₁ on each largest count (caller); the rest checked.

    Direction. An upper bound, by a union over queries.

    References
    ----------
    docs/proofs/learnability.md.
    """
    sigma, m, beta = _sigma(test_sigma, "test_sigma"), _queries(queries), _failure(failure_probability)
    return math.ceil(up(sigma * math.sqrt(2 * math.log(m / beta)), relative=8 * LIBRARY))


@at_most
def printed_refusals(error: float, *, queries: int, failure_probability: float) -> int:
    r"""The cutoff T of Theorem 3.2.

    Parameters
    ----------
    error
        The sum γ + α of the best error and the excess.
    queries
        The number m of queries.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    int
        The cutoff T.

    Notes
    -----
    Statement. T = ⌈3((γ + α)m + √((γ + α)m ln(m/β)/2))⌉.

    Assumptions. error = γ + α in [0, 1] (checked).

    Direction. As printed, rounded up. Its Chernoff step does not hold; `hard_queries` tells whether T suffices.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Theorem 3.2.
    """
    e, m, beta = _error(error), _queries(queries), _failure(failure_probability)
    return max(1, math.ceil(up(3 * (e * m + math.sqrt(e * m * math.log(m / beta) / 2)), relative=8 * LIBRARY)))


@at_most
def printed_answer_error(excess: float, *, best_error: float = 0.0) -> float:
    r"""The error of one private answer by Claim 4.1.

    Parameters
    ----------
    excess
        The excess error α.
    best_error
        The error γ of the best classifier of the class.

    Returns
    -------
    float
        The error of one answer.

    Notes
    -----
    Statement. err(h_priv) ≤ 7α + 3γ.

    Assumptions. Θ is an (α, β/k, n/k)-learner, β ≤ α, m ≥ 4 ln(1/(αβ))/α (caller).

    Direction. As printed, rounded up, at most 1. The printed proof has a gap; the claim holds, even with 3α + 3γ
    (`hard_share`).

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Claim 4.1.
    """
    alpha, gamma = _error(excess, "excess"), _best(best_error)
    return min(1.0, up(7 * alpha + 3 * gamma, relative=LIBRARY))


@at_most
def printed_student_error(excess: float, *, best_error: float = 0.0) -> float:
    r"""The error of the student by Theorems 4.2 and 4.3, with the constants of their proof.

    Parameters
    ----------
    excess
        The excess error α.
    best_error
        The error γ of the best classifier of the class.

    Returns
    -------
    float
        The error of the student.

    Notes
    -----
    Statement. err(ĥ) ≤ 15α + 7γ.

    Assumptions. Those of Claim 4.1, Θ an (α, β, m)-learner, and labels independent given the teachers (caller).

    Direction. As proven there, rounded up, at most 1; γ's constant is not printed. `student_error` does not need the
    independence.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Theorems 4.2 and 4.3.
    """
    alpha, gamma = _error(excess, "excess"), _best(best_error)
    return min(1.0, up(15 * alpha + 7 * gamma, relative=LIBRARY))


@at_most
def printed_records(
    excess: float,
    *,
    vc_dimension: int,
    epsilon: float,
    delta: float,
    failure_probability: float,
    best_error: float = 0.0,
) -> int:
    r"""The private records of Theorems 4.2 and 4.3, for a student whose error is `printed_student_error`.

    Parameters
    ----------
    excess
        The excess error α.
    vc_dimension
        The VC dimension V of the class.
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.
    best_error
        The error γ of the best classifier of the class.

    Returns
    -------
    int
        The number n of private records.

    Notes
    -----
    Statement. n = k·s, m = s_agnostic(α, β), T, λ and k as printed at m, s = s(α, β/k), s of `sufficient_records`.

    Assumptions. Those of `sufficient_records` and `printed_student_error` (caller); excess < 1/3 (checked).

    Direction. With the printed constants, rounded up: Õ(V^(3/2)/(εα^(3/2))), or α^(5/2) if γ > 0.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Theorems 4.2 and 4.3; docs/proofs/learnability.md.
    """
    alpha = validate.number("excess", excess, above=0, below=1 / 3, remedy="give the error that is allowed, e.g. 0.05")
    v, beta, gamma = _dimension(vc_dimension), _failure(failure_probability), _best(best_error)
    m = _least_records(agnostic_excess, alpha, v, beta)
    t = printed_refusals(min(1.0, alpha + gamma), queries=m, failure_probability=beta)
    scale = printed_scale(epsilon, delta, refusals=t)
    k = printed_teachers(delta, scale=scale, refusals=t, queries=m, failure_probability=beta)
    return k * sufficient_records(alpha, vc_dimension=v, failure_probability=beta / k, best_error=gamma)


@at_most
def student_error(
    queries: int, *, wrong_labels: int, vc_dimension: int, failure_probability: float, best_error: float = 0.0
) -> float:
    r"""The error of a student that minimises errors on m labels, of which some may be wrong.

    Parameters
    ----------
    queries
        The number m of labelled queries.
    wrong_labels
        The number B of labels that may be wrong.
    vc_dimension
        The VC dimension V of the class.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.
    best_error
        The error γ of the best classifier of the class.

    Returns
    -------
    float
        An upper bound on the student's error.

    Notes
    -----
    Statement. γ + α(m) + 2B/m, α(m) of `agnostic_excess`; if γ = 0 also r + 2√(rA) + 4A, r = 2B/m, A = (ln Π(2m) +
    ln(4/β))/m; if B = 0 too, `realizable_error`.

    Assumptions. m independent queries; labels equal to the true ones but for B of them, chosen by anyone; the student
    minimises errors on the labels given, over a class of VC dimension V and least error γ (caller).

    Direction. An upper bound, the least of those that apply, rounded up, at most 1.

    References
    ----------
    Boucheron, Bousquet and Lugosi 2005, doi:10.1051/ps:2005018, Corollary 5.2; docs/proofs/learnability.md.
    """
    m, v, beta, gamma = _queries(queries), _dimension(vc_dimension), _failure(failure_probability), _best(best_error)
    wrong = validate.whole("wrong_labels", wrong_labels, at_least=0, remedy="count the labels that may be wrong")
    if wrong > m:
        raise InputError(
            "wrong_labels", wrong, requirement=f"must not exceed queries = {m}", remedy="use queries for no bound"
        )
    rate = 2 * wrong / m
    bounds = [gamma + agnostic_excess(m, vc_dimension=v, failure_probability=beta) + rate]
    if gamma == 0:
        a = (log_growth(2 * m, vc_dimension=v) + math.log(4 / beta)) / m
        bounds.append(rate + 2 * math.sqrt(rate * a) + 4 * a)
        if wrong == 0:
            bounds.append(realizable_error(m, vc_dimension=v, failure_probability=beta))
    return min(1.0, up(min(bounds), relative=8 * LIBRARY))


def _least_records(error: Callable[..., float], alpha: float, v: int, beta: float) -> int:
    """The least number of records at which bisection saw the error come down to α."""
    low, high = 0, 1
    while error(high, vc_dimension=v, failure_probability=beta) > alpha:
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise InputError(
                "excess", alpha, requirement="must be within reach of 2**51 records", remedy="allow a larger one"
            )
    while high - low > 1:
        s = (low + high) // 2
        good = error(s, vc_dimension=v, failure_probability=beta) <= alpha
        low, high = (low, s) if good else (s, high)
    return high


def _records(value: object) -> int:
    records = validate.whole("records", value, at_least=1, remedy="give the number of training records")
    if records > _MOST_RECORDS:
        raise InputError("records", records, requirement="must be at most 2**51", remedy="plan for fewer")
    return records


def _dimension(value: object) -> int:
    return validate.whole("vc_dimension", value, at_least=1, remedy="use d + 1 for linear classifiers in d dimensions")


def _failure(value: object) -> float:
    return validate.probability("failure_probability", value, remedy=_FAILURE)


def _best(value: object) -> float:
    return validate.number("best_error", value, at_least=0, below=1, remedy="use 0 if some classifier is always right")


def _error(value: object, name: str = "error") -> float:
    return validate.number(name, value, at_least=0, at_most=1, remedy="give a share of wrong answers, e.g. 0.05")


def _teachers(value: object) -> int:
    return validate.whole("teachers", value, at_least=1, remedy="say how many teachers vote")


def _outvoted(value: object, teachers: int) -> int:
    outvoted = validate.whole("outvoted", value, at_least=0, remedy="say how many may be wrong")
    if outvoted >= teachers:
        raise InputError(
            "outvoted", outvoted, requirement=f"must be below teachers = {teachers}", remedy="use about a third of them"
        )
    return outvoted


def _queries(value: object) -> int:
    queries = validate.whole("queries", value, at_least=1, remedy="say how many queries are asked")
    if queries > _MOST_QUERIES:
        raise InputError("queries", queries, requirement="must be at most 1e8", remedy="plan a smaller release")
    return queries


def _sigma(value: object, name: str = "sigma") -> float:
    return validate.number(name, value, at_least=1e-3, at_most=2.0**40, remedy="give the noise, e.g. 40")


def _classes(value: object) -> int:
    return validate.whole("classes", value, at_least=2, remedy="say how many classes there are")
