"""What an adversary knows of a text before its embedding is released: a public causal language model."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core import validate
from ..core.errors import InputError, MissingExtraError
from ..runtime import files
from .text_prior import Sentence, TextLaw, Vector, drawn_from, mixed

_ROWS = 256
"""Texts that the model reads together."""
_TRIES = 50
"""How many drawn texts there may be for one that its tokenizer splits in the same way."""
_LOG_ERROR = 1e-9
"""Granted to the logarithm of a text's probability, and measured on some draws."""
_PILOTS = 64


class CausalPrior(TextLaw):
    """The prior of a text: tokens drawn one after the other from a causal language model of the transformers library.

    A text ends by the model's end token, or after `longest` tokens; other special tokens do not occur. It counts only
    if the tokenizer splits its words into just these tokens: others are drawn again. What is said of words by bounds
    and attacks is then said of tokens. The model computes in float64, so that a text's probability does not depend on
    which texts are read with it; one that is not causal, or computes in less inside, is refused. On a CPU that is slow
    for models of more than some million parameters.

    Parameters
    ----------
    model
        A causal language model, such as `transformers.AutoModelForCausalLM` loads. It is copied, in float64.
    tokenizer
        The model's tokenizer.
    longest
        Most tokens of a text.
    description
        Where the model comes from, in words. Guarantees quote it.
    """

    def __init__(self, model: Any, tokenizer: Any, *, longest: int = 20, description: str) -> None:
        self.longest = validate.whole("longest", longest, at_least=1, remedy="use 20")
        words = validate.text("description", description, remedy="say which model it is")
        end = tokenizer.eos_token_id
        if end is None:
            remedy = "use another, or set its eos_token"
            raise InputError("tokenizer", "no end token", requirement="must have an end token", remedy=remedy)
        # Copies, so that nobody changes them later; without splits at random.
        self._model = copy.deepcopy(model).to(torch.float64).eval().requires_grad_(requires_grad=False)
        self._tokenizer = copy.deepcopy(tokenizer)
        pieces: Any = getattr(getattr(self._tokenizer, "backend_tokenizer", None), "model", None)
        if getattr(pieces, "dropout", None) is not None:
            pieces.dropout = None
        self._end, self._start = int(end), int(end if tokenizer.bos_token_id is None else tokenizer.bos_token_id)
        self.size = int(model.get_output_embeddings().weight.shape[0])
        if max(tokenizer.get_vocab().values(), default=0) >= self.size:
            requirement = f"must have no token beyond the {self.size} of the model"
            raise InputError("tokenizer", len(tokenizer), requirement=requirement, remedy="use the model's own")
        barred = {*tokenizer.all_special_ids, *range(len(tokenizer), self.size)}
        self._barred = torch.tensor(sorted(place for place in barred if place < self.size), device=model.device)
        self._known: dict[Sentence, float] = {}
        mark = hashlib.sha256(repr((self.size, self.longest, sorted(tokenizer.get_vocab().items()))).encode())
        for name, value in sorted(model.state_dict().items()):
            mark.update(name.encode() + value.cpu().numpy().tobytes())
        kept = self._checked()
        self.description = (
            f"texts of up to {self.longest} tokens, here called words, drawn from {words} until its tokenizer splits "
            f"one into the same tokens, as it does with {kept} of {_PILOTS} draws ({mark.hexdigest()[:8]})"
        )

    @classmethod
    def loaded(cls, folder: Path | str, *, longest: int = 20, device: str | None = None) -> CausalPrior:
        """Read a model and its tokenizer from a folder. Nothing in it is run, and nothing is fetched.

        Parameters
        ----------
        folder
            As `save_pretrained` writes it, with weights in .safetensors files.
        longest
            Most tokens of a text.
        device
            Where to compute; a GPU by default if there is one.
        """
        try:
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError:
            raise MissingExtraError(
                "language models must have the transformers library; run: pip install transformers"
            ) from None
        path = files.existing(Path(folder), "language model", kind="folder")
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        only: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            files.existing(path / "config.json", "its configuration")  # an adapter would name another folder
            tokenizer = AutoTokenizer.from_pretrained(str(path), **only)
            model: Any = AutoModelForCausalLM.from_pretrained(
                str(path), use_safetensors=True, attn_implementation="eager", **only
            )
        except Exception as failure:  # transformers raises anything for a folder that it cannot read
            reason = str(failure).strip().splitlines() or [type(failure).__name__]
            raise InputError(
                "language model",
                f"{path}: {reason[0][:200]}",
                requirement="must be a folder with a causal language model, its tokenizer and .safetensors weights",
                remedy="write it with model.save_pretrained and tokenizer.save_pretrained",
            ) from None
        return cls(model.to(place), tokenizer, longest=longest, description=f"the language model {path.name}")

    def __repr__(self) -> str:
        return f"CausalPrior: {self.description}"

    @property
    def draw_variation(self) -> float:
        """How far rounding takes the law of one drawn token, in total variation (docs/proofs/posterior.md)."""
        # Where texts are drawn again, the law of the others is wrong by more.
        return 2 * _TRIES * (8 * (self.size + 64) * 2.0**-53 + _LOG_ERROR)

    @property
    def log_error(self) -> float:
        """How far rounding may take the logarithm of the probability of a text."""
        return _LOG_ERROR

    def numbers(self, text: str) -> Sentence | None:
        """Return a text, cut off after `longest` tokens, as numbers of tokens; None if these do not spell it."""
        found = tuple(self._split([text])[0][: self.longest])
        if not found or set(self._barred.tolist()).intersection(found) or not self._usable([found])[0]:
            return None
        spelt = self.text(found)  # a tokenizer may change or leave out what it does not know
        return found if spelt == text or (self.cuts(text) and text.startswith(spelt)) else None

    def cuts(self, text: str) -> bool:
        """Whether a text has more than `longest` tokens, of which the prior says nothing."""
        return len(self._split([text])[0]) > self.longest

    def text(self, sentence: Sentence) -> str:
        """Return the text that tokens make."""
        found: str = self._tokenizer.decode(list(sentence), clean_up_tokenization_spaces=False)
        return found

    def _sampled(self, count: int, source: np.random.Generator) -> list[Sentence]:
        """Draw until the tokenizer has split as many into the same tokens."""
        found: list[Sentence] = []
        tried = 0
        while len(found) < count:
            drawn = self._drawn(min(_ROWS, count), source)
            tried += len(drawn)
            found += [one for one, usable in zip(drawn, self._usable(drawn), strict=True) if usable]
            if tried > _TRIES * (len(found) + 1) + _ROWS:
                raise InputError(
                    "the share of drawn texts that the tokenizer splits in the same way",
                    len(found) / tried,
                    requirement=f"must be 1 in {_TRIES} at least",
                    remedy="use the model's own tokenizer",
                )
        return found[:count]

    def log_probability(self, sentence: Sentence) -> float:
        """Return the logarithm of the chance of drawing the sentence, up to a constant for all of them."""
        self._add([sentence])
        return self._known[sentence]

    def read(self, texts: list[str]) -> None:
        """Let the model read these texts, whatever it knows of them already."""
        filled = [(*tokens, *[self._end] * self.longest)[: self.longest] for tokens in self._split(texts)]
        self._logs(torch.tensor([[self._start, *tokens] for tokens in filled]))

    def proposed(
        self, sentences: Sequence[Sentence], place: int, count: int, source: np.random.Generator, favour: Vector | None
    ) -> Iterator[tuple[list[int], Vector]]:
        """Draw tokens for a place by what precedes it, and weigh by what follows."""
        for first in range(0, len(sentences), _ROWS):
            some = sentences[first : first + _ROWS]
            drawn = []
            for row, (sentence, chances) in enumerate(
                zip(some, self._next([one[:place] for one in some], ended=False), strict=True)
            ):
                law = mixed(chances, None if favour is None else favour[first + row])
                words = drawn_from(law, count, source).tolist()
                drawn.append((words, law[[sentence[place], *words]]))
            choices = [
                [(*one[:place], word, *one[place + 1 :]) for word in (one[place], *words)]
                for one, (words, _) in zip(some, drawn, strict=True)
            ]
            self._add([choice for row in choices for choice in row])
            for tried, (words, chances) in zip(choices, drawn, strict=True):
                yield words, np.log(chances) - np.array([self._known[choice] for choice in tried])

    def _add(self, sentences: Sequence[Sentence]) -> None:
        """Compute the logarithms of probabilities that are not known yet; -inf where tokens are not the tokenizer's."""
        new = sorted({one for one in sentences if one not in self._known}, key=lambda one: (len(one), one))
        for first in range(0, len(new), _ROWS):
            some = new[first : first + _ROWS]
            usable = self._usable(some)
            for length in sorted({len(one) for one in some}):
                rows = [one for one in some if len(one) == length]
                self._known.update(zip(rows, self._read(rows), strict=True))
            self._known.update({one: -np.inf for one, good in zip(some, usable, strict=True) if not good})

    def _read(self, sentences: Sequence[Sentence]) -> list[float]:
        """The logarithms of the probabilities of texts of one length, with their ends."""
        logs = self._logs(torch.tensor([[self._start, *one] for one in sentences]))
        ends = [self._end] if len(sentences[0]) < self.longest else []
        following = torch.tensor([[*one, *ends] for one in sentences], device=logs.device)
        chosen = logs[:, : following.shape[1]].gather(2, following[:, :, None])[:, :, 0]
        total: list[float] = chosen.sum(dim=1).tolist()
        return total

    def _next(self, prefixes: Sequence[Sentence], *, ended: bool) -> Vector:
        """The chance of each token after these, all of one length; of an end, too, where one may come."""
        different = sorted(set(prefixes))
        logs = self._logs(torch.tensor([[self._start, *one] for one in different]))[:, -1]
        if not ended:
            logs[:, self._end] = -torch.inf
        chances = torch.softmax(logs, dim=1).cpu().numpy()
        where = {one: row for row, one in enumerate(different)}
        return np.asarray(chances[[where[one] for one in prefixes]])

    def _logs(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logarithms of the chances of what follows each token; no text ends before it began."""
        with torch.no_grad():
            logits = self._model(input_ids=tokens.to(self._model.device)).logits.double()
        return self._allowed(logits)

    def _allowed(self, logits: torch.Tensor) -> torch.Tensor:
        ends = logits[:, :, self._end].clone()
        ends[:, 0] = -torch.inf
        logits[:, :, self._barred] = -torch.inf
        logits[:, :, self._end] = ends
        return torch.log_softmax(logits, dim=2)

    def _drawn(self, count: int, source: np.random.Generator) -> list[Sentence]:
        drawn: list[list[int]] = [[] for _ in range(count)]
        going = list(range(count))
        for _ in range(self.longest):
            for first in range(0, len(going), _ROWS):
                rows = going[first : first + _ROWS]
                chances = self._next([tuple(drawn[row]) for row in rows], ended=True)
                for row, law in zip(rows, chances, strict=True):
                    drawn[row].append(int(drawn_from(law, 1, source)[0]))
            going = [row for row in going if drawn[row][-1] != self._end]
        return [tuple(word for word in one if word != self._end) for one in drawn]

    def _checked(self) -> int:
        """Refuse a model that reads a text otherwise than it draws one; return how many drawn texts are split so."""
        drawn = self._drawn(_PILOTS, np.random.default_rng(0))
        usable = self._usable(drawn)
        if any(self._usable(drawn) != usable for _ in range(3)):
            remedy = "turn off what draws at random in it"
            raise InputError("tokenizer", "other tokens", requirement="must always split a text alike", remedy=remedy)
        allowed = np.setdiff1d(np.arange(self.size), self._barred.cpu().numpy())
        source = np.random.default_rng(1)
        others = [tuple(source.choice(allowed, size=1 + row % self.longest).tolist()) for row in range(_PILOTS)]
        tried = list(dict.fromkeys([*drawn, *others]))
        for length in {len(one) for one in tried}:
            rows = [one for one in tried if len(one) == length]
            for sentence, whole in zip(rows, self._read(rows), strict=True):
                ends = (self._end,) if length < self.longest else ()
                steps = [
                    float(np.log(self._next([sentence[:place]], ended=True)[0][word]))
                    for place, word in enumerate((*sentence, *ends))
                ]
                apart = abs(whole - math.fsum(steps))
                if not apart <= _LOG_ERROR / 10:
                    raise InputError(
                        "the difference between log-probabilities of a text, read as a whole and token by token,",
                        apart,
                        requirement=f"must be at most {_LOG_ERROR / 10:g}",
                        remedy="use a causal model that computes in the float64 it is given",
                    )
        return sum(usable)

    def _usable(self, sentences: Sequence[Sentence]) -> list[bool]:
        """Whether the tokenizer splits the text that tokens make into these tokens."""
        if not sentences:
            return []
        split = self._split([self.text(one) for one in sentences])
        return [tuple(found) == one for found, one in zip(split, sentences, strict=True)]

    def _split(self, texts: list[str]) -> list[list[int]]:
        found: list[list[int]] = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        return found
