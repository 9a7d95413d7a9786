"""Chains over texts that leave the law of a text given its noisy embedding as it is (docs/proofs/posterior.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from .text_prior import Sentence, TextLaw

Vector = NDArray[np.float64]
Encode = Callable[[list[str]], Any]
Weigh = Callable[[Vector], Vector]
"""From releases less the embeddings of choices, of shape (chains, choices, numbers), to logarithms of weights."""

Votes = list[dict[int, float]]
"""At every place of a text, how much speaks for each word."""

GRANTED = 1e-13
"""Relative error granted to the logarithm of a noise's density; tests/reconstruction/test_texts.py measures it."""

_CHAINS = 256
"""Chains that are weighed together."""


@dataclass
class Embeddings:
    """The embedding of every text that was met, computed once, so that a text has one whatever batch it comes in."""

    encode: Encode
    prior: TextLaw
    found: dict[Sentence, NDArray[Any]] = field(default_factory=dict)

    def add(self, sentences: Sequence[Sentence]) -> None:
        """Compute what is not known yet; texts of one length together, so that hardly anything is padded."""
        new = sorted({one for one in sentences if one not in self.found}, key=lambda one: (len(one), one))
        if new:
            self.found.update(zip(new, encoded(self.encode, [self.prior.text(one) for one in new]), strict=True))

    def of(self, sentences: Sequence[Sentence]) -> Vector:
        """Return one row per sentence."""
        self.add(sentences)
        return np.array([self.found[one] for one in sentences], dtype=np.float64)


def encoded(encode: Encode, texts: list[str]) -> NDArray[Any]:
    """Return the rows of an encoder for these texts, checked, in the type that it returns."""
    rows = encode(texts)
    rows = np.asarray(rows.detach().cpu() if hasattr(rows, "detach") else rows)
    if rows.ndim != 2 or len(rows) != len(texts) or rows.dtype.kind != "f" or not np.isfinite(rows).all():
        raise InputError(
            "what encode returns",
            f"{rows.dtype} of shape {rows.shape}",
            requirement=f"must be {len(texts)} rows of finite floating-point numbers for {len(texts)} texts",
            remedy="return one row per text",
        )
    return rows


def walked(
    embeddings: Embeddings,
    sentences: Sequence[Sentence],
    released: Vector,
    weigh: Weigh,
    places: Sequence[int],
    *,
    candidates: int,
    source: np.random.Generator,
    votes: Sequence[Votes] | None = None,
    favour: Vector | None = None,
    advance: Callable[[float], None] = lambda _: None,
) -> list[Sentence]:
    """Take a step at each of these places in turn, in every text that is long enough to have it.

    Where `votes` are given, one per text, the chance of every word that was tried at a place is added to them. `favour`
    has one row per text, by how much each word is to be tried more often than the prior draws it.
    """
    found = list(sentences)
    for done, place in enumerate(places, start=1):
        rows = [row for row, sentence in enumerate(found) if place < len(sentence)]
        there = [found[row] for row in rows]
        tried = stepped(
            embeddings,
            there,
            released[rows],
            weigh,
            place,
            candidates=candidates,
            source=source,
            favour=None if favour is None else favour[rows],
        )
        for row, (end, choices, chances) in zip(rows, tried, strict=True):
            found[row] = end
            if votes is not None:
                for choice, chance in zip(choices, chances, strict=True):
                    votes[row][place][choice[place]] += chance
        advance(done / len(places))
    return found


def stepped(
    embeddings: Embeddings,
    sentences: Sequence[Sentence],
    released: Vector,
    weigh: Weigh,
    place: int,
    *,
    candidates: int,
    source: np.random.Generator,
    favour: Vector | None = None,
) -> Iterator[tuple[Sentence, list[Sentence], list[float]]]:
    """Take one step of every chain: another word at a place, or the same.

    Some words are drawn by a law that depends on the rest of the text alone. One of these or the present word is taken,
    each with a chance in proportion to its weight, times the prior's probability of the text with this word, over the
    chance of drawing the word. If the weight is the density of the release, this is reversible with respect to the law
    of the text given the release (Tjelmeland 2004). A chain whose choices all weigh nothing stays. With `favour`, half
    of the words are drawn in proportion to it, too. Yielded, chain by chain: where it goes, what it could choose from,
    and with which chances.
    """
    choices: list[list[Sentence]] = []
    excess = np.zeros((len(sentences), candidates + 1))
    tried = embeddings.prior.proposed(sentences, place, candidates, source, favour)
    for chain, (sentence, (words, more)) in enumerate(zip(sentences, tried, strict=True)):
        excess[chain] = more
        choices.append([sentence, *((*sentence[:place], word, *sentence[place + 1 :]) for word in words)])
    embeddings.add([choice for row in choices for choice in row])
    for first in range(0, len(choices), _CHAINS):
        some = choices[first : first + _CHAINS]
        points = embeddings.of([choice for row in some for choice in row]).reshape(len(some), candidates + 1, -1)
        logs = weigh(released[first : first + len(some), None, :] - points) - excess[first : first + len(some)]
        best = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - np.where(np.isfinite(best), best, 0.0))
        moves, sums = weights.any(axis=1), np.cumsum(weights, axis=1)
        drawn = np.zeros(len(some), dtype=np.int64)
        below = sums[moves] <= (source.random(int(moves.sum())) * sums[moves, -1])[:, None]
        drawn[moves] = np.minimum(below.sum(axis=1), candidates)
        chances = (weights / np.maximum(weights.sum(axis=1, keepdims=True), 1.0)).tolist()
        for row, taken, chance in zip(some, drawn.tolist(), chances, strict=True):
            yield row[taken], row, chance
