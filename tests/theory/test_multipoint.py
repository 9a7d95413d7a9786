"""The quotient against 60-digit arithmetic, and against models whose answer is known."""

import mpmath as mp
import numpy as np
import pytest
import torch
from networks import drawn

from tacit.theory.multipoint import _gram, _inverse, _quadratic, multipoint_variance, two_sided_variance


def bound(shifts, backwards=None, *, step=1e-3, feature_error=0.0, input_error=0.0, regularisation=1e-8):
    theorem = multipoint_variance if backwards is None else two_sided_variance
    return theorem(
        *(side[None] for side in (shifts, backwards) if side is not None),
        step=torch.tensor([step], dtype=torch.float64),
        feature_error=torch.tensor([feature_error], dtype=torch.float64),
        input_error=torch.tensor([input_error], dtype=torch.float64),
        regularisation=regularisation,
    )[0]


def kernel_matrix(shifts):
    """B in 60 digits."""
    m = len(shifts)
    rows = [[mp.mpf(float(x)) for x in row] for row in shifts]
    found = mp.matrix(m, m)
    for i in range(m):
        for j in range(m):
            found[i, j] = mp.expm1(mp.fsum(a * b for a, b in zip(rows[i], rows[j], strict=True)))
    return found


def exact_supremum(shifts, step):
    """The greatest quotient over all coefficients, step²·(B⁻¹)_kk, in 60 digits."""
    with mp.workdps(60):
        inverse = kernel_matrix(shifts) ** -1
        return [mp.mpf(step) ** 2 * inverse[k, k] for k in range(len(shifts))]


def exact_two_sided(forwards, backwards, step):
    """The greatest quotient over opposite coefficients (c, −c), and over all coefficients of both sides."""
    with mp.workdps(60):
        m = len(forwards)
        whole = kernel_matrix(torch.cat([forwards, backwards]))
        opposite = mp.matrix(m, m)
        for i in range(m):
            for j in range(m):
                opposite[i, j] = whole[i, j] - whole[i, m + j] - whole[m + i, j] + whole[m + i, m + j]
        restricted, free = opposite**-1, whole**-1
        opposites = [4 * mp.mpf(step) ** 2 * restricted[k, k] for k in range(m)]
        every = [
            mp.mpf(step) ** 2 * (free[k, k] - free[k, m + k] - free[m + k, k] + free[m + k, m + k]) for k in range(m)
        ]
        return opposites, every


@pytest.mark.parametrize("step", [1e-4, 1e-2, 0.3, 1.0])
@pytest.mark.parametrize("features", [5, 8, 30])
def test_it_is_the_greatest_quotient_up_to_rounding(step, features):
    jacobian = torch.randn(features, 5, generator=torch.Generator().manual_seed(features), dtype=torch.float64)
    shifts = (step * jacobian).T
    truth = exact_supremum(shifts, step)
    found = bound(shifts, step=step, regularisation=1e-14)
    for k in range(5):
        assert 0.999 * truth[k] < mp.mpf(float(found[k])) <= truth[k]


def test_it_stays_below_the_truth_whatever_the_coefficients():
    shifts = 1e-2 * torch.randn(6, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truth = exact_supremum(shifts, 1e-2)
    for regularisation in (1e-12, 1e-6, 1e-2, 1.0, 100.0):
        found = bound(shifts, step=1e-2, regularisation=regularisation)
        assert all(mp.mpf(float(found[k])) <= truth[k] for k in range(6))


@pytest.mark.parametrize("spread", [1e-6, 1e-9, 1e-12])
def test_nearly_dependent_shifts_do_not_push_it_above_the_truth(spread):
    """Rounding errors, amplified by coefficients of 1/spread, would: the errors paid for must cover them."""
    generator = torch.Generator().manual_seed(2)
    common = torch.randn(12, generator=generator, dtype=torch.float64)
    shifts = 1e-2 * (common + spread * torch.randn(6, 12, generator=generator, dtype=torch.float64))
    truth = exact_supremum(shifts, 1e-2)
    found = bound(shifts, step=1e-2, regularisation=1e-16)
    assert all(mp.mpf(float(found[k])) <= truth[k] for k in range(6))


def test_wrong_shifts_are_paid_for():
    """Shifts within feature_error of the true ones give a bound for the true ones: tried at the worst corners."""
    generator = torch.Generator().manual_seed(4)
    shifts = 1e-2 * torch.randn(5, 7, generator=generator, dtype=torch.float64)
    error = 1e-4
    found = bound(shifts, step=1e-2, feature_error=error)
    for _ in range(20):
        direction = torch.randn(5, 7, generator=generator, dtype=torch.float64)
        true = shifts + error * direction / direction.norm(dim=1, keepdim=True)
        truth = exact_supremum(true, 1e-2)
        assert all(mp.mpf(float(found[k])) <= truth[k] for k in range(5))
    assert bool((found < bound(shifts, step=1e-2)).all())


def test_wrong_inputs_are_paid_for():
    shifts = 1e-2 * torch.eye(4, dtype=torch.float64)
    exact, careful = bound(shifts, step=1e-2), bound(shifts, step=1e-2, input_error=1e-4)
    assert bool((careful < 0.982 * exact).all())
    assert bool((careful > 0.95 * exact).all())


def test_a_coordinate_that_nothing_shows_has_an_infinite_or_huge_bound():
    shifts = torch.zeros(3, 4, dtype=torch.float64)
    shifts[0, 0] = shifts[1, 1] = 1e-3
    assert float(bound(shifts)[2]) == float("inf")
    assert 1e18 < float(bound(shifts, feature_error=1e-14)[2]) < 1e24


def test_points_too_far_away_are_left_out():
    shifts = torch.diag(torch.tensor([1e-3, 1e-3, 1e6], dtype=torch.float64))
    found = bound(shifts)
    assert float(found[2]) == 0
    assert np.allclose(found[:2], 1.0, rtol=1e-3)


@pytest.mark.parametrize("step", [1e-2, 0.1, 0.5])
@pytest.mark.parametrize("curvature", [0.0, 0.3])
def test_on_both_sides_it_is_the_greatest_quotient_of_opposite_coefficients(step, curvature):
    generator = torch.Generator().manual_seed(7)
    slopes, bends = (torch.randn(5, 12, generator=generator, dtype=torch.float64) for _ in range(2))
    forwards, backwards = (side * step * slopes + curvature * step**2 * bends for side in (1, -1))
    opposites, every = exact_two_sided(forwards, backwards, step)
    found = bound(forwards, backwards, step=step, regularisation=1e-14)
    with mp.workdps(60):  # in which all three were computed
        for value, truth, most in zip(found, opposites, every, strict=True):
            assert 0.99 * truth < float(value) <= truth <= most * (1 + mp.mpf(10) ** -20)
    one_sided = exact_supremum(forwards, step)
    assert curvature == 0.0 or all(truth > least for truth, least in zip(opposites, one_sided, strict=True))


def test_on_both_sides_errors_of_shifts_and_inputs_are_paid_for():
    """At the worst corners: shifts within the error, all away from each other, or towards what is being hidden."""
    generator = torch.Generator().manual_seed(8)
    forwards = 0.05 * torch.randn(4, 7, generator=generator, dtype=torch.float64)
    backwards, error = -forwards + 0.01 * torch.randn(4, 7, generator=generator).double(), 1e-3
    found = bound(forwards, backwards, step=1e-2, feature_error=error)
    for seed in range(40):
        corners = torch.randn(2, 4, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        corners *= error / corners.norm(dim=2, keepdim=True)
        opposites, _ = exact_two_sided(forwards + corners[0], backwards + corners[1], 1e-2)
        assert all(float(value) <= truth for value, truth in zip(found, opposites, strict=True))
    assert bool((found < bound(forwards, backwards, step=1e-2)).all())
    exact, careful = bound(forwards, backwards, step=1e-2), bound(forwards, backwards, step=1e-2, input_error=1e-4)
    assert bool((careful < exact).all())
    assert bool((bound(0 * forwards, 0 * backwards) == torch.inf).all())


def test_features_at_rest_change_nothing():
    generator = torch.Generator().manual_seed(5)
    shifts = 1e-3 * torch.randn(2, 6, 9, generator=generator, dtype=torch.float64)
    shifts[1, :, 4] = 0.0  # at rest for one input alone
    among = torch.zeros(2, 6, 300, dtype=torch.float64)
    among[:, :, torch.randperm(300, generator=generator)[:9]] = shifts
    options = {"regularisation": 1e-14}
    errors = {
        "step": torch.full((2,), 1e-3),
        "feature_error": torch.full((2,), 1e-16),
        "input_error": torch.full((2,), 1e-18),
    }
    errors = {name: error.double() for name, error in errors.items()}
    wide, narrow = (multipoint_variance(some, **options, **errors) for some in (among, shifts))
    assert bool((wide <= narrow * (1 + 1e-12)).all())
    assert torch.allclose(wide, narrow, rtol=1e-9, atol=0)
    alone = multipoint_variance(among[:1], **options, **{name: error[:1] for name, error in errors.items()})
    assert torch.allclose(wide[:1], alone, rtol=1e-12, atol=0)


def test_more_points_than_one_block_of_the_products_holds():
    """Each shift overlaps with its neighbours, across the edges of the blocks too."""
    m = 2100
    shifts = 0.3 * (torch.eye(m, m + 1) + 0.5 * torch.eye(m, m + 1).roll(1, dims=1)).double()
    truth = 1e-6 * torch.linalg.inv(torch.expm1(shifts @ shifts.T)).diagonal()
    found = bound(shifts, regularisation=1e-14)
    assert bool((found <= truth * (1 + 1e-12)).all())
    torch.testing.assert_close(found, truth, rtol=1e-9, atol=0)


def test_an_input_that_needs_a_larger_ridge_does_not_change_its_neighbour():
    generator = torch.Generator().manual_seed(3)
    common, apart = torch.randn(9, generator=generator).double(), torch.randn(6, 9, generator=generator).double()
    nearly, wholly_dependent = 1e-2 * (common + 1e-6 * apart), 1e-2 * common.expand(6, 9)
    none = torch.zeros(2, dtype=torch.float64)
    both = multipoint_variance(
        torch.stack([nearly, wholly_dependent]),
        step=none + 1e-3,
        feature_error=none,
        input_error=none,
        regularisation=0.0,
    )
    torch.testing.assert_close(both[0], bound(nearly, regularisation=0.0), rtol=1e-9, atol=0)


@pytest.mark.parametrize("rows", [1, 4, 5, 10, 23])
@pytest.mark.parametrize("block", [5, 100])
class TestBlocks:
    def test_gram(self, rows, block):
        vectors = drawn(2, rows, 7)
        found = _gram(vectors, block=block)
        torch.testing.assert_close(found, vectors @ vectors.mT, rtol=1e-13, atol=1e-13)

    def test_quadratic(self, rows, block):
        vectors, matrix = drawn(2, 6, rows), _gram(drawn(2, rows, 7))
        expected = torch.einsum("bki,bij,bkj->bk", vectors, matrix, vectors)
        torch.testing.assert_close(_quadratic(vectors, matrix, block=block), expected, rtol=1e-12, atol=1e-12)

    def test_inverse(self, rows, block):
        matrix = _gram(drawn(2, rows, 3 * rows))
        found = _inverse(torch.linalg.cholesky(matrix), block=block)
        torch.testing.assert_close(found @ matrix, torch.eye(rows, dtype=torch.float64).expand(2, -1, -1))
        torch.testing.assert_close(found, found.mT)
