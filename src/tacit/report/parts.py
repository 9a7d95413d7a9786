"""What a page is made of: verdicts, changes, figures, tables and sliders."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..core import validate
from ..core.errors import InputError
from .figures import light

FINE, WEAK, BROKEN = LEVELS = ("fine", "weak", "broken")
"""How good a result is; every page uses these three words, with a colour and a mark for each."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How good one result is, as a card at the top of the page.

    Attributes
    ----------
    level
        "fine", "weak" or "broken".
    about
        What is judged, in a few words.
    proven
        The number that decides it, in words, such as "at most 57 %".
    reached
        What the best attack reached, in words; empty if there was none.
    reason
        One sentence that says why this is fine, weak or broken.
    measured
        Whether the number is measured and not proven.
    scope
        For whom or what the number is proven; empty if nothing is.
    """

    level: str
    about: str
    proven: str
    reached: str = ""
    reason: str
    measured: bool = False
    scope: str = "for everyone"

    def __post_init__(self) -> None:
        validate.choice("level", self.level, LEVELS, remedy="use one of these words")
        for name in ("about", "proven", "reason"):
            validate.text(f"the {name} of a verdict", getattr(self, name), remedy="fill it in")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that the reader can change, and what it costs.

    Attributes
    ----------
    what
        What to do, and what it brings.
    price
        What it costs.
    command
        A command that does it; empty if there is none.
    """

    what: str
    price: str
    command: str = ""

    def __post_init__(self) -> None:
        for name in ("what", "price"):
            validate.text(f"the {name} of a change", getattr(self, name), remedy="fill it in")


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


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
