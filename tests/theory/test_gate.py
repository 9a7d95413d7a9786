"""The gate's δ against everything that can be computed of the game: enumeration, exact horizons, played strategies."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit import InputError, NoTheoremError
from tacit.learning.mechanisms import gate_design
from tacit.theory.gate import ONE, Certificate, confirm_delta, gate_delta

COST = {True: gate_delta, False: confirm_delta}


def tail_table(design, *, labels):
    """A table in which the pair that the certificate is tight for are neighbours."""
    high, low = design.corners[-1]
    if not labels:
        return [high, low]
    return [*(chance for chance in design.table if chance > high), high, low]


class Lattice:
    """The game of a label at β and the tail's pair, on points that its moves never leave; written down plainly.

    Every iterate is what a strategy of that many queries is worth: outside the lattice it stops.
    """

    def __init__(self, design, epsilon, *, queries):
        p, q = (chance / ONE for chance in design.corners[-1])
        beta, parts = design.released / ONE, design.parts
        step = math.log((1 - q) / (1 - p))
        size = math.ceil(1.8 * max(epsilon, design.reach / 2) / step)
        reach = size + parts
        places = np.arange(-reach, reach + 1)
        values = np.tile(np.maximum(0.0, 1 - np.exp(epsilon + step * places)), (design.refusals + 1, 1))

        def at(values, move):
            """All points of the lattice, so many places on."""
            return values[:, parts + move : len(places) - parts + move]

        for _ in range(queries):
            fewer, same = values[:-1], values[1:]  # left after a refusal, and after an answer
            label = beta + (1 - beta) * at(fewer, 0)
            up = p * at(fewer, -parts) + (1 - p) * at(same, 1)
            down = q * at(fewer, parts) + (1 - q) * at(same, -1)
            at(same, 0)[:] = np.maximum.reduce([at(same, 0), at(fewer, 0), label, up, down])
        self.value = float(values[-1][reach])


@pytest.fixture(scope="module")
def designs():
    """Small budgets, searched for here."""
    return {
        (labels, *budget): gate_design.design(budget[0], budget[1], refusals=budget[2], labels=labels)
        for labels in (True, False)
        for budget in ((2.0, 0.02, 2), (4.0, 1e-3, 3))
    }


@pytest.mark.parametrize("budget", [(2.0, 0.02, 2), (4.0, 1e-3, 3)])
@pytest.mark.parametrize("labels", [True, False])
def test_a_strategy_reaches_what_is_certified(designs, labels, budget):
    epsilon, delta, refusals = budget
    design = designs[labels, *budget]
    table = tail_table(design, labels=labels)
    bound = COST[labels](epsilon, table=table, refusals=refusals, certificate=design.certificate())
    assert bound <= delta
    played = Lattice(design, epsilon, queries=800 * refusals).value
    assert 0.999 * bound < played <= bound


def values_at(certificate, level, y):
    """W by its definition, in exact rational arithmetic."""
    if level == 0:
        return max(Fraction(0), 1 - y)
    if y < 1:
        return 1 - y + y * values_at(certificate, level, 1 / y)
    nodes = certificate.nodes
    place = int(np.searchsorted(nodes, float(y), side="right")) - 1
    while place + 1 < len(nodes) and Fraction(nodes[place + 1]) <= y:
        place += 1
    while Fraction(nodes[place]) > y:
        place -= 1
    value = Fraction(certificate.values[place, level])
    if place + 1 == len(nodes):
        return value
    share = (y - Fraction(nodes[place])) / (Fraction(nodes[place + 1]) - Fraction(nodes[place]))
    return value + share * (Fraction(certificate.values[place + 1, level]) - value)


def worth_of_query(certificate, level, y, here, there):
    """The pair's term, exactly."""
    p, q = Fraction(here, ONE), Fraction(there, ONE)
    refused = values_at(certificate, level - 1, y * q / p)
    return p * refused + (1 - p) * values_at(certificate, level, y * (1 - q) / (1 - p))


@pytest.mark.parametrize("labels", [True, False])
def test_no_query_is_worth_more_in_exact_arithmetic(designs, labels):
    """The naive twin of the checker: every pair of the table, at nodes and between them, above 1 and below."""
    design = designs[labels, 2.0, 0.02, 2]
    certificate = design.certificate()
    table = design.table if labels else design.leads[1]
    rng = np.random.default_rng(0)
    worst = Fraction(0)
    for first, second in itertools.pairwise(table):
        for here, there in ((first, second), (second, first)):
            level = int(rng.integers(1, 3))
            inside = math.exp(rng.uniform(-1.2, 1.2) * design.reach)
            for y in (Fraction(inside), Fraction(rng.choice(certificate.nodes)), 1 / Fraction(inside)):
                worst = max(
                    worst, worth_of_query(certificate, level, y, here, there) / values_at(certificate, level, y)
                )
    assert 1 - Fraction(1, 1000) < worst <= 1  # some query is worth nearly as much


def test_the_checker_agrees_with_exact_arithmetic_on_any_pair():
    """Any convex W and any pair: it accepts exactly those whose terms stay below W at all nodes, both ways."""
    rng = np.random.default_rng(0)
    nodes = np.geomspace(1, 20, 12)
    seen = set()
    for _ in range(200):
        steep, flat = nodes ** -rng.uniform(1, 4), nodes ** -rng.uniform(0.1, 1)
        gap, common = rng.uniform(0.02, 0.2), rng.uniform(0.0, 0.1) * rng.integers(0, 2)
        values = np.stack([0 * nodes, rng.uniform(0.1, 1) * gap * steep + common * flat, gap * steep + common * flat])
        high = int(ONE * rng.uniform(0.02, 0.98))
        low = int(high * rng.uniform(0.6, 1.0))
        certificate = Certificate(nodes=nodes, values=np.ascontiguousarray(values.T), corners=((high, low),))
        broken = {
            (pair, place)
            for pair in ((high, low), (low, high))
            for level in (1, 2)
            for place, node in enumerate(nodes)
            if worth_of_query(certificate, level, Fraction(node), *pair) > Fraction(values[level, place])
        }
        try:
            confirm_delta(1.0, table=[high, low], refusals=2, certificate=certificate)
            assert not broken
        except NoTheoremError:
            assert broken
        seen.add(frozenset(place < 6 for _, place in broken))  # nothing, near nodes alone, far ones alone, both
    assert len(seen) == 4


@pytest.mark.parametrize("labels", [True, False])
def test_a_mirror_image_that_is_not_convex_is_refused(labels):
    steep = Certificate(nodes=[1.0, 2.0], values=[[0.0, 0.9], [0.0, 0.7]], corners=((ONE // 2, ONE // 2),))
    with pytest.raises(NoTheoremError, match="be convex and fall, in 1/y as in y"):
        COST[labels](1.0, table=[ONE // 2], refusals=1, certificate=steep)
    rising = Certificate(nodes=[1.0, 2.0], values=[[0.0, 0.7], [0.0, 0.9]], corners=((ONE // 2, ONE // 2),))
    with pytest.raises(NoTheoremError, match="be convex and fall"):
        COST[labels](1.0, table=[ONE // 2], refusals=1, certificate=rising)


def all_strategies(table, beta, queries, level, y):
    """The best of every tree of so many queries, in rational arithmetic."""
    best = max(Fraction(0), 1 - y)
    if queries == 0 or level == 0:
        return best
    best = max(best, beta + (1 - beta) * all_strategies(table, beta, queries - 1, level - 1, y))
    for first, second in itertools.pairwise(table):
        for p, q in ((first, second), (second, first)):
            refused = all_strategies(table, beta, queries - 1, level - 1, y * q / p)
            best = max(
                best, p * refused + (1 - p) * all_strategies(table, beta, queries - 1, level, y * (1 - q) / (1 - p))
            )
    return best


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_all_strategies_of_short_games(designs, labels, epsilon):
    design = designs[labels, 4.0, 1e-3, 3]
    whole = design.table if labels else design.leads[1]
    middle = next(place for place, chance in enumerate(whole) if chance < ONE // 2)
    certified = COST[labels](epsilon, table=whole, refusals=3, certificate=design.certificate())
    beta, start = Fraction(design.released, ONE), Fraction(math.exp(epsilon))
    for queries, table in ((1, whole), (2, whole[:20]), (3, whole[middle - 3 : middle + 2])):
        best = all_strategies([Fraction(chance, ONE) for chance in table], beta, queries, 3, start)
        assert best <= certified
    assert best > certified / 10 or epsilon > 0


def test_one_pair_repeated_agrees_with_dp_accounting(designs):
    """T queries of one pair cannot be stopped by refusals: plain composition of a coin."""
    from dp_accounting.pld import privacy_loss_distribution

    design = designs[False, 2.0, 0.02, 2]
    certificate = design.certificate()
    for high, low in (design.corners[20], design.corners[40], design.corners[-1]):
        laws = [{"no": math.log(c / ONE), "yes": math.log1p(-c / ONE)} for c in (high, low)]
        loss = privacy_loss_distribution.from_two_probability_mass_functions(*laws, value_discretization_interval=1e-5)
        for epsilon in (0.0, 0.1, 0.5):
            certified = confirm_delta(epsilon, table=[high, low], refusals=2, certificate=certificate)
            assert loss.self_compose(2).get_delta_for_epsilon(epsilon) <= certified + 1e-4


def played(design, epsilon, *, games, rare, rng):
    """What a strategy gains in each of so many games, weighted for refusals that are sampled with the chance `rare`.

    It asks the tail's pair. Above y = 1 refusals are rarer on its side and y falls by a node when it passes; up to 1
    it is the other way about; so it waits around 1 for the next refusal. Where y is hopelessly large it asks for
    labels. `rare` serves until y first reaches 1. A refusal moves y by a step, up above 1 and down below.
    """
    p, q = (chance / ONE for chance in design.corners[-1])
    beta, parts, node = design.released / ONE, design.parts, math.log((1 - q) / (1 - p))
    place, weight, gained = np.full(games, epsilon / node), np.zeros(games), np.zeros(games)
    free = np.zeros(games, dtype=bool)
    for left in range(design.refusals, 0, -1):
        label = place * node > (0.8 + 0.09 * left) * epsilon
        gained += np.where(label, np.exp(weight) * beta, 0.0)
        above = place > 0
        chance = np.where(free | ~above, q, rare)
        passed = rng.geometric(chance) - 1
        needed = np.where(above, np.ceil(place), np.floor(-place) + 1)  # to the other side of 1
        crossed = passed >= needed
        # Sampling of its own until the crossing, and the pair's own chance q after it.
        waited = np.where(crossed, np.where(free | ~above, passed - needed, rng.geometric(q, games) - 1), 0.0)
        first = np.where(crossed, needed, passed)
        new = weight + first * (np.log1p(-np.where(above, q, p)) - np.log1p(-chance))
        there, back = np.ceil(waited / 2), np.floor(waited / 2)  # passes on the other side, and on this one again
        new += there * np.log1p(-np.where(above, p, q)) + back * np.log1p(-np.where(above, q, p))
        new -= waited * math.log1p(-q)
        flipped = crossed & (waited % 2 == 0)
        refused_above = above ^ flipped
        new += np.log(np.where(refused_above, q, p)) - np.log(np.where(crossed, q, chance))
        landed = np.where(above, -1.0, 1.0) * (first - (crossed & ~flipped)) + place
        landed += np.where(refused_above, parts, -parts)
        weight = np.where(label, weight + math.log1p(-beta), new)
        place = np.where(label, place, landed)
        free |= crossed & ~label
    return gained + np.exp(weight) * np.maximum(0.0, 1 - np.exp(place * node))


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937])
def test_an_importance_sampled_adversary_comes_near_and_stays_below(generator):
    """At δ = 1e-5, by two unrelated generators. Its mean's limit at 5σ is passed by chance with probability 3e-7."""
    epsilon, refusals = 1.0, 5
    design = gate_design.find_design(epsilon, 1e-5, refusals=refusals, labels=True)
    table = tail_table(design, labels=True)
    certified = gate_delta(epsilon, table=table, refusals=refusals, certificate=design.certificate())
    drift = math.log((ONE - design.corners[-1][1]) / (ONE - design.corners[-1][0]))
    rare = refusals / (refusals * design.parts + epsilon / drift)
    gained = played(design, epsilon, games=400_000, rare=rare, rng=np.random.Generator(generator(1)))
    mean, error = gained.mean(), gained.std() / math.sqrt(len(gained))
    assert mean - 5 * error <= certified
    assert mean + 5 * error > 0.97 * certified
    assert error < 0.02 * mean


def changed(certificate, place, level, factor):
    values = certificate.values.copy()
    values[place, level] *= factor
    return dataclasses.replace(certificate, values=values)


def test_what_is_not_a_certificate_is_refused(designs):
    design = designs[True, 2.0, 0.02, 2]
    good, table = design.certificate(), list(design.table)
    claim = {"table": table, "refusals": 2}
    assert gate_delta(2.0, **claim, certificate=good) <= 0.02
    middle = len(good.nodes) // 3
    bad = [
        changed(good, slice(None), slice(None), 1 - 1e-6),
        changed(good, slice(None), 2, 1 - 1e-6),
        changed(good, middle, 2, 1 + 1e-3),
        changed(good, slice(0, 10), 1, 1.001),
        dataclasses.replace(good, corners=(*good.corners[:-1], (good.corners[-1][0], good.corners[-1][1] * 99 // 100))),
        dataclasses.replace(good, corners=good.corners[:20]),
    ]
    for certificate in bad:
        with pytest.raises(NoTheoremError, match="the certificate must"):
            gate_delta(2.0, **claim, certificate=certificate)
    released = ONE - table[0]
    for broken in (
        [ONE - 2 * released, *table],  # labels at twice the chance
        table[1:],
        table[::2],  # as if one vote moved the distance by two
        [*table[: len(table) // 2], table[-1]],  # a jump to the floor
    ):
        with pytest.raises(NoTheoremError, match="the certificate must"):
            gate_delta(2.0, table=broken, refusals=2, certificate=good)
    for broken in ([*table, 0], [ONE, *table], [0.5], [], "table"):
        with pytest.raises(InputError, match="must"):
            gate_delta(2.0, table=broken, refusals=2, certificate=good)
    with pytest.raises(InputError, match="refusals"):
        gate_delta(2.0, table=table, refusals=3, certificate=good)


def test_a_value_that_is_too_small_anywhere_is_noticed(designs):
    """A thousandth off at any node that carries W, at any level, and the checker says so."""
    design = designs[False, 4.0, 1e-3, 3]
    good, table = design.certificate(), design.leads[1]
    rng = np.random.default_rng(1)
    for _ in range(10):
        place, level = int(rng.integers(0, len(good.nodes) // 2)), int(rng.integers(1, 4))
        with pytest.raises(NoTheoremError, match="the certificate must"):
            confirm_delta(4.0, table=table, refusals=3, certificate=changed(good, place, level, 1 - 1e-3))


def test_delta_falls_with_epsilon_and_never_below_what_labels_give(designs):
    design = designs[True, 2.0, 0.02, 2]
    certificate = design.certificate()
    found = [
        gate_delta(epsilon, table=design.table, refusals=2, certificate=certificate)
        for epsilon in (0.0, 0.5, 1.0, 2.0, 5.0, 100.0)
    ]
    assert found == sorted(found, reverse=True)
    assert found[-1] >= 1 - (1 - design.released / ONE) ** 2
    assert isinstance(certificate, Certificate)
