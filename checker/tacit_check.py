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
from collections import namedtuple
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import partial
from inspect import signature
from itertools import pairwise

LARGEST_FILE, ONE = 2**26, 2**63


class BadFileError(Exception):
    """The file is not a certificate; the message says why."""


class VerdictError(Exception):
    """A claim does not follow, or cannot be decided: the verdict and its reason."""


def prove(good, reason, verdict="does not follow"):
    if not good:
        raise VerdictError(verdict, reason)


within_reach = partial(prove, verdict="not checkable here")


# ---------- 1. Reading a stranger's file: whatever is not as expected is refused.


def require(good, what, *got):
    """Refuse the file otherwise, in one line that shows a stranger's value escaped and short."""
    if not good:
        shown = [f"{len(each)} entries" if isinstance(each, list | dict) else ascii(each) for each in got]
        raise BadFileError(what + "".join(f", got {each if len(each) <= 60 else each[:57] + '...'}" for each in shown))


def parsed(data):
    """The JSON of a file, or of the payload of a DSSE envelope, whose signatures are not looked at."""

    def unique(pairs):
        require(len(dict(pairs)) == len(pairs), "an object must not have a key twice", " ".join(dict(pairs)))
        return dict(pairs)

    def integer(found):
        good = len(found) <= 40 and found.lstrip("-").isdigit()
        require(good, "numbers have at most 40 digits, or stand in text, as '3/2' or '0x1.8p+0'", found)
        return int(found)

    require(len(data) <= LARGEST_FILE, f"the file must have at most {LARGEST_FILE} bytes")
    hooks = {"parse_float": integer, "parse_constant": integer, "parse_int": integer, "object_pairs_hook": unique}
    try:
        found = json.loads(data.decode(), **hooks)
        if isinstance(found, dict) and "payloadType" in found:
            good = found["payloadType"] == "application/vnd.in-toto+json" and isinstance(found.get("payload"), str)
            require(good, "the envelope must hold an in-toto statement", found["payloadType"])
            found = json.loads(base64.b64decode(found["payload"], validate=True).decode(), **hooks)
    except (RecursionError, ValueError) as failure:
        require(False, "the file must be JSON, and not be nested too deeply", str(failure))
    return found


def number(value, what, least, most, inside=False):
    """A whole number, a fraction "p/q", or a float64 in hexadecimal: all of them exactly."""
    found = str(value) if type(value) in (int, str) else ""
    binary = re.fullmatch(r"(-?0x[01])(?:\.([0-9a-f]{1,13}))?p([+-][0-9]{1,4})", found)
    if binary and int(binary[3]) < 1024:
        after = binary[2] or ""
        exact = int(binary[1] + after, 16) * Fraction(2) ** (int(binary[3]) - 4 * len(after))
    else:
        good = re.fullmatch(r"-?[0-9]{1,400}(/[1-9][0-9]{0,399})?", found)
        require(good, f"{what} must be a whole number, 'p/q' or '0x1.8p+1'", value)
        exact = Fraction(found)
    good = least < exact < most if inside else least <= exact <= most
    require(good, f"{what} is out of range", value)
    return exact


def read(value, what, shape):
    """What a value means; one that has not the shape is refused.

    A shape is a pattern of text, a set of words, a range of whole numbers, a pair of numbers that includes others, a
    list of the shape of entries and their least and largest number, a dict with exactly these keys, or a function.
    """
    hidden = what in KEPT_BACK and isinstance(value, dict) and set(value) == {"sha256"}
    within_reach(not hidden, f"the file holds a commitment to its {what} alone; ask the maker for the opening")
    match shape:
        case str():
            good, meaning = isinstance(value, str) and re.fullmatch(shape, value), f"text like {shape}"
        case set():
            good, meaning = isinstance(value, str) and value in shape, " or ".join(sorted(shape))
        case range():
            good, meaning = type(value) is int and value in shape, f"a whole number from {shape[0]} to {shape[-1]}"
        case tuple():
            return number(value, what, *shape)
        case [each, fewest, most]:
            good, meaning = isinstance(value, list) and fewest <= len(value) <= most, f"{fewest} to {most} entries"
        case dict():
            good, meaning = isinstance(value, dict) and value.keys() == shape.keys(), f"an object of {', '.join(shape)}"
        case None:
            return value
        case _:
            return shape(value, what)
    require(good, f"{what} must be {meaning}", value)
    if isinstance(shape, list):
        return [read(entry, f"an entry of {what}", each) for entry in value]
    return {name: read(value[name], name, shape[name]) for name in shape} if isinstance(shape, dict) else value


def optional(shape):
    return lambda value, what: None if value is None else read(value, what, shape)


# ---------- 2. Intervals: two decimal numbers between which a real number lies.

TRAPS = [InvalidOperation, DivisionByZero, Overflow]
DOWN, UP = (Context(50, way, -(10**9), 10**9, traps=TRAPS) for way in (ROUND_FLOOR, ROUND_CEILING))


class Interval(namedtuple("Interval", "low high")):
    def __add__(self, other):
        return Interval(DOWN.add(self.low, real(other).low), UP.add(self.high, real(other).high))

    def __sub__(self, other):
        return self + real(other) * -1

    def __mul__(self, other):
        pairs = [(a, b) for a in self for b in real(other)]
        return Interval(min(DOWN.multiply(*pair) for pair in pairs), max(UP.multiply(*pair) for pair in pairs))

    def __truediv__(self, other):
        low, high = real(other)
        within_reach(low > 0 or high < 0, "a divisor is too close to 0")
        return self * Interval(DOWN.divide(1, high), UP.divide(1, low))

    def __pow__(self, exponent):
        return exp(ln(self) * exponent)


def real(value):
    """A whole number, a fraction or an interval as an interval."""
    if isinstance(value, Interval):
        return value
    above, below = Decimal(value.numerator), Decimal(value.denominator)
    return Interval(DOWN.divide(above, below), UP.divide(above, below))


def outward(name, x):
    """`decimal` rounds √, ln and exp to the nearest, whatever the rounding: a step outward encloses the real number."""
    low, high = real(x)
    return Interval(DOWN.next_minus(getattr(DOWN, name)(low)), UP.next_plus(getattr(UP, name)(high)))


sqrt, ln, exp = (partial(outward, name) for name in ("sqrt", "ln", "exp"))
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
    if m <= 0 or m * len(values) >= added(values):  # in a chosen order, bets win beyond the mean
        return m <= 0
    half = len(values) // 2
    ordered = half and (added(values[:half]) - added(values[-half:])) ** 2 > 32 * half  # chance: 2e^−32 (Hoeffding)
    prove(not ordered, "its values do not stand in the order of independent draws")
    log, at = math.log(alpha.denominator) - math.log(alpha.numerator), real(m)
    most = real(Fraction(9, 10)) / at
    wealth, total, squares = Decimal(1), 0.5, 0.25
    for seen, value in enumerate(values, start=1):
        gain = DOWN.subtract(real(value).low, at.high)
        bet = Decimal(math.sqrt(2 * log * seen / (len(values) * squares)))
        stake = min(bet, most.high if gain < 0 else most.low, Decimal(10**6))
        wealth = DOWN.multiply(wealth, DOWN.add(1, DOWN.multiply(stake, gain)))
        total += float(value)
        squares += (float(value) - total / (seen + 1)) ** 2
    return Fraction(wealth) * alpha >= 1


# ---------- 4. Rules. Each returns the side it bounds, the best bound it proves (or None), and the checker's sentence.
# Rule "audit": what an output tells about a secret, from counts (proofs: certificates).


def squared_holds(limit, plug_in, rows, wide, alpha):
    """Whether v ≤ limit by squared_closed or squared_sharp; both read the plug-in alone, so either will do."""
    room = ln(alpha) * (-2 / wide)
    if limit >= 1 or (sqrt(limit) - sqrt(room) - sqrt(plug_in + room)).low >= 0:
        return True
    e, m = math.sqrt(limit), (float(plug_in.high) + float(limit)) / (2 * math.sqrt(limit)) if limit else 1.0
    if m >= e or e >= 1:
        return False
    # Every λ in [0, ½] proves something; this one, computed in floats, is nearly the best.
    best = Fraction(min(0.5, (math.atanh(e) - math.atanh(m)) / (2 * e)))
    plus, minus = exp(sqrt(limit) * 2 * best), exp(sqrt(limit) * -2 * best)
    moment = exp(limit * best) * ((plus + minus) / 2 - sqrt(limit) * (plus - minus) / 2)
    return ((plug_in * best + ln(moment)) * -rows + ln(alpha)).low >= 0


def variation_holds(limit, seen, one, zero, paired, rows, alpha):
    """Whether TV ≤ limit by variation_upper (Chernoff, Hoeffding) or variation_exact (Clopper and Pearson)."""
    if limit >= 1 or limit <= seen:
        return limit >= 1
    n, p, right = one + zero, (1 + limit) / 2, (1 + seen) / 2
    chernoff = kl(right, p) * rows + ln(alpha)
    hoeffding = real(limit - seen) - sqrt(ln(alpha) * Fraction(-n, 2 * one * zero))
    if chernoff.low >= 0 or (not paired and hoeffding.low >= 0):
        return True
    exact = paired or (one == zero and right * n + 1 <= p * n)
    return exact and n <= 10**9 and Fraction(binomial_at_most(int(right * n), n, p)) <= alpha


def audit(claim, reading, loss, sampling, cells, squared, variation):
    paired, one, zero = sampling == "pairs", sum(a for a, _ in cells), sum(b for _, b in cells)
    require(one > 0 and zero > 0, "cells must count rows of both secrets")
    within_reach(len(cells) <= 200_000, "its table has more than 200000 different outputs")
    fair = not paired or (one - zero) ** 2 <= 64 * (one + zero)
    prove(fair, "its own counts refute that every secret was a fair coin")
    left, right = (one + zero, one + zero) if paired else (2 * one, 2 * zero)
    masses = [(a * right, b * left) for a, b in cells if a or b]  # over left·right
    plug_in = sum((real(Fraction((a - b) ** 2, a + b)) for a, b in masses), real(0)) / (left * right)
    seen = Fraction(sum(abs(a - b) for a, b in masses), left * right)
    rows = Fraction(min(left, right))
    wide = rows if paired else max(rows, Fraction(4 * 20 * one * zero, 21 * (one + zero)))
    v, tv, alpha = squared, variation, claim.failure / (2 if loss == "joint" else 1)
    by_v = loss != "zero-one" and squared_holds(v, plug_in, rows, wide, alpha)
    by_tv = loss != "squared" and variation_holds(tv, seen, one, zero, paired, rows, alpha)
    v_holds, tv_holds = by_v or (by_tv and v >= tv), by_tv or (by_v and tv**2 >= v)  # v ≤ TV ≤ √v
    prove(v_holds, "the counts do not prove its bound on v, 1 less the least squared loss")
    prove(tv_holds, "the counts do not prove its bound on the total variation")
    area = Fraction(1, 2) + tv - tv * tv / 2
    area_by_v = Fraction(sqrt(v / 3).high) + Fraction(1, 2) if 3 * v <= 1 else 1 - Fraction(3, 8) * (1 - v) ** 2
    side, proven = {  # proofs: leakage
        "advantage": ("at most", tv),
        "balanced accuracy": ("at most", (1 + tv) / 2),
        "error": ("at least", (1 - tv) / 2),
        "squared loss": ("at least", 1 - v),
        "bits": ("at most", v),
        "log loss": ("at least", Fraction(ln(2).low) * (1 - v)),
        "auc": ("at most", min(area, area_by_v)),
    }[reading]
    coin = ", if every secret was a fair coin" if paired else ""
    return f"{reading} in telling two secrets apart by the output", side, proven, f", from {one} and {zero} rows{coin}"


# ---------- 5. Rules "private answers", "one of several mechanisms" and "ledger" (proofs: accounting, gate).
# Each mechanism returns a bound on its δ at ε.


def revealing(p, step, times, epsilon):
    """1 − (1 − p)^T (1 − δ_T): each of T steps reveals with chance p, and is step-DP otherwise.

    δ_T is composition_delta, Σ over l of C(T, l)(x^(T−l) − e^ε x^l)⁺/(1 + x)^T with x = e^step.
    """
    x, composed = exp(step), Decimal(0)
    term, falls = ((x / (x + 1)) ** times).high, (real(1) / x).high
    for left in range(times + 1):
        gap = step * (times - 2 * left) - epsilon
        if gap <= 0:
            break
        composed = UP.add(composed, UP.multiply(term, UP.subtract(1, exp(-gap).low)))
        term = UP.multiply(UP.divide(UP.multiply(term, times - left), left + 1), falls)
    if composed >= 1 or p.high >= 1:
        return Fraction(1)
    kept = DOWN.subtract(1, composed)
    return Fraction((real(1) - (real(1) - p) ** times * Interval(kept, kept)).high)


def sparse_vector(epsilon, scale, threshold, refusals):
    b = exp(-1 / (2 * scale))
    p = (b ** (threshold + 1) * (b + 1) - b ** (2 * threshold + 3) / (b * b + 1)) / (b + 1 + b * b)
    return revealing(p, 2 / scale, refusals, epsilon)


def stable_release(epsilon, scale, threshold, queries):
    b = exp(-1 / scale)
    return revealing(b ** (threshold + 1) / (b + 1), 1 / scale, queries, epsilon)


def laplace(epsilon, sensitivity, scale):
    return Fraction(sensitivity > epsilon * scale)


def labels_found(epsilon, changed, scale, threshold):
    a = exp(-1 / scale)
    return laplace(epsilon, changed, scale) + Fraction((a ** (threshold - 1) / (a + 1) * changed).high)


def gaussian_sum(sigma, draws):
    """Lemma 6: the variance v of a sum, how far it is tabulated, and R over its normaliser, √(2πv)·Σ e^(−2π²vj²)."""
    variance, q = draws * sigma * sigma, exp(PI * PI * -(sigma * sigma))
    eta = (q + q * q * q * q / (real(1) - q)) * 2  # above 2(q + q⁴ + q⁹ + …)
    reach = math.isqrt(math.ceil(144 * variance)) + 1
    within_reach(reach <= 500_000, "its noise has more than a million values")
    normal = sqrt(PI * (2 * variance)) * (exp(PI * PI * (-2 * variance)) * 2 + 1)
    return variance, reach, ((eta + 1) / (real(1) - eta)) ** (draws - 1) / normal


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
    for weight in weights(variance, reach):
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
        turned = max(1.0, y if y >= 1 else 1 / y * (1 - 2.0**-51))
        cell = bisect_right(nodes, turned)
        (left, high), (right, low) = points[cell - 1], points[cell]
        found = ((right - turned) * high + (turned - left) * low) / (right - left)
        return found if y >= 1 else 1 - y + y * found

    hull = []
    for point in zip(map(Fraction, nodes), map(Fraction, values), strict=True):
        while len(hull) > 1 and slope(hull[-2], hull[-1]) >= slope(hull[-2], point):
            hull.pop()
        hull.append(point)
    good = slope(hull[-2], hull[-1]) <= 0 and hull[0][1] - 2 * slope(hull[0], hull[1]) <= 1
    prove(good, "its function is not convex and falling, in y and in 1/y")
    points = [(float(y), float(value)) for y, value in [*hull, (10**305, hull[-1][1])]]
    nodes = [y for y, _ in points]
    return points[:-1], at


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


def inputs_of(function):
    """The shapes of a rule's or a mechanism's inputs."""
    return {name: INPUTS[name] for name in signature(function).parameters if name in INPUTS}


def part(value, what):
    """A mechanism, its ε and δ, and its constants, which must keep to them."""
    name = read(value.get("mechanism") if isinstance(value, dict) else None, "mechanism", set(MECHANISMS))
    constants = inputs_of(MECHANISMS[name])
    found = read(value, what, {"mechanism": None, "delta": INPUTS["delta"], **constants})
    good = MECHANISMS[name](**{name: found[name] for name in constants}) <= found["delta"]
    prove(good, f"the constants of its {name} do not keep to their ε and δ")
    return found


def private_answers(_, delta, neighbours, parts, total=added, between=" and "):
    few = any(each.get("changed") == 1 for each in parts)
    prove(not few or "label" not in neighbours, "a changed label changes two counts, and its noise is made for one")
    prove(total([each["delta"] for each in parts]) <= delta, "its parts spend a larger δ than it states")
    names = between.join(dict.fromkeys(each.get("mechanism", "the entries of a ledger") for each in parts))
    rest = f" at δ = {short(delta, 'at most')}, for data that differ by {neighbours}, by {names}"
    return "ε", "at most", total([each["epsilon"] for each in parts]), rest


def ledger(claim, delta, about, entries):
    compared = about.partition(" (")[0]  # what follows names columns
    within_reach(compared in NEIGHBOURS, "its entries are about neighbours that this checker does not know")
    same = all(entry["about"] == about for entry in entries)
    prove(same, "its entries are about different neighbours, and do not add up")
    return private_answers(claim, delta, compared, entries)


# ---------- 6. Rules from sampled values: naming and rebuilding an input (proofs: estimation, posterior).


def mean_at_least(values, limit, alpha):
    """Whether the expectation is at least `limit`, except with chance α: by bets or by Chernoff, with α/2 for each."""
    mean = added(values) / len(values)
    chernoff = 0 < limit < mean and (kl(mean, limit) * len(values) + ln(alpha / 2)).low >= 0
    return chernoff or bets_win(values, limit, alpha / 2)


def identification(claim, values, distance, failure_probability):
    limit = 1 - claim.value + gaussian_variation(distance)
    holds = mean_at_least([1 - x for x in values], limit, failure_probability)
    what = "the probability of naming which of several known inputs was released"
    return what, "at most", claim.value if holds else None, f", from {len(values)} draws"


def gallery_error(claim, values, most, coordinates, distance, variance, failure_probability):
    """claim ≤ (D·L − 4D·TV)/(p·variance), L the lower limit for the values, which are traces of posteriors over D."""
    limit = claim.value * variance * coordinates / most + 4 * gaussian_variation(distance)
    holds = claim.value <= 1 and mean_at_least(values, limit, failure_probability)
    what = "the mean squared error of rebuilding one of several known inputs"
    return what, "at least", claim.value if holds else None, " of their variance"


def posterior_error(claim, values, most, radius, release_variation, chain_variation, variance, failure_probability):
    """claim ≤ (B·(L − c) − 4R²t)/variance, L the betting limit for the stars' values, cut off at B and over B."""
    limit = (claim.value * variance + 4 * radius**2 * release_variation) / most + chain_variation
    holds = claim.value <= 1 and bets_win(values, limit, failure_probability)
    what = "the mean squared error of rebuilding an input drawn from the prior"
    return what, "at least", claim.value if holds else None, " of the prior's variance"


def two_points(claim, modes):
    """Half of the modes have (ε/2)²·mmse(d²/4) ≥ claim², mmse(s) = e^(−s/2)∫φ(y)sech(√s·y)dy, by a sum of step h."""
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
    holds = claim.value >= 0 and 2 * reached >= len(modes)
    what = "the root mean squared error on the worse of two inputs"
    return what, "at least", claim.value if holds else None, f" for half of {len(modes)} modes"


# ---------- 7. The inputs and the rules by name, with what no file can show.

TEXT, DIGEST = "(?s).{1,10000}", "[0-9a-f]{64}"
COUNT, SIZE, SHARE = range(10**12 + 1), range(1, 10**12 + 1), range(1, ONE)
UNIT, CHANCE, POSITIVE, PAID = (0, 1), (0, 1, True), (Fraction(1, 10**300), 10**400), (0, 10**400)
READINGS = {"advantage", "balanced accuracy", "error", "squared loss", "bits", "log loss", "auc"}
NEIGHBOURS = {"one record added or removed", "all records of one person added or removed"}
NEIGHBOURS |= {"one label changed", "all labels of one person changed"}
KEPT_BACK = {"cells": [[COUNT, 2, 2], 1, 10**6], "values": [UNIT, 1, 10**6], "squared": UNIT, "variation": UNIT}
KEPT_BACK |= {"distance": (0, 100), "variance": POSITIVE, "most": POSITIVE, "radius": PAID}
KEPT_BACK |= {"release_variation": UNIT, "chain_variation": UNIT, "modes": [[(0, 10**9), 2, 2], 1, 10**4]}
INPUTS = {"reading": READINGS, "loss": {"joint", "squared", "zero-one"}, "sampling": {"by class", "pairs"}}
INPUTS |= {"neighbours": NEIGHBOURS, "parts": [part, 1, 20], "about": TEXT, "failure_probability": CHANCE}
INPUTS |= {"entries": [{"about": TEXT, "epsilon": PAID, "delta": PAID}, 0, 10**6], "coordinates": SIZE}
INPUTS |= {"epsilon": (Fraction(1, 10**9), 700), "delta": UNIT, "threshold": COUNT, "answers": SIZE, "tests": COUNT}
INPUTS |= {"scale": (Fraction(1, 100), 10**12), "sigma": (Fraction(1, 2), 10**6), "test_sigma": (0, 10**6)}
INPUTS |= {"refusals": range(1, 20_001), "queries": range(1, 20_001), "changed": range(1, 3), "sensitivity": SIZE}
INPUTS |= {"table": [SHARE, 1, 10**5], "corners": [[SHARE, 2, 2], 1, 10**4], "nodes": [(1, 10**200), 2, 10**5]}
INPUTS |= {"levels": [[(Fraction(1, 10**250), 1), 2, 10**5], 1, 200], **KEPT_BACK}
TABLE = "that the counts are those of the data, that rows are independent (and, of pairs, every secret a fair coin), "
TABLE += "that all choices were made before the data"
RAN = "that the mechanism ran so, with exact noise one vote or less a record or person, and nothing else was released"
DRAWN = "that the values are what independent draws gave for this model, noise and data, in the order drawn, that none "
DRAWN += "was thrown away, and that distances, variances and ranges are those of the inputs"
CHAINS = f"{DRAWN}; that the chains are reversible and keep to the two variations stated"
MOVED = "that the changes and distances are those of this model, noise and data"
PRIVATE = "gate.gate_delta gate.confirm_delta accounting.sparse_vector_delta accounting.stable_release_delta "
PRIVATE += "accounting.gnmax_delta accounting.laplace_scale accounting.lone_label_chance accounting.label_threshold "
PRIVATE += "accounting.basic_composition accounting.replacement_delta"
COUNTED = "certificates.squared_closed certificates.squared_sharp certificates.variation_upper "
COUNTED += "certificates.variation_exact leakage.advantage_upper leakage.information_upper leakage.auc_upper"
MOVES = "divergences.gaussian_total_variation"
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
SAMPLED = {"audit", "identification", "gallery error", "posterior error"}
CLAIM = {"statement": TEXT, "adversary": TEXT, "rule": optional(TEXT), "inputs": None}
CLAIM |= {"theorem": [{"name": TEXT, "version": SIZE}, 0, 100], "failure_probability": optional(CHANCE)}
CLAIM |= {"claimed": {"side": {"at most", "at least"}, "value": optional((-(10**400), 10**400))}}
CLAIM |= {"assumptions": [{"text": TEXT, "checked_by": {"tacit", "you", "nobody"}}, 0, 100]}
PREDICATE = {"command": TEXT, "title": TEXT, "claims": [CLAIM, 1, 1000], "not_revealed": [TEXT, 0, 10**6]}
PREDICATE |= {"made_by": None, "replay": None}
FILE = {"_type": {"https://in-toto.io/Statement/v1"}, "predicateType": {"urn:tacit-privacy:certificate:v1"}}
FILE |= {"subject": [{"name": TEXT, "digest": {"sha256": DIGEST}}, 0, 10_000], "predicate": PREDICATE}
Claim = namedtuple("Claim", "value failure")


# ---------- 8. The verdicts.


def short(value, side):
    """A short float as it is written, else four digits, rounded to the safe side."""
    if len(repr(float(value))) <= 6 and Fraction(float(value)) == value:
        return repr(float(value))
    context = Context(prec=4, rounding=ROUND_CEILING if side == "at most" else ROUND_FLOOR)
    return str(context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context))


def judged(claim):
    """The verdict on a claim, the reason or the checker's own sentence, and the chance with which it may be false."""
    (stated, value), failure = claim["claimed"].values(), claim["failure_probability"]
    function, proofs, unseen = RULES.get(claim["rule"], (None, "", ""))
    theorems = {(each["name"].removeprefix("tacit.theory."), each["version"]) for each in claim["theorem"]}
    known = theorems and theorems <= {(name, 1) for name in proofs.split()}
    try:
        within_reach(function and value is not None, "it states no inputs that this checker has a rule for")
        within_reach(known, "its rule does not rest on the theorems that it names")
        inputs = read(claim["inputs"], "inputs", inputs_of(function))
        covered = failure is not None and inputs.get("failure_probability", 0) <= failure
        good = covered if claim["rule"] in SAMPLED else failure is None
        prove(good, "its failure probability does not cover its samples, or it has none")
        what, side, proven, rest = function(Claim(value, failure), **inputs)
        prove(side == stated, f"its theorem bounds the other side, '{side}'")
        prove(proven is not None, "its inputs do not prove it")
        good = proven <= value if side == "at most" else proven >= value
        prove(good, f"its inputs prove no more than {side} {float(proven):.8g}")
    except VerdictError as reason:
        return (*reason.args, Fraction(0))
    except (ArithmeticError, ValueError) as error:
        return "not checkable here", f"its numbers are out of reach ({type(error).__name__})", Fraction(0)
    sampled = f", except with probability {short(failure, 'at most')}" if failure else ""
    assumed = sum(each["checked_by"] != "tacit" for each in claim["assumptions"])
    sentence = f"{what} is {side} {short(value, side)}{rest}{sampled}"
    return "follows", f"{sentence}. Not checked: {unseen}; its {assumed} assumptions", failure or Fraction(0)


def check(data, opening=None):
    """The verdict on each claim of a certificate; raises `BadFileError` for what is none."""
    claims = read(parsed(data), "the file", FILE)["predicate"]["claims"]
    each = {"claim": range(len(claims)), "input": TEXT, "salt": DIGEST, "value": None}
    found = {"opened": []} if opening is None else parsed(opening)
    files = {"files": None} if isinstance(found, dict) and "files" in found else {}  # for `tacit verify --replay`
    for place in read(found, "the opening", {"opened": [each, 0, 10**6], **files})["opened"]:
        inputs, name = claims[place["claim"]]["inputs"], place["input"]
        salted = f"{place['salt']}\n{json.dumps(place['value'], separators=(',', ':'))}"
        stated = inputs.get(name) if isinstance(inputs, dict) else None
        good = stated == {"sha256": hashlib.sha256(salted.encode()).hexdigest()}
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
    chances = min(sum(failure for _, _, failure in verdicts), Fraction(1))
    print(f"Those that follow hold together, except with probability {short(chances, 'at most')}.")
    print("That they are about the files named in the certificate is its maker's word.")
    return 0 if follow and not fail and (follow == len(verdicts) or "--all" not in given) else 1


if __name__ == "__main__":
    sys.exit(main())
