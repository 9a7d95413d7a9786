"""Does the number in a Tacit certificate follow from what the certificate states? Run: python -m tacit_check FILE

The file comes from a stranger. For each claim the answer is "follows", "does not follow" or "not checkable here", in a
sentence of the checker's own: the sentences of the certificate are never repeated. Each rule is written from the pages
of docs/proofs that it names, and shares no code with Tacit. Numbers are exact fractions, or intervals whose ends are
decimal numbers rounded outward, so "follows" is meant in real arithmetic. What a file cannot show stays its maker's
word, and is listed with each claim: that the counts are those of the data, that draws were random.

Exit status: 0 if some claims follow and none fails, 1 otherwise, 2 if the file is no certificate. With --all, a claim
that cannot be checked fails. --opening FILE reveals inputs that the certificate holds as commitments.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from bisect import bisect_right
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import partial
from inspect import Parameter, signature
from itertools import pairwise

LARGEST_FILE, ONE = 2**26, 2**63


class BadFileError(Exception):
    """The file is not a certificate; the message says why."""


class VerdictError(Exception):
    """A claim does not follow, or cannot be decided: the verdict and its reason."""


def prove(good, reason):
    if not good:
        raise VerdictError("does not follow", reason)


def within_reach(good, reason):
    if not good:
        raise VerdictError("not checkable here", reason)


# ---------- 1. Reading a stranger's file: whatever is not as expected is refused.
# A reader takes a value and its name, and returns what the value means.


def require(good, what, *got):
    if not good:
        raise BadFileError(what + "".join(f", got {shown(value)}" for value in got))


def shown(value):
    """A stranger's value for a line of a terminal: escaped and short."""
    if isinstance(value, list | dict) and len(value) > 9:
        return f"{len(value)} entries"
    found = ascii(value[:60] if isinstance(value, str) else value)
    return found if len(found) <= 60 else found[:57] + "..."


def reader(function):
    """Make `name(bounds)` a reader of a function that takes the value, its name and bounds."""
    return lambda *bounds: lambda value, what: function(value, what, *bounds)


@reader
def text(value, what, pattern="(?s).{1,10000}", meaning="text"):
    require(isinstance(value, str) and re.fullmatch(pattern, value), f"{what} must be {meaning}", value)
    return value


def word(*words):
    return text("|".join(map(re.escape, words)), " or ".join(words))


@reader
def whole(value, what, least=0, most=10**12):
    good = type(value) is int and least <= value <= most
    require(good, f"{what} must be a whole number from {least} to {most}", value)
    return value


@reader
def number(value, what, least=-(10**400), most=10**400, strictly=False):
    """A whole number, a fraction "p/q", or a float64 in hexadecimal: all of them exactly."""
    found = str(value) if type(value) is int else value if isinstance(value, str) else ""
    if re.fullmatch(r"-?0x[01](\.[0-9a-f]{1,13})?p[+-][0-9]{1,4}", found) and int(found.partition("p")[2]) < 1024:
        digits, _, exponent = found.replace(".", "").partition("p")
        after = len(found.partition("p")[0].partition(".")[2])
        exact = int(digits, 16) * Fraction(2) ** (int(exponent) - 4 * after)
    else:
        good = re.fullmatch(r"-?[0-9]{1,400}(/[1-9][0-9]{0,399})?", found)
        require(good, f"{what} must be a whole number, 'p/q' or '0x1.8p+1'", value)
        exact = Fraction(found)
    good = least < exact < most if strictly else least <= exact <= most
    require(good, f"{what} is out of range", value)
    return exact


@reader
def listed(value, what, each, fewest=1, longest=10**6):
    good = isinstance(value, list) and fewest <= len(value) <= longest
    require(good, f"{what} must be a list of {fewest} to {longest} entries", value)
    return [each(entry, f"an entry of {what}") for entry in value]


@reader
def record(value, what, fields):
    """An object with exactly these keys; one without a reader may hold anything."""
    keys = sorted(value) if isinstance(value, dict) else value
    require(keys == sorted(fields), f"{what} must have the keys {', '.join(sorted(fields))}", keys)
    return {name: each(value[name], name) if each else value[name] for name, each in fields.items()}


@reader
def optional(value, what, each):
    return None if value is None else each(value, what)


@reader
def revealed(value, what, each):
    """An input of which the file may hold a commitment alone."""
    hidden = isinstance(value, dict) and set(value) == {"sha256"}
    within_reach(not hidden, f"the file holds a commitment to its {what} alone; ask the maker for the opening")
    return each(value, what)


def parsed(data):
    """The JSON of a file, or of the payload of a DSSE envelope, whose signatures are not looked at."""

    def unique(pairs):
        require(len(dict(pairs)) == len(pairs), "an object must not have a key twice", [key for key, _ in pairs])
        return dict(pairs)

    def refused(found):
        require(False, "numbers with a point must stand in text, as '3/2' or '0x1.8p+0'", found)

    def limited(found):
        require(len(found) <= 40, "whole numbers must have at most 40 digits", found)
        return int(found)

    require(len(data) <= LARGEST_FILE, f"the file must have at most {LARGEST_FILE} bytes")
    hooks = {"parse_float": refused, "parse_constant": refused, "parse_int": limited, "object_pairs_hook": unique}
    try:
        found = json.loads(data.decode(), **hooks)
        if isinstance(found, dict) and "payloadType" in found:
            good = found["payloadType"] == "application/vnd.in-toto+json" and isinstance(found.get("payload"), str)
            require(good, "the envelope must hold an in-toto statement", found["payloadType"])
            found = json.loads(base64.b64decode(found["payload"], validate=True).decode(), **hooks)
        return found
    except RecursionError:
        raise BadFileError("the file is nested too deeply") from None
    except ValueError as failure:
        raise BadFileError(f"the file is not JSON: {shown(str(failure))}") from None


# ---------- 2. Intervals: two decimal numbers between which a real number lies.

TRAPS = [InvalidOperation, DivisionByZero, Overflow]
DOWN, UP = (Context(50, way, -(10**9), 10**9, traps=TRAPS) for way in (ROUND_FLOOR, ROUND_CEILING))


class Interval:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __add__(self, other):
        other = real(other)
        return Interval(DOWN.add(self.low, other.low), UP.add(self.high, other.high))

    def __neg__(self):
        return Interval(self.high.copy_negate(), self.low.copy_negate())

    def __sub__(self, other):
        return self + -real(other)

    def __mul__(self, other):
        pairs = [(a, b) for a in (self.low, self.high) for b in (real(other).low, real(other).high)]
        return Interval(min(DOWN.multiply(*pair) for pair in pairs), max(UP.multiply(*pair) for pair in pairs))

    def __truediv__(self, other):
        other = real(other)
        within_reach(other.low > 0 or other.high < 0, "a divisor is too close to 0")
        return self * Interval(DOWN.divide(1, other.high), UP.divide(1, other.low))


def real(value):
    """A whole number, a fraction or an interval as an interval."""
    if isinstance(value, Interval):
        return value
    above, below = Decimal(value.numerator), Decimal(value.denominator)
    return Interval(DOWN.divide(above, below), UP.divide(above, below))


def outward(name, low, high):
    """`decimal` rounds √, ln and exp to the nearest, whatever the rounding: a step outward encloses the real number."""
    return Interval(DOWN.next_minus(getattr(DOWN, name)(low)), UP.next_plus(getattr(UP, name)(high)))


def sqrt(x):
    return outward("sqrt", max(Decimal(0), real(x).low), real(x).high)


def ln(x):
    within_reach(real(x).low > 0, "the logarithm of a number too close to 0 is needed")
    return outward("ln", real(x).low, real(x).high)


def exp(x):
    x, far = real(x), Decimal(-(10**6))
    within_reach(x.high <= 10**6, "an exponent is too large")
    found = outward("exp", max(x.low, far), max(x.high, far))
    return found if x.low > far else Interval(Decimal(0), found.high)


def power(base, exponent):
    return exp(ln(base) * exponent)


PI = Interval(Decimal("3.14159265358979323846264338327950288"), Decimal("3.14159265358979323846264338327950289"))


# ---------- 3. Confidence limits (proofs: confidence, and divergences).


def kl(x, y):
    """kl(x ‖ y) = x ln(x/y) + (1 − x) ln((1 − x)/(1 − y)) for 0 ≤ x ≤ 1, 0 < y < 1; 0 ln 0 is 0."""
    return sum((real(a) * (ln(a) - ln(b)) for a, b in ((x, y), (1 - x, 1 - y)) if a > 0), real(0))


def ln_factorial(n):
    """ln n!, by Stirling's series, whose partial sums lie above and below it in turn."""
    if n < 256:
        return ln(math.factorial(n))
    low = real(Fraction(1, 12 * n) - Fraction(1, 360 * n**3) + Fraction(1, 1260 * n**5) - Fraction(1, 1680 * n**7))
    return ln(n) * n - n + ln(PI * (2 * n)) / 2 + Interval(low.low, (low + Fraction(1, 1188 * n**9)).high)


def binomial_at_most(k, n, p):
    """P(Bin(n, p) ≤ k) from above, for k < np: the term at k, and those before it, which fall faster and faster."""
    log = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k) + ln(p) * k + ln(1 - p) * (n - k)
    term = total = exp(log).high
    odds = (real(1 - p) / p).high
    for i in range(k, 0, -1):
        quotient = UP.divide(UP.multiply(odds, i), n - i + 1)
        term = UP.multiply(term, quotient)
        if k - i > 10**6 or term < total * Decimal("1e-40"):  # the rest is below a geometric series
            return UP.add(total, UP.divide(term, DOWN.subtract(1, quotient)))
        total = UP.add(total, term)
    return total


def gaussian_variation(distance):
    """Total variation of two unit Gaussians, erf(d/√8), from above, by its alternating series."""
    if distance > 4 or distance == 0:
        return Fraction(distance > 4)
    term, total = real(distance) / sqrt(8), real(0)
    for k in range(100):
        total = total + term / ((2 * k + 1) * (-1) ** k)
        term = term * (distance * distance / 8) / (k + 1)
    return Fraction(((total + term) * 2 / sqrt(PI)).high)


def added(values):
    """Their sum. A stranger's file may hold numbers whose sum would take hours."""
    different = {value.denominator for value in values}
    within_reach(sum(map(int.bit_length, different)) <= 2**17, "its numbers have too many different denominators")
    common = math.lcm(*different)
    return Fraction(sum(value.numerator * (common // value.denominator) for value in values), common)


def bets_win(values, m, alpha):
    """Whether bets that the expectation of values in [0, 1] exceeds m win 1/α: then it does, but for a chance of α.

    Any bet that looks at earlier values alone is allowed. This one is √(2 ln(1/α)/(n·variance so far)), computed in
    floats that are then meant exactly, and limited by 9/(10m).
    """
    half = len(values) // 2
    ordered = half and (added(values[:half]) - added(values[-half:])) ** 2 > 32 * half  # chance: 2e^−32 (Hoeffding)
    prove(not ordered, "its values do not stand in the order of independent draws")
    log, at = math.log(alpha.denominator) - math.log(alpha.numerator), real(m)
    most = real(Fraction(9, 10)) / at if m > 0 else real(10**6)
    wealth, total, squares = Decimal(1), 0.5, 0.25
    for seen, value in enumerate(values, start=1):
        gain = DOWN.subtract(real(value).low, at.high)
        bet = Decimal(math.sqrt(2 * log * seen / (len(values) * squares)))
        stake = min(bet, most.high if gain < 0 else most.low, Decimal(10**6))
        wealth = DOWN.multiply(wealth, DOWN.add(1, DOWN.multiply(stake, gain)))
        total += float(value)
        squares += (float(value) - total / (seen + 1)) ** 2
    return Fraction(wealth) * alpha >= 1


def mean_at_least(values, limit, alpha):
    """Whether the expectation is at least `limit`, except with chance α: by bets or by Chernoff, with α/2 for each."""
    mean = added(values) / len(values)
    if limit <= 0 or limit >= mean:
        return limit <= 0
    return (kl(mean, limit) * len(values) + ln(alpha / 2)).low >= 0 or bets_win(values, limit, alpha / 2)


# ---------- 4. Rule "audit": what an output tells about a secret, from counts (proofs: certificates).


def squared_holds(limit, plug_in, one, zero, paired, alpha):
    """Whether v ≤ limit by squared_closed or squared_sharp; both read the plug-in alone, so either will do."""
    rows = Fraction(one + zero if paired else 2 * min(one, zero))
    wide = rows if paired else max(rows, Fraction(4 * 20 * one * zero, 21 * (one + zero)))
    if limit >= 1 or (sqrt(limit) - sqrt(ln(alpha) * (-2 / wide)) - sqrt(plug_in - ln(alpha) * (2 / wide))).low >= 0:
        return True
    e, m = math.sqrt(limit), (float(plug_in.high) + float(limit)) / (2 * math.sqrt(limit)) if limit else 1.0
    if m >= e or e >= 1:
        return False
    # Every λ in [0, ½] proves something; this one, computed in floats, is nearly the best.
    best = Fraction(min(0.5, (math.atanh(e) - math.atanh(m)) / (2 * e)))
    plus, minus = exp(sqrt(limit) * 2 * best), exp(sqrt(limit) * -2 * best)
    moment = exp(limit * best) * ((plus + minus) / 2 - sqrt(limit) * (plus - minus) / 2)
    return (-(plug_in * best + ln(moment)) * rows + ln(alpha)).low >= 0


def variation_holds(limit, cells, one, zero, paired, alpha):
    """Whether TV ≤ limit by variation_upper (Chernoff, Hoeffding) or variation_exact (Clopper and Pearson)."""
    n, p, right = one + zero, (1 + limit) / 2, sum(max(cell) for cell in cells)
    left, other, unit = (1, 1, n) if paired else (zero, one, 2 * one * zero)
    seen = Fraction(sum(abs(a * left - b * other) for a, b in cells), unit)
    if limit >= 1 or limit <= seen:
        return limit >= 1
    if (kl((1 + seen) / 2, p) * (n if paired else 2 * min(one, zero)) + ln(alpha)).low >= 0:
        return True
    if not paired and (real(limit - seen) - sqrt(ln(alpha) * Fraction(-n, 2 * one * zero))).low >= 0:
        return True
    exact = right < p * n if paired else one == zero and right + 1 <= p * n
    return exact and n <= 10**9 and Fraction(binomial_at_most(right, n, p)) <= alpha


def audit(claim, reading, loss, sampling, cells, squared, variation):
    paired, one, zero = sampling == "pairs", sum(a for a, _ in cells), sum(b for _, b in cells)
    require(one > 0 and zero > 0, "cells must count rows of both secrets")
    within_reach(len(cells) <= 200_000, "its table has more than 200000 different outputs")
    fair = not paired or (one - zero) ** 2 <= 64 * (one + zero)
    prove(fair, "its own counts refute that every secret was a fair coin")
    sizes = (one + zero, one + zero) if paired else (2 * one, 2 * zero)
    masses = [(Fraction(a, sizes[0]), Fraction(b, sizes[1])) for a, b in cells if a or b]
    plug_in = sum((real((a - b) ** 2 / (a + b)) for a, b in masses), real(0))
    alpha, v, tv = claim.alpha() / (2 if loss == "joint" else 1), squared, variation
    by_v = loss != "zero-one" and squared_holds(v, plug_in, one, zero, paired, alpha)
    by_tv = loss != "squared" and variation_holds(tv, cells, one, zero, paired, alpha)
    v_holds, tv_holds = by_v or (by_tv and v >= tv), by_tv or (by_v and tv**2 >= v)  # v ≤ TV ≤ √v
    prove(v_holds, "the counts do not prove its bound on v, 1 less the least squared loss")
    prove(tv_holds, "the counts do not prove its bound on the total variation")
    area = Fraction(1, 2) + tv - tv * tv / 2
    area_by_v = sqrt(v / 3) + Fraction(1, 2) if 3 * v <= 1 else 1 - Fraction(3, 8) * (1 - v) ** 2
    side, proven = {  # proofs: leakage
        "advantage": ("at most", tv),
        "balanced accuracy": ("at most", (1 + tv) / 2),
        "error": ("at least", (1 - tv) / 2),
        "squared loss": ("at least", 1 - v),
        "bits": ("at most", v),
        "log loss": ("at least", ln(2) * (1 - v)),
        "auc": ("at most", area if area <= Fraction(real(area_by_v).high) else area_by_v),
    }[reading]
    claim.no_stronger_than(side, proven)
    coin = ", if every secret was a fair coin" if paired else ""
    return f"{reading} in telling two secrets apart by the output is {claim}, from {one} and {zero} rows{coin}"


# ---------- 5. Rules "private answers", "one of several mechanisms" and "ledger" (proofs: accounting, gate).
# Each mechanism returns a bound on its δ at ε.


def revealing(p, step, times, epsilon):
    """1 − (1 − p)^T (1 − δ_T): each of T steps reveals with chance p, and is step-DP otherwise.

    δ_T is composition_delta, Σ over l of C(T, l)(x^(T−l) − e^ε x^l)⁺/(1 + x)^T with x = e^step.
    """
    x, composed = exp(step), Decimal(0)
    term, falls = power(x / (x + 1), times).high, (real(1) / x).high
    for left in range(times + 1):
        gap = real(step * (times - 2 * left) - epsilon)
        if gap.high <= 0:
            break
        composed = UP.add(composed, UP.multiply(term, UP.subtract(1, exp(-gap).low)))
        term = UP.multiply(UP.divide(UP.multiply(term, times - left), left + 1), falls)
    if composed >= 1 or p.high >= 1:
        return Fraction(1)
    kept = DOWN.subtract(1, composed)
    return Fraction((real(1) - power(real(1) - p, times) * Interval(kept, kept)).high)


def sparse_vector(epsilon, scale, threshold, refusals):
    b = exp(-1 / (2 * scale))
    p = (power(b, threshold + 1) * (b + 1) - power(b, 2 * threshold + 3) / (b * b + 1)) / (b + 1 + b * b)
    return revealing(p, 2 / scale, refusals, epsilon)


def stable_release(epsilon, scale, threshold, queries):
    b = exp(-1 / scale)
    return revealing(power(b, threshold + 1) / (b + 1), 1 / scale, queries, epsilon)


def laplace(epsilon, sensitivity, scale):
    return Fraction(sensitivity > epsilon * scale)


def labels_found(epsilon, changed, scale, threshold):
    a = exp(-1 / scale)
    return Fraction((power(a, threshold - 1) / (a + 1) * changed).high) if changed <= epsilon * scale else Fraction(1)


def gaussian_sum(sigma, draws):
    """Lemma 6: the variance of a sum, how far it is tabulated, and R over its normaliser, from above."""
    variance, tail = draws * sigma * sigma, exp(PI * PI * -(25 * sigma * sigma))
    eta = sum((exp(PI * PI * -((j * sigma) ** 2)) for j in range(1, 5)), tail * 2) * 2
    reach = math.isqrt(math.ceil(144 * variance)) + 1
    within_reach(reach <= 500_000, "its noise has more than a million values")
    normal = sum((exp(Fraction(-x * x) / (2 * variance)) for x in range(-40, 41)), real(0))
    if variance > 10:
        normal = sqrt(PI * (2 * variance))
    return variance, reach, exp(ln((eta + 1) / (real(1) - eta)) * (draws - 1)) / normal


def weights(variance, reach):
    """e^(−v²/(2·variance)) from above, by less than a share of 10⁻³⁰, for v from −reach to reach."""
    weight, ratio = (exp(Fraction(-x) / (2 * variance)).high for x in (reach * reach, 1 - 2 * reach))
    falls = exp(-1 / variance).high
    for _ in range(2 * reach + 1):
        yield weight
        weight, ratio = UP.multiply(weight, ratio), UP.multiply(ratio, falls)


def gnmax(epsilon, sigma, answers, tests, test_sigma):
    """The loss is (answers + v)/σ² + (tests + 2u)/(2σ₁²), v and u sums of 2·answers and of `tests` Gaussians."""
    require(not tests or test_sigma * 2 >= 1, "test_sigma must be at least 1/2")
    variance, reach, scale = gaussian_sum(sigma, 2 * answers)
    unit, beyond = sigma * sigma, exp(-70)  # 4e^(−72), what lies beyond 12 deviations, is less
    above, tilted = [Decimal(0)], [Decimal(0)]  # sums from the top: of the weights, and of weight times e^(−loss)
    damp, grows = exp(-(answers + reach) / unit).low, exp(1 / unit).low
    for weight in reversed(list(weights(variance, reach))):
        above.append(UP.add(above[-1], weight))
        least = DOWN.multiply(weight, Decimal(1) - Decimal("1e-30"))
        tilted.append(DOWN.add(tilted[-1], DOWN.multiply(least, damp)))
        damp = DOWN.multiply(damp, grows)
    spread, far, other = gaussian_sum(test_sigma, tests) if tests else (Fraction(1), 0, real(1))
    each = 1 / (2 * test_sigma**2) if tests else Fraction(0)
    total, left, falls = Decimal(0), exp(epsilon - (tests - 2 * far) * each).low, exp(-2 * each).low
    for u, weight in enumerate(weights(spread, far), start=-far):
        first = max(-reach, math.floor((epsilon - (tests + 2 * u) * each) * unit) - answers + 1)
        if first <= reach:
            gained = UP.subtract(above[reach - first + 1], DOWN.multiply(left, tilted[reach - first + 1]))
            total = UP.add(total, UP.multiply(weight, max(Decimal(0), gained)))
        left = DOWN.multiply(left, falls)
    return Fraction((Interval(total, total) * scale * other + beyond * (scale * other + 1)).high)


def worth(nodes, values):
    """W_j of the gate: the lower convex hull of stated points, and the function, which is flat beyond the last point.

    Below 1 it is 1 − y + y·W(1/y). It errs by a few units in the last place; W falls, so arguments are rounded down.
    """

    def slope(one, other):
        return (other[1] - one[1]) / (other[0] - one[0])

    def at(y):
        turned = y if y >= 1 else 1 / y * (1 - 2.0**-51)
        cell, found = max(bisect_right(nodes, turned) - 1, 0), values[-1]
        if cell < len(nodes) - 1:
            left, right = nodes[cell], nodes[cell + 1]
            turned = max(turned, left)
            found = ((right - turned) * values[cell] + (turned - left) * values[cell + 1]) / (right - left)
        return found if y >= 1 else 1 - y + y * found

    hull = []
    for point in zip(map(Fraction, nodes), map(Fraction, values), strict=True):
        while len(hull) > 1 and slope(hull[-2], hull[-1]) >= slope(hull[-2], point):
            hull.pop()
        hull.append(point)
    good = slope(hull[-2], hull[-1]) <= 0 and hull[0][1] - 2 * slope(hull[0], hull[1]) <= 1
    prove(good, "its function is not convex and falling, in y and in 1/y")
    nodes, values = [float(y) for y, _ in hull], [float(value) for _, value in hull]
    return list(zip(nodes, values, strict=True)), at


def gate(epsilon, refusals, table, corners, nodes, levels, released=None):
    """W ≥ what every query is worth, seen at the nodes; then δ ≤ W_T(e^ε). Floats err by less than a share of 2⁻⁴⁸."""
    line, slack, nodes = [(ONE, ONE), *corners, (0, 0)], 1 + 2.0**-48, [float(y) for y in nodes]
    good = all(one[0] > other[0] for one, other in pairwise(line)) and all(high >= low for high, low in corners)
    require(good, "corners must descend, the larger chance first")
    good = nodes[0] == 1 and all(one < other for one, other in pairwise(nodes)) and len(levels) == refusals
    require(good, "nodes must ascend from 1, with a level for each refusal")
    quick = 2 * len(corners) * refusals * len(nodes) <= 5_000_000
    within_reach(quick, "its table would take this checker more than ten seconds")
    for high, low in ((max(pair), min(pair)) for pair in pairwise(table)):
        (a, b), (c, d) = next(ends for ends in pairwise(line) if ends[1][0] <= high)
        good = (low - d) * (a - c) >= (b - d) * (high - c)
        prove(good, "neighbouring chances of its table differ by more than its corners allow")
    at_once = (ONE - table[0] if released is None else released) / ONE
    before = lambda y: max(0.0, 1 - y)  # noqa: E731 — W_0
    for level in levels:
        require(len(level) == len(nodes), "each of levels must have one number for each node")
        points, now = worth(nodes, [float(value) for value in level])
        good = all((at_once + (1 - at_once) * before(y)) * slack <= value for y, value in points)
        prove(good, "its function lies below a label that is released where votes are tied")
        for here, there in (ends for high, low in corners for ends in ((high, low), (low, high))):
            p, q = here / ONE * slack, (ONE - here) / ONE * slack
            refused, passed = there / here * (1 - 2.0**-49), (ONE - there) / (ONE - here) * (1 - 2.0**-49)
            good = all(p * before(y * refused) + q * now(y * passed) <= value for y, value in points)
            prove(good, "its function lies below what a query is worth")
        before = now
    return Fraction(before(max(1.0, float(exp(epsilon).low) * (1 - 2.0**-50))) * slack)


MECHANISMS = {"sparse vector": sparse_vector, "stable release": stable_release, "gnmax": gnmax, "gate": gate}
MECHANISMS |= {"confirm": partial(gate, released=0), "laplace": laplace, "labels found": labels_found}


def part(value, what):
    """A mechanism, its ε and δ, and its constants, which must keep to them."""
    name = word(*MECHANISMS)(value.get("mechanism") if isinstance(value, dict) else None, f"the mechanism of {what}")
    constants = inputs_of(MECHANISMS[name])
    found = record({"mechanism": text(), "delta": INPUTS["delta"], **constants})(value, what)
    good = MECHANISMS[name](**{name: found[name] for name in constants}) <= found["delta"]
    prove(good, f"the constants of its {name} do not keep to their ε and δ")
    return found


def private_answers(claim, delta, neighbours, parts, total=sum, between=" and "):
    prove(claim.failure is None, CERTAIN)
    few = any(each["mechanism"] == "labels found" and each["changed"] < 2 for each in parts)
    prove(not few or "label" not in neighbours, "a changed label changes two counts, and its noise is made for one")
    prove(total(each["delta"] for each in parts) <= delta, "its parts spend a larger δ than it states")
    claim.no_stronger_than("at most", total(each["epsilon"] for each in parts))
    names = between.join(each["mechanism"] for each in parts)
    return f"ε is {claim} at δ = {short(delta, 'at most')}, for data that differ by {neighbours}, by {names}"


def ledger(claim, delta, about, entries):
    prove(claim.failure is None, CERTAIN)
    compared = about.partition(" (")[0]  # what follows names columns
    within_reach(compared in NEIGHBOURS, "its entries are about neighbours that this checker does not know")
    same = all(entry["about"] == about for entry in entries)
    prove(same, "its entries are about different neighbours, and do not add up")
    prove(added([entry["delta"] for entry in entries]) <= delta, "its entries spend a larger δ than it states")
    claim.no_stronger_than("at most", added([entry["epsilon"] for entry in entries]))
    added_up = f"the ε of {len(entries)} entries add up to no more: {claim}, at δ = {short(delta, 'at most')}"
    return f"{added_up}, for data that differ by {compared}"


# ---------- 6. Rules from sampled values: naming and rebuilding an input (proofs: estimation, posterior).


def identification(claim, values, distance, failure_probability):
    limit = claim.value - gaussian_variation(distance)
    holds = mean_at_least([1 - x for x in values], 1 - limit, claim.alpha(failure_probability))
    prove(claim.side == "at most" and holds, NOT_SAMPLED)
    return f"the probability of naming which of several known inputs was released is {claim}, from {len(values)} draws"


def gallery_error(claim, values, most, coordinates, distance, variance, failure_probability):
    """claim ≤ (D·L − 4D·TV)/(p·variance), L the lower limit for the values, which are traces of posteriors over D."""
    prove(claim.value <= 1, "it exceeds 1, and a guess without the release errs by no more than that")
    limit = claim.value * variance * coordinates / most + 4 * gaussian_variation(distance)
    holds = mean_at_least(values, limit, claim.alpha(failure_probability))
    prove(claim.side == "at least" and holds, NOT_SAMPLED)
    return f"the mean squared error of rebuilding one of several known inputs is {claim} of their variance"


def posterior_error(claim, values, most, radius, release_variation, chain_variation, variance, failure_probability):
    """claim ≤ (B·(L − c) − 4R²t)/variance, L the betting limit for the stars' values, cut off at B and over B."""
    prove(claim.value <= 1, "it exceeds 1, and a guess without the release errs by no more than that")
    limit = (claim.value * variance + 4 * radius**2 * release_variation) / most + chain_variation
    alpha, mean = claim.alpha(failure_probability), added(values) / len(values)
    holds = limit <= 0 or (limit < mean and bets_win(values, limit, alpha))  # in a chosen order, bets win beyond it
    prove(claim.side == "at least" and holds, NOT_SAMPLED)
    return f"the mean squared error of rebuilding an input drawn from the prior is {claim} of the prior's variance"


def two_points(claim, modes):
    """Half of the modes have (ε/2)²·mmse(d²/4) ≥ claim², mmse(s) = e^(−s/2)∫φ(y)sech(√s·y)dy, by a sum of step h."""
    prove(claim.failure is None, CERTAIN)
    reached, work, bells = 0, 0, {}
    for change, distance in modes:
        steps = math.ceil(54 / min(math.pi / 3 / max(float(distance) / 2, 0.3), 3.0))  # six or more to a strip's width
        work += steps
        within_reach(work <= 10**6, "its distances are so large that the sums would take too long")
        if steps not in bells:
            bells[steps] = [exp(-(Fraction(9 * k, steps) ** 2) / 2).low * 4 for k in range(1, steps + 1)]
        total, grows, falls = Decimal(1), Decimal(1), Decimal(1)
        up, down = (exp(sign * distance * Fraction(9, 2 * steps)).high for sign in (1, -1))
        for bell in bells[steps]:
            grows, falls = UP.multiply(grows, up), UP.multiply(falls, down)
            total = DOWN.add(total, DOWN.divide(bell, UP.add(grows, falls)))
        integral = Interval(total, total) * Fraction(9, steps) / sqrt(PI * 2) - Fraction(2, 10**14)
        reached += Fraction((exp(-(distance**2) / 8) * integral * (change**2 / 4)).low) >= claim.value**2
        if 2 * reached >= len(modes):
            break
    good = claim.side == "at least" and claim.value >= 0 and 2 * reached >= len(modes)
    prove(good, f"only {reached} of its {len(modes)} modes reach it")
    return f"the root mean squared error on the worse of two inputs is {claim} for half of {len(modes)} modes"


# ---------- 7. The inputs and the rules by name, with what no file can show.

CERTAIN = "it states a failure probability, which its theorem does not have"
NOT_SAMPLED = "the sampled values do not prove it at its failure probability"
NEIGHBOURS = ("one record added or removed", "all records of one person added or removed")
NEIGHBOURS += ("one label changed", "all labels of one person changed")
READINGS = ("advantage", "balanced accuracy", "error", "squared loss", "bits", "log loss", "auc")
TINY, SMALL, CHANCE = Fraction(1, 10**300), Fraction(1, 10**250), number(0, 1, True)
ENTRY, LEVEL = {"about": text(), "epsilon": number(0), "delta": number(0)}, listed(number(SMALL, 1), 2, 10**5)
INPUTS = {"reading": word(*READINGS), "loss": word("joint", "squared", "zero-one")}
INPUTS |= {"sampling": word("by class", "pairs"), "cells": revealed(listed(listed(whole(), 2, 2)))}
INPUTS |= {"neighbours": word(*NEIGHBOURS), "parts": listed(part, 1, 20)}
INPUTS |= {"about": text(), "entries": listed(record(ENTRY), 0)}
INPUTS |= {"values": revealed(listed(number(0, 1))), "failure_probability": CHANCE, "coordinates": whole(1)}
INPUTS |= {"modes": revealed(listed(listed(number(0, 10**9), 2, 2), 1, 10**4)), "variance": revealed(number(TINY))}
INPUTS |= dict.fromkeys(("squared", "variation", "release_variation", "chain_variation"), revealed(number(0, 1)))
INPUTS |= {"distance": revealed(number(0, 100)), "radius": revealed(number(0)), "most": revealed(number(TINY))}
INPUTS |= {"epsilon": number(Fraction(1, 10**9), 700), "delta": number(0, 1), "changed": whole(1, 2)}
INPUTS |= {"scale": number(Fraction(1, 100), 10**12), "sigma": number(Fraction(1, 2), 10**6)}
INPUTS |= {"table": listed(whole(1, ONE - 1), 1, 10**5), "corners": listed(listed(whole(1, ONE - 1), 2, 2), 1, 10**4)}
INPUTS |= {"nodes": listed(number(1, 10**200), 2, 10**5), "levels": listed(LEVEL, 1, 200)}
INPUTS |= {"threshold": whole(), "sensitivity": whole(1), "answers": whole(1), "tests": whole()}
INPUTS |= {"refusals": whole(1, 20_000), "queries": whole(1, 20_000), "test_sigma": number(0, 10**6)}
TABLE = "that the counts are those of the data, that rows are independent (and, of pairs, every secret a fair coin), "
TABLE += "that all choices were made before the data"
RAN = "that the mechanism ran so, with exact noise and one vote or less a record or person, and nothing else was "
RAN += "released"
DRAWN = "that the values are what independent draws gave for this model, noise and data, in the order drawn, that none "
DRAWN += "was thrown away, and that distances, variances and ranges are those of the inputs"
PRIVATE = "gate.gate_delta gate.confirm_delta accounting.sparse_vector_delta accounting.stable_release_delta "
PRIVATE += "accounting.gnmax_delta accounting.laplace_scale accounting.lone_label_chance accounting.label_threshold "
PRIVATE += "accounting.basic_composition accounting.replacement_delta"
MOVES = "divergences.gaussian_total_variation"
COUNTED = "certificates.squared_closed certificates.squared_sharp certificates.variation_upper "
COUNTED += "certificates.variation_exact leakage.advantage_upper leakage.information_upper leakage.auc_upper"
CHAINS = f"{DRAWN}; that the chains are reversible and keep to the two variations stated"
MOVED = "that the changes and distances are those of this model, noise and data"
RULES = {
    "audit": (audit, COUNTED, TABLE),
    "private answers": (private_answers, PRIVATE, RAN),
    "one of several mechanisms": (partial(private_answers, total=max, between=" or "), PRIVATE, RAN),
    "ledger": (ledger, "accounting.basic_composition", "that every release has an entry, and keeps to its cost"),
    "identification": (identification, f"estimation.gallery_identification {MOVES}", DRAWN),
    "gallery error": (gallery_error, f"estimation.gallery_mse {MOVES}", DRAWN),
    "posterior error": (posterior_error, f"posterior.posterior_mse {MOVES}", CHAINS),
    "two points": (two_points, "estimation.two_point_bayes_mse", MOVED),
}


def inputs_of(function):
    """The readers of a rule's inputs: its parameters without a default."""
    given = signature(function).parameters.values()
    return {each.name: INPUTS[each.name] for each in given if each.default is Parameter.empty and each.name != "claim"}


def short(value, side):
    """A short float as it is written, else four digits, rounded to the safe side."""
    if len(repr(float(value))) <= 6 and Fraction(float(value)) == value:
        return repr(float(value))
    context = Context(prec=4, rounding=ROUND_CEILING if side == "at most" else ROUND_FLOOR)
    return str(context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context))


class Claim:
    """What is claimed: a side, a value, and the chance with which it may be false because of samples."""

    def __init__(self, side, value, failure):
        self.side, self.value, self.failure = side, value, failure

    def __str__(self):
        return f"{self.side} {short(self.value, self.side)}"

    def alpha(self, part=None):
        """The failure probability, or the part of it that one of several limits made together has."""
        good = self.failure is not None and (part or 0) <= self.failure
        prove(good, "it comes from samples, and its failure probability does not cover them")
        return part or self.failure

    def no_stronger_than(self, side, proven):
        prove(self.side == side, f"its theorem bounds the other side, '{side}'")
        ends = (Fraction(proven.low), Fraction(proven.high)) if isinstance(proven, Interval) else (proven, proven)
        good = ends[1] <= self.value if side == "at most" else ends[0] >= self.value
        prove(good, f"its inputs prove no more than {side} {float(ends[side == 'at most']):.8g}")


DIGEST, BY = text("[0-9a-f]{64}", "64 hexadecimal digits"), word("tacit", "you", "nobody")
CLAIM = {"statement": text(), "adversary": text(), "rule": optional(text()), "inputs": None}
CLAIM |= {"theorem": listed(record({"name": text(), "version": whole(1)}), 0, 100)}
CLAIM |= {"claimed": record({"side": word("at most", "at least"), "value": optional(number())})}
CLAIM |= {"failure_probability": optional(CHANCE)}
CLAIM |= {"assumptions": listed(record({"text": text(), "checked_by": BY}), 0, 100)}
PREDICATE = {"command": text(), "title": text(), "claims": listed(record(CLAIM), 1, 1000)}
PREDICATE |= {"not_revealed": listed(text(), 0), "made_by": None, "replay": None}
FILE = {"_type": word("https://in-toto.io/Statement/v1"), "predicate": record(PREDICATE)}
FILE |= {"subject": listed(record({"name": text(), "digest": record({"sha256": DIGEST})}), 0, 10_000)}
FILE |= {"predicateType": word("urn:tacit-privacy:certificate:v1")}


def judged(claim):
    """The verdict on a claim, the reason or the checker's own sentence, and the chance with which it may be false."""
    function, proofs, unseen = RULES.get(claim["rule"], (None, "", ""))
    names = [each["name"].removeprefix("tacit.theory.") for each in claim["theorem"] if each["version"] == 1]
    known = len(names) == len(claim["theorem"]) > 0 and set(names) <= set(proofs.split())
    made = Claim(*claim["claimed"].values(), claim["failure_probability"])
    try:
        stated = function is not None and made.value is not None
        within_reach(stated, "the certificate states no inputs that this checker has a rule for")
        within_reach(known, "its rule does not rest on the theorems that it names")
        found = function(made, **record(inputs_of(function))(claim["inputs"], "inputs"))
    except VerdictError as reason:
        return (*reason.args, Fraction(0))
    except (ArithmeticError, ValueError) as failure:
        return "not checkable here", f"its numbers are out of reach ({type(failure).__name__})", Fraction(0)
    failure = made.failure or Fraction(0)
    sampled = f", except with probability {short(failure, 'at most')}" if failure else ""
    stated = sum(each["checked_by"] != "tacit" for each in claim["assumptions"])
    return "follows", f"{found}{sampled}. Not checked: {unseen}; its {stated} assumptions", failure


def commitment(salt, value):
    """SHA-256 of the salt, a line feed, and the value as JSON without spaces."""
    return hashlib.sha256(f"{salt}\n{json.dumps(value, separators=(',', ':'))}".encode()).hexdigest()


def check(data, opening=None):
    """The verdict on each claim of a certificate; raises `BadFileError` for what is none."""
    claims = record(FILE)(parsed(data), "the file")["predicate"]["claims"]
    each = record({"claim": whole(0, len(claims) - 1), "input": text(), "salt": DIGEST, "value": None})
    found = {"opened": []} if opening is None else parsed(opening)
    files = {"files": None} if isinstance(found, dict) and "files" in found else {}  # for `tacit verify --replay`
    for place in record({"opened": listed(each, 0), **files})(found, "the opening")["opened"]:
        inputs, name = claims[place["claim"]]["inputs"], place["input"]
        stated = inputs.get(name) if isinstance(inputs, dict) else None
        good = stated == {"sha256": commitment(place["salt"], place["value"])}
        require(good, "the opening must belong to a commitment of the certificate, and this one does not", name)
        inputs[name] = place["value"]
    return [judged(claim) for claim in claims]


def main(arguments=None):
    """Print a line for each claim, and return the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    paths = [each for each in given if each != "--all"]
    if len(paths) not in (1, 3) or paths[1:2] not in ([], ["--opening"]):
        print("usage: python -m tacit_check FILE [--opening FILE] [--all]", file=sys.stderr)
        return 2
    try:
        contents = []
        for path in paths[::2]:
            with open(path, "rb") as file:
                contents.append(file.read(LARGEST_FILE + 1))
        verdicts = check(*contents)
    except (OSError, ValueError, BadFileError) as failure:
        print(f"tacit_check: {' '.join(str(failure).split())}", file=sys.stderr)
        return 2
    for place, (verdict, reason, _) in enumerate(verdicts, start=1):
        print(f"{place}. {verdict}: {reason}")
    follow, fail = (sum(verdict == word for verdict, _, _ in verdicts) for word in ("follows", "does not follow"))
    rest = len(verdicts) - follow - fail
    print(f"{follow} of {len(verdicts)} claims follow, {fail} do not, {rest} cannot be checked here.")
    chances = sum((failure for _, _, failure in verdicts), Fraction(0))
    print(f"Those that follow hold together, except with probability {short(min(chances, Fraction(1)), 'at most')}.")
    print("That they are about the files named in the certificate is its maker's word.")
    return 0 if follow and not fail and (follow == len(verdicts) or "--all" not in given) else 1


if __name__ == "__main__":
    sys.exit(main())
