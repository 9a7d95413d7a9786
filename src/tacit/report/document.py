"""Reports: comparisons with their summary, tables and figures, written as text, JSON or HTML."""

from __future__ import annotations

import base64
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ..core import validate
from ..core.encoding import SCHEMA, encoded, frozen
from ..core.errors import InputError
from ..core.guarantee import Comparison, Guarantee
from ..core.wording import safe_text
from .figures import light
from .proving import theorems
from .rendering import template

FAILED_ATTACKS = "An attack that fails shows only that this attack failed."


def picture_address(svg: str) -> str:
    """The data address of a picture."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture with its caption and alternative text.

    Attributes
    ----------
    title
        The heading above the picture.
    caption
        The sentence that explains it.
    alternative
        What the picture shows, for readers who cannot see it.
    svg
        The picture itself.
    """

    title: str
    caption: str
    alternative: str
    svg: str

    def __post_init__(self) -> None:
        for name in ("title", "caption", "alternative", "svg"):
            validate.text(f"the {name} of a figure", getattr(self, name), remedy="fill it in")

    @property
    def address(self) -> str:
        """The data address of the picture, so that the page needs no second file."""
        return picture_address(self.svg)

    def _repr_html_(self) -> str:
        title, caption, words = (escape(text) for text in (self.title, self.caption, self.alternative))
        style = "background:#fff;max-width:32em;width:100%"
        picture = f'<img src="{picture_address(light(self.svg))}" alt="{words}" style="{style}">'
        return f"<figure>{picture}<figcaption><strong>{title}.</strong> {caption}</figcaption></figure>"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of short texts under column headings.

    Attributes
    ----------
    title
        The heading above the table.
    columns
        The headings of the columns; the first column names the row.
    rows
        The cells, one tuple per row.
    note
        The sentence below the table.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def __post_init__(self) -> None:
        for name in ("title", "note"):
            validate.text(f"the {name} of a table", getattr(self, name), remedy="fill it in")
        if not isinstance(self.rows, list | tuple) or not self.rows:
            raise InputError("rows", self.rows, requirement="must be a non-empty list", remedy="give at least one")
        for row in (self.columns, *self.rows):
            if not isinstance(row, list | tuple) or not row or not all(isinstance(cell, str) for cell in row):
                raise InputError("a row of a table", row, requirement="must be a list of texts", remedy="write it out")
            if len(row) != len(self.columns):
                raise InputError(
                    "a row of a table",
                    row,
                    requirement=f"must have {len(self.columns)} cells",
                    remedy="fill empty ones with a dash",
                )
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))

    def to_lines(self) -> list[str]:
        """Return lines for a terminal; a table that is too wide is transposed and split into parts."""
        cells = [self.columns, *self.rows]
        if sum(_widths(cells)) + 2 * len(self.columns) > 82:
            cells = list(zip(*cells, strict=True))
        widths = _widths(cells)
        parts: list[list[int]] = [[]]
        for place in range(1, len(widths)):
            if parts[-1] and widths[0] + sum(2 + widths[other] for other in (*parts[-1], place)) > 80:
                parts.append([])
            parts[-1].append(place)
        lines = [self.title]
        for part in parts:
            shown = ["  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in part)]) for row in cells]
            lines += [*[""] * (part is not parts[0]), shown[0], "-" * len(shown[0]), *shown[1:]]
        return [*lines, *textwrap.wrap(self.note, 80)]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One position of a slider.

    Attributes
    ----------
    name
        The name of the position.
    values
        Its row in the slider's table, after the name.
    reading
        One sentence that says what the position means.
    pictures
        Pairs of alternative text and SVG.
    """

    name: str
    values: tuple[str, ...]
    reading: str
    pictures: tuple[tuple[str, str], ...]

    @property
    def addresses(self) -> tuple[tuple[str, str], ...]:
        """The alternative text and the data address of each picture."""
        return tuple((text, picture_address(svg)) for text, svg in self.pictures)


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A choice that the reader can move, and what it changes.

    Without JavaScript the page shows the chosen step alone. A table of all steps always follows.

    Attributes
    ----------
    title
        The heading above the slider.
    caption
        The sentence below its table.
    columns
        The headings of the table: one for the names of the steps, one for each of their values.
    steps
        The positions of the slider.
    chosen
        The index of the step shown first.
    """

    title: str
    caption: str
    columns: tuple[str, ...]
    steps: tuple[Step, ...]
    chosen: int

    def __post_init__(self) -> None:
        validate.whole("chosen", self.chosen, at_least=0, remedy="give the place of a step")
        if self.chosen >= len(self.steps):
            raise InputError(
                "chosen", self.chosen, requirement=f"must be below {len(self.steps)}, the steps", remedy="use 0"
            )

    @property
    def table(self) -> Table:
        """A table of all steps."""
        rows = tuple((step.name, *step.values) for step in self.steps)
        return Table(title=self.title, columns=self.columns, rows=rows, note=self.caption)


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One part of a longer report: four answers, then the comparisons behind them.

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
    sliders, figures, tables
        What follows the answers.
    """

    title: str
    released: str
    nobody: str
    attacker: str
    change: str
    comparisons: tuple[Comparison, ...]
    sliders: tuple[Slider, ...] = ()
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
    chapters
        The parts of a longer report.
    figures, tables
        What follows the summary.
    detail
        More data for the JSON.
    met
        False if a requirement that the user set is not met.
    """

    command: str
    title: str
    summary: tuple[str, ...]
    comparisons: tuple[Comparison, ...] = ()
    chapters: tuple[Chapter, ...] = ()
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
            ("chapters", Chapter),
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
    def to_check(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The caller's assumptions, each once, with the numbers of the guarantees that rest on it."""
        found: dict[str, list[int]] = {}
        for index, comparison in enumerate(self.comparisons, start=1):
            for text in dict.fromkeys(comparison.guarantee.assumed(checked_by="caller")):
                found.setdefault(text, []).append(index)
        return tuple((text, tuple(numbers)) for text, numbers in found.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of schema 2: {"schema", "command", "comparisons": […], "detail"}."""
        return {
            "schema": SCHEMA,
            "command": self.command,
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
            "detail": encoded(self.detail),
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=2) + "\n"

    def to_text(self) -> str:
        """Return text for a terminal, 80 columns wide."""
        lines = [self.title, "=" * len(self.title), ""]
        lines += [line for sentence in self.summary for line in textwrap.wrap(sentence, 80)]
        for table in self.tables:
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
                lines += _hanging(f"{text} (for {_listed(numbers)})", "  - ")
        for index, comparison in enumerate(self.comparisons, start=1):
            guarantee = comparison.guarantee
            lines += ["", *_hanging(f"{_capital(guarantee.quantity)}", f"{index}. ")]
            proven = ", ".join(filter(None, (guarantee.bound_text, guarantee.chance_text)))
            lines += _hanging(proven, "   proven     ")
            lines += _hanging(guarantee.adversary.in_words, "   against    ")
            for attack in comparison.attacks:
                lines += _hanging(f"{attack.value_text}: {attack.method}", "   attack     ")
            lines += _hanging(verdict(comparison), "   verdict    ")
            for place, entry in enumerate(_theorem_lines(guarantee)):
                lines += _hanging(entry, " " * 14 if place else "   theorem    ")
            if guarantee.proof_text:
                lines += _hanging(guarantee.proof_text, "   proof      ")
        if self.comparisons and not self.contradicted:
            lines += ["", FAILED_ATTACKS]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, so that its style and the notebook's do not mix."""
        page, title = escape(self.to_html()), escape(self.title)
        style, allowed = "width:100%;height:44em;border:0", "allow-scripts allow-downloads"
        return f'<iframe srcdoc="{page}" title="{title}" style="{style}" sandbox="{allowed}"></iframe>'

    def to_html(self) -> str:
        """Return one self-contained HTML page; its only script moves the sliders."""
        from .. import __version__

        return template("report.html.j2").render(
            report=self,
            version=__version__,
            verdict=verdict,
            number_line=number_line,
            listed=_listed,
            theorems=theorems(),
            capital=_capital,
            short=lambda value: safe_text(value, toward="nearest"),
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
    place = (
        f"stayed {distance} from the bound" if gap >= 0 else f"passed the bound by {distance}, within its uncertainty"
    )
    who = "the attack" if count == 1 else f"the nearest of {count} attacks"
    return f"Not contradicted; {who} {place}."


def number_line(comparison: Comparison) -> dict[str, Any] | None:
    """The positions of bound and attacks, in percent, on a line that includes 0 and ends at round numbers."""
    guarantee = comparison.guarantee
    values = [guarantee.value, *(end for attack in comparison.attacks for end in (attack.low, attack.high))]
    if not all(math.isfinite(value) for value in values):
        return None
    low, high = 0.0 - _round_number(-min(values)), _round_number(max(values))
    width = (high - low) or 1.0
    if not math.isfinite(width):
        return None

    def percent(value: float) -> float:
        return round(100 * (value - low) / width, 3)

    bound = percent(guarantee.value)
    marks = [
        {name: percent(getattr(attack, name)) for name in ("value", "low", "high")} for attack in comparison.attacks
    ]
    ruled_out = (0.0, bound) if guarantee.side == "at_least" else (bound, 100.0 - bound)
    return {"bound": bound, "attacks": marks, "ruled_out": ruled_out, "ends": (f"{low:g}", f"{low + width:g}")}


def _round_number(value: float) -> float:
    """0 if the value is not positive; else the least of 1, 2, 3, 5, 10 times a power of ten above it."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 3, 5, 10) if step * power > value), 20 * power)


def _hanging(text: str, label: str) -> list[str]:
    return textwrap.wrap(text, 80, initial_indent=label, subsequent_indent=" " * len(label))


def _theorem_lines(guarantee: Guarantee) -> list[str]:
    """The theorem's words, then each function with what it computes: all of them enter the number."""
    known = theorems()
    words = [entry for entry in guarantee.theorem if entry not in guarantee.references]
    return words + [f"{name}: {known[name].summary}" if name in known else name for name in guarantee.references]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]


def _listed(numbers: tuple[int, ...]) -> str:
    return "guarantee" + "s" * (len(numbers) > 1) + " " + ", ".join(str(number) for number in numbers)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
