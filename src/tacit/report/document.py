"""Reports: comparisons with their summary, tables and figures, written as text, JSON or HTML."""

from __future__ import annotations

import base64
import json
import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from html import escape
from typing import Any

from ..core import validate
from ..core.encoding import SCHEMA, encoded, frozen
from ..core.errors import InputError
from ..core.guarantee import Comparison, Guarantee
from ..core.wording import safe_text
from .checks import plain
from .parts import Change, Figure, Slider, Table, Verdict
from .proving import Theorem, theorems
from .rendering import template
from .wording import attack_words, bound_words, ends_at_one, is_share, percent

_SMALL = re.compile(r"(?<!\S)[^\s<>]*\de-\d[^\s<>]*")
_COMMAND = re.compile(r"tacit proof (\w+(?: \w+)*)")
FAILED_ATTACKS = "An attack that fails shows only that this attack failed."
CROSSING = (
    "An interval that reaches into what is ruled out is no contradiction: it shows where the attack's true value may "
    "lie by chance, and the proof leaves it only the other part."
)
MARKS = {"fine": "✓", "weak": "!", "broken": "✕"}
"""What stands beside the word, so that nobody has to tell colours apart."""


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One part of a longer report: a verdict, four answers, one picture, and the comparisons behind them.

    Attributes
    ----------
    title
        The heading of the chapter.
    released
        The answer to "What is released".
    nobody
        The answer to "What nobody can learn".
    attacker
        The answer to "What an attacker got".
    change
        The answer to "What to change".
    comparisons
        The comparisons; the first one is the headline.
    verdict
        The card of this part at the top of the page.
    sliders, opening
        What carries the result, and follows the answers at once.
    figures, tables
        What is folded away below them.
    """

    title: str
    released: str
    nobody: str
    attacker: str
    change: str
    comparisons: tuple[Comparison, ...]
    verdict: Verdict
    sliders: tuple[Slider, ...] = ()
    opening: tuple[Figure, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        for name in ("title", "released", "nobody", "attacker", "change"):
            validate.text(f"the {name} of a chapter", getattr(self, name), remedy="fill it in")
        if not self.comparisons:
            raise InputError("comparisons", (), requirement="must not be empty", remedy="report one at least")

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """Each question with its answer."""
        return (
            ("What is released", self.released),
            ("What nobody can learn", self.nobody),
            ("What an attacker got", self.attacker),
            ("What to change", self.change),
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """What one command found.

    Attributes
    ----------
    command
        The command that made the report.
    title
        The heading of the report.
    summary
        The result in plain language, one sentence per string.
    comparisons
        Guarantees with the attacks on them. A report with chapters takes its comparisons from them.
    verdicts
        The cards at the top. With them, the page shows the first sentence of the summary and folds the others away. A
        report with chapters takes its verdicts from them.
    chapters
        The parts of a longer report.
    sliders, opening
        What carries the result, and follows the cards at once.
    changes
        What the reader can change, each with its price.
    choices
        Tables of what could be changed, which follow the changes.
    figures, tables
        What is folded away on a page with verdicts.
    detail
        More data for the JSON.
    met
        False if a requirement that the user set is not met.
    """

    command: str
    title: str
    summary: tuple[str, ...]
    comparisons: tuple[Comparison, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    chapters: tuple[Chapter, ...] = ()
    sliders: tuple[Slider, ...] = ()
    opening: tuple[Figure, ...] = ()
    changes: tuple[Change, ...] = ()
    choices: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)
    met: bool = True

    def __post_init__(self) -> None:
        validate.text("command", self.command, remedy="name the command that made the report")
        validate.text("title", self.title, remedy="give the report a title")
        for name, kind in (
            ("summary", str),
            ("comparisons", Comparison),
            ("verdicts", Verdict),
            ("chapters", Chapter),
            ("sliders", Slider),
            ("opening", Figure),
            ("changes", Change),
            ("choices", Table),
            ("figures", Figure),
            ("tables", Table),
        ):
            items = getattr(self, name)
            if not isinstance(items, list | tuple) or not all(isinstance(item, kind) for item in items):
                raise InputError(
                    name, items, requirement=f"must be a list of {kind.__name__}", remedy="put it into a list"
                )
            object.__setattr__(self, name, tuple(items))
        if self.chapters:
            found = tuple(comparison for chapter in self.chapters for comparison in chapter.comparisons)
            object.__setattr__(self, "comparisons", found)
            object.__setattr__(self, "verdicts", tuple(chapter.verdict for chapter in self.chapters))
        if not self.comparisons:
            raise InputError("comparisons", (), requirement="must not be empty", remedy="report one at least")
        if not isinstance(self.detail, Mapping):
            raise InputError("detail", self.detail, requirement="must be a dict", remedy="put it into a dict")
        object.__setattr__(self, "detail", frozen("detail", self.detail))

    @property
    def contradicted(self) -> bool:
        """Whether an attack broke a guarantee: a bug, or an assumption that does not hold."""
        return any(comparison.contradicted for comparison in self.comparisons)

    @property
    def pictures(self) -> tuple[Figure, ...]:
        """All figures, the one that carries the result first."""
        return (*self.opening, *self.figures)

    @property
    def attacked(self) -> bool:
        """Whether any guarantee was attacked."""
        return any(comparison.attacks for comparison in self.comparisons)

    @property
    def theorems(self) -> tuple[Theorem, ...]:
        """The theorems that guarantees name, and those that sentences, captions and tables name after "tacit proof"."""
        known = theorems()
        named = [name for one in self.comparisons for name in one.guarantee.references if name in known]
        named += [name for text in self._texts for name in _named(text).values()]
        return tuple(known[name] for name in dict.fromkeys(named))

    @property
    def _texts(self) -> tuple[str, ...]:
        """The sentences, captions and table cells in which a theorem may be named."""
        tables = [*self.choices, *self.tables, *(table for chapter in self.chapters for table in chapter.tables)]
        answers = [text for chapter in self.chapters for _, text in chapter.answers]
        answers += [text for change in self.changes for text in (change.what, change.price)]
        parts: tuple[Report | Chapter, ...] = (self, *self.chapters)
        answers += [figure.caption for part in parts for figure in (*part.opening, *part.figures)]
        return (*self.summary, *answers, *(text for table in tables for text in (table.note, *sum(table.rows, ()))))

    @property
    def to_check(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The caller's assumptions, each once, with the numbers of the guarantees that rest on it."""
        found: dict[str, list[int]] = {}
        for index, comparison in enumerate(self.comparisons, start=1):
            for text in dict.fromkeys(comparison.guarantee.assumed(checked_by="caller")):
                found.setdefault(text, []).append(index)
        return tuple((text, tuple(numbers)) for text, numbers in found.items())

    @property
    def checks(self) -> tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], ...]:
        """What the caller has to check in plain words, each once, with the assumptions that it stands for."""
        found: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
        for text, numbers in self.to_check:
            found.setdefault(plain(text), []).append((text, numbers))
        return tuple((words, tuple(texts)) for words, texts in found.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of schema 2: {"schema", "command", "comparisons": […], "detail"}.

        A report with verdicts or changes has them, too, under these names.
        """
        told: dict[str, tuple[Any, ...]] = {"verdicts": self.verdicts, "changes": self.changes}
        return {
            "schema": SCHEMA,
            "command": self.command,
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
            "detail": encoded(self.detail),
            **{name: [asdict(item) for item in items] for name, items in told.items() if items},
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=2) + "\n"

    def to_text(self) -> str:
        """Return text for a terminal, 80 columns wide."""
        lines = [self.title, "=" * len(self.title), ""]
        for verdict_of in self.verdicts:
            lines += _hanging(_verdict_line(verdict_of), f"{verdict_of.level.upper():<8}")
        lines += [""] * bool(self.verdicts)
        lines += [line for sentence in self.summary for line in textwrap.wrap(sentence, 80)]
        for table in (*(slider.table for slider in self.sliders), *self.tables):
            lines += ["", *table.to_lines()]
        if self.changes:
            lines += ["", "What to change, and what it costs"]
            for change in self.changes:
                lines += _hanging(f"{change.what} Price: {change.price}", "  - ")
                lines += [f"    {change.command}"] * bool(change.command)
        for table in self.choices:
            lines += ["", *table.to_lines()]
        for number, chapter in enumerate(self.chapters, start=1):
            title = f"Part {number}: {chapter.title}"
            lines += ["", title, "-" * len(title)]
            for question, answer in chapter.answers:
                lines += ["", question, *_hanging(answer, "  ")]
            for table in (*(slider.table for slider in chapter.sliders), *chapter.tables):
                lines += ["", *table.to_lines()]
        if self.to_check:
            lines += ["", "Only you can check that"]
            for text, numbers in self.to_check:
                lines += _hanging(text + (f" (for {_listed(numbers)})" if len(self.comparisons) > 1 else ""), "  - ")
        for index, comparison in enumerate(self.comparisons, start=1):
            guarantee = comparison.guarantee
            lines += ["", *_hanging(f"{_capital(guarantee.quantity)}", f"{index}. ")]
            proven = ", ".join(filter(None, (bound_words(guarantee), guarantee.chance_text)))
            lines += _hanging(proven, "   proven     ")
            lines += _hanging(guarantee.adversary.in_words, "   against    ")
            for attack in comparison.attacks:
                lines += _hanging(f"{attack_words(attack)}: {attack.method}", "   attack     ")
            lines += _hanging(verdict(comparison), "   verdict    ")
            for label, entry in _theorem_lines(guarantee):
                lines += _hanging(entry, f"   {label:<11}")
            if guarantee.proof_text:
                lines += _hanging(guarantee.proof_text, "   proof      ")
        if self.attacked and not self.contradicted:
            lines += ["", FAILED_ATTACKS]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, so that its style and the notebook's do not mix."""
        page, title = escape(self.to_html()), escape(self.title)
        style, allowed = "width:100%;height:44em;border:0", "allow-scripts allow-downloads"
        return f'<iframe srcdoc="{page}" title="{title}" style="{style}" sandbox="{allowed}"></iframe>'

    def to_html(self) -> str:
        """Return one self-contained HTML page, with the proofs; its only script moves the sliders."""
        from .. import __version__

        return template("report.html.j2").render(
            report=self,
            version=__version__,
            verdict=verdict,
            number_line=number_line,
            listed=_listed,
            theorems=theorems(),
            linked=_linked,
            capital=_capital,
            bound_words=bound_words,
            attack_words=attack_words,
            marks=MARKS,
            crossing=crossing,
            json_address="data:application/json;base64," + base64.b64encode(self.to_json().encode()).decode(),
        )


def verdict(comparison: Comparison) -> str:
    """Say what the comparison shows."""
    if not comparison.attacks:
        return "Not attacked: nothing here shows how tight the bound is."
    count, beyond = len(comparison.attacks), len(comparison.contradicting)
    if beyond:
        who = "the attack" if count == 1 else f"{beyond} of {count} attacks"
        return (
            f"CONTRADICTED: {who} did what the guarantee rules out. Either an assumption above does not hold, "
            f"or this is a bug (by chance alone: probability {comparison.false_alarm_probability:.2g} at most)."
        )
    gap = comparison.gap or 0.0
    distance = safe_text(abs(gap), toward="nearest", digits=2)
    if is_share(comparison.guarantee.quantity):
        distance = f"{percent(abs(gap))[:-2]} percentage points"
    place = (
        f"stayed {distance} from the bound" if gap >= 0 else f"passed the bound by {distance}, within its uncertainty"
    )
    who = "the attack" if count == 1 else f"the nearest of {count} attacks"
    return f"Not contradicted; {who} {place}."


def crossing(comparison: Comparison) -> str:
    """Explain intervals that reach into what is ruled out; empty if none does."""
    if comparison.contradicted:
        return ""
    guarantee = comparison.guarantee
    if guarantee.side == "at_least":
        across = [attack for attack in comparison.attacks if attack.low < guarantee.value]
    else:
        across = [attack for attack in comparison.attacks if attack.high > guarantee.value]
    return CROSSING if across else ""


def number_line(comparison: Comparison) -> dict[str, Any] | None:
    """The positions of bound and attacks, in percent, on a line that includes 0 and ends at round numbers.

    For what lies between 0 and 1 the line does, too.
    """
    guarantee = comparison.guarantee
    values = [guarantee.value, *(end for attack in comparison.attacks for end in (attack.low, attack.high))]
    if not all(math.isfinite(value) for value in values):
        return None
    low, high = 0.0 - _round_number(-min(values)), _round_number(max(values))
    if ends_at_one(guarantee.quantity) and 0 <= guarantee.value <= 1:
        low, high = 0.0, 1.0
    width = (high - low) or 1.0
    if not math.isfinite(width):
        return None

    def place(value: float) -> float:
        return round(min(max(100 * (value - low) / width, 0.0), 100.0), 3)

    bound = place(guarantee.value)
    marks = [{name: place(getattr(attack, name)) for name in ("value", "low", "high")} for attack in comparison.attacks]
    ruled_out = (0.0, bound) if guarantee.side == "at_least" else (bound, 100.0 - bound)
    ends = ("0 %", "100 %") if is_share(guarantee.quantity) else (f"{low:g}", f"{low + width:g}")
    return {"bound": bound, "attacks": marks, "ruled_out": ruled_out, "ends": ends}


def _round_number(value: float) -> float:
    """0 if the value is not positive; else the least of 1, 2, 3, 5, 10 times a power of ten above it."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 3, 5, 10) if step * power > value), 20 * power)


def _verdict_line(verdict: Verdict) -> str:
    reached = f"; an attack reached {verdict.reached}" if verdict.reached else ""
    return f"{verdict.about}: {verdict.proven}{reached}. {verdict.reason}"


def _hanging(text: str, label: str) -> list[str]:
    return textwrap.wrap(text, 80, initial_indent=label, subsequent_indent=" " * len(label))


def _theorem_lines(guarantee: Guarantee) -> list[tuple[str, str]]:
    """The theorem's words, the function that gives the number, and those whose values enter it; each with a label."""
    known = theorems()
    words = [entry for entry in guarantee.theorem if entry not in guarantee.references]
    first, *others = [f"{name}: {known[name].summary}" if name in known else name for name in guarantee.references] or [
        ""
    ]
    lines = [*words, *[first] * bool(first)]
    return [*zip(["theorem", *[""] * len(lines)], lines, strict=False), *(("with", line) for line in others)]


@cache
def _short_names() -> dict[str, str]:
    return {theorem.short: name for name, theorem in theorems().items()}


def _named(text: str) -> dict[str, str]:
    """The theorems that a text names after "tacit proof", or by nothing else: full names by short ones."""
    known = _short_names()
    words = text.split()
    found = [word for command in _COMMAND.finditer(text) for word in command[1].split()]
    found += words if words and all(word in known for word in words) else []
    return {word: known[word] for word in found if word in known}


def _linked(text: str) -> str:
    """The text as HTML: names of theorems are links to their proofs on the page, and no line ends inside 1e-06."""
    from markupsafe import Markup

    found, safe = _named(text), str(Markup.escape(text))
    if found:
        safe = re.sub(rf"\b({'|'.join(found)})\b", r'<a href="#proof-\1">\1</a>', safe)
    return Markup(_SMALL.sub(r'<span class="whole">\g<0></span>', safe))  # noqa: S704 — escaped


def _listed(numbers: tuple[int, ...]) -> str:
    return "guarantee" + "s" * (len(numbers) > 1) + " " + ", ".join(str(number) for number in numbers)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
