"""Does the number in a Tacit certificate follow from what the certificate states? Run: python -m tacit_check FILE

The file comes from a stranger. For each claim the answer is "follows", "does not follow" or "not checkable here", in a
sentence of the checker's own, never of the file. Each rule is written from the pages of docs/proofs that it names, and
shares no code with Tacit. Numbers are exact fractions, or intervals whose ends are decimal numbers rounded outward, so
"follows" is meant in real arithmetic. What a file cannot show stays its maker's word, and is listed with each claim.

Exit status: 0 if some claims follow and none fails, 1 otherwise, 2 if the file is no certificate. With --all, a claim
that cannot be checked fails. --opening FILE reveals inputs that the certificate holds as commitments.
"""

import base64
import hashlib
import json
import math
import random
import re
import sys
from bisect import bisect_right
from collections import Counter, namedtuple
from contextlib import ExitStack
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from inspect import signature
from itertools import accumulate, pairwise, repeat
from operator import add, mul, truediv


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
        require(re.fullmatch("-?[0-9]{1,40}", found), "numbers are whole and short, or text as '3/2'", found)
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
    binary = re.fullmatch(r"(-?0x[01])(\.[0-9a-f]{1,13}|)p([+-][0-9]{1,4})", found)
    if binary and int(binary[3]) < 1024:
        exact = int(binary[1] + binary[2][1:], 16) * Fraction(2) ** (int(binary[3]) - 4 * len(binary[2][1:]))
    else:
        written = re.fullmatch(r"-?[0-9]{1,400}(/[1-9][0-9]{0,399})?", found)
        require(written, f"{what} must be a whole number, 'p/q' or '0x1.8p+1'", value)
        exact = Fraction(found)
    require(least < exact < most if inside else least <= exact <= most, f"{what} is out of range", value)
    return exact


def read(value, what, shape):
    """What a value means; one that has not the shape is refused."""
    hidden = what in KEPT_BACK and isinstance(value, dict) and set(value) == {"sha256"}
    within_reach(not hidden, f"the file holds a commitment to its {what} alone; ask the maker for the opening")
    match shape:
        case None:  # anything
            return value
        case {None: other}:  # null, or of the other shape
            return None if value is None else read(value, what, other)
        case str():  # text of a pattern
            good, meaning = isinstance(value, str) and re.fullmatch(shape, value), f"text like {shape}"
        case range():  # a whole number
            good, meaning = type(value) is int and value in shape, f"a whole number from {shape[0]} to {shape[-1]}"
        case tuple():  # a number between these two
            return number(value, what, *shape)
        case [each, fewest, most]:  # a list, with the shape of its entries
            good, meaning = isinstance(value, list) and fewest <= len(value) <= most, f"{fewest} to {most} entries"
        case dict():  # an object with exactly these keys
            good, meaning = isinstance(value, dict) and value.keys() == shape.keys(), f"an object of {', '.join(shape)}"
        case _:  # a function that reads by itself
            return shape(value, what)
    require(good, f"{what} must be {meaning}", value)
    if isinstance(shape, list):
        return [read(entry, f"an entry of {what}", each) for entry in value]
    return {name: read(value[name], name, shape[name]) for name in shape} if isinstance(shape, dict) else value


# ---------- 2. Intervals: two decimal numbers between which a real number lies.
DOWN, UP = (Context(50, way, -(10**5), 10**9) for way in (ROUND_FLOOR, ROUND_CEILING))  # an overflow is an error


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
    ends = (way.divide(value.numerator, value.denominator) for way in (DOWN, UP))
    return value if isinstance(value, Interval) else Interval(*ends)


def outward(name, x):
    """`decimal` rounds √, ln and exp to the nearest, whatever the rounding: a step outward encloses the real number."""
    low, high = real(x)
    return Interval(DOWN.next_minus(getattr(DOWN, name)(low)), UP.next_plus(getattr(UP, name)(high)))


sqrt, ln, exp = (partial(outward, name) for name in ("sqrt", "ln", "exp"))
PI = Interval(Decimal("3.14159265358979323846264338327950288"), Decimal("3.14159265358979323846264338327950289"))


# ---------- 3. Confidence limits (proofs: confidence, and divergences).
def below_one(log):
    """e^log from above, or 1: of a stranger's large number not even the digits are written out."""
    return Fraction(exp(log).high) if log.high < 0 else Fraction(1)


def chernoff(x, y, n, alpha):
    """Whether e^(−n·kl(x ‖ y)) ≤ α, kl = x ln(x/y) + (1 − x) ln((1 − x)/(1 − y)), 0 ≤ x ≤ 1, 0 < y < 1; 0 ln 0 is 0."""
    kl = sum((real(a) * (ln(a) - ln(b)) for a, b in ((x, y), (1 - x, 1 - y)) if a > 0), real(0))
    return (kl * n + ln(alpha)).low >= 0


def binomial_at_most(k, n, p):
    """P(Bin(n, p) ≤ k) from above, for k < np: the share of the terms up to k, where the term at k is taken as 1."""
    odds, sums = (real(p) / (1 - p)).low, []
    below, above = (i / (odds * (n - i + 1)) for i in range(k, 0, -1)), (odds * (n - i) / (i + 1) for i in range(k, n))
    for way, quotients in ((UP, below), (DOWN, above)):
        with localcontext(way):
            total = Decimal(0)
            for term in accumulate(quotients, Decimal.__mul__):
                total += term
                if term * n < total * Decimal("1e-40"):
                    total += term * n * (way is UP)  # so much are all the others at most, as they fall
                    break
        sums.append(total)
    return Fraction(UP.divide(UP.add(sums[0], 1), DOWN.add(UP.add(sums[0], 1), sums[1])))


def gaussian_variation(distance):
    """Total variation of two unit Gaussians, erf(d/√8), from above: three terms of its alternating series."""
    return min(Fraction(1), Fraction((real(distance - distance**3 / 24 + distance**5 / 640) / sqrt(PI * 2)).high))


def added(values):
    """Their sum. A stranger's file may hold numbers whose sum would take hours."""
    different = {value.denominator for value in values}
    within_reach(sum(map(int.bit_length, different)) <= 2**17, "its numbers have too many different denominators")
    common = math.lcm(*different)
    return Fraction(sum(value.numerator * (common // value.denominator) for value in values), common)


def mean_at_least(values, limit, alpha, ways=2):
    """Whether values in [0, 1] have an expectation of at least `limit`, except with chance α: by bets, or Chernoff."""
    mean, alpha, half = added(values) / len(values), alpha / ways, len(values) // 2
    if limit <= 0 or limit >= mean or (ways == 2 and chernoff(mean, limit, len(values), alpha)):
        return limit <= 0 or limit < mean  # beyond the mean bets win in a chosen order
    ordered = half and (added(values[:half]) - added(values[-half:])) ** 2 > 32 * half  # chance: 2e^−32 (Hoeffding)
    prove(not ordered, "its values do not stand in the order of independent draws")
    log, at, most = math.log(alpha.denominator) - math.log(alpha.numerator), real(limit), real(Fraction(9, 10)) / limit
    wealth, total, squares = Decimal(1), 0.5, 0.25
    for seen, value in enumerate(values, start=1):  # a bet may look at earlier values alone; floats are meant exactly
        gain = DOWN.subtract(real(value).low, at.high)
        bet = Decimal(math.sqrt(2 * log * seen / (len(values) * squares)))
        stake = min(bet, most.high if gain < 0 else most.low, Decimal(10**6))
        wealth = DOWN.multiply(wealth, DOWN.add(1, DOWN.multiply(stake, gain)))
        total += float(value)
        squares += (float(value) - total / (seen + 1)) ** 2
    return Fraction(wealth) * alpha >= 1


# ---------- 4. Rule "audit": what an output tells about a secret, from counts (proofs: certificates, pairs, leakage).
def fair_part(cells, seed):
    """The rows that the seed draws from both classes, so that every secret is a fair coin; and if it tossed again."""
    classes, parts, draw = list(zip(*sorted(cells), strict=True)), [], random.Random(seed).random  # noqa: S311
    least = min(map(sum, classes))
    rows = 2 * least - math.isqrt(1352 * least // 100) - 1
    within_reach(max(map(sum, classes)) - least <= 10**7 and rows <= 10**8, "it has too many rows to draw from")
    toss = iter(lambda: sum((int(draw() * 2**53) >> max(0, 53 - left)).bit_count() for left in range(rows, 0, -53)), -1)
    again, heads = next(each for each in enumerate(toss) if rows - sum(classes[1]) <= each[1] <= sum(classes[0]))
    for counts, wanted in zip(classes, (heads, rows - heads), strict=True):
        ends, picked = list(accumulate(counts)), set()
        few = min(wanted, ends[-1] - wanted)  # rows are picked, or left out, whichever are fewer
        while len(picked) < few:
            place = int(draw() * 2 ** ends[-1].bit_length())
            picked.update([place] if place < ends[-1] else [])
        taken = Counter(bisect_right(ends, place) for place in picked)
        parts.append([taken[place] if few == wanted else count - taken[place] for place, count in enumerate(counts)])
    return list(zip(*parts, strict=True)), again


def pairs_hold(cells, again, v, rate, alpha):
    """Whether v is at least squared_pairwise at λ = rate. Decimals are rounded up, and err by a share below 10⁻²⁵."""
    sizes, n, moments, slope, spreads = Counter(map(sum, cells)), sum(map(sum, cells)), real(0), Decimal(1), []
    pairs = sum((real(Fraction((a - b) ** 2 - a - b, a + b - 1)) for a, b in cells if a + b > 1), real(0))
    within_reach(sum(map(math.isqrt, sizes)) <= 50_000, "its outputs have too many different sizes")
    for m in (size for size in sizes if size > 1):
        sums = range(m % 2, min(m, math.isqrt(144 * m) + 20) + 1, 2)
        with localcontext(UP):
            steps = (Decimal((m - s) * (1 if s else 2)) / (m + s + 2) for s in sums[:-1])  # from ±s to ±(s + 2)
            chances = [*accumulate(steps, Decimal.__mul__, initial=Decimal(1))]
            tilted = [c * exp(rate * Fraction(m - s * s, m - 1)).high for s, c in zip(sums, chances, strict=True)]
            fair, whole, squares = sum(chances), sum(tilted), [Decimal(s * s) for s in sums]
            mean = sum(map(Decimal.__mul__, tilted, squares)) / whole
            slope = min(slope, (1 - (mean / m + Decimal("1e-25")) * (1 + Decimal("1e-25"))) / 2)
            gaps = [((square - mean) / (m - 1)) ** 2 for square in squares]
            second, fourth = (sum(p * gap**i for p, gap in zip(tilted, gaps, strict=True)) / whole for i in (1, 2))
            spreads.append((second * sizes[m], second, second / (fourth / 12 + second * second / 4)))
        moments = moments + ln(Interval(whole, whole) / Interval(fair, fair) * (1 + Fraction(1, 10**30))) * sizes[m]
    ways, moments = [(real(0), real(0))], moments + Interval(*(max(end, Decimal(0)) for end in pairs)) * rate
    for cut in map(Fraction, (1.5, 3, 6, 12)) if spreads and TINY < rate <= 4 else ():
        whole, most, width = (Fraction(of(each[i] for each in spreads)) for i, of in enumerate((sum, max, min)))
        k = PI * (2 + TINY) / (d := sqrt(width / cut)) / (real(1) - exp(PI * -2 * rate / d))
        k = k / sqrt(PI * 2 * (1 - 1 / cut) * whole)
        ways += [(ln(k), ln(k) * -most / ((real(1) - k * k) * 2 * whole) * (1 + TINY))] if k.high < 1 else []
    for log, bend in ways:
        mu = Fraction(slope) - Fraction(bend.high)
        paid = Interval(*(max(end, Decimal(0)) for end in moments + log + mu * sizes[1]))
        gained = ln(real(1) - (real(1) - exp(-mu)) * v) * -n + ln(alpha / 200 if again else alpha)
        prices = (Fraction(4, 5), Fraction(727, 500)), (Fraction(3, 2), Fraction(4))
        if mu > 0 and any(mu**2 * n * v <= cap**2 and (gained - paid - ln(price)).low >= 0 for cap, price in prices):
            return True
    return False


# A rule returns what it bounds, the side, the best bound that it proves, and what else its sentence says.
def audit(claim, reading, loss, sampling, seed, rate, cells, squared, variation):
    """Of the masses of each output, seen is the distance in total variation, and plug_in the same for squared loss."""
    paired, one, zero = sampling == "pairs", sum(a for a, _ in cells), sum(b for _, b in cells)
    require(one > 0 and zero > 0, "cells must count rows of both secrets")
    within_reach(len(cells) <= 200_000, "its table has more than 200000 different outputs")
    n, v, tv, with_pairs = one + zero, squared, variation, loss == "joint" and seed is not None
    shares = (22, 44, 28) if with_pairs else (50, 50, 0) if loss == "joint" else (100, 100, 0)  # in percent
    of_v, of_tv, of_pairs = (claim.failure * share / 100 for share in shares)
    prove(not paired or (one - zero) ** 2 <= 64 * n, "its own counts refute that every secret was a fair coin")
    left, right = (n, n) if paired else (2 * one, 2 * zero)
    masses, unit, rows = [(a * right, b * left) for a, b in cells if a or b], left * right, Fraction(min(left, right))
    seen = Fraction(sum(abs(a - b) for a, b in masses), unit)
    plug_in = sum((real(Fraction((a - b) ** 2, a + b)) for a, b in masses), real(0)) / unit

    def squared_holds():
        """Whether 1 − E ≤ v, E the least squared loss, by squared_closed or squared_sharp; either will do."""
        room = ln(of_v) * (-2 / (rows if paired else max(rows, Fraction(80 * one * zero, 21 * n))))
        if v >= 1 or (sqrt(v) - sqrt(room) - sqrt(plug_in + room)).low >= 0:
            return True
        e, m = math.sqrt(v), (float(plug_in.high) + float(v)) / (2 * math.sqrt(v)) if v else 1.0
        best = Fraction(min(0.5, (math.atanh(e) - math.atanh(m)) / (2 * e)) if m < e < 1 else 0)  # any ≤ ½ will do
        plus, minus = exp(sqrt(v) * 2 * best), exp(sqrt(v) * -2 * best)
        moment = exp(v * best) * ((plus + minus) / 2 - sqrt(v) * (plus - minus) / 2)
        return ((plug_in * best + ln(moment)) * -rows + ln(of_v)).low >= 0

    def variation_holds():
        """Whether TV ≤ tv by variation_upper (Chernoff, Hoeffding) or variation_exact (Clopper and Pearson)."""
        if tv >= 1 or tv <= seen:
            return tv >= 1
        p, guessed = (1 + tv) / 2, (1 + seen) / 2
        hoeffding = real(tv - seen) - sqrt(ln(of_tv) * Fraction(-n, 2 * one * zero))
        if chernoff(guessed, p, rows, of_tv) or (not paired and hoeffding.low >= 0):
            return True
        exact = paired or (one == zero and guessed * n + 1 <= p * n)
        return exact and n <= 10**9 and binomial_at_most(int(guessed * n), n, p) <= of_tv

    by_v, by_tv = loss != "zero-one" and squared_holds(), loss != "squared" and variation_holds()
    if with_pairs and rate and not by_v:
        by_v = pairs_hold(*((cells, 0) if paired else fair_part(cells, seed)), v, rate, of_pairs)
    prove(by_v or (by_tv and v >= tv), "the counts do not prove its bound on v, 1 less the least squared loss")
    prove(by_tv or (by_v and tv**2 >= v), "the counts do not prove its bound on the total variation")  # v ≤ TV ≤ √v
    area = Fraction(sqrt(v / 3).high) + Fraction(1, 2) if 3 * v <= 1 else 1 - Fraction(3, 8) * (1 - v) ** 2
    most = {"advantage": tv, "balanced accuracy": (1 + tv) / 2, "bits": v, "auc": min((1 + 2 * tv - tv * tv) / 2, area)}
    least = {"error": (1 - tv) / 2, "squared loss": 1 - v, "log loss": Fraction(ln(2).low) * (1 - v)}
    side, proven = ("at most", most[reading]) if reading in most else ("at least", least[reading])
    coin = ", if every secret was a fair coin" if paired else ""
    return f"{reading} in telling two secrets apart by the output", side, proven, f", from {one} and {zero} rows{coin}"


# ---------- 5. "private answers", "one of several mechanisms" and "ledger" (their pages in proofs/).
def revealing(p, step, times, epsilon):
    """1 − (1 − p)^T (1 − δ_T): each of T steps reveals with chance p, and is step-DP otherwise (composition_delta)."""
    x, composed = exp(step), Decimal(0)  # δ_T = Σ over l of C(T, l)(x^(T−l) − e^ε x^l)⁺/(1 + x)^T
    term, falls = ((x / (x + 1)) ** times).high, (real(1) / x).high
    for left in range(math.ceil((times - epsilon / step) / 2)):  # where the bracket is positive
        composed = UP.add(composed, UP.multiply(term, UP.subtract(1, exp(epsilon - step * (times - 2 * left)).low)))
        term = UP.multiply(UP.divide(UP.multiply(term, times - left), left + 1), falls)
    return Fraction((real(1) - (real(1) - p) ** times * (real(1) - Interval(composed, composed))).high)


def sparse_vector(epsilon, scale, threshold, refusals):
    b = exp(-1 / (2 * scale))
    p = (b ** (threshold + 1) * (b + 1) - b ** (2 * threshold + 3) / (b * b + 1)) / (b + 1 + b * b)
    return revealing(p, 2 / scale, refusals, epsilon)


def open_threshold(epsilon, scale, threshold, refusals):  # hazards drawn err by less than TINY·10⁹
    step, least = 1 / scale + Fraction(1, 10**12), min(69, Fraction(exp(min(threshold / scale, 5)).low))
    coth, damping, total, log = ((e := exp(step)) + 1) / (e - 1), ln((e + 1) / 2) - step / 2, Decimal(0), real(0)
    for n in range(refusals):  # e^(ε/2)·cosh(θ/2)^(−n) times P(N = n) and the largest terms of P(N < n)
        mean, log = coth * ((epsilon + n * step) / 2), log + ln(max(n, 1))
        equal = exp((ln(mean) - damping) * n - mean - log + epsilon / 2)
        with localcontext(DOWN):
            ratios = (i / mean.high for i in range(n, max(0, n - 2 * math.isqrt(n) - 20), -1))
            less = equal.low * sum(accumulate(ratios, Decimal.__mul__)) * (coth * (step / 2) - 1).low
        total = UP.add(total, max(Decimal(0), UP.subtract(equal.high, less)))
    return Fraction((real(1) - (real(1) - exp(TINY * 10**9 - least)) ** refusals + Interval(total, total) / coth).high)


def adaptive_threshold(epsilon, order, budget, labels, scales, prices, thresholds, last_scale, last_threshold):
    """δ ≤ labels + e^(budget − λε)/(1 + 2λ), if prices are at least −λθ − ln(1 − λ(e^θ − 1)), θ = 1/scale."""
    tells = lambda scale, votes: exp(TINY * 10**9 - min(69, Fraction(exp(min(votes / scale, 5)).low))).high * 2  # noqa: E731
    faster = lambda scale: (exp(1 / scale + Fraction(1, 10**12)) - 1) * order  # noqa: E731 — λ(e^θ − 1)
    require(len(scales) == len(prices) == len(thresholds), "scales, prices and thresholds must be as many")
    for scale, price, votes in zip(scales, prices, thresholds, strict=True):
        prove((share := faster(scale)).high < 1, "one of its scales is too small for any price")
        paid = ln(real(1) - share) * -1 - (1 / scale + Fraction(1, 10**12)) * order
        prove(Fraction(paid.high) * 2**40 <= price, "one of its prices is too low")
        told = Fraction(tells(scale, votes)) * budget <= labels * min(price, budget)
        prove(told, "its labels tell more than it pays")
    prove(faster(last_scale).high <= 1, "its last scale is too small")
    prove(Fraction(tells(last_scale, last_threshold)) <= labels, "its last label tells more than it pays")
    return labels + below_one(real(Fraction(budget, 2**40) - order * epsilon) - ln(1 + 2 * order))


def stable_release(epsilon, scale, threshold, queries):
    return revealing(exp(-(threshold + 1) / scale) / (exp(-1 / scale) + 1), 1 / scale, queries, epsilon)


def labels_found(epsilon, changed, scale, threshold):
    return (changed > epsilon * scale) + Fraction((exp((1 - threshold) / scale) / (exp(-1 / scale) + 1) * changed).high)


def gaussian_sum(sigma, draws):
    """R·G(s) of Lemma 6 for all s within 12 deviations of 0, times a number from 1 to 1 + 10⁻³⁰ and a constant ≥ 1."""
    variance, q = draws * sigma * sigma, exp(PI * PI * -(sigma * sigma))
    eta = (q + q * q * q * q / (real(1) - q)) * 2  # above 2(q + q⁴ + q⁹ + …)
    total = sqrt(PI * (2 * variance)) * (exp(PI * PI * (-2 * variance)) * 2 + 1)  # the weights', from below, by Poisson
    reach = math.isqrt(math.ceil(144 * variance)) + 1
    within_reach(reach <= 500_000, "its noise has more than a million values")
    chance = ((eta + 1) / (real(1) - eta)) ** (draws - 1) / total * exp(-(reach**2) / (2 * variance))
    first, falls = exp((2 * reach - 1) / (2 * variance)).high, exp(-1 / variance).high
    ratios = accumulate(repeat(falls, 2 * reach - 1), UP.multiply, initial=first)
    return [*accumulate(ratios, UP.multiply, initial=chance.high)]


def gnmax(epsilon, sigma, answers, tests, test_sigma):
    """The loss is (answers + v)/σ² + (tests + 2u)/(2σ₁²), v and u sums of 2·answers and of `tests` Gaussians."""
    require(not tests or test_sigma * 2 >= 1, "test_sigma must be at least 1/2")
    votes, noise = gaussian_sum(sigma, 2 * answers), gaussian_sum(test_sigma, tests) if tests else [Decimal(1)]
    reach, far, unit, each = len(votes) // 2, len(noise) // 2, sigma**2, 1 / (2 * test_sigma**2) if tests else 0
    least, grows = exp(-(answers + reach) / unit - Fraction(1, 10**30)).low, exp(1 / unit).low  # of e^(−loss)
    damped = map(DOWN.multiply, votes, accumulate(repeat(grows), DOWN.multiply, initial=least))
    above, tilted = ([*accumulate(terms, way.add, initial=Decimal(0))] for terms, way in ((votes, UP), (damped, DOWN)))
    total, left, falls = exp(-69).high, exp(epsilon - (tests - 2 * far) * each).low, exp(-2 * each).low
    for u, chance in enumerate(noise, start=-far):  # from 4e^(−72), what lies beyond 12 deviations, and more
        beyond = max(0, min(2 * reach + 1, reach + answers - math.floor((epsilon - (tests + 2 * u) * each) * unit)))
        gained = UP.subtract(above[beyond], DOWN.multiply(left, tilted[beyond]))
        total = UP.add(total, UP.multiply(chance, max(Decimal(0), gained)))
        left = DOWN.multiply(left, falls)
    return Fraction(total)


def bell(first, number, double, tilt=0):
    """e^((λ(λ + 1) − (w + λ)²)/double), λ the tilt, at so many places w, as floats: within a share of 2⁻⁵²."""
    start, ratio = (tilt * (tilt + 1) - (first + tilt) ** 2) / double, (2 * (first + tilt) + 1) / -double
    ratios = accumulate(repeat(exp(-2 / double).high, number - 2), UP.multiply, initial=exp(ratio).high)
    return [*map(float, accumulate(ratios, UP.multiply, initial=exp(start).high))]


def moments(here, there, order):
    """P·(P/Q)^λ, λ = p/2^m, by square roots and products of floats: roots err by 2·2⁻⁵³, powers by 3p and a product."""
    found, ratios, left = here, [*map(truediv, here, there)], order.numerator
    for _ in range(order.denominator.bit_length() - 1):
        ratios = [*map(math.sqrt, ratios)]
    while left:
        found, left = [*map(mul, found, ratios)] if left % 2 else found, left // 2
        ratios = [*map(mul, ratios, ratios)] if left else ratios
    return found


def outcomes(double, order, offset, three=True):
    """Moments of w, a discrete Gaussian that the data shift by 1, cut at two thresholds, whose cells are told inside.

    By the sum of the cells' numbers, in groups, and by their difference; where an end is far off, by the group; and the
    sum of all weights. Or the most of one threshold. Sums of positive floats err by a share of 2⁻⁵³ a term at most.
    """
    tau = math.sqrt(float(double) / 2)
    size, low, high = math.ceil(tau / 100), math.ceil(float(order) + 8 * tau), math.ceil(8 * tau)
    number, before = math.ceil((low + high) / size) + 1, math.ceil(4 * tau) + 2
    begin, length = offset - low - before, 2 * before + (number - 1) * size
    weights, told = bell(begin, length, double), bell(begin + 1, length - 1, double, order)
    laws, main, last = (weights[1:], weights[:-1]), range(before - 1, before + number * size - 1, size), number
    slack = (1 + ((1 + 2 * float(order)) * (2 * length + 64) + 4 * order.numerator) / 2**53) / sum(weights)
    sums = ([[*accumulate(each[::way])][::way] for each in laws] for way in (1, -1))
    below, above = ([[each[i] for i in main] for each in both] for both in sums)
    left, right = [0.0, *moments(*below, order)], [*moments(*above, order), 0.0]
    inside = [sum(told[one + 1 : other]) for one, other in pairwise([-1, *main, len(told)])]
    ends, single = [*map(add, inside, right)], [*map(sum, zip(left, inside, right, strict=True))]
    if not three:
        return max(single) * slack
    cells = [[0.0, *(sum(each[i + 1 : j + 1]) for i, j in pairwise(main))] for each in laws]
    group, ups, downs = max(3, math.ceil(0.16 * tau / size)), [single[0]], []
    found = [[0.0] * last for _ in range(2 * last // group + 2)]
    for first in range(last):
        both = (accumulate(by[first + 1 :], initial=each[main[first]]) for each, by in zip(laws, cells, strict=True))
        terms, base = moments(*map(list, both), order), left[first] + inside[first]
        row = [single[first], *(base + one + other for one, other in zip(terms, ends[first + 1 :], strict=True))]
        downs, ups = [*downs, row[-1]], ups if first else row
        for apart, value in enumerate(row[:-1] if first else []):
            best = found[(2 * first + apart) // group]
            best[apart] = max(best[apart], value)
    ups, downs = [*accumulate(reversed(ups), max)][::-1], [*accumulate([*downs, single[last]], max)]
    starts = range(0, len(found) * group, group)
    far = [max(ups[i : i + 1] + downs[: max(0, i + 2 * group - last)][-1:]) * slack for i in starts]
    return [[value * slack for value in row] for row in found], far, sum(weights)


def gnmax_labels(epsilon, sigma, answers, tests, test_sigma, order):
    """δ ≤ λ^λ/(1 + λ)^(1 + λ)·m^answers·n^tests·e^(−λε), m and n the largest moments of one label and of one test."""
    least, most = (min(sigma, test_sigma), max(sigma, test_sigma)) if tests else (sigma, sigma)
    good = 2 * least >= 1 and most <= 20_000 and 2 * order**2 <= 25 * least**2 and order.numerator < 2**20
    within_reach(good and 1024 % order.denominator == 0, "its noise or its order is out of reach")
    (even, *ends), (odd, *others) = (outcomes(sigma**2, order, Fraction(half, 2)) for half in (0, 1))
    size, far = math.ceil(math.sqrt(float(sigma**2) / 2) / 100), [*map(max, ends[0], others[0])]
    reach, totals = math.ceil(8 * math.sqrt(2) * float(sigma) / size), (ends[1], others[1])
    sums = bell(-reach * size, (2 * reach + 1) * size, 4 * sigma**2)
    sums = [chance * totals[s % 2] for s, chance in enumerate(sums, start=-reach * size)]
    masses, rows, whole = [sum(sums[i : i + size]) for i in range(0, len(sums), size)], [], sum(sums)
    beyond = [0.0, *accumulate(masses[:0:-1])]  # of a known sum: the chances of larger ones, from the largest on
    for floor, *four in zip(far, even, even[1:], odd, odd[1:], strict=False):
        over = [max(0.0, *(value - floor for value in values)) for values in zip(*four, strict=True)]
        over = [*map(max, [0.0, *over], over, [*over[1:], 0.0])] if size > 1 else over
        rows.append((floor + max(over), floor, over))
    worst = max(floor + over[0] for _, floor, over in rows)
    for top, floor, over in sorted(rows, reverse=True):
        if top > worst:
            met = over[: max(place for place, value in enumerate(over, start=1) if value > 0)]
            zeros, wide = [0.0] * len(met), [max(met[max(0, i - 7) : i + 1]) for i in range(len(met) + 7)]
            line, rest = [*zeros, *masses[::-1], *zeros, *repeat(0.0, 14)], [*zeros, *beyond, *repeat(beyond[-1], 8)]
            mean = lambda row, i, more: floor + (sum(map(mul, row, line[i : i + len(row)])) + met[0] * more) / whole  # noqa: E731, B023
            for i in range(0, len(rest) - 8, 8):  # eight known sums at once, and one by one where that does not do
                if mean(wide, i, rest[i + 7]) > worst:
                    worst = max(worst, *(mean(met, j, rest[j]) for j in range(i, i + 8)))
    worst = worst * (1 + len(sums) / 2**50) + 3e-14 * max(rows)[0]
    paid = ln(Fraction(max(worst, outcomes(2 * sigma**2, order, 0, three=False)))) * answers
    paid += ln(Fraction(outcomes(2 * test_sigma**2, order, 0, three=False))) * tests if tests else 0
    return below_one(ln(order) * order - ln(1 + order) * (1 + order) + paid - epsilon * order)


def worth(nodes, values):
    """W_j of the gate: its points, the lower convex hull of those stated, and the function, flat beyond the last."""
    slope = lambda one, other: (other[1] - one[1]) / (other[0] - one[0])  # noqa: E731

    def at(y):  # below 1 it is 1 − y + y·W(1/y); it errs by a few units in the last place, with arguments rounded down
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
    prove(slope(*hull[-2:]) <= 0 and hull[0][1] - 2 * slope(*hull[:2]) <= 1, "its function is not convex and falling")
    points = [(float(y), float(value)) for y, value in [*hull, (10**305, hull[-1][1])]]
    nodes = [y for y, _ in points]
    return points[:-1], at


def gate(epsilon, refusals, table, corners, nodes, levels, released=None):
    """W ≥ what every query is worth, seen at the nodes; then δ ≤ W_T(e^ε). Floats err by less than a share of 2⁻⁴⁸."""
    line, slack, nodes = [(ONE, ONE), *corners, (0, 0)], 1 + 2.0**-48, [float(y) for y in nodes]
    good = all(one[0] > other[0] for one, other in pairwise(line)) and all(high >= low for high, low in corners)
    require(good, "corners must descend, the larger chance first")
    require(nodes[0] == 1 and all(one < other for one, other in pairwise(nodes)), "nodes must ascend from 1")
    require([*map(len, levels)] == [len(nodes)] * refusals, "levels must be one a refusal, with a number for each node")
    within_reach(len(corners) * refusals * len(nodes) <= 15_000_000, "its table would take more than a minute")
    for high, low in ((max(pair), min(pair)) for pair in pairwise(table)):
        (a, b), (c, d) = next(ends for ends in pairwise(line) if ends[1][0] <= high)
        prove((low - d) * (a - c) >= (b - d) * (high - c), "neighbours in its table differ more than its corners allow")
    at_once, low = (ONE - table[0] if released is None else released) / ONE, "its function lies below a query's worth"
    before = lambda y: max(0.0, 1 - y)  # noqa: E731 — W_0
    for level in levels:
        points, now = worth(nodes, [float(value) for value in level])
        prove(all((at_once + (1 - at_once) * before(y)) * slack <= value for y, value in points), low)  # votes are tied
        for here, there in (ends for high, low in corners for ends in ((high, low), (low, high))):
            p, q = here / ONE * slack, (ONE - here) / ONE * slack
            refused, passed = there / here * (1 - 2.0**-49), (ONE - there) / (ONE - here) * (1 - 2.0**-49)
            prove(all(p * before(y * refused) + q * now(y * passed) <= value for y, value in points), low)
        before = now
    return Fraction(before(max(1.0, float(exp(epsilon).low) * (1 - 2.0**-50))) * slack)


MECHANISMS = {"sparse vector": sparse_vector, "stable release": stable_release, "gnmax": gnmax, "gate": gate}
MECHANISMS |= {"gnmax labels": gnmax_labels, "adaptive threshold": adaptive_threshold}
MECHANISMS |= {"open threshold": open_threshold, "confirm": partial(gate, released=0), "labels found": labels_found}
MECHANISMS |= {"laplace": lambda epsilon, sensitivity, scale: Fraction(sensitivity > epsilon * scale)}  # δ at ε of each
inputs_of = lambda function: {each: INPUTS[each] for each in signature(function).parameters if each in INPUTS}  # noqa: E731


def part(value, what):
    """A mechanism, its ε and δ, and its constants, which must keep to them."""
    name = read(value.get("mechanism") if isinstance(value, dict) else None, "mechanism", "|".join(MECHANISMS))
    found = read(value, what, {"mechanism": None, "delta": UNIT, **(constants := inputs_of(MECHANISMS[name]))})
    good = found.get("refusals", 1) <= 8000 and found["epsilon"] <= 700
    within_reach(good, f"its {name} has too many refusals to add up, or an ε above 700")
    spent = MECHANISMS[name](**{each: found[each] for each in constants})
    prove(spent <= found["delta"], f"the constants of its {name} do not keep to their ε and δ")
    return found


def private_answers(_, delta, neighbours, parts, total=added, between=" and "):
    prove("label" not in neighbours or all(each.get("changed") != 1 for each in parts), "a label changes two counts")
    prove(total([each["delta"] for each in parts]) <= delta, "its parts spend a larger δ than it states")
    names = between.join(dict.fromkeys(each.get("mechanism", "the entries of a ledger") for each in parts))
    rest = f" at δ = {short(delta, 'at most')}, for data that differ by {neighbours}, by {names}"
    return "ε", "at most", total([each["epsilon"] for each in parts]), rest


def ledger(claim, delta, about, entries):
    compared = about.partition(" (")[0]  # what follows names columns
    within_reach(compared in NEIGHBOURS.split("|"), "its entries are about neighbours that this checker does not know")
    prove(all(entry["about"] == about for entry in entries), "its entries are about different neighbours")
    return private_answers(claim, delta, compared, entries)


# ---------- 6. Rules from sampled values: naming and rebuilding an input (proofs: estimation, posterior).
def identification(claim, values, distance, failure_probability):
    limit = 1 - claim.value + gaussian_variation(distance)
    prove(mean_at_least([1 - x for x in values], limit, failure_probability), UNPROVEN)
    what = "the probability of naming which of several known inputs was released"
    return what, "at most", claim.value, f", from {len(values)} draws"


def gallery_error(claim, values, most, coordinates, distance, variance, failure_probability):
    """claim ≤ (D·L − 4D·TV)/(p·variance), L the lower limit for the values, which are traces of posteriors over D."""
    limit = claim.value * variance * coordinates / most + 4 * gaussian_variation(distance)
    prove(claim.value <= 1 and mean_at_least(values, limit, failure_probability), UNPROVEN)
    return "the mean squared error of rebuilding one of several inputs", "at least", claim.value, " of their variance"


def posterior_error(claim, values, most, radius, release_variation, chain_variation, variance, failure_probability):
    """claim ≤ (B·(L − c) − 4R²t)/variance, L the betting limit for the stars' values, cut off at B and over B."""
    limit = (claim.value * variance + 4 * radius**2 * release_variation) / most + chain_variation
    prove(claim.value <= 1 and mean_at_least(values, limit, failure_probability, ways=1), UNPROVEN)
    return "the mean squared error of rebuilding an input of the prior", "at least", claim.value, " of its variance"


# ---------- 7. The inputs and the rules by name, with what no file can show.
LARGEST_FILE, ONE, TINY, TEXT, DIGEST = 2**26, 2**63, Fraction(1, 10**20), "(?s).{1,10000}", "[0-9a-f]{64}"
COUNT, SIZE, SHARE, UNIT, CHANCE = range(10**12 + 1), range(1, 10**12 + 1), range(1, ONE), (0, 1), (0, 1, True)
PAID, POSITIVE, LEVEL = (0, 10**400), (Fraction(1, 10**300), 10**400), [(Fraction(1, 10**250), 1), 2, 10**5]
READINGS = "advantage|balanced accuracy|error|squared loss|bits|log loss|auc"
NEIGHBOURS = "one record added or removed|all records of one person added or removed|"
NEIGHBOURS += "one label changed|all labels of one person changed"
KEPT_BACK = {"cells": [[COUNT, 2, 2], 1, 10**6], "values": [UNIT, 1, 10**6], "squared": UNIT, "variation": UNIT}
KEPT_BACK |= {"release_variation": UNIT, "chain_variation": UNIT, "rate": (0, 100), "distance": (0, 100)}
KEPT_BACK |= {"variance": POSITIVE, "most": POSITIVE, "radius": PAID}
INPUTS = {"reading": READINGS, "loss": "joint|squared|zero-one", "sampling": "by class|pairs", "neighbours": NEIGHBOURS}
INPUTS |= {"failure_probability": CHANCE, "coordinates": SIZE, "parts": [part, 1, 20], "about": TEXT, "delta": UNIT}
INPUTS |= {"entries": [{"about": TEXT, "epsilon": PAID, "delta": PAID}, 0, 10**6]}
INPUTS |= KEPT_BACK | {"scale": (Fraction(1, 500), 10**12), "sigma": (Fraction(1, 2), 10**6), "test_sigma": (0, 10**6)}
INPUTS |= {"refusals": range(1, 10**8 + 1), "queries": range(1, 20_001), "changed": range(1, 3), "sensitivity": SIZE}
INPUTS |= {"threshold": COUNT, "answers": SIZE, "tests": COUNT, "levels": [LEVEL, 1, 200], "seed": {None: COUNT}}
INPUTS |= {"order": (0, 10**8, True), "budget": range(1, 2**60), "labels": CHANCE, "last_threshold": COUNT}
INPUTS |= {"scales": [INPUTS["scale"], 1, 100], "prices": [range(1, 2**60), 1, 100], "thresholds": [COUNT, 1, 100]}
INPUTS |= {"last_scale": INPUTS["scale"], "epsilon": (Fraction(1, 10**9), 10**4)}
INPUTS |= {"table": [SHARE, 1, 10**5], "corners": [[SHARE, 2, 2], 1, 10**4], "nodes": [(1, 10**200), 2, 10**5]}
TABLE = "that counts are the data's, rows independent, secrets of pairs fair coins, and choices made before the data"
RAN = "that the mechanism ran so, with exact noise, one vote or less a record or person, and nothing else was released"
DRAWN = "that the values are what independent draws gave for this model, noise and data, in the order drawn, that none "
DRAWN += "was thrown away, and that distances, variances and ranges are those of the inputs"
CHAINS = f"{DRAWN}; that the chains are reversible and keep to the two variations stated"
PRIVATE = "gate_delta confirm_delta sparse_vector_delta open_threshold_delta stable_release_delta gnmax_delta "
PRIVATE += "labels_delta adaptive_threshold_delta laplace_scale lone_label_chance label_threshold basic_composition "
PRIVATE += "replacement_delta"
COUNTED = "squared_closed squared_sharp squared_pairwise variation_upper variation_exact advantage_upper "
COUNTED += "information_upper auc_upper"
RULES = {
    "audit": (audit, COUNTED, TABLE),
    "private answers": (private_answers, PRIVATE, RAN),
    "one of several mechanisms": (partial(private_answers, total=max, between=" or "), PRIVATE, RAN),
    "ledger": (ledger, "basic_composition", "that every release has an entry, and keeps to its cost"),
    "identification": (identification, "gallery_identification gaussian_total_variation", DRAWN),
    "gallery error": (gallery_error, "gallery_mse gaussian_total_variation", DRAWN),
    "posterior error": (posterior_error, "posterior_mse gaussian_total_variation", CHAINS),
}
SAMPLED, SECOND = {"audit", "identification", "gallery error", "posterior error"}, {("squared_pairwise", 2)}
CLAIM = {"statement": TEXT, "adversary": TEXT, "rule": {None: TEXT}, "inputs": None}
CLAIM |= {"theorem": [{"name": TEXT, "version": SIZE}, 0, 100], "failure_probability": {None: CHANCE}}
CLAIM |= {"claimed": {"side": "at most|at least", "value": {None: (-(10**400), 10**400)}}}
CLAIM |= {"assumptions": [{"text": TEXT, "checked_by": "tacit|you|nobody"}, 0, 100]}
PREDICATE = {"command": TEXT, "title": TEXT, "claims": [CLAIM, 1, 1000], "not_revealed": [TEXT, 0, 10**6]}
PREDICATE |= {"made_by": None, "replay": None}
FILE = {"_type": r"https://in-toto\.io/Statement/v1", "predicateType": "urn:tacit-privacy:certificate:v1"}
FILE |= {"subject": [{"name": TEXT, "digest": {"sha256": DIGEST}}, 0, 10_000], "predicate": PREDICATE}
Claim, UNPROVEN = namedtuple("Claim", "value failure"), "its inputs do not prove it at its failure probability"


def short(value, side):
    """A short float as it is written, else four digits, rounded to the safe side."""
    if abs(value) < 10**300 and len(repr(float(value))) <= 6 and Fraction(float(value)) == value:
        return repr(float(value))
    context = Context(prec=4, rounding=ROUND_CEILING if side == "at most" else ROUND_FLOOR)
    return str(context.divide(value.numerator, value.denominator).normalize(context))


def judged(claim):
    """The verdict on a claim, the reason or the checker's own sentence, and the chance with which it may be false."""
    (stated, value), failure = claim["claimed"].values(), claim["failure_probability"]
    function, proofs, unseen = RULES.get(claim["rule"], (None, "", ""))
    theorems = {(re.sub(r"^tacit\.theory\.[a-z_]+\.", "", each["name"]), each["version"]) for each in claim["theorem"]}
    try:
        within_reach(function and value is not None, "it states no inputs that this checker has a rule for")
        within_reach(theorems and theorems <= {*zip(proofs.split(), repeat(1)), *SECOND}, "its rule has other theorems")
        inputs = read(claim["inputs"], "inputs", inputs_of(function))
        good = (claim["rule"] in SAMPLED) == bool(failure) and inputs.get("failure_probability", 0) <= (failure or 0)
        prove(good, "its failure probability does not cover its samples, or it has none")
        what, side, proven, rest = function(Claim(value, failure), **inputs)
        prove(side == stated, f"its theorem bounds the other side, '{side}'")
        good = proven <= value if side == "at most" else proven >= value
        prove(good, f"its inputs prove no more than {side} {float(proven):.8g}")
    except VerdictError as reason:
        return (*reason.args, Fraction(0))
    except (ArithmeticError, ValueError) as error:
        return "not checkable here", f"its numbers are out of reach ({type(error).__name__})", Fraction(0)
    rest += f", except with probability {short(failure, 'at most')}" if failure else ""
    rest += f". Not checked: {unseen}; its {sum(x['checked_by'] != 'tacit' for x in claim['assumptions'])} assumptions"
    return "follows", f"{what} is {side} {short(value, side)}{rest}", failure or Fraction(0)


def check(data, opening=None):
    """The verdict on each claim of a certificate; raises `BadFileError` for what is none."""
    claims = read(parsed(data), "the file", FILE)["predicate"]["claims"]
    each = {"claim": range(len(claims)), "input": TEXT, "salt": DIGEST, "value": None}
    found = {"opened": []} if opening is None else parsed(opening)
    files = {"files": None} if isinstance(found, dict) and "files" in found else {}  # for `tacit verify --replay`
    for place in read(found, "the opening", {"opened": [each, 0, 10**6], **files})["opened"]:
        inputs, name = claims[place["claim"]]["inputs"], place["input"]
        salted = f"{place['salt']}\n{json.dumps(place['value'], separators=(',', ':'))}"
        fits = isinstance(inputs, dict) and inputs.get(name) == {"sha256": hashlib.sha256(salted.encode()).hexdigest()}
        require(fits, "the opening must belong to a commitment of the certificate, and this one does not", name)
        inputs[name] = place["value"]
    return [judged(claim) for claim in claims]


def main(arguments=None):
    """Print a line for each claim, and return the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    paths = [each for each in given if each != "--all"]
    try:
        require(len(paths) in (1, 3) and paths[1:2] in ([], ["--opening"]), "it takes FILE [--opening FILE] [--all]")
        with ExitStack() as files:
            verdicts = check(*(files.enter_context(open(path, "rb")).read(LARGEST_FILE + 1) for path in paths[::2]))
    except (OSError, ValueError, BadFileError) as failure:
        print(f"tacit_check: {' '.join(str(failure).split())}", file=sys.stderr)
        return 2
    for place, (verdict, reason, _) in enumerate(verdicts, start=1):
        print(f"{place}. {verdict}: {reason}")
    found, _, failures = zip(*verdicts, strict=True)
    follow, fail, rest = map(found.count, ("follows", "does not follow", "not checkable here"))
    print(f"{follow} of {len(found)} claims follow, {fail} do not, {rest} cannot be checked here.")
    if follow:
        print(f"Those that follow hold together, except with probability {short(min(sum(failures), 1), 'at most')}.")
    print("That they are about the files named in the certificate is its maker's word.")
    return 0 if follow and not fail and (follow == len(found) or "--all" not in given) else 1


if __name__ == "__main__":
    sys.exit(main())
