"""Certificates from pairs of rows, and the rows that they are made from."""

import random

import numpy as np
import pytest
from scipy import stats

from tacit import NoTheoremError, audit
from tacit.audit import certify
from tacit.audit.fair_part import AGAIN, fair_part, seed_of
from tacit.theory.pairs import PRICES, squared_pairwise


def null(rows, outputs, seed):
    """Rows of two classes of equal size whose outputs have nothing to do with their secret."""
    source = np.random.default_rng(seed)
    return np.arange(rows) % 2, source.integers(0, outputs, rows)


def test_the_part_is_one_of_fair_coins():
    """Heads are binomial, and given heads the rows of a class are drawn without replacement: three exact tests."""
    positive, negative = np.array([30, 0, 12, 8]), np.array([1, 60, 20, 9])
    drawn = [fair_part(positive, negative, seed=seed) for seed in range(4000)]
    parts = [(one, zero) for one, zero, again in drawn if not again]
    assert len(parts) >= stats.binom.isf(1 - 1e-6, 4000, 0.98)
    rows = {int(one.sum() + zero.sum()) for one, zero in parts}
    assert len(rows) == 1
    (size,) = rows
    heads = np.array([one.sum() for one, _ in parts])
    edges = [0, *range(int(size / 2) - 6, int(size / 2) + 7), size]
    expected = np.diff(stats.binom.cdf(edges, size, 0.5)) * len(parts)
    found = np.histogram(heads, bins=[edge + 0.5 for edge in edges])[0]
    assert stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > 1e-6
    order = np.lexsort((negative, positive))
    assert all((one <= positive[order]).all() and (zero <= negative[order]).all() for one, zero in parts)
    same = [one[-1] for one, _ in parts if one.sum() == size // 2]  # the output with 30 of the 50 positive rows
    law = stats.hypergeom(50, 30, size // 2)
    assert abs(np.mean(same) - law.mean()) < 5 * law.std() / len(same) ** 0.5


def test_the_part_does_not_depend_on_the_order_of_outputs():
    positive, negative = np.array([30, 0, 12, 8]), np.array([1, 60, 20, 9])
    once = fair_part(positive, negative, seed=3)
    again = fair_part(positive[::-1], negative[::-1], seed=3)
    assert all((one == other).all() for one, other in zip(once[:2], again[:2], strict=True))


def test_a_class_without_enough_rows_gives_no_part():
    assert fair_part(np.array([1]), np.array([0]), seed=0) is None


def test_coins_that_ask_for_too_much_are_tossed_again():
    parts = [fair_part(np.array([400]), np.array([400]), seed=seed) for seed in range(2000)]
    assert 0 < sum(again for *_, again in parts) <= stats.binom.isf(1e-6, 2000, 0.01)
    assert len({int(one.sum() + zero.sum()) for one, zero, _ in parts}) == 1
    assert max(max(one.sum(), zero.sum()) for one, zero, _ in parts) <= 400


def test_tossing_again_costs_what_is_left_of_the_failure_probability():
    """The first toss uses the limit's share of α, all others together what that leaves: by Hoeffding, and exactly."""
    starts = [0.0, *(cap for cap, _ in PRICES)]
    used = 1 / PRICES[0][1] + sum(0.43 * (cap - start) / h for start, (cap, h) in zip(starts, PRICES, strict=False))
    most = 2 * np.exp(-3.38)
    assert used * (1 + AGAIN * most / (1 - most)) <= 1
    for least in [*range(8, 400), 10**4, 10**6]:
        rows = 2 * least - int((13.52 * least) ** 0.5) - 1
        assert 2 * stats.binom.sf(least, rows, 0.5) <= most


def test_the_draw_is_the_one_that_its_page_describes():
    """A naive twin, coin by coin and row by row."""

    def rows_of(counts, wanted, draw):
        rows = [place for place, count in enumerate(counts) for _ in range(count)]
        few, picked = min(wanted, len(rows) - wanted), set()
        while len(picked) < few:
            if (place := int(draw() * 2 ** len(rows).bit_length())) < len(rows):
                picked.add(place)
        kept = picked if few == wanted else set(range(len(rows))) - picked
        return np.bincount([rows[place] for place in kept], minlength=len(counts)).tolist()

    tables = [([300, 0, 1, 40], [1, 60, 200, 9]), ([7, 7], [30, 20]), ([9] * 9, [9] * 9)]
    drawn = [(seed, table) for seed, table in enumerate(tables)]
    drawn += [(seed, tables[2]) for seed in range(3000) if fair_part(*map(np.array, tables[2]), seed=seed).again][:2]
    assert len(drawn) == 5
    for seed, (one, zero) in drawn:
        positive, negative = zip(*sorted(zip(one, zero, strict=True)), strict=True)
        least = min(sum(one), sum(zero))
        size, draw = 2 * least - int((13.52 * least) ** 0.5) - 1, random.Random(seed).random  # noqa: S311
        tosses, heads = 0, sum(one) + 1
        while not (heads <= sum(one) and size - heads <= sum(zero)):
            coins = "".join(f"{int(draw() * 2**53):053b}" for _ in range(-(-size // 53)))
            last = size % 53 or 53  # the coins of the last number are its first bits
            heads = coins[: size - last].count("1") + coins[size - last : size].count("1")
            tosses += 1
        found = fair_part(np.array(one), np.array(zero), seed=seed)
        assert found.positive.tolist() == rows_of(positive, heads, draw)
        assert found.negative.tolist() == rows_of(negative, size - heads, draw)
        assert found.again == (tosses > 1)


@pytest.mark.parametrize(("rows", "most"), [(10_000, 0.13), (100_000, 0.075), (1_000_000, 0.04)])
def test_many_outputs_that_tell_nothing_are_certified_as_such(rows, most):
    """A tenth as many outputs as rows, by class: a limit from counts cannot be much below 0.25."""
    secrets, outputs = null(rows, rows // 10, 0)
    found = [
        audit.certify(secrets, null(rows, rows // 10, seed)[1]).advantage for seed in range(3 if rows == 10**6 else 7)
    ]
    assert np.median(found) <= most
    assert audit.certify(secrets, outputs, form="closed").advantage > 0.24


@pytest.mark.parametrize("outputs", [1, 2, 5])
@pytest.mark.parametrize("leak", [0.0, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("rows", [100, 1000, 100_000])
def test_few_outputs_are_certified_as_well_as_without_pairs(outputs, leak, rows):
    """The advantage is at most 3 % larger than by the same limits with half of the failure probability each."""
    source = np.random.default_rng(rows)
    secrets = np.arange(rows) % 2
    seen = np.where(source.random(rows) < leak, secrets % outputs, source.integers(0, outputs, rows))
    before = [
        audit.certify(secrets, seen, loss=loss, failure_probability=0.025).advantage for loss in ("squared", "zero-one")
    ]
    assert audit.certify(secrets, seen).advantage <= 1.03 * min(before)


def test_pairs_are_certified_as_the_theorem_says():
    source = np.random.default_rng(1)
    secrets, outputs = source.integers(0, 2, 3000), source.integers(0, 40, 3000)
    found = audit.certify(secrets, outputs, form="pairwise", loss="squared", sampling="pairs")
    counts = [np.bincount(outputs[secrets == secret], minlength=40) for secret in (1, 0)]
    assert found.squared == squared_pairwise(*counts, failure_probability=0.05)
    assert "theory.pairs.squared_pairwise" in found.guarantee.theorem


def test_where_coins_were_tossed_again_the_limit_fails_more_rarely():
    """The first of some tables whose coins ask for too much: about one in a hundred is such."""
    for seed in range(2000):
        secrets, outputs = null(2000, 100, seed)
        counts = [np.bincount(outputs[secrets == secret], minlength=100) for secret in (1, 0)]
        part = fair_part(*counts, seed=seed_of(*counts))
        if part.again:
            break
    assert part.again
    found = certify(secrets, outputs, form="pairwise", loss="squared")
    assert found.squared == squared_pairwise(part.positive, part.negative, failure_probability=0.05 * AGAIN)
    assert found.squared < 1


def test_a_leak_is_not_certified_away():
    """100 tables by class with an advantage of 0.3: the limit is below it in at most 5 % (fails by chance 1e-6)."""
    misses = 0
    for seed in range(100):
        source = np.random.default_rng(seed)
        secrets = np.arange(2000) % 2
        outputs = 2 * source.integers(0, 60, 2000) + (source.random(2000) < (1 + 0.3 * (2 * secrets - 1)) / 2)
        misses += audit.certify(secrets, outputs, form="pairwise", seed=seed).advantage < 0.3
    assert misses <= stats.binom.isf(1e-6, 100, 0.05)


@pytest.mark.parametrize("options", [{"loss": "log"}, {"method": "monotone"}, {"noise": 1.0}])
def test_what_it_has_no_theorem_for_is_refused(options):
    secrets, outputs = null(400, 10, 0)
    with pytest.raises(NoTheoremError, match="pairwise"):
        audit.certify(secrets, outputs, form="pairwise", **options)


def test_nobody_chooses_the_seed_of_the_draw():
    """It is the same for a table in any order, another for another table, and one that the checker can read."""
    rng = np.random.default_rng(0)
    seeds = set()
    for _ in range(200):
        counts = rng.integers(0, 40, (2, 12))
        seed = seed_of(*counts)
        assert 0 <= seed <= 10**12
        assert seed_of(*counts[:, rng.permutation(12)]) == seed
        seeds.add(seed)
    assert len(seeds) == 200
    secret, output = rng.integers(0, 2, 3000), rng.integers(0, 300, 3000)
    found = {certify(secret, output, failure_probability=0.05, seed=seed).advantage for seed in range(5)}
    assert len(found) == 1
