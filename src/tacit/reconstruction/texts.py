"""What stays hidden of a text whose noisy embedding is released: bounds for everyone, and an attack beside them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..core import validate
from ..core.display import Carded, Rows
from ..core.errors import InputError, NoTheoremError
from ..core.guarantee import Adversary, Assumption, Attack, Guarantee
from ..core.rounding import at_most
from ..core.wording import safe_text
from ..theory.confidence import sampled_mean_lower, sampled_mean_upper
from ..theory.posterior import attribute_success, restored_share
from .chains import NoiseDensity
from .noise import Noise, checked_noise, total_variation_theorems, unrounded
from .release import type_error
from .text_chains import GRANTED, Embeddings, Encode, Vector, Votes, encoded, walked
from .text_prior import Sentence, TextLaw
from .unbiased import release_assumptions

Advance = Callable[[float], None]
Attribute = Callable[[list[str]], Sequence[Any]]

_PILOTS = 32
_SHOWN = 8
_ALONE = 4  # pilot texts that are encoded alone, too
_WIDER = 1.5  # than the greatest total variation of any pilot
_FARTHER = 8  # than the least likely pilot's logarithm
_CLEAR = 10  # nats by which the chain's last text must be ahead to be named
_COOLER = 6  # by which the search is narrower than that
_TRUSTED = 0.5  # share of the chains' votes above which they are believed
_SHRUNK = 5  # draws without any effect that are added to those with a word
_MOST = 12  # nats by which a word is favoured
_DEVIATIONS = 3  # by which the noise's length may exceed the usual one
_FAILURE = "use 0.001"

WORDS = "share of the words of a text that are restored at their places"
WHOLE = "probability of restoring a whole text"
ATTRIBUTE = "probability of naming the attribute of a text"
_QUANTITIES = {"words": WORDS, "whole": WHOLE, "attribute": ATTRIBUTE}


@dataclass(frozen=True)
class Rounding:
    """Rounding to the nearest multiple of a step, without any noise: a release of which nothing is proven.

    Attributes
    ----------
    step
        The distance between neighbouring values. For int8 it is the greatest entry of an embedding, divided by 127.
    """

    step: float

    def __post_init__(self) -> None:
        validate.number("step", self.step, above=0, remedy="give the distance between neighbouring values")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TextBounds(Carded):
    """What nobody restores of a text from its noisy embedding.

    All claims hold together, except with `failure_probability`, for texts drawn from the prior. They are about anyone,
    even those who know how many words the text has.

    Attributes
    ----------
    words
        Greatest expected share of the words that anyone restores, each at its place.
    whole
        Greatest chance of restoring the whole text.
    attribute
        Greatest chance of naming the attribute, where one was given.
    seen
        The same three as the chains show them on average: no guarantee, but what more texts would lead to.
    texts
        Number of texts that were drawn, each with its rivals.
    rivals
        Rivals of each text.
    sweeps
        How often every word could change between a text and the middle of its star.
    prior
        What the adversary knows, in words.
    noise
        Of the release.
    feature_error
        Relative error of released embeddings that is paid for.
    failure_probability
        The chance that any of the claims is false.
    examples
        Some texts, each followed by its rivals: given the release, all of a row are equally likely.
    """

    words: float
    whole: float
    attribute: float | None
    seen: dict[str, float]
    texts: int
    rivals: int
    sweeps: int
    prior: str
    noise: Noise
    feature_error: float
    failure_probability: float
    examples: tuple[tuple[str, ...], ...]

    @property
    def guarantee(self) -> Guarantee:
        """The share of words, as a statement."""
        return self.guarantee_of("words")

    def guarantee_of(self, part: str) -> Guarantee:
        """Return one of the claims as a statement.

        Parameters
        ----------
        part
            "words", "whole" or "attribute".

        Returns
        -------
        Guarantee
            The statement.
        """
        claims = {name: getattr(self, name) for name in _QUANTITIES if getattr(self, name) is not None}
        validate.choice("part", part, tuple(claims), remedy="pass attribute=… to text_bounds for the attribute")
        return Guarantee(
            quantity=_QUANTITIES[part],
            side="at_most",
            value=claims[part],
            adversary=Adversary.PRIOR.scoped(self.prior),
            theorem=(
                f"theory.posterior.{'restored_share' if part == 'words' else 'attribute_success'}",
                *total_variation_theorems(unrounded(self.noise)),
            ),
            assumptions=(
                Assumption(text=f"the text is drawn from this prior: {self.prior}", checked_by="caller"),
                Assumption(
                    text="the pseudo-random draws of the computation behave as independent", checked_by="caller"
                ),
                *release_assumptions(self.noise, self.feature_error),
            ),
            failure_probability=self.failure_probability,
            detail={"texts": self.texts, "rivals": self.rivals, "sweeps": self.sweeps},
        )

    def _card(self) -> tuple[str, Rows]:
        rows: list[tuple[str, str | tuple[str, ...]]] = [
            ("words that anyone restores, at most", f"{safe_text(100 * self.words, toward='up')} %"),
            ("whole texts, at most", f"{safe_text(100 * self.whole, toward='up')} %"),
        ]
        if self.attribute is not None:
            rows.append(("the attribute, at most", f"{safe_text(100 * self.attribute, toward='up')} %"))
        rows += [("prior", self.prior), ("noise", str(self.noise))]
        return "what anyone restores of a text from its noisy embedding", rows


@dataclass(frozen=True, kw_only=True, eq=False)
class TextAttack:
    """What an attack restored.

    Attributes
    ----------
    words
        The share of words, each at its place.
    whole
        The share of whole texts.
    attribute
        How often the attribute of the restored text was the right one, where one was given.
    guessing
        The share of words that somebody restores who knows the prior and the length, and does not see the release.
    texts
        How many texts were attacked.
    examples
        Some texts, each with what the attack made of it.
    """

    words: Attack
    whole: Attack
    attribute: Attack | None
    guessing: float
    texts: int
    examples: tuple[tuple[str, str], ...]

    def attack_on(self, part: str) -> Attack:
        """Return the attack on one of the claims of `TextBounds`.

        Parameters
        ----------
        part
            "words", "whole" or "attribute".

        Returns
        -------
        Attack
            The attack.
        """
        found = {name: getattr(self, name) for name in _QUANTITIES if getattr(self, name) is not None}
        validate.choice("part", part, tuple(found), remedy="pass attribute=… to text_attack for the attribute")
        attack: Attack = found[part]
        return attack


@at_most
def text_bounds(
    encode: Encode,
    prior: TextLaw,
    noise: Noise,
    *,
    texts: int = 200,
    rivals: int = 7,
    sweeps: int = 1,
    candidates: int = 4,
    attribute: Attribute | None = None,
    feature_error: float | None = None,
    failure_probability: float = 0.001,
    seed: int = 0,
    advance: Advance = lambda _: None,
) -> TextBounds:
    """Bound what anyone restores of a text from its noisy embedding.

    Texts are drawn from the prior and released. From each, chains that know the release alone wander to rivals: other
    texts that are as likely, given the release. What the texts of such a star do not have in common nobody can know.

    Parameters
    ----------
    encode
        Takes a list of texts and returns one row of numbers for each.
    prior
        The law of the texts; the adversary knows it.
    noise
        The noise that is added to the embedding: any with a density; of a `Quantized` one, that before rounding.
    texts
        How many texts are drawn. More texts tighten the confidence limit.
    rivals
        Rivals of each text. No bound can be less than 1/(rivals + 1).
    sweeps
        How often every word may change between a text and the middle of its star, and again from there to a rival.
        More sweeps tighten the bound.
    candidates
        Words that are tried in a step. More of them tighten the bound.
    attribute
        Takes a list of texts and returns for each what the adversary wants to know of it, such as its sentiment.
    feature_error
        The share of its norm by which a released embedding may differ from the one that `encode` returns. By default
        the type that it returns decides (1e-6 for float32).
    failure_probability
        The chance that any of the claims is false.
    seed
        Of all draws.
    advance
        Is told the share of the work that is done.

    Returns
    -------
    TextBounds
        The bounds, with `.guarantee`.

    Raises
    ------
    InputError
        If the encoder or a value cannot be used.
    NoTheoremError
        If the release is rounded without noise.

    Notes
    -----
    Words change, the length does not, so the adversary may know it. The computation keeps the embedding of every text
    that it meets in memory.
    """
    _check_encoder(encode, prior)
    if isinstance(noise, Rounding):
        raise NoTheoremError(
            "text_bounds must have noise, got rounding alone: such a release is a function of the text, of which "
            "nothing is proven; add noise before it, Quantized(Gaussian(sigma), step), or see what text_attack restores"
        )
    checked_noise(noise)
    density = NoiseDensity.of(noise)
    texts = validate.whole("texts", texts, at_least=2, remedy="use 200")
    rivals = validate.whole("rivals", rivals, at_least=1, remedy="use 7")
    sweeps = validate.whole("sweeps", sweeps, at_least=1, remedy="use 1")
    candidates = validate.whole("candidates", candidates, at_least=1, remedy="use 4")
    failure = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    embeddings = Embeddings(encode, prior)
    pilots, source, generator = prior.sample(_PILOTS, seed=seed + 1), _source(seed + 2), _generator(seed + 2)
    error = _feature_error(embeddings, pilots, feature_error)
    variation = _WIDER * float(_variations(embeddings.of(pilots), noise, error).max())

    def noisy(sentences: Sequence[Sentence]) -> Vector:
        clean = torch.as_tensor(embeddings.of(sentences))
        return (clean + unrounded(noise).sample(clean, generator)).numpy()

    def log_density(missing: Vector) -> Vector:
        rows = torch.as_tensor(missing.reshape(-1, missing.shape[-1]))
        return density.log(rows).numpy().reshape(missing.shape[:-1])

    usual = log_density(noisy(pilots) - embeddings.of(pilots))
    farthest = _FARTHER * (float(np.abs(usual).max()) + embeddings.of(pilots).shape[1])

    def weigh(missing: Vector) -> Vector:
        """The density; where all choices are too unlikely for its rounding to be paid for, none is taken."""
        logs = log_density(missing)
        return np.where(np.abs(logs.max(axis=1, keepdims=True)) <= farthest, logs, -np.inf)

    truths = prior.sample(texts, seed=seed)
    released = noisy(truths)
    there = list(range(prior.longest)) * sweeps
    chain: dict[str, Any] = {"candidates": candidates, "source": source}
    middles = walked(
        embeddings, truths, released, weigh, there, advance=lambda done: advance(done / (rivals + 1)), **chain
    )
    ends = walked(
        embeddings,
        [middle for middle in middles for _ in range(rivals)],
        released.repeat(rivals, axis=0),
        weigh,
        there[::-1],
        advance=lambda done: advance((1 + rivals * done) / (rivals + 1)),
        **chain,
    )
    stars = [(truth, *ends[row * rivals : (row + 1) * rivals]) for row, truth in enumerate(truths)]
    points = [point for star in stars for point in star]
    inside = (_variations(embeddings.of(points), noise, error) <= variation).reshape(texts, rivals + 1)
    # What rounding does to one decision of a chain, and to one drawn word (docs/proofs/posterior.md).
    step = GRANTED * (farthest + 2 * candidates + 8) + candidates * prior.draw_variation + 4 * prior.log_error
    paid: dict[str, Any] = {
        "inside": inside,
        "failure_probability": failure / (2 if attribute is None else 3),
        "release_variation": min(variation, 1.0),
        "chain_variation": min(prior.longest * (sweeps * (rivals + 1) * step + prior.draw_variation), 1.0),
    }
    words = np.full((texts, rivals + 1, prior.longest), -1)
    for row, star in enumerate(stars):
        words[row, :, : len(star[0])] = star
    labels = {"whole": _labels(points, texts)}
    if attribute is not None:
        labels["attribute"] = _labels(_attributes(attribute, [prior.text(point) for point in points]), texts)
    chances = {name: attribute_success(found, **paid) for name, found in labels.items()}
    lengths = np.array([len(star[0]) for star in stars])
    return TextBounds(
        words=restored_share(words, lengths=lengths, **paid),
        whole=chances["whole"],
        attribute=chances.get("attribute"),
        seen={
            "words": float(np.mean([_most(words[row, :, :length].T) for row, length in enumerate(lengths)])),
            **{name: _most(found) for name, found in labels.items()},
        },
        texts=texts,
        rivals=rivals,
        sweeps=sweeps,
        prior=prior.description,
        noise=noise,
        feature_error=error,
        failure_probability=failure + noise.failure_probability,
        examples=tuple(tuple(prior.text(point) for point in star) for star in stars[:_SHOWN]),
    )


def text_attack(
    encode: Encode,
    prior: TextLaw,
    noise: Noise | Rounding,
    *,
    real: Sequence[str] | None = None,
    texts: int = 200,
    pool: int = 5_000,
    chains: int = 3,
    sweeps: int = 8,
    candidates: int = 8,
    attribute: Attribute | None = None,
    failure_probability: float = 0.001,
    seed: int = 0,
    advance: Advance = lambda _: None,
) -> TextAttack:
    """Restore texts from their noisy embeddings, word by word.

    The attack is told how many words a text has. A linear discriminant, fitted to draws from the prior, says how much
    more likely each word is given the release. Several chains begin with the nearest of these draws and change words as
    the chains of `text_bounds` do, in wide jumps while they are far from the release. The attack names at each place
    the word that has most of the chains' votes in the second half. Where none has, it names the one that is most
    likely there by the discriminant and the prior; and all of a chain's last text, if that is far nearer to the
    release. It finds words more easily than their places.

    Parameters
    ----------
    encode, prior
        As for `text_bounds`.
    noise
        That of the release, or `Rounding` alone.
    real
        Attack these texts instead of draws from the prior, in lower case, cut off after the prior's `longest` words.
        Texts with words that the prior does not know are left out.
    texts
        How many draws from the prior are attacked.
    pool
        How many draws from the prior it begins with.
    chains
        How many chains look for each text.
    sweeps
        How often every word may change in a chain.
    candidates
        Words that are tried in a step.
    attribute
        As for `text_bounds`; the attack names the attribute of the text that it restored.
    failure_probability
        The chance that an interval misses.
    seed
        Of all draws; the texts are others than those of `text_bounds`.
    advance
        Is told the share of the work that is done.

    Returns
    -------
    TextAttack
        What it restored, with intervals.
    """
    _check_encoder(encode, prior)
    if not isinstance(noise, Rounding):
        checked_noise(noise)
    failure = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    pool = validate.whole("pool", pool, at_least=10, remedy="use 5000")
    chains = validate.whole("chains", chains, at_least=1, remedy="use 3")
    sweeps = validate.whole("sweeps", sweeps, at_least=1, remedy="use 8")
    candidates = validate.whole("candidates", candidates, at_least=1, remedy="use 8")
    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    embeddings, source = Embeddings(encode, prior), _source(seed + 3)
    truths = prior.sample(texts, seed=seed + 4) if real is None else known_texts(prior, real)
    clean = embeddings.of(truths)
    if isinstance(noise, Rounding):
        released, width = noise.step * np.round(clean / noise.step), noise.step / math.sqrt(12)
    else:
        added = noise.sample(torch.as_tensor(clean), _generator(seed + 3)).numpy()
        released, width = clean + added, float(added.std())
    drawn = prior.sample(pool, seed=seed + 5)
    rows, lengths = embeddings.of(drawn), np.array([len(one) for one in drawn])
    missing = sorted({len(truth) for truth in truths if not (lengths >= len(truth)).any()})
    if missing:
        raise InputError(
            "pool", pool, requirement=f"must hold texts of {missing[0]} words", remedy="use more, or shorter texts"
        )
    favour = _favour(rows, drawn, released, width, prior.size)
    blind, likely, states = list[Sentence](), list[Sentence](), list[Sentence]()
    for truth, release, how in zip(truths, released, favour, strict=True):
        fits = np.flatnonzero(lengths == len(truth))
        fits = fits if len(fits) else np.flatnonzero(lengths >= len(truth))
        usual = [Counter(words) for words in zip(*(drawn[fit][: len(truth)] for fit in fits), strict=True)]
        blind.append(_first(usual))
        likely.append(_first([{word: count * how[word] for word, count in place.items()} for place in usual]))
        nearest = ((rows[fits] - release) ** 2).sum(axis=1).argsort(kind="stable")
        states += [drawn[fits[nearest[chain % len(fits)]]][: len(truth)] for chain in range(chains)]
    votes: list[Votes] = [[defaultdict(float) for _ in truth] for truth in truths]
    # The search is as wide as the release is far, shared out among the words, and in the end as wide as the noise.
    size = rows.shape[1]
    expected = width**2 * (size + _DEVIATIONS * math.sqrt(2 * size))
    words = float(np.mean([len(truth) for truth in truths]))
    counted = [sweep for sweep in range(sweeps) if 2 * sweep >= sweeps - 1]
    for sweep in range(sweeps):

        def weigh(missing: Vector, cooled: float = _COOLER * words * (1 + sweep)) -> Vector:
            squares = (missing**2).sum(axis=2)
            return -squares / (2 * np.maximum(width**2, (squares[:, :1] - expected) / cooled))

        states = walked(
            embeddings,
            states,
            released.repeat(chains, axis=0),
            weigh,
            range(prior.longest),
            candidates=candidates,
            source=source,
            votes=[one for one in votes for _ in range(chains)] if sweep in counted else None,
            favour=favour.repeat(chains, axis=0),
        )
        advance((sweep + 1) / sweeps)
    most = _TRUSTED * chains * len(counted)
    named = [
        tuple(
            word if place[word] > most else other
            for word, other, place in zip(_first(places), others, places, strict=True)
        )
        for places, others in zip(votes, likely, strict=True)
    ]
    # Where noise is small, words that were likely one by one may not fit together.
    far = ((released - embeddings.of(named)) ** 2).sum(axis=1)
    near = ((released.repeat(chains, axis=0) - embeddings.of(states)) ** 2).sum(axis=1).reshape(-1, chains)
    for row in np.flatnonzero(far - near.min(axis=1) > 2 * _CLEAR * width**2):
        named[row] = states[row * chains + int(near[row].argmin())]
    right = {
        "words": _agreeing(named, truths),
        "whole": [float(guess == truth) for guess, truth in zip(named, truths, strict=True)],
    }
    if attribute is not None:
        theirs, ours = (_attributes(attribute, [prior.text(one) for one in found]) for found in (named, truths))
        right["attribute"] = [float(one == other) for one, other in zip(theirs, ours, strict=True)]
    method = f"{chains} chains of {sweeps} sweeps over all words, from the nearest of {pool} draws from the prior" + (
        f", on {len(truths)} real texts" if real is not None else ""
    )
    # Limits for a mean need independent values in random order; files may be sorted.
    order = np.random.default_rng(seed).permutation(len(truths))
    attacks = {
        name: Attack(
            quantity=_QUANTITIES[name],
            value=float(np.mean(found)),
            low=sampled_mean_lower(np.asarray(found)[order], failure_probability=failure / 2),
            high=sampled_mean_upper(np.asarray(found)[order], failure_probability=failure / 2),
            failure_probability=failure,
            adversary=Adversary.PRIOR.scoped(prior.description),
            method=method,
        )
        for name, found in right.items()
    }
    return TextAttack(
        words=attacks["words"],
        whole=attacks["whole"],
        attribute=attacks.get("attribute"),
        guessing=float(np.mean(_agreeing(blind, truths))),
        texts=len(truths),
        examples=tuple(
            (prior.text(truth), prior.text(guess)) for truth, guess in list(zip(truths, named, strict=True))[:_SHOWN]
        ),
    )


def _favour(rows: Vector, drawn: Sequence[Sentence], released: Vector, width: float, size: int) -> Vector:
    """For each release, how much more likely it is if a word is in the text: by a linear discriminant of draws."""
    centred = rows - rows.mean(axis=0)
    spread = centred.T @ centred / len(rows) + (width**2 + 1e-9 * rows.var()) * np.eye(rows.shape[1])
    sums, counts = np.zeros((size, rows.shape[1])), np.zeros(size)
    for row, sentence in zip(centred, drawn, strict=True):
        held = list(set(sentence))
        sums[held] += row
        counts[held] += 1
    means = sums / (counts + _SHRUNK)[:, None]
    scaled = np.linalg.solve(spread, means.T)
    logs = (released - rows.mean(axis=0)) @ scaled - (means * scaled.T).sum(axis=1) / 2
    return np.exp(np.clip(logs, -_MOST, _MOST))


def known_texts(prior: TextLaw, real: Sequence[str]) -> list[Sentence]:
    """Return those texts whose words the prior knows, as numbers of words."""
    found = [numbers for numbers in map(prior.numbers, real) if numbers is not None]
    if not found:
        raise InputError(
            "the texts that have only words of the prior",
            f"0 of {len(real)}",
            requirement="must be one at least",
            remedy="give public texts that are more like them",
        )
    return found


def _agreeing(guesses: Sequence[Sentence], truths: Sequence[Sentence]) -> list[float]:
    """Text by text, the share of places with the right word."""
    return [
        sum(word == right for word, right in zip(guess, truth, strict=True)) / len(truth)
        for guess, truth in zip(guesses, truths, strict=True)
    ]


def _first(votes: Sequence[Mapping[int, float]]) -> Sentence:
    """At every place the word that most speaks for."""
    return tuple(max(place, key=place.__getitem__) for place in votes)


def _most(rows: NDArray[np.int64]) -> float:
    """The mean, over rows, of the greatest share that one number has."""
    return float(np.mean([np.unique(row, return_counts=True)[1].max() / len(row) for row in rows]))


def _attributes(attribute: Attribute, texts: list[str]) -> Sequence[Any]:
    found = list(attribute(texts))
    if len(found) != len(texts):
        raise InputError(
            "what attribute returns",
            len(found),
            requirement=f"must be one value for each of {len(texts)} texts",
            remedy="return a list",
        )
    if any(value != value for value in found):
        raise InputError("what attribute returns", "nan", requirement="must equal itself", remedy="return None instead")
    return found


def _labels(values: Sequence[Any], stars: int) -> NDArray[np.int64]:
    """Equal values as equal numbers, one star a row."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values]).reshape(stars, -1)


def _variations(clean: Vector, noise: Noise, error: float) -> Vector:
    """How far, in total variation, the true release of each text may be from the computed one, before any rounding."""
    rows = torch.as_tensor(clean)
    return np.asarray(
        unrounded(noise).total_variation(rows, torch.zeros_like(rows), error * rows.norm(dim=1) * (1 + 1e-9))
    )


def _check_encoder(encode: object, prior: object) -> None:
    if not callable(encode):
        raise InputError("encode", encode, requirement="must be callable", remedy="pass a function from texts to rows")
    if not isinstance(prior, TextLaw):
        raise InputError(
            "prior",
            prior,
            requirement="must be a TextPrior or a CausalPrior",
            remedy="use TextPrior.fitted(public_texts)",
        )


def _feature_error(embeddings: Embeddings, pilots: Sequence[Sentence], given: float | None) -> float:
    """Return the error that is paid for; an encoder whose rows depend on the other texts is refused."""
    embeddings.add(pilots)
    kind = embeddings.found[pilots[0]].dtype
    if given is None:
        error = type_error(getattr(torch, str(kind)))
    else:
        error = validate.number("feature_error", given, at_least=0, below=0.1, remedy="use 1e-6 for float32")
    for pilot in pilots[:_ALONE]:
        together = embeddings.of([pilot])[0]
        alone = encoded(embeddings.encode, [embeddings.prior.text(pilot)])[0]
        moved = float(np.linalg.norm(alone - together)) / max(float(np.linalg.norm(together)), 1e-300)
        if moved > error:
            raise InputError(
                "the relative change of an embedding when its text is encoded alone",
                moved,
                requirement=f"must be at most feature_error = {error:g}",
                remedy="turn off dropout and lower precisions, or raise feature_error",
            )
    return error


def _source(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
