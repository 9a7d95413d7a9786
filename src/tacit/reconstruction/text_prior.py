"""What an adversary knows of a text before its embedding is released: a word model of public text."""

from __future__ import annotations

import hashlib
import itertools
import re
from abc import ABC, abstractmethod
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError

Sentence = tuple[int, ...]
Vector = NDArray[np.float64]

_WORD = re.compile(r"\w+(?:['-]\w+)*|[^\w\s]")
_START, _END, _RARE = 0, 1, -1
_NONE = (np.zeros(0, dtype=np.int64), np.zeros(0))
_PAIRS, _TRIPLES = 50.0, 50.0
"""What followed words that were seen n times counts n/(n + this); the rest is what follows any words."""


@dataclass(frozen=True, eq=False, repr=False)
class _Chances:
    """Sparse rows of numbers for words, such as their chances, each row named by the words it depends on."""

    rows: Mapping[tuple[int, ...], tuple[NDArray[np.int64], Vector]]

    @classmethod
    def of(cls, entries: Iterable[tuple[tuple[int, ...], int, float]]) -> _Chances:
        gathered: dict[tuple[int, ...], list[tuple[int, float]]] = defaultdict(list)
        for key, word, chance in entries:
            gathered[key].append((word, chance))
        return cls(
            {
                key: (np.array([word for word, _ in row]), np.array([chance for _, chance in row]))
                for key, row in gathered.items()
            }
        )

    @cached_property
    def sums(self) -> dict[tuple[int, ...], tuple[list[int], list[float]]]:
        """Every row as its words and the sums of their chances up to each."""
        return {key: (words.tolist(), np.cumsum(chances).tolist()) for key, (words, chances) in self.rows.items()}

    def chance(self, key: tuple[int, ...], word: int) -> float:
        """One entry of a row."""
        words, chances = self.rows.get(key, _NONE)
        return float(chances[words == word].sum())

    def dense(self, key: tuple[int, ...], size: int) -> Vector:
        """The row as a vector over the vocabulary."""
        found = np.zeros(size)
        if key in self.rows:
            places, chances = self.rows[key]
            found[places] = chances
        return found


class TextLaw(ABC):
    """A law of texts that chains can wander over: sequences of words or tokens, which are numbers below `size`.

    Attributes
    ----------
    longest
        Most words of a text.
    size
        How many words there are.
    description
        The law in words. Guarantees quote it.
    """

    longest: int
    size: int
    description: str

    @property
    @abstractmethod
    def draw_variation(self) -> float:
        """How far rounding takes the law of one drawn word, in total variation."""

    @property
    def log_error(self) -> float:
        """How far rounding may take the logarithm of the probability of a text, where steps need it."""
        return 0.0

    @abstractmethod
    def numbers(self, text: str) -> Sentence | None:
        """Return a text, cut off after `longest` words, as numbers of words; None if the law lacks one of them."""

    @abstractmethod
    def cuts(self, text: str) -> bool:
        """Whether a text has more than `longest` words, of which the law says nothing."""

    @abstractmethod
    def text(self, sentence: Sentence) -> str:
        """Return the text of a sentence."""

    def sample(self, count: int, *, seed: int) -> list[Sentence]:
        """Draw texts.

        Parameters
        ----------
        count
            How many.
        seed
            Of the draws.

        Returns
        -------
        list
            Texts as tuples of numbers of words; `text` spells them out.
        """
        count = validate.whole("count", count, at_least=1, remedy="draw one at least")
        return self._sampled(count, np.random.default_rng(validate.whole("seed", seed, at_least=0, remedy="use 0")))

    @abstractmethod
    def _sampled(self, count: int, source: np.random.Generator) -> list[Sentence]: ...

    @abstractmethod
    def proposed(
        self, sentences: Sequence[Sentence], place: int, count: int, source: np.random.Generator, favour: Vector | None
    ) -> Iterator[tuple[list[int], Vector]]:
        """Draw words for one place of every sentence, from a law q that depends on the rest of it alone.

        `favour` has one row per sentence, by how much each word is to be drawn more often. Yielded, for each
        sentence: the words, and for the present word and each of them the logarithm of q less that of the probability
        of the sentence with this word, up to a constant.
        """


@dataclass(frozen=True, eq=False, repr=False)
class TextPrior(TextLaw):
    """The prior of a text: words drawn one after the other, from trigrams of public text.

    Each word depends on the two before it: its chance mixes how often it follows both, how often it follows the
    second, and how often it occurs. A text ends by an end mark, or after `longest` words. It is in lower case, with a
    space between two words; punctuation marks are words. Make one with `TextPrior.fitted`.

    Attributes
    ----------
    words
        The vocabulary; the first two stand for a text's beginning and end.
    longest
        Most words of a text.
    texts
        Number of public texts that the model was fitted to.
    description
        The prior in words. Guarantees quote it.
    """

    words: tuple[str, ...]
    longest: int
    texts: int
    description: str
    _single: Vector
    _after_one: _Chances
    _before_one: _Chances
    _after_two: _Chances
    _between: _Chances
    _before_two: _Chances
    _of_pairs: Vector
    _of_triples: Mapping[tuple[int, ...], float]
    _follow: _Chances
    _precede: _Chances

    @classmethod
    def fitted(cls, texts: Iterable[str], *, longest: int = 20, least: int = 2) -> TextPrior:
        """Fit the model to public texts.

        Parameters
        ----------
        texts
            Public texts. What is to be protected must not be among them.
        longest
            Texts are cut off after this many words.
        least
            Words that occur less often than this are left out, and so is what they follow and what follows them.

        Returns
        -------
        TextPrior
            The prior.
        """
        if isinstance(texts, str):
            raise InputError("texts", "one text", requirement="must be a list of texts", remedy="put it into a list")
        longest = validate.whole("longest", longest, at_least=1, remedy="use 20")
        least = validate.whole("least", least, at_least=1, remedy="use 2")
        split = [_split(text)[:longest] for text in texts]
        often = Counter(word for words in split for word in words)
        known = sorted(word for word, count in often.items() if count >= least)
        number = {word: place for place, word in enumerate(known, start=2)}
        if not known:
            raise InputError(
                "the number of public texts",
                len(split),
                requirement=f"must be enough for a word that occurs {least} times or more",
                remedy="give more public text",
            )
        pairs: Counter[tuple[int, ...]] = Counter()
        triples: Counter[tuple[int, ...]] = Counter()
        single = np.ones(len(known) + 2)
        single[_START] = 0.0
        for words in filter(None, split):
            line = [number.get(word, _RARE) for word in words]
            padded = [_START, _START, *line, *([_END] if len(line) < longest else [])]
            for first, second, third in zip(padded, padded[1:], padded[2:], strict=False):
                if third != _RARE:
                    single[third] += 1
                if _RARE not in (second, third):
                    pairs[second, third] += 1
                if _RARE not in (first, second, third):
                    triples[first, second, third] += 1
        after_one, of_pairs = _conditional(pairs, _PAIRS)
        after_two, of_triples = _conditional(triples, _TRIPLES)
        counts = (single.tolist(), sorted(pairs.items()), sorted(triples.items()), _PAIRS, _TRIPLES)
        mark = hashlib.sha256(repr((known, longest, counts)).encode()).hexdigest()[:8]
        return cls(
            words=("", "", *known),
            longest=longest,
            texts=len(split),
            description=f"texts of up to {longest} words, drawn from trigrams of {len(split)} public texts with "
            f"{len(known)} different words ({mark})",
            _single=single / single.sum(),
            _after_one=_Chances.of(((first,), last, chance) for (first, last), chance in after_one),
            _before_one=_Chances.of(((last,), first, chance) for (first, last), chance in after_one),
            _after_two=_Chances.of(((first, middle), last, chance) for (first, middle, last), chance in after_two),
            _between=_Chances.of(((first, last), middle, chance) for (first, middle, last), chance in after_two),
            _before_two=_Chances.of(((middle, last), first, chance) for (first, middle, last), chance in after_two),
            _of_pairs=np.array([of_pairs.get((word,), 0.0) for word in range(len(single))]),
            _of_triples=of_triples,
            _follow=_Chances.of(((first,), second, share) for (first, second), share in of_triples.items()),
            _precede=_Chances.of(((second,), first, share) for (first, second), share in of_triples.items()),
        )

    def __repr__(self) -> str:
        return f"TextPrior: {self.description}"

    def numbers(self, text: str) -> Sentence | None:
        """Return a text, cut off after `longest` words, as numbers of words; None if the prior lacks one of them."""
        found = [self._number.get(word) for word in _split(text)[: self.longest]]
        return None if not found or None in found else tuple(place for place in found if place is not None)

    def cuts(self, text: str) -> bool:
        """Whether a text has more than `longest` words, of which the prior says nothing."""
        return len(_split(text)) > self.longest

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many words there are, with those for a text's beginning and end."""
        return len(self.words)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words) if word}

    @property
    def draw_variation(self) -> float:
        """How far rounding takes the law of one drawn word, in total variation (docs/proofs/posterior.md)."""
        return 8 * (len(self.words) + 64) * 2.0**-53

    def text(self, sentence: Sentence) -> str:
        """Return the words of a sentence, with spaces between them."""
        return " ".join(self.words[word] for word in sentence)

    def _sampled(self, count: int, source: np.random.Generator) -> list[Sentence]:
        uniform = itertools.chain.from_iterable(source.random(4096).tolist() for _ in itertools.count()).__next__
        drawn = []
        for _ in range(count):
            sentence = [_START, _START]
            while len(sentence) < self.longest + 2:
                word = self._drawn(sentence[-2], sentence[-1], uniform)
                if word == _END and len(sentence) > 2:
                    break
                if word != _END:  # no text is empty: an end at the beginning is drawn again
                    sentence.append(word)
            drawn.append(tuple(sentence[2:]))
        return drawn

    def _drawn(self, first: int, second: int, uniform: Callable[[], float]) -> int:
        """Draw the word after these two, which is the same as by `_next`: a mixture is drawn part by part."""
        row = self._sums
        if uniform() < self._of_triples.get((first, second), 0.0):
            row = self._after_two.sums[first, second]
        elif uniform() < self._of_pairs[second]:
            row = self._after_one.sums[second,]
        words, sums = row
        return words[min(bisect(sums, uniform() * sums[-1]), len(words) - 1)]

    @cached_property
    def _sums(self) -> tuple[list[int], list[float]]:
        return list(range(len(self._single))), np.cumsum(self._single).tolist()

    def log_probability(self, sentence: Sentence) -> float:
        """Return the logarithm of the chance with which `sample` draws the sentence."""
        padded = [_START, _START, *sentence, *([_END] if len(sentence) < self.longest else [])]
        chances = [self._next(padded[place - 2], padded[place - 1])[padded[place]] for place in range(2, len(padded))]
        return float(np.log(chances).sum())

    def alternatives(self, sentence: Sentence, place: int) -> Vector:
        """Return the chance of each word at a place, given all other words of the sentence and its length."""
        padded = [_START, _START, *sentence, *([_END] if len(sentence) < self.longest else [])]
        at = place + 2
        chances = self._next(padded[at - 2], padded[at - 1])
        if at + 1 < len(padded):
            chances = chances * self._second(padded[at - 1], padded[at + 1])
        if at + 2 < len(padded):
            chances = chances * self._third(padded[at + 1], padded[at + 2])
        chances[[_START, _END]] = 0.0
        return chances / chances.sum()

    def proposed(
        self, sentences: Sequence[Sentence], place: int, count: int, source: np.random.Generator, favour: Vector | None
    ) -> Iterator[tuple[list[int], Vector]]:
        """Draw words for a place from their law given the rest, so that weights are those of `favour` alone."""
        known: dict[tuple[Sentence, Sentence, bool], Vector] = {}  # by the words around: chains share many of them
        for row, sentence in enumerate(sentences):
            around = sentence[max(place - 2, 0) : place], sentence[place + 1 : place + 3], len(sentence) < self.longest
            if around not in known:
                known[around] = self.alternatives(sentence, place)
            chances = known[around]
            law = mixed(chances, None if favour is None else favour[row])
            words = drawn_from(law, count, source).tolist()
            tried = [sentence[place], *words]
            yield words, np.zeros(count + 1) if favour is None else np.log(law[tried] / chances[tried])

    def _next(self, first: int, second: int) -> Vector:
        """The chance of each word after these two."""
        size, pairs, triples = len(self.words), self._of_pairs[second], self._of_triples.get((first, second), 0.0)
        chances = (1 - pairs) * self._single + pairs * self._after_one.dense((second,), size)
        chances = (1 - triples) * chances + triples * self._after_two.dense((first, second), size)
        if second == _START:  # no text is empty
            chances[_END] = 0.0
            chances /= chances.sum()
        return chances

    def _second(self, first: int, last: int) -> Vector:
        """The chance of `last` after `first` and each word."""
        size = len(self.words)
        triples = self._follow.dense((first,), size)
        chances = (1 - self._of_pairs) * self._single[last] + self._of_pairs * self._before_one.dense((last,), size)
        return (1 - triples) * chances + triples * self._between.dense((first, last), size)

    def _third(self, middle: int, last: int) -> Vector:
        """The chance of `last` after each word and `middle`."""
        size, pairs = len(self.words), self._of_pairs[middle]
        triples = self._precede.dense((middle,), size)
        usual = (1 - pairs) * self._single[last] + pairs * self._after_one.chance((middle,), last)
        return (1 - triples) * usual + triples * self._before_two.dense((middle, last), size)


def _split(text: object) -> list[str]:
    if not isinstance(text, str):
        raise InputError("a text", text, requirement="must be a string", remedy="pass strings")
    return _WORD.findall(text.lower())


def drawn_from(chances: Vector, count: int, source: np.random.Generator) -> NDArray[np.int64]:
    """Places drawn independently, each as likely as its chance."""
    sums = np.cumsum(chances)
    return np.minimum(np.searchsorted(sums, source.random(count) * sums[-1], side="right"), len(chances) - 1)


def mixed(chances: Vector, favour: Vector | None) -> Vector:
    """Half of the words by their chances, half of them in proportion to `favour`, too."""
    return chances if favour is None else chances * (1 + favour / (chances @ favour)) / 2


def _conditional(
    counts: Counter[tuple[int, ...]], held_back: float
) -> tuple[list[tuple[tuple[int, ...], float]], dict[tuple[int, ...], float]]:
    """The share that each last word has of all that follow the words before it, and how far to trust these words."""
    totals: Counter[tuple[int, ...]] = Counter()
    for key, count in counts.items():
        totals[key[:-1]] += count
    chances = [(key, count / totals[key[:-1]]) for key, count in counts.items()]
    return chances, {key: total / (total + held_back) for key, total in totals.items()}
