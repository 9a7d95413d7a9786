"""Bounds for an encoder of texts, from files: read, bound, attack, report."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from ...core import validate
from ...core.errors import InputError
from ...core.guarantee import Adversary, Assumption, Attack, Comparison, Guarantee
from ...core.near import did_you_mean, listed
from ...core.wording import safe_text
from ...report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict, figures
from ...report.timing import Paced
from ...report.wording import duration
from ...runtime import files, tables
from ..causal_prior import CausalPrior
from ..noise import Noise, checked_noise
from ..realism import judged
from ..text_prior import TextLaw, TextPrior
from ..texts import Rounding, TextAttack, TextBounds, known_texts, text_attack, text_bounds
from .budget import SECONDS
from .inputs import made_by, noise_of
from .progress import Advance, shown

_SHOWN_STARS = 3
_SHOWN_RIVALS = 3
_TABLES = (".csv", ".parquet", ".tsv")
_TRIES_PER_WORD = 3 * 8 * 8
"""How often an attack tries each word of a text: by its chains, sweeps and candidates."""
_TIMED, _SECONDS_PER_TRY = 64, 6e-5
"""Texts on which the encoder is timed, and what a try takes beside it."""
_USUAL, _FEWEST = 200, 30
"""Texts that are drawn for the bound, and as many that are attacked; and the fewest, however short the time."""
_BOUND, _REPORT = 0.5, 0.1
"""The shares of the time that are kept for the bound, and for drawing and writing the report."""
_NAMES = {"words": "the words", "whole": "the whole text", "attribute": "the attribute"}


def bound_texts_files(
    model: str,
    *,
    text: Path | str,
    public: Path | str,
    noise: Noise | Rounding | str,
    prior: str = "auto",
    column: str | None = None,
    attribute: str | None = None,
    longest: int = 20,
    draws: int | None = None,
    rivals: int = 7,
    sweeps: int = 1,
    candidates: int = 4,
    limit: int | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
    feature_error: float | None = None,
    advance: Advance | None = None,
    progress: bool = True,
) -> Report:
    """Bound what anyone restores of texts from their noisy embeddings, attack them, and report.

    Parameters
    ----------
    model
        FILE.py:FUNCTION, where the function returns the encoder: what takes a list of texts and returns one row of
        numbers for each. The file is run.
    text
        The real texts: a file with one text a line (.txt), or a column of a table (.csv, .tsv or .parquet).
    public
        Public texts, in a file of the same kind, to which trigrams are fitted. The real ones must not be among them.
    noise
        The noise added to the embedding: an object of `tacit.reconstruction`, or a text such as "gaussian:0.3";
        "rounded:STEP" for rounding alone.
    prior
        What an attacker knows of a text: "trigrams" of the public ones, which "auto" takes too, or
        "language-model:FOLDER", a causal language model of the transformers library with its tokenizer, whose tokens
        then stand for words.
    column
        The column of both tables that holds the texts; may be left out where there is only one.
    attribute
        FILE.py:FUNCTION, where the function returns what takes a list of texts and returns for each what an adversary
        wants to know of it.
    longest
        Texts are cut off after this many words.
    draws
        How many texts are drawn from the prior for the bound; unless given, 200, or as many as there is time for.
    rivals, sweeps, candidates
        As for `text_bounds`.
    limit
        How many texts are attacked: draws from the prior, and real ones; unless given, 200, or as many as there is time
        for.
    seconds
        About how long all of it may take, by the time that the encoder takes for some public texts. `draws` and `limit`
        are kept whatever the time, and never fewer than 30 texts are drawn and attacked; the report's `detail` has
        both numbers, with which the same seed gives the same results.
    seed
        For all draws.
    feature_error
        The share of its norm by which a released embedding may differ from the encoder's; without it, the type that
        it returns decides.
    advance
        Called with a line about each step as it begins.
    progress
        Without `advance`, show these lines on stderr if it is a terminal or a notebook.

    Returns
    -------
    The report, with `comparisons`, `to_text()`, `to_json()` and `to_html()`.

    Raises
    ------
    InputError
        If a file or a value cannot be used.
    NoTheoremError
        If the noise has no density.
    """
    if limit is not None:
        validate.whole("limit", limit, at_least=2, remedy="use 200")
    if draws is not None:
        validate.whole("draws", draws, at_least=2, remedy="use 200")
    validate.number("seconds", seconds, above=0, remedy="leave it out for two minutes")
    added = _noise_of(noise) if isinstance(noise, str) else noise
    if not isinstance(added, Rounding):
        checked_noise(added)
    real, known = (texts_of(Path(path), name, column) for path, name in ((text, "text"), (public, "public")))
    encode = _callable(model, "model")
    wanted = None if attribute is None else _callable(attribute, "attribute")
    law = _law_of(prior, known, longest)
    usable = len(known_texts(law, real))
    options: dict[str, Any] = {"attribute": wanted, "seed": seed}
    usual = [one for one in real if law.numbers(one) is not None]
    with shown(advance, progress=progress) as say:
        each = _seconds_per_try(_tried(encode, law), known, longest=longest)
        drawing = 0.0 if isinstance(added, Rounding) else each * (rivals + 1) * sweeps * candidates
        attacking = each * _TRIES_PER_WORD
        time = _Time(seconds, drawing=drawing, attacking=attacking, draws=draws, limit=limit)
        draws, limit = time.draws, time.limit
        steps = [draws * drawing] * (not isinstance(added, Rounding))
        paced = Paced(say, [*steps, limit * attacking, min(limit, len(usual)) * attacking])
        bounds = None
        if not isinstance(added, Rounding):
            bounds = text_bounds(
                encode,
                law,
                added,
                texts=draws,
                rivals=rivals,
                sweeps=sweeps,
                candidates=candidates,
                feature_error=feature_error,
                advance=_told(paced, "finding rivals"),
                **options,
            )
        attack = text_attack(
            encode, law, added, texts=limit, advance=_told(paced, "attacking draws from the prior"), **options
        )
        chosen = [usual[place] for place in np.random.default_rng(seed).permutation(len(usual))[:limit]]
        checked = text_attack(
            encode, law, added, real=chosen, advance=_told(paced, "attacking the real texts"), **options
        )
    parts = ("words", "whole") if wanted is None else ("words", "whole", "attribute")
    # An attack on the real texts that does better than the prior allows contradicts the bound.
    comparisons = {
        part: Comparison(
            guarantee=_nothing(law, added, attack.attack_on(part))
            if bounds is None
            else judged(bounds.guarantee_of(part), checked.attack_on(part)),
            attacks=(attack.attack_on(part), checked.attack_on(part)),
        )
        for part in parts
    }
    public_numbers = {law.numbers(one) for one in known}
    shared = sum(numbers is not None and numbers in public_numbers for numbers in map(law.numbers, real))
    cut = sum(map(law.cuts, real))
    return Report(
        command="bound",
        title="What anyone can restore of these texts from their embeddings",
        summary=_summary(
            comparisons,
            attack,
            checked,
            added,
            counts=(usable, len(real), shared, cut),
            longest=longest,
            trigrams=isinstance(law, TextPrior),
        ),
        comparisons=tuple(comparisons.values()),
        verdicts=(_card(comparisons["words"], attack, checked),),
        opening=(_figure(comparisons, attack),),
        changes=(*_changes(added), *time.left_out),
        tables=(*_rivals(bounds), _restored(checked)),
        detail={
            "noise": repr(added),
            "prior": law.description,
            "real_texts": len(real),
            "longest": longest,
            "of_known_words": usable,
            "cut": cut,
            "also_public": shared,
            "without_the_release": attack.guessing,
            "seen": None if bounds is None else dict(bounds.seen),
            "time": {"seconds": seconds, "draws": draws, "limit": limit},
            "on_data": {part: checked.attack_on(part).to_dict() for part in parts},
            "rivals": [] if bounds is None else [list(star) for star in bounds.examples],
            "restored": [list(pair) for pair in checked.examples],
        },
    )


def texts_of(path: Path, name: str, column: str | None) -> list[str]:
    """Read texts: the lines of a .txt file, or a column of a table, without those that are empty."""
    kind = files.existing(path, name).suffix.lower()
    if kind == ".txt":
        if column is not None:
            raise InputError("column", column, requirement="must be left out for .txt files", remedy="leave it out")
        found = _lines(path, name)
    elif kind in _TABLES:
        found = _column_of(path, kind, name, column)
    else:
        among = ", ".join((".txt", *_TABLES))
        raise InputError(name, str(path), requirement=f"must end in {among}", remedy="convert it to one of them")
    found = [text for text in found if text.strip()]
    if len(found) < 2:
        raise InputError(name, len(found), requirement="must hold two texts or more", remedy="add texts")
    return found


def _column_of(path: Path, kind: str, name: str, column: str | None) -> list[str]:
    if kind == ".tsv":
        # A tab ends a field and a line break a record; quotes are part of a text.
        rows = [line.split("\t") for line in _lines(path, name)]
        uneven = [number for number, row in enumerate(rows, start=1) if len(row) != len(rows[0])]
        if uneven:
            found = f"line {uneven[0]} of {path}"
            raise InputError(
                name, found, requirement="must have as many fields as the first line", remedy="correct the file"
            )
        titles = rows[0] if rows else []
        doubled = [title for title in titles if titles.count(title) > 1]
        if doubled:
            found = f"two columns called {doubled[0]!r} in {path}"
            raise InputError(name, found, requirement="must have columns of different names", remedy="rename one")
        held: dict[str, Any] = {title: [row[place] for row in rows[1:]] for place, title in enumerate(titles)}
    else:
        held = dict(tables.read(path, name=name))
    if column is None and len(held) == 1:
        (column,) = held
    if column not in held:
        raise InputError(
            "column",
            column,
            requirement=f"must be a column of `{name}`",
            remedy=did_you_mean(column, held, f"it has {listed(held)}"),
        )
    values = list(held[column])
    wrong = [value for value in values if not isinstance(value, str)]
    if wrong:
        raise InputError(
            f"column {column!r} of `{name}`",
            wrong[0],
            requirement="must hold texts alone",
            remedy="fill in or leave out",
        )
    return values


def _lines(path: Path, name: str) -> list[str]:
    try:
        content = files.plain(path, name).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as failure:
        why = "is not UTF-8" if isinstance(failure, UnicodeDecodeError) else failure.strerror
        raise InputError(
            name, f"{path}: {why}", requirement="must be a readable file of UTF-8 text", remedy="check the path"
        ) from None
    content = content.replace("\r\n", "\n").replace("\r", "\n")
    return content.removesuffix("\n").split("\n") if content else []


def _noise_of(text: str) -> Noise | Rounding:
    kind, _, step = text.partition(":")
    if kind != "rounded":
        return noise_of(text)
    try:
        return Rounding(float(step))
    except ValueError as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "noise", text, requirement="must be rounded:STEP", remedy="write for example rounded:0.002"
        ) from None


def _callable(text: str, name: str) -> Callable[..., Any]:
    made = made_by(text, name)
    if not callable(made):
        raise InputError(
            name,
            type(made).__name__,
            requirement="must be a function that returns a function of a list of texts",
            remedy="see docs/how-to/bound-texts.md",
        )

    def called(texts: list[str]) -> Any:
        try:
            return made(texts)
        except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
            raise InputError(
                name,
                f"{type(failure).__name__}: {failure}",
                requirement=f"must take a list of texts: {text}",
                remedy="correct the file",
            ) from None

    return called


def _seconds_per_try(encode: Callable[..., Any], known: list[str], *, longest: int) -> float:
    """How long it takes to try each word of a text once, by the encoder's time for some public texts."""
    some = [" ".join(one.split()[:longest]) for one in known[:_TIMED]]
    encode(some)  # the first call may load something
    started = monotonic()
    encode(some)
    each = (monotonic() - started) / len(some) + _SECONDS_PER_TRY
    return each * sum(len(one.split()) for one in some) / len(some)


class _Time:
    """How many texts there is time for.

    Parameters
    ----------
    seconds
        How long all may take.
    drawing, attacking
        Seconds that a text takes that is drawn for the bound, and one that is attacked.
    draws, limit
        What the caller asks for; None to go by the time.
    """

    def __init__(
        self, seconds: float, *, drawing: float, attacking: float, draws: int | None, limit: int | None
    ) -> None:
        left = (1 - _REPORT) * seconds
        self._asked = draws is not None and limit is not None
        self.draws = draws or _fitting(_BOUND * left, drawing)
        self.limit = limit or _fitting(left - self.draws * drawing, 2 * attacking)
        self._whole = _USUAL * (drawing + 2 * attacking)

    @property
    def left_out(self) -> tuple[Change, ...]:
        """What more time would bring; nothing if there was enough, or if the caller chose."""
        if self._asked or min(self.draws, self.limit) >= _USUAL:
            return ()
        what = f"There was time for {self.draws} draws and for attacks on {self.limit} texts, instead of {_USUAL} each"
        more = f"--seconds {math.ceil(self._whole / (1 - _REPORT))}"
        return (
            Change(what=f"{what}; more of them tighten both sides.", price=f"about {duration(self._whole)}: {more}."),
        )


def _fitting(seconds: float, each: float) -> int:
    """How many texts fit into the time: no fewer than mean something, and no more than are usual."""
    return _USUAL if seconds >= _USUAL * each else max(_FEWEST, int(seconds / each))


def _law_of(prior: object, known: list[str], longest: int) -> TextLaw:
    kind, _, folder = str(prior).partition(":")
    if kind in ("auto", "trigrams") and not folder:
        return TextPrior.fitted(known, longest=longest)
    if kind == "language-model" and folder:
        return CausalPrior.loaded(folder, longest=longest)
    requirement = "must be trigrams, language-model:FOLDER or auto for texts"
    raise InputError("prior", prior, requirement=requirement, remedy="leave it out for trigrams of the public texts")


def _tried(encode: Callable[..., Any], law: TextLaw) -> Callable[[list[str]], Any]:
    """What a try of a text takes: its embedding, and its probability where that has to be computed."""

    def tried(texts: list[str]) -> Any:
        if isinstance(law, CausalPrior):
            law.read(texts)
        return encode(texts)

    return tried


def _told(paced: Paced, line: str) -> Callable[[float], None]:
    """Begin the step of this name, and return what is told the share of it that is done."""
    paced(line)
    return lambda done: paced.within(line, done)


def _nothing(prior: TextLaw, noise: Rounding | Noise, attack: Attack) -> Guarantee:
    """What holds without a theorem."""
    return Guarantee(
        quantity=attack.quantity,
        side="at_most",
        value=1.0,
        adversary=Adversary.PRIOR.scoped(prior.description),
        theorem=("no share exceeds 1: of rounding without noise nothing is proven",),
        assumptions=(Assumption(text=f"the release is the embedding after {noise!r}", checked_by="caller"),),
        failure_probability=0.0,
    )


def _percent(share: float, toward: Literal["up", "nearest"] = "nearest") -> str:
    return f"{safe_text(100 * share, toward=toward)} %"


def _summary(
    comparisons: dict[str, Comparison],
    attack: TextAttack,
    checked: TextAttack,
    noise: Noise | Rounding,
    *,
    counts: tuple[int, int, int, int],
    longest: int,
    trigrams: bool,
) -> tuple[str, ...]:
    """Put the results into words: first whether the prior stands, then what is proven."""
    usable, held, shared, cut = counts
    sentences = [
        _refuted(part, comparisons[part], checked.attack_on(part))
        for part in comparisons
        if checked.attack_on(part).value > comparisons[part].guarantee.value
    ]
    if isinstance(noise, Rounding):
        sentences.append(
            f"Nothing is proven: rounding without noise is a function of the text. An attack restored "
            f"{_percent(attack.words.value)} of the words of texts drawn from the prior."
        )
    else:
        words = comparisons["words"].guarantee
        sentences.append(
            f"{_verdict(words, attack)}Of a text drawn from the prior anyone restores at most "
            f"{_percent(words.value, 'up')} of the words, each at its place ({words.chance_text}). An attack restored "
            f"{_percent(attack.words.value)}; somebody who does not see the release, {_percent(attack.guessing)}."
        )
        for part in list(comparisons)[1:]:
            guarantee, tried = comparisons[part].guarantee, attack.attack_on(part)
            verb = "restores" if part == "whole" else "names"
            sentences.append(
                f"Anyone {verb} {_NAMES[part]} with probability at most {_percent(guarantee.value, 'up')}; the attack "
                f"did so for {_percent(tried.value)}."
            )
    sentences.append(
        f"On {checked.texts} real texts the attack restored {_percent(checked.words.value)} of the words. {usable} of "
        + (
            f"{held} real texts have only words of the public ones in their first {longest} words; they are tried in "
            "lower case. "
            if trigrams
            else f"{held} real texts can be made of the model's tokens, which stand for words. "
        )
        + "Nothing was tried on the others, and the bounds do not speak of them."
    )
    if cut:
        sentences.append(
            f"{cut} of the real texts {'is' if cut == 1 else 'are'} longer and cut off after {longest} words, before "
            "they are encoded: the bounds do not speak of the embedding of a longer text, nor of its other words."
        )
    if shared:
        sentences.append(f"{shared} of the real texts stand among the public ones, where everybody can read them.")
    return tuple(sentences)


def _verdict(words: Guarantee, attack: TextAttack) -> str:
    if attack.words.low > 0.5:
        return "Most words are given away. "
    return "It is not ruled out that most words are given away. " if words.value > 0.5 else ""


def _card(comparison: Comparison, attack: TextAttack, checked: TextAttack) -> Verdict:
    """Whether the words stay hidden, as a card at the top of the page."""
    words, real = comparison.guarantee, checked.attack_on("words")
    level, reason = FINE, f"Somebody who does not see the release restores {_percent(attack.guessing)}."
    if real in comparison.contradicting:
        level, reason = BROKEN, "Real texts refute the prior: the bound does not apply to them."
    elif attack.words.low > 0.5 or real.low > 0.5:
        level, reason = BROKEN, "Most words are given away."
    elif real.value > words.value:
        level, reason = WEAK, "Real texts put the prior in doubt."
    elif words.value > 0.5:
        level, reason = WEAK, "It is not ruled out that most words are given away."
    return Verdict(
        level=level,
        about="Restoring words of a text",
        proven=f"at most {_percent(words.value, 'up')}" if words.value < 1 else "nothing",
        reached=_percent(max(attack.words.value, real.value)),
        reason=reason,
        scope="for texts drawn from the prior" if words.value < 1 else "",
    )


def _changes(noise: Noise | Rounding) -> tuple[Change, ...]:
    """What hides more, and what it costs."""
    price = "what is computed from the embeddings, such as a search, gets less exact: measure it."
    if isinstance(noise, Rounding):
        what = "Add noise, such as --noise gaussian:0.1: of rounding alone nothing is proven."
        return (Change(what=what, price=price),)
    return (
        Change(what="Add more noise, and bound again.", price=price),
        Change(what="Release embeddings of shorter pieces, or of fewer numbers.", price=price),
    )


def _refuted(part: str, comparison: Comparison, on_data: Attack) -> str:
    certain = on_data in comparison.contradicting
    what = "of the words" if part == "words" else f"{_NAMES[part]}, of as many texts"
    return (
        f"The prior is {'refuted' if certain else 'in doubt'}: an attack restored {_percent(on_data.value)} {what} on "
        f"the real texts, and the bound for that prior is {_percent(comparison.guarantee.value, 'up')}. The real texts "
        f"{'are not' if certain else 'may not be'} like draws from the prior"
        f"{', and the bound does not apply to them.' if certain else '; there are too few of them to be sure.'}"
    )


def _rivals(bounds: TextBounds | None) -> tuple[Table, ...]:
    if bounds is None:
        return ()
    rows = [
        (f"release {number}" if place == 0 else "", text)
        for number, star in enumerate(bounds.examples[:_SHOWN_STARS], start=1)
        for place, text in enumerate(sorted(star[: _SHOWN_RIVALS + 1]))
    ]
    return (
        Table(
            title="Texts that are equally likely, given one release",
            columns=("release", "text"),
            rows=tuple(rows),
            note="One of each group was released, the others are its rivals; they stand in alphabetical order. Nobody "
            "can tell which it was any better than by guessing.",
        ),
    )


def _restored(checked: TextAttack) -> Table:
    return Table(
        title="What the attack made of real texts",
        columns=("text", "restored"),
        rows=checked.examples[:_SHOWN_STARS],
        note="The attack is told how many words a text has.",
    )


def _figure(comparisons: dict[str, Comparison], attack: TextAttack) -> Figure:
    found = {
        _NAMES[part]: (attack.attack_on(part).value, comparison.guarantee.value)
        for part, comparison in comparisons.items()
    }
    return Figure(
        title="What is restored",
        caption="From what an attack restored to what nobody exceeds, for texts drawn from the prior. The dashed line "
        "is the share of words that somebody restores who does not see the release.",
        alternative="; ".join(
            f"{name}: attack {_percent(low)}, at most {_percent(high, 'up')}" for name, (low, high) in found.items()
        ),
        svg=figures.intervals(found, x_label="share", marked=(attack.guessing, "words, without the release")),
    )
