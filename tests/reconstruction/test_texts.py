"""Texts from their noisy embeddings: the prior, the chains and the bounds, against enumeration.

Seeds are fixed; each tolerance says how often other seeds would fail.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from short_texts import encode, posterior

from tacit import Comparison, InputError, NoTheoremError
from tacit.reconstruction import (
    Gaussian,
    Laplace,
    Quantized,
    Rounding,
    TextPrior,
    Uniform,
    text_attack,
    text_bounds,
)
from tacit.reconstruction.chains import NoiseDensity
from tacit.reconstruction.text_chains import GRANTED, Embeddings, stepped
from tacit.theory.posterior import restored_share

LINES = ["a b c", "a b", "b c a c", "c a", "a a b c", "b", "c c a"]
SIGMA = 2.0
NOISE = Gaussian(SIGMA)


@pytest.fixture(scope="module")
def prior():
    return TextPrior.fitted(LINES, longest=3, least=1)


@pytest.fixture(scope="module")
def all_texts(prior):
    """Every text that the prior can draw, and its probability."""
    words = range(2, len(prior.words))
    found = [sentence for length in (1, 2, 3) for sentence in itertools.product(words, repeat=length)]
    return {sentence: math.exp(prior.log_probability(sentence)) for sentence in found}


def test_the_prior_is_a_law_and_draws_from_it(prior, all_texts):
    assert math.fsum(all_texts.values()) == pytest.approx(1, abs=1e-12)
    count = 10_000
    drawn = prior.sample(count, seed=1)
    assert prior.sample(10, seed=1) == drawn[:10]
    for sentence, chance in all_texts.items():
        # Five standard errors for each of 39 texts: a false alarm in about 30 000 runs.
        assert abs(drawn.count(sentence) / count - chance) < 5 * math.sqrt(chance / count)


def test_alternatives_are_the_prior_s_own_conditional_law(prior, all_texts):
    for sentence in all_texts:
        for place in range(len(sentence)):
            others = [(*sentence[:place], word, *sentence[place + 1 :]) for word in range(2, len(prior.words))]
            chances = np.array([all_texts[other] for other in others])
            np.testing.assert_allclose(prior.alternatives(sentence, place)[2:], chances / chances.sum(), rtol=1e-12)


def test_texts_become_numbers_and_texts_again(prior):
    assert prior.text(prior.numbers(" A  b")) == "a b"
    assert prior.numbers("a b c a b c") == prior.numbers("a b c")  # cut off
    assert prior.numbers("a d") is None
    assert prior.numbers("") is None
    other = TextPrior.fitted([*LINES, "a"], longest=3, least=1)
    assert other.description != prior.description
    # The same trigrams, but other words alone and other pairs, between words that are too rare to be kept.
    rare = (["x a a y a", "x a b y b"], ["x a b y a", "x b b y b"])
    first, second = (TextPrior.fitted([*lines, "a b", "b a"], least=3) for lines in rare)
    assert first.words == second.words == ("", "", "a", "b")
    assert first.log_probability(first.numbers("a a")) != second.log_probability(second.numbers("a a"))
    assert first.description != second.description
    quoted = TextPrior.fitted(["It's well-made, too!"], least=1)
    assert quoted.words[2:] == ("!", ",", "it's", "too", "well-made")


def asymmetry(prior, all_texts, sigma, favour=None):
    """The largest imbalance between moves and their reverses, in standard errors, from draws of the posterior."""
    release, length, count = np.array([2.0, -1.0, 1.0, 2.0]), 2, 8_000
    of_length, weights = posterior(prior, all_texts, release, length)
    source = np.random.default_rng(2)
    starts = [of_length[row] for row in source.choice(len(of_length), size=count, p=weights)]
    log = NoiseDensity.of(Gaussian(sigma)).log

    def weigh(missing):
        return log(torch.as_tensor(missing.reshape(-1, 4))).numpy().reshape(missing.shape[:-1])

    released = np.tile(release, (count, 1))
    options = {"candidates": 2, "source": source, "favour": favour if favour is None else np.tile(favour, (count, 1))}
    tried = stepped(Embeddings(encode, prior), starts, released, weigh, 1, **options)
    moves = {}
    for start, (end, *_) in zip(starts, tried, strict=True):
        moves[start, end] = moves.get((start, end), 0) + 1
    both = [(count, moves.get((end, start), 0)) for (start, end), count in moves.items() if start != end]
    return max(abs(there - back) / math.sqrt(there + back) for there, back in both)


def test_a_step_is_reversible(prior, all_texts):
    # 9 pairs: five standard errors happen by chance in one of 200 000 runs.
    assert asymmetry(prior, all_texts, SIGMA) < 5
    assert asymmetry(prior, all_texts, SIGMA, np.array([1.0, 1.0, 0.1, 1.0, 20.0])) < 5


def test_a_step_for_half_of_the_noise_is_noticed(prior, all_texts):
    assert asymmetry(prior, all_texts, SIGMA / 2) > 8


def test_rounding_of_weights_is_less_than_is_granted():
    rows = np.random.default_rng(0).normal(size=(200, 384)) * 0.3
    for noise in (Gaussian(0.3), Laplace(0.2)):
        found = NoiseDensity.of(noise).log(torch.as_tensor(rows)).numpy()
        for row, value in zip(rows, found, strict=True):
            parts = (row / 0.3) ** 2 / 2 if isinstance(noise, Gaussian) else np.abs(row) / 0.2
            assert abs(value + math.fsum(parts)) <= GRANTED * math.fsum(parts) / 10


def exact(prior, all_texts, score):
    """The expectation, over texts and releases, of what the best guess scores; and its standard error."""
    source, values = np.random.default_rng(3), []
    for sentence in prior.sample(500, seed=9):
        release = encode([prior.text(sentence)])[0] + SIGMA * source.normal(size=4)
        values.append(score(*posterior(prior, all_texts, release, len(sentence))))
    return np.mean(values), np.std(values) / math.sqrt(len(values))


def best_words(texts, weights):
    return np.mean([max(weights[row == word].sum() for word in set(row)) for row in np.array(texts).T])


def best_attribute(texts, weights):
    first = np.array(texts)[:, 0]
    return max(weights[first == word].sum() for word in set(first))


def first_word(texts):
    return [text.split()[0] for text in texts]


@pytest.fixture(scope="module")
def bounds(prior):
    return text_bounds(encode, prior, NOISE, texts=300, sweeps=2, rivals=15, candidates=2, attribute=first_word, seed=4)


SCORES = {"words": best_words, "whole": lambda _, weights: weights.max(), "attribute": best_attribute}


@pytest.mark.parametrize("part", SCORES)
def test_bounds_hold_and_meet_the_best_guess(prior, all_texts, bounds, part):
    truth, error = exact(prior, all_texts, SCORES[part])
    # The claim fails with probability 0.001, and the simulated truth is five standard errors too high in 3e-7.
    assert truth - 5 * error < getattr(bounds, part) < 1.45 * truth
    assert truth - 5 * error < bounds.seen[part] < 1.25 * truth
    found = bounds.guarantee_of(part)
    assert found.value == getattr(bounds, part)
    assert found.theorem[0].endswith("restored_share" if part == "words" else "attribute_success")
    assert bounds.guarantee.value == bounds.words
    assert "%" in bounds._repr_html_()


def test_the_bound_is_what_the_theorem_says_of_the_stars(prior):
    """Eight texts are few, and all of them are shown."""
    found = text_bounds(encode, prior, Gaussian(50.0), texts=8, rivals=3, failure_probability=0.5, seed=1)
    lengths = [len(star[0].split()) for star in found.examples]
    words = np.array([[[*text.split(), "", ""][:3] for text in star] for star in found.examples])
    numbers = np.unique(words, return_inverse=True)[1].reshape(words.shape)
    plain = restored_share(numbers, lengths=lengths, failure_probability=0.25)
    assert plain < found.words < plain + 1e-4 < 1


def test_chains_that_know_of_half_the_noise_only_would_be_too_sure_of_themselves(prior, all_texts):
    """A planted fault: rivals of a wrong posterior lie too near or too far, and the bound misses the truth."""

    class Wrong(Gaussian):
        """Draws noise of a third of the size that its density has."""

        def sample(self, features, generator):
            return super().sample(features, generator) / 3

    wrong = text_bounds(encode, prior, Wrong(3 * SIGMA), texts=200, sweeps=2, rivals=15, candidates=2, seed=4)
    truth, error = exact(prior, all_texts, best_words)
    assert wrong.words < truth - 5 * error


def test_the_attack_comes_near_the_bound_and_contradicts_nothing(prior, bounds):
    attack = text_attack(encode, prior, NOISE, texts=200, pool=300, sweeps=6, attribute=first_word, seed=6)
    for part in SCORES:
        comparison = Comparison(guarantee=bounds.guarantee_of(part), attacks=(attack.attack_on(part),))
        assert not comparison.contradicted
    assert attack.words.value > 0.8 * bounds.words
    assert attack.guessing < attack.words.value
    assert len(attack.examples[0]) == 2


def easy(texts):
    """One text, "c b", is far from all others."""
    return encode(texts) + 30.0 * np.array([[text == "c b"] for text in texts])


@pytest.mark.parametrize("sigma", [0.02, 0.3, 3.0])
def test_whoever_sees_the_release_restores_no_less_than_whoever_guesses(sigma):
    """Many words, some of them frequent, and embeddings in which their order hardly shows, as of a real encoder."""
    rng = np.random.default_rng(0)
    names = np.array([f"w{number}" for number in range(150)])
    chances = 1 / np.arange(1, 151)
    lines = [" ".join(rng.choice(names, p=chances / chances.sum(), size=rng.integers(4, 9))) for _ in range(1500)]
    vectors = dict(zip(names, rng.normal(size=(150, 24)), strict=True))

    def alike(texts):
        sums = [sum(vectors[word] * (1 + 0.1 * place) for place, word in enumerate(text.split())) for text in texts]
        return np.array(sums) / np.linalg.norm(sums, axis=1, keepdims=True)

    known = TextPrior.fitted(lines, longest=8, least=1)
    found = text_attack(alike, known, Gaussian(sigma), texts=150, pool=1000, chains=2, sweeps=4, seed=1)
    # Under much noise both restore the same, up to chance: other seeds give differences of 0.002 either way.
    assert found.words.value >= found.guessing
    if sigma <= 0.3:
        assert found.words.value > 1.3 * found.guessing


def test_real_texts_that_are_easier_than_the_prior_refute_it(prior):
    """All real texts are one that the prior hardly draws, far from the others: the attack restores it."""
    bounds = text_bounds(easy, prior, NOISE, texts=200, rivals=7, sweeps=1, seed=1)
    attack = text_attack(easy, prior, NOISE, real=["c b"] * 200 + ["unknown words"], pool=300, sweeps=4)
    assert attack.texts == 200
    assert "on 200 real texts" in attack.words.method
    assert Comparison(guarantee=bounds.guarantee, attacks=(attack.words,)).contradicted


def test_a_sorted_list_of_texts_has_the_interval_of_a_shuffled_one(prior):
    real = ["c b"] * 100 + ["b c a"] * 100
    for texts in (real, real[::-1]):
        found = text_attack(easy, prior, Gaussian(5.0), real=texts, pool=300, sweeps=2).whole
        # The first half is restored, the second is not: the interval is about as wide on either side.
        assert 0.4 < found.value < 0.6
        assert 0.7 < (found.high - found.value) / (found.value - found.low) < 1.4


def test_little_noise_hides_nothing_and_much_noise_nearly_all(prior):
    clear = text_bounds(encode, prior, Gaussian(0.05), texts=100, rivals=3, seed=0)
    hidden = text_bounds(encode, prior, Gaussian(50.0), texts=200, rivals=15, seed=0)
    assert clear.words > 0.95
    assert hidden.words < 0.75


def test_other_noise_and_rounding(prior):
    options = {"texts": 100, "rivals": 3, "seed": 0}
    plain = text_bounds(encode, prior, NOISE, **options)
    rounded = text_bounds(encode, prior, Quantized(NOISE, 0.5), **options)
    assert rounded.words == plain.words  # rounding is a function of what the bound is about
    assert any("rounded to the nearest multiple" in one.text for one in rounded.guarantee.assumptions)
    for noise in (Laplace(SIGMA), Uniform(6.0)):
        assert 0.4 < text_bounds(encode, prior, noise, **options).words < 1
    with pytest.raises(NoTheoremError, match="rounding alone"):
        text_bounds(encode, prior, Rounding(0.01))
    assert text_attack(encode, prior, Rounding(0.01), texts=50, pool=200, sweeps=10).words.value == 1


def test_the_same_seed_gives_the_same_numbers(prior):
    first, second = (text_bounds(encode, prior, NOISE, texts=20, seed=7) for _ in range(2))
    assert (first.words, first.whole, first.examples) == (second.words, second.whole, second.examples)


def test_wrong_arguments_are_refused(prior):
    with pytest.raises(InputError, match="rivals must be"):
        text_bounds(encode, prior, NOISE, rivals=0)
    with pytest.raises(InputError, match="encode must be callable"):
        text_bounds(np.zeros(3), prior, NOISE)
    with pytest.raises(InputError, match="prior must be a TextPrior"):
        text_bounds(encode, LINES, NOISE)
    with pytest.raises(InputError, match="rows of finite floating-point numbers"):
        text_bounds(lambda texts: np.full((len(texts), 2), np.nan), prior, NOISE)
    with pytest.raises(InputError, match="encoded alone"):
        text_bounds(lambda texts: encode(texts) + len(texts), prior, NOISE)
    with pytest.raises(InputError, match="what attribute returns"):
        text_bounds(encode, prior, NOISE, texts=5, attribute=lambda _: ["a"])
    for use in (text_bounds, text_attack):
        with pytest.raises(
            InputError, match="what attribute returns must equal itself, got 'nan'; return None"
        ) as refused:
            use(encode, prior, NOISE, texts=5, attribute=lambda texts: [float("nan") for _ in texts])
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="occurs 2 times"):
        TextPrior.fitted(["one two", "three"])
    with pytest.raises(InputError, match="must be a list of texts"):
        TextPrior.fitted("one two")
    with pytest.raises(InputError, match="only words of the prior"):
        text_attack(encode, prior, NOISE, real=["unknown"])
    with pytest.raises(InputError, match="must hold texts of 3 words"):
        text_attack(encode, TextPrior.fitted(["a a a", *["a"] * 400], least=1), NOISE, real=["a a a"], pool=10)
