"""Pairs of rows drawn by a digest of the table, and certificates of noisy vectors that are made of them."""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.audit import Tally, audit, certify, certify_tally, plug_in
from tacit.audit.limits import shares
from tacit.audit.row_pairs import MOST_PAIRS, row_pairs
from tacit.theory import certificates
from tacit.theory.kernels import variation_kernel

SECRET = np.arange(600) % 2
ROWS = np.random.default_rng(0).normal(size=(600, 5))


def test_the_draw_does_not_depend_on_the_order_of_the_table():
    once = row_pairs(Tally(noise=1.0).add(SECRET, ROWS))
    order = np.random.default_rng(1).permutation(600)
    again = Tally(noise=1.0).add(SECRET[order[:200]], ROWS[order[:200]])
    again.merge(Tally(noise=1.0).add(SECRET[order[200:]], ROWS[order[200:]]))
    for one, other in zip(once, row_pairs(again), strict=True):
        assert (one == other).all()
    assert [len(one) for one in once] == [300, 300]
    assert {tuple(row) for row in once[0]} == {tuple(row) for row in ROWS[SECRET == 1]}


def test_zeros_of_either_sign_are_one():
    signed = np.where(ROWS > 0, 0.0, ROWS)
    once, again = (
        row_pairs(Tally(noise=1.0).add(SECRET, rows)) for rows in (signed, np.where(signed == 0, -0.0, signed))
    )
    assert all((one == other).all() for one, other in zip(once, again, strict=True))


def test_weights_are_rows():
    counts = 1 + np.arange(600) % 3
    weighted = row_pairs(Tally(noise=1.0).add(SECRET, ROWS, weights=counts))
    repeated = row_pairs(Tally(noise=1.0).add(np.repeat(SECRET, counts), np.repeat(ROWS, counts, axis=0)))
    assert all((one == other).all() for one, other in zip(weighted, repeated, strict=True))
    many = row_pairs(Tally(noise=1.0).add(SECRET, ROWS, weights=np.full(600, 2**32)))
    assert [len(one) for one in many] == [MOST_PAIRS] * 2


def test_every_row_is_as_likely_in_every_place():
    """Of 3000 tables: which of 6 rows comes first, and which pairs. Each test fails by chance below 1e-6."""
    first, together = np.zeros(6), np.zeros((6, 6))
    for table in range(3000):
        rows = np.tile(np.arange(12)[:, None], 4) + table * 1e-3
        ones, zeros = row_pairs(Tally(noise=1.0).add(np.arange(12) % 2, rows))
        places = [np.rint(side[:, 0] - table * 1e-3).astype(int) // 2 for side in (ones, zeros)]
        first[places[0][0]] += 1
        together[places[0][2], places[1][2]] += 1
    assert stats.chisquare(first).pvalue > 1e-6
    assert stats.chisquare(together.ravel()).pvalue > 1e-6


def nothing(rows, columns):
    source = np.random.default_rng(2)
    return np.arange(rows) % 2, source.normal(size=(rows, columns))


@pytest.mark.parametrize(("loss", "share"), [("joint", 0.1), ("zero-one", 0.15)])
def test_heavy_noise_is_certified_by_the_kernel(loss, share):
    secret, output = nothing(1600, 12)
    found = certify(secret, output, noise=16.0, loss=loss)
    pairs = row_pairs(Tally(noise=16.0).add(secret, output))
    limit = variation_kernel(*pairs, noise=16.0, failure_probability=0.9 * 0.05 * share)
    assert found.advantage == pytest.approx(limit, rel=1e-9)
    named = [name for name in found.guarantee.theorem if name.startswith("theory.")]
    assert named[0] == "theory.kernels.variation_kernel"
    assert found.guarantee.evidence is None
    assert found.advantage < 0.6 * certify(secret, output, noise=16.0, loss=loss, form="closed").advantage


@pytest.mark.parametrize("noise", [0.7, 2.0])
@pytest.mark.parametrize("loss", ["joint", "zero-one"])
def test_where_the_kernel_is_no_better_little_is_lost(loss, noise):
    """What total variation had before: half of 0.9 of the failure probability, or all."""
    secret, output = nothing(600, 5)
    found = certify(secret, output, noise=noise, loss=loss)
    assert found.guarantee.theorem[2 - (loss == "zero-one")] == "theory.certificates.variation_upper"
    tally = Tally(noise=noise).add(secret, output)
    plug_ins = plug_in.sampled(tally, paired=False, failure_probability=0.005, seed=0)
    before = certificates.variation_upper(
        plug_ins.variation,
        positives=300,
        negatives=300,
        failure_probability=0.9 * 0.05 * (0.5 if loss == "joint" else 1.0),
    )
    assert before <= found.advantage <= 1.03 * before


def test_shares_use_no_more_than_there_is():
    for loss in ("joint", "zero-one"):
        share = shares(loss, "sharp", "noisy", columns=4)
        assert math.fsum(share) == pytest.approx(1)
        assert share.kernel > 0
        for other in ({"columns": 3}, {"columns": 1001}):
            assert shares(loss, "sharp", "noisy", **other).kernel == 0
        assert shares(loss, "closed", "noisy", columns=4).kernel == 0
        assert shares(loss, "sharp", "noise added", columns=4).kernel == 0


def test_a_class_of_few_rows_is_certified_without_a_kernel():
    secret, output = np.arange(300) < 12, nothing(300, 4)[1]
    found = certify(secret, output, noise=8.0)
    assert found.guarantee.theorem[2] != "theory.kernels.variation_kernel"


def test_no_number_of_rows_is_stated_that_a_kernel_may_undercut():
    secret, output = nothing(1600, 12)
    found = audit(secret, output, noise=16.0, attacks=[], require_advantage=0.005)
    assert found.verdict.endswith("1600 rows do not prove it: more rows may.")


def test_the_certificate_does_not_depend_on_the_order_of_the_table():
    secret, output = nothing(1600, 12)
    order = np.random.default_rng(3).permutation(1600)
    once, again = (certify_tally(Tally(noise=16.0).add(secret[rows], output[rows])) for rows in (slice(None), order))
    assert once.advantage == again.advantage
