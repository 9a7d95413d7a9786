"""The slider over sizes of the noise: what more noise buys, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...report import Slider, Step, figures
from ...report.wording import percent, percent_down, percent_up


@dataclass(frozen=True, kw_only=True)
class Position:
    """What one size of the noise means.

    Attributes
    ----------
    size
        The noise, relative to what the slider's axis says.
    named_upper
        The share of releases whose input anyone names, at most.
    named
        The share that an attack named.
    guessing
        The share that somebody names who sees no release.
    accuracy
        The share of inputs that are still classified correctly; None without labels.
    hidden_lower
        The share of the variance that stays hidden from everyone, at least; None if it was not computed.
    images
        Rows of images by their labels; empty if there are none.
    """

    size: float
    named_upper: float
    named: float
    guessing: float = 0.0
    accuracy: float | None = None
    hidden_lower: float | None = None
    images: Mapping[str, Sequence[Any]]


def noise_slider(
    positions: Sequence[Position],
    *,
    chosen: int,
    axis: str,
    unit: str,
    things: str,
    note: str,
    pictures: bool = True,
) -> Slider:
    """Return the slider over positions of growing noise.

    Parameters
    ----------
    positions
        From the least noise to the most.
    chosen
        The position shown first.
    axis
        The label of the noise axis.
    unit
        What the sizes are multiples of, in words.
    things
        What the inputs are called: "digits", "inputs".
    note
        What the sizes mean and what is proven, below the table.
    pictures
        Whether to draw the pictures for a page.
    """
    sizes = [position.size for position in positions]
    lines = {
        "input named by anyone, at most": ([one.named_upper for one in positions], figures.PROVEN),
        "input named by an attack": ([one.named for one in positions], figures.ACHIEVED),
    }
    useful = [one.accuracy for one in positions if one.accuracy is not None]
    if len(useful) == len(positions):
        lines = {f"{things} still classified correctly": (useful, figures.USEFUL), **lines}
    steps = []
    for one in positions:
        drawn = []
        if pictures:
            curve = figures.curves(sizes, lines, x_label=axis, y_label="share of releases", marked=(one.size, "here"))
            drawn.append((f"Shares that fall as the noise grows; {one.size:g} is marked.", curve))
        if pictures and one.images:
            words = f"Images, and what they become with noise of {one.size:g} times {unit}: {', '.join(one.images)}."
            drawn.append((words, figures.image_rows(one.images)))
        steps.append(
            Step(
                name=f"{one.size:g} × {unit}",
                values=_values(one),
                reading=_reading(one, unit, things),
                pictures=tuple(drawn),
            )
        )
    first = positions[0]
    columns = ["noise"]
    columns += ["accuracy"] * (first.accuracy is not None)
    columns += ["anyone names, at most", "attack names"]
    columns += ["hidden, at least"] * (first.hidden_lower is not None)
    return Slider(
        title="What more noise buys and costs", caption=note, columns=tuple(columns), steps=tuple(steps), chosen=chosen
    )


def _values(one: Position) -> tuple[str, ...]:
    cells = [percent(one.accuracy)] if one.accuracy is not None else []
    cells += [percent_up(one.named_upper), percent(one.named)]
    cells += [percent_down(one.hidden_lower)] if one.hidden_lower is not None else []
    return tuple(cells)


def _reading(one: Position, unit: str, things: str) -> str:
    said = "With your noise, " if (unit, one.size) == ("yours", 1.0) else f"With noise of {one.size:g} times {unit}, "
    if one.accuracy is not None:
        said += f"{percent(one.accuracy)} of {things} are classified correctly; "
    said += f"nobody names more than {percent_up(one.named_upper)}, an attack named {percent(one.named)}"
    if one.hidden_lower is not None:
        said += f", and at least {percent_down(one.hidden_lower)} of the variance stays hidden"
    return f"{said}."
