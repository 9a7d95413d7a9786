"""What labels cost: moments against all pairs of laws of small noise, δ against the game and a plain sum."""

import math
from itertools import pairwise, permutations, product

import numpy as np
import pytest

from tacit import InputError
from tacit.theory import label_moments
from tacit.theory.accounting import gnmax_delta, gnmax_sigma
from tacit.theory.label_moments import labels_delta, labels_order, labels_sigma
from tacit.theory.winners import winner_delta


def law(sigma):
    """The weights of a discrete Gaussian, with its values."""
    values = np.arange(-int(14 * sigma) - 4, int(14 * sigma) + 5)
    weights = np.exp(-(values**2) / (2 * sigma**2))
    return values, weights / weights.sum()


def label_law(counts, sigma):
    """The chance of each label, of equals the first, by adding up all noise."""
    values, chances = law(sigma)
    sums = np.arange(min(counts) + values[0], max(counts) + values[-1] + 1)
    at = [np.zeros(len(sums)) for _ in counts]
    for column, n in zip(at, counts, strict=True):
        first = n + values[0] - sums[0]
        column[first : first + len(values)] = chances
    up_to = [np.cumsum(column) for column in at]
    less = [np.concatenate([[0.0], sums_of[:-1]]) for sums_of in up_to]
    return np.array(
        [
            np.prod([at[k], *(less[j] if j < k else up_to[j] for j in range(len(counts)) if j != k)], axis=0).sum()
            for k in range(len(counts))
        ]
    )


def moment(p, q, order):
    return float(np.sum(p * (p / q) ** order))


def neighbours(counts):
    """All counts in which one vote moved, appeared or is missing."""
    for change in (1, -1):
        for place in range(len(counts)):
            yield tuple(n + change * (k == place) for k, n in enumerate(counts))
    for here, there in permutations(range(len(counts)), 2):
        yield tuple(n - (k == here) + (k == there) for k, n in enumerate(counts))


def worth(sums, order, *thresholds):
    """The moment of the outcomes into which thresholds, numbers of values, cut two laws whose sums are given."""
    places = sorted({0, *(min(max(place, 0), sums.shape[1] - 1) for place in thresholds), sums.shape[1] - 1})
    parts = [sums[:, high] - sums[:, low] for low, high in pairwise(places)]
    return sum(p * (p / q) ** order for p, q in parts if p > 0)


def shifted_laws(sigma, order, offset):
    """Sums of the weights of a discrete Gaussian on Z + offset, and shifted by 1."""
    reach = int(7 * sigma + order) + 4
    values = np.arange(-reach, reach + 1) + offset
    laws = np.stack([np.exp(-(values**2) / (2 * sigma**2)), np.exp(-((values - 1) ** 2) / (2 * sigma**2))])
    laws /= laws[0].sum()
    return np.concatenate([np.zeros((2, 1)), np.cumsum(laws, axis=1)], axis=1).astype(np.longdouble), reach


def plain_moment(sigma, order, *, two=False):
    """The same bound by definition: the known sum s averaged for all places of three outcomes, one by one.

    Thresholds at a and b, 2a ≡ s modulo 2, have a + b = centre and b − a = h − s − 1; if that is negative there is one,
    at the last such a with 2a ≤ centre or centre + 1.
    """
    one, reach = shifted_laws(sigma, order, 0.0)
    alone = max(worth(one, order, place) for place in range(2 * reach + 2))
    pairs = [shifted_laws(sigma / math.sqrt(2), order, offset) for offset in (0.0, 0.5)]
    reach = pairs[0][1]
    if two:
        return max(alone, *(worth(sums, order, place) for sums, _ in pairs for place in range(2 * reach + 2)))
    chances = np.convolve(law(sigma)[1], law(sigma)[1])
    middle = len(chances) // 2
    known = range(-int(8 * sigma) - 3, int(8 * sigma) + 4)

    def at(s, *doubled):  # thresholds: the number of values −reach …, −reach + ½ … up to these
        return worth(pairs[s % 2][0], order, *((twice - s % 2) // 2 + reach + 1 for twice in doubled))

    best = 0.0
    for centre in range(-2 * reach, 2 * reach + 1):
        for h in range(-2 * reach + (centre + 1) % 2, 2 * reach, 2):
            for tie in (0, 1):
                average = 0.0
                for s in known:
                    apart = h - s - 1
                    last = centre + tie - (centre + tie - s) % 2
                    doubled = (centre - apart, centre + apart) if apart >= 0 else (last,)
                    average += chances[middle + s] * at(s, *doubled)
                best = max(best, average)
    return max(alone, best)


@pytest.mark.parametrize(("sigma", "order"), [(0.5, 1.0), (0.7, 2.25), (1.0, 0.25), (1.5, 4.5), (2.5, 3.0)])
def test_the_moment_of_two_classes_is_that_of_the_worst_threshold(sigma, order):
    truth = plain_moment(sigma, order, two=True)
    found = math.exp(label_moments._label_moment(sigma, order, True, 100))
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-9)


@pytest.mark.parametrize(("sigma", "order"), [(0.5, 1.0), (0.7, 2.25), (1.0, 0.25), (1.2, 3.0)])
def test_the_moment_is_hardly_more_than_the_worst_of_its_definition(sigma, order):
    """Groups of thresholds, which are wide where there is little noise, add a little."""
    truth = plain_moment(sigma, order)
    found = math.exp(label_moments._label_moment(sigma, order, False, 100))
    assert truth * (1 - 1e-12) <= found
    assert label_moments._label_moment(sigma, order, False, 100) <= 1.12 * math.log(truth)


@pytest.mark.parametrize(("sigma", "order"), [(0.5, 1.0), (1.0, 2.0), (1.0, 0.25), (2.0, 4.0)])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_no_counts_are_worth_more(sigma, order, classes):
    """All counts near a tie, all neighbours in both orders: none exceeds the moment, and some come near."""
    reach = 4 if classes < 4 else 2
    worst = 0.0
    for rest in product(range(-reach, reach + 1), repeat=classes - 1):
        counts = (0, *rest)
        here = label_law(counts, sigma)
        for other in neighbours(counts):
            there = label_law(other, sigma)
            worst = max(worst, math.log(moment(here, there, order)), math.log(moment(there, here, order)))
    bound = label_moments._label_moment(sigma, order, classes == 2, 100)
    assert worst <= bound
    assert worst >= 0.78 * bound or reach == 2


@pytest.mark.parametrize(("sigma", "order"), [(0.5, 1.5), (2.0, 0.5), (9.0, 6.0), (300.0, 12.0)])
def test_the_moment_of_a_test_is_that_of_the_worst_threshold(sigma, order):
    values = np.arange(-int(12 * sigma + order) - 4, int(12 * sigma) + 5)
    here, there = np.exp(-(values**2) / (2 * sigma**2)), np.exp(-((values - 1) ** 2) / (2 * sigma**2))
    here, there = here / here.sum(), there / here.sum()
    both = np.stack([here, there])
    (p, q), (a, b) = np.cumsum(both, axis=1)[:, :-1], np.cumsum(both[:, ::-1], axis=1)[:, -2::-1]
    truth = float(np.max(p * (p / q) ** order + a * (a / b) ** order))
    found, more = label_moments._vote_moment(sigma, order, 100), 1.02 if sigma > 100 else 1 + 1e-6
    assert math.log(truth) * (1 - 1e-9) <= found <= math.log(truth) * more + 1e-11


@pytest.mark.parametrize("sigma", [120.0, 150.0, 990.0])
def test_wider_cells_only_add(sigma):
    fine, coarse = (label_moments._label_moment(sigma, 8.0, False, cells) for cells in (400, 100))
    assert fine <= coarse <= 1.02 * fine


@pytest.mark.parametrize(
    ("epsilon", "sigma", "answers", "tests", "order"), [(1.0, 20.0, 20, 0, 17.0), (4.0, 6.5, 18, 9, 5.0)]
)
def test_delta_is_its_formula(epsilon, sigma, answers, tests, order):
    """A hundredth less would be noticed."""
    one, reach = shifted_laws(2 * sigma, order, 0.0)
    test = max(worth(one, order, place) for place in range(2 * reach + 2))
    paid = answers * math.log(plain_moment(sigma, order, two=True)) + tests * math.log(test)
    truth = order**order / (1 + order) ** (1 + order) * math.exp(paid - order * epsilon)
    noise = {"sigma": sigma, "test_sigma": 2 * sigma, "tests": tests}
    assert truth < gnmax_delta(epsilon, answers=answers, **noise)
    assert truth * (1 - 1e-11) < labels_delta(epsilon, answers=answers, classes=2, order=order, **noise) < 1.001 * truth


GAMES = [(1.0, 20.0, 20, 2), (1.0, 67.0, 200, 2), (4.0, 6.2, 20, 2), (0.3, 90.0, 30, 2)]
GAMES += [(1.0, 20.0, 20, 3), (4.0, 6.2, 20, 3)]


@pytest.mark.parametrize(("epsilon", "sigma", "answers", "classes"), GAMES)
def test_the_game_is_worth_no_more_and_hardly_less(epsilon, sigma, answers, classes):
    """In noise labels cost an eighth more at most than the game, exact but for a few percent of its answers."""
    found = labels_delta(epsilon, sigma=sigma, answers=answers, classes=classes)
    game = {"answers": answers, "classes": classes}
    assert winner_delta(epsilon, sigma=sigma, **game) <= found < gnmax_delta(epsilon, sigma=sigma, answers=answers)
    assert found <= winner_delta(epsilon, sigma=sigma / 1.125, **game)


def best_of_all(y, left, experiments):
    """The value of the game of so many answers at y, by trying every strategy."""
    if left == 0:
        return np.maximum(0.0, 1 - y)
    best = np.maximum(0.0, 1 - y)
    for p, q in experiments:
        best = np.maximum(
            best, sum(a * best_of_all(y * b / a, left - 1, experiments) for a, b in zip(p, q, strict=True))
        )
    return best


def test_short_games_of_three_classes():
    sigma, pairs = 1.0, []
    for rest in product(range(-2, 3), repeat=2):
        counts = (0, *rest)
        pairs += [(label_law(counts, sigma), label_law(other, sigma)) for other in neighbours(counts)]
    for epsilon in (0.5, 1.5, 3.0):
        y = np.array([math.exp(epsilon)])
        assert float(best_of_all(y, 1, pairs)[0]) <= labels_delta(epsilon, sigma=sigma, answers=1)
        assert float(best_of_all(y, 2, pairs[::5])[0]) <= labels_delta(epsilon, sigma=sigma, answers=2)
        assert float(best_of_all(y, 1, pairs)[0]) <= label_moments._bound(epsilon, sigma, 1, False, 1.0, 0, 2.0, 100)
        assert float(best_of_all(y, 2, pairs[::5])[0]) <= label_moments._bound(
            epsilon, sigma, 2, False, 1.0, 0, 2.0, 100
        )


@pytest.mark.parametrize(
    ("epsilon", "delta", "answers", "tests", "share"),
    [(1.0, 1e-5, 20, 0, 0.92), (4.0, 1e-6, 2000, 0, 0.9), (0.25, 1e-5, 200, 400, 0.93), (30.0, 1e-5, 50, 0, 1.0)],
)
def test_the_noise_found_is_enough_and_hardly_more(epsilon, delta, answers, tests, share):
    sigma = labels_sigma(epsilon, delta, answers=answers, tests=tests, ratio=3.0)
    counts = gnmax_sigma(epsilon, delta, answers=answers, tests=tests, ratio=3.0)
    spent = labels_delta(epsilon, sigma=sigma, answers=answers, test_sigma=3 * sigma, tests=tests)
    assert 0.97 * delta <= spent <= delta
    assert 0.7 * counts <= sigma <= share * counts


def test_many_answers_and_little_or_much_noise_are_no_error():
    assert labels_delta(1.0, sigma=0.5, answers=1) <= 1
    assert labels_delta(1.0, sigma=0.01, answers=1) == gnmax_delta(1.0, sigma=0.01, answers=1)
    assert labels_delta(1.0, sigma=1e6, answers=100) == gnmax_delta(1.0, sigma=1e6, answers=100)
    sigma = labels_sigma(1.0, 1e-5, answers=4_000_000)
    assert 9000 < sigma < 0.92 * gnmax_sigma(1.0, 1e-5, answers=4_000_000)
    assert labels_sigma(1.0, 1e-5, answers=10**8) == gnmax_sigma(1.0, 1e-5, answers=10**8)


def test_one_answer_costs_as_much_as_counts():
    assert labels_sigma(1.0, 1e-5, answers=1) <= gnmax_sigma(1.0, 1e-5, answers=1)
    assert labels_order(1.0, sigma=5.28, answers=1) is None


def test_an_order_has_five_binary_digits():
    for epsilon, sigma, answers in ((1.0, 67.5, 200), (0.25, 36.0, 4), (4.0, 6.2, 20), (30.0, 1.9, 50)):
        order = labels_order(epsilon, sigma=sigma, answers=answers)
        assert order is not None
        assert math.frexp(order)[0] * 32 == round(math.frexp(order)[0] * 32)
        assert labels_delta(epsilon, sigma=sigma, answers=answers) == labels_delta(
            epsilon, sigma=sigma, answers=answers, order=order
        )


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_narrow_number_leaves_nothing_narrow_behind(kind):
    """Moments are kept, and equal numbers find each other's."""
    sigma = float(kind(65.4375))
    clean = labels_delta(1.0, sigma=sigma, answers=214)
    for kept in (label_moments._label_moment, label_moments._order, labels_order):
        kept.cache_clear()
    assert labels_order(kind(1.0), sigma=kind(sigma), answers=np.int16(214)) is not None
    assert labels_delta(1.0, sigma=sigma, answers=214) == clean


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError):
        labels_order(1.0, sigma=-1.0, answers=3)
    with pytest.raises(InputError):
        labels_order(1.0, sigma=5.0, answers=3.5)
    with pytest.raises(InputError):
        labels_delta(1.0, sigma=-1.0, answers=3)
    with pytest.raises(InputError):
        labels_delta(1.0, sigma=1.0, answers=3, classes=1)
    with pytest.raises(InputError):
        labels_delta(1.0, sigma=1.0, answers=3, order=0.0)
