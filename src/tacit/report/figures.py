"""Figures as SVG text that follows the reader's light or dark scheme.

Matplotlib draws in placeholder colours; the finished SVG names them as CSS variables and carries both palettes.
Figures are narrow, so that their letters stay readable on a phone.
"""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import math
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec

INK, MUTED, GRID, PROVEN, ACHIEVED, USEFUL = (f"#0{digit}0{digit}0{digit}" for digit in range(1, 7))

_PALETTE = {  # placeholder: (name, light, dark)
    INK: ("ink", "#1c2430", "#e6e9ee"),
    MUTED: ("muted", "#5b6675", "#a3adba"),
    GRID: ("grid", "#dfe3e8", "#343c47"),
    PROVEN: ("proven", "#1f5fa8", "#7db4f0"),
    ACHIEVED: ("achieved", "#b4431f", "#f09a78"),
    USEFUL: ("useful", "#3f7d3a", "#8fcf88"),
}

_STYLES = [
    (colour, dashes, marker)
    for (dashes, markers) in (("-", "osD^v"), ((0, (3, 1.5)), "PXph*"), ((0, (5, 1.5, 1, 1.5)), "<>dH8"))
    for colour, marker in zip((MUTED, PROVEN, ACHIEVED, USEFUL, INK), markers, strict=True)
]
"""Colour, dashes and marker of the lines in a picture, in their order. No picture has more lines."""

_RC: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "svg.hashsalt": "tacit",
    "image.composite_image": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_Given = ParamSpec("_Given")
_KEPT = 64
"""Pictures of each kind that are remembered."""


def _remembered(drawn: Callable[_Given, str]) -> Callable[_Given, str]:
    """Draw the same picture only once: a rehearsal and what it rehearses share most of theirs."""
    kept: dict[bytes, str] = {}

    @functools.wraps(drawn)
    def call(*args: _Given.args, **kwargs: _Given.kwargs) -> str:
        key = hashlib.sha256(pickle.dumps((args, kwargs))).digest()
        if key not in kept:
            svg = drawn(*args, **kwargs)
            if len(kept) >= _KEPT:
                kept.pop(next(iter(kept)))
            kept[key] = svg
        return kept[key]

    return call


@_remembered
def curves(
    x: Sequence[float],
    lines: Mapping[str, tuple[Sequence[float], str]],
    *,
    x_label: str,
    y_label: str,
    marked: tuple[float, str],
) -> str:
    """Up to fifteen lines in [0, 1] over a logarithmic axis, one place on it marked; each line is (values, colour)."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.axvline(marked[0], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        place = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center", "va": "bottom"}  # clear of all lines
        axes.annotate(marked[1], (marked[0], 1.02), color=MUTED, fontsize=8, **place)
        for (label, (values, colour)), (_, dashes, marker) in zip(lines.items(), _STYLES[: len(lines)], strict=True):
            axes.plot(x, values, color=colour, linestyle=dashes, marker=marker, label=label)
        _set_ticks(axes, x)
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        figure.legend(loc="outside upper left", ncols=1 if len(lines) <= 5 else 2)

    return _svg(draw, width=4.4, height=3.9)


@_remembered
def ranges(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float | None]],
    *,
    x_label: str,
    y_label: str,
    marked: tuple[float, str],
    level: tuple[float, str],
) -> str:
    """Up to fifteen lines of positive numbers, one place and one height marked; None is a gap."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.axvline(marked[0], color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label=marked[1])
        axes.axhline(level[0], color=INK, linewidth=1, linestyle=(0, (1, 2)), label=level[1])
        _plot(axes, x, lines)
        _set_ticks(axes, x)
        axes.yaxis.set_major_formatter(_count)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        figure.legend(loc="outside upper left", ncols=2)

    return _svg(draw, width=4.4, height=4.2)


@_remembered
def comparison(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float | None]],
    *,
    x_label: str,
    y_label: str,
    level: tuple[float, str] | None = None,
    counted: bool = False,
) -> str:
    """Up to fifteen lines of shares, or of counts, on logarithmic axes; at most one height is marked; None is a gap."""
    from matplotlib.ticker import LogLocator

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plot(axes, x, lines)
        if level is not None:
            axes.axhline(level[0], color=INK, linewidth=1, linestyle=(0, (1, 2)), label=level[1])
        _set_ticks(axes, x)
        if counted:
            axes.yaxis.set_major_formatter(_count)
        else:
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(_percent)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        figure.legend(loc="outside lower left", ncols=2, fontsize=8)

    return _svg(draw, width=4.6, height=4.6)


@_remembered
def histogram(values: Mapping[str, Any], *, marked: tuple[float, str] | None = None, x_label: str) -> str:
    """Shares of positive values over a logarithmic axis, one outline per name, with one place marked if given."""
    import numpy as np

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        positive = {name: np.clip(found, 1e-300, 1e300)[found > 0] for name, found in values.items()}
        everything = np.concatenate([*positive.values(), [marked[0]] if marked else []])
        edges = np.geomspace(everything.min() * 0.9, everything.max() * 1.1, 60)
        axes.set_xscale("log")
        _label_range(axes.xaxis, edges[0], edges[-1])
        if marked:
            axes.axvline(marked[0], color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label=marked[1])
        for (name, found), colour in zip(positive.items(), (PROVEN, ACHIEVED, USEFUL), strict=False):
            shares = np.full(len(found), 1 / max(1, len(found)))
            axes.hist(found, bins=edges, weights=shares, histtype="step", color=colour, label=name, linewidth=1.6)
        axes.locator_params(axis="y", steps=[1, 2, 5, 10])
        axes.yaxis.set_major_formatter(_percent)
        axes.set_xlabel(x_label)
        axes.set_ylabel("share of modes")
        figure.legend(loc="outside upper left", ncols=2)

    return _svg(draw, width=4.4, height=3.4)


@_remembered
def leads(found: Mapping[str, Any], noise: float) -> str:
    """Leads of the winning class in shares of all votes, one outline per name, with the size of the noise marked."""
    import numpy as np

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.axvline(min(1.0, noise), color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="size of the noise")
        edges = [place / 20 for place in range(21)]
        for (name, shares), colour in zip(found.items(), (PROVEN, ACHIEVED, USEFUL), strict=False):
            weights = np.full(len(shares), 1 / max(1, len(shares)))
            inside = np.clip(shares, 0, 1)
            axes.hist(inside, bins=edges, weights=weights, histtype="step", color=colour, label=name, linewidth=1.6)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(_percent)
        axes.xaxis.set_major_formatter(_percent)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel("lead, as a share of all votes")
        axes.set_ylabel("share of queries")
        figure.legend(loc="outside upper left", ncols=1)

    return _svg(draw, width=4.4, height=3.4)


@_remembered
def roc(
    rates: Sequence[float],
    limit: Sequence[float],
    found: Mapping[str, Sequence[tuple[float, float]]],
    *,
    least: float | None = None,
) -> str:
    """The region below `limit`, and above its mirror image, with ROC curves inside; all axes from 0 to 1.

    With `least`, a second panel shows the upper border and the curves with logarithmic axes from there on.
    """

    def draw(figure: Any) -> None:
        axes, *others = figure.subplots(1 if least is None else 2, 1, squeeze=False)[:, 0]
        # The opposite of a test has rates 1 − TPR and 1 − FPR.
        lowest = [1 - value for value in reversed(limit)]
        mirrored = [1 - value for value in reversed(rates)]
        axes.fill([*rates, *reversed(mirrored)], [*limit, *reversed(lowest)], color=PROVEN, alpha=0.16, linewidth=0)
        axes.plot(rates, limit, color=PROVEN, label="nobody gets beyond")
        axes.plot(mirrored, lowest, color=PROVEN)
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        styles = ((ACHIEVED, "-"), (USEFUL, (0, (5, 2))), (INK, (0, (2, 2))), (MUTED, "-"))
        for (name, points), (colour, dashes) in zip(found.items(), styles, strict=False):
            axes.plot(*zip(*points, strict=True), color=colour, linestyle=dashes, linewidth=1.3, label=name)
            for close in others:
                close.plot(*_at_least(least or 0.0, points), color=colour, linestyle=dashes, linewidth=1.3)
        for close in others:
            lowest_drawn = [*_at_least(least or 0.0, list(zip(rates, limit, strict=True)))]
            close.fill_between(*lowest_drawn, least, color=PROVEN, alpha=0.16, linewidth=0)
            close.plot(*lowest_drawn, color=PROVEN)
            close.plot([least, 1], [least, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
            close.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.3), aspect="equal")
            _label_powers(close.xaxis, close.yaxis)
            close.set_xlabel("false positive rate, logarithmic")
            close.set_ylabel("true positive rate, logarithmic")
        axes.set_aspect("equal")
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(-0.01, 1.01)
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        figure.legend(loc="outside upper left", ncols=1)

    return _svg(draw, width=4.4, height=(4.7 if least is None else 8.9) + 0.2 * len(found))


def _at_least(least: float, points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The coordinates of points of a rising curve that logarithmic axes can show; those below move to their border."""
    return [max(least, x) for x, _ in points], [max(least, y) for _, y in points]


@_remembered
def curve(x: Sequence[float], y: Sequence[float], *, x_label: str, y_label: str) -> str:
    """One line of shares over shares; both axes from 0 to 1."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.plot(x, y, color=ACHIEVED)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_formatter(_percent)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)

    return _svg(draw, width=4.4, height=3.0)


@_remembered
def log_roc(found: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """ROC curves on logarithmic axes, which show what is found at few false alarms."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        least = min((x for points in found.values() for x, _ in points if x > 0), default=1e-3)
        left = 10.0 ** math.floor(math.log10(least))
        styles = ((ACHIEVED, "-"), (USEFUL, (0, (5, 2))), (INK, (0, (2, 2))), (PROVEN, "-."), (MUTED, "-"))
        more = ((PROVEN, "-"), (ACHIEVED, (0, (1, 1))), (USEFUL, "-."))
        for (name, points), (colour, dashes) in zip(found.items(), itertools.cycle(styles + more), strict=False):
            axes.step(
                *zip(*points, strict=True), where="post", color=colour, linestyle=dashes, linewidth=1.3, label=name
            )
        axes.plot([left, 1], [left, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(left, 1.05)
        axes.set_ylim(left, 1.05)
        _label_powers(axes.xaxis, axes.yaxis)
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        figure.legend(loc="outside upper left", ncols=1)

    return _svg(draw, width=4.4, height=4.2 + 0.2 * len(found))


@_remembered
def calibration(groups: Sequence[tuple[float, float, float, float]]) -> str:
    """Shares over guesses, (guess, share, low, high) each, beside the line on which both agree."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        guesses, shares_found, lows, highs = (list(one) for one in zip(*groups, strict=True))
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="perfectly calibrated")
        axes.axhline(0.5, color=GRID, linewidth=1.2)
        axes.vlines(guesses, lows, highs, color=ACHIEVED, linewidth=1.2)
        axes.plot(guesses, shares_found, color=ACHIEVED, marker="o", linestyle="", label="found on test rows")
        axes.set_aspect("equal")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("guessed probability")
        axes.set_ylabel("share that was positive")
        figure.legend(loc="outside upper left", ncols=1)

    return _svg(draw, width=4.4, height=4.8)


@_remembered
def growth(
    points: Sequence[tuple[float, float]],
    least: Sequence[tuple[float, float]],
    *,
    levels: Mapping[str, float],
    marked: Mapping[str, float],
) -> str:
    """Advantages, from 0 to 1, against numbers of rows, on a logarithmic axis; some heights and places are marked."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.set_ylim(0, 1)
        if least:
            axes.plot(*zip(*least, strict=True), color=MUTED, linewidth=1.2, label="where nothing leaks")
        axes.plot(*zip(*points, strict=True), color=PROVEN, marker="o", linestyle="", label="certificate")
        for (name, height), colour in zip(levels.items(), (ACHIEVED, USEFUL), strict=False):
            axes.axhline(height, color=colour, linewidth=1.2, linestyle=(0, (5, 2)), label=name)
        for name, place in marked.items():
            axes.axvline(place, color=MUTED, linewidth=1, linestyle=(0, (1, 2)), label=name)
        places = [place for place, _ in (*points, *least)]
        _label_range(axes.xaxis, min(places), max(places))
        axes.set_xlabel("rows")
        axes.set_ylabel("advantage")
        figure.legend(loc="outside upper left", ncols=1)

    return _svg(draw, width=4.4, height=4.2)


@_remembered
def lines(x: Sequence[float], found: Mapping[str, tuple[Sequence[float], str]], *, labels: tuple[str, str]) -> str:
    """Lines over plain axes, each (values, colour); `labels` names the axes x and y."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for (name, (values, colour)), marker in zip(found.items(), "osD^v", strict=False):
            axes.plot(x, values, color=colour, marker=marker, label=name, linewidth=1.3)
        axes.ticklabel_format(useOffset=False)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        figure.legend(loc="outside upper left", ncols=1)

    return _svg(draw, width=4.4, height=4.2)


@_remembered
def intervals(found: Mapping[str, tuple[float, float]], *, x_label: str, marked: tuple[float, str]) -> str:
    """A line from low to high below each name, and one place marked, on an axis from 0 to 1."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.axvline(marked[0], color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label=marked[1])
        places = [-float(place) for place in range(len(found))]
        lows, highs = zip(*found.values(), strict=True)
        axes.hlines(places, lows, highs, color=PROVEN, linewidth=2.2)
        axes.plot(
            highs, places, color=PROVEN, marker="|", markersize=9, linestyle="", clip_on=False, label="nobody exceeds"
        )
        axes.plot(lows, places, color=ACHIEVED, marker="o", linestyle="", clip_on=False, label="an attack has shown")
        for name, place in zip(found, places, strict=True):
            axes.annotate(name, (0, place), xytext=(2, 5), textcoords="offset points", fontsize=7.5, va="bottom")
        axes.set_yticks([])
        axes.locator_params(axis="x", nbins=5)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, 1)
        axes.set_ylim(places[-1] - 0.5, 0.9)
        axes.set_xlabel(x_label)
        figure.legend(loc="outside upper left", ncols=1)

    return _svg(draw, width=4.4, height=1.4 + 0.42 * len(found))


@_remembered
def sandwich(bound: float, attacks: Mapping[str, tuple[float, float, float]]) -> str:
    """A line from 0 to 1 on which nobody gets below the bound; each attack is (low, value, high), a row below it."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.axvspan(0, bound, color=PROVEN, alpha=0.16, linewidth=0, label="ruled out by proof")
        axes.axvline(bound, color=PROVEN, linewidth=2.2)
        for place, (name, (low, value, high)) in enumerate(attacks.items()):
            axes.hlines(-place, low, min(high, 1.0), color=ACHIEVED, linewidth=1.6)
            axes.plot([min(value, 1.0)], [-place], color=ACHIEVED, marker="o", linestyle="", clip_on=False)
            # On the wider side of the bound, so that no name crosses it.
            side, edge = ("right", 0.99) if bound < 0.5 else ("left", 0.01)
            axes.annotate(
                name, (edge, -place), xytext=(0, 6), textcoords="offset points", fontsize=7.5, ha=side, va="bottom"
            )
        axes.set_yticks([])
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(_percent)
        axes.set_ylim(0.4 - len(attacks), 0.75)
        axes.set_xlabel("share of the variance that stays hidden")
        figure.legend(loc="outside upper left", ncols=2)

    return _svg(draw, width=4.4, height=1.15 + 0.45 * len(attacks))


@_remembered
def rising(steps: Sequence[float], shares: Sequence[float], *, proven: float, achieved: float) -> str:
    """Shares against numbers of steps, between what is proven and what an attack left."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.axhline(achieved, color=ACHIEVED, linewidth=1.2, linestyle=(0, (5, 2)), label="the best attack left")
        axes.plot(steps, shares, color=MUTED, marker="o", label="mean that chains show")
        axes.axhline(proven, color=PROVEN, linewidth=1.8, label="proven")
        _set_ticks(axes, steps)
        axes.set_ylim(0, max(1.0, 1.02 * max(*shares, achieved)))
        axes.yaxis.set_major_formatter(_percent)
        axes.set_xlabel("steps of a chain")
        axes.set_ylabel("share that stays hidden")
        figure.legend(loc="outside upper left", ncols=2)

    return _svg(draw, width=4.4, height=3.2)


@_remembered
def image_rows(rows: Mapping[str, Sequence[Any]]) -> str:
    """Rows of small images in [0, 1], grey or coloured, each row with its label above it."""
    columns = max(len(images) for images in rows.values())
    band, above, gap = 68.4, 18.0, 3.0  # of a row, of its label in it, and around an image, in points
    width, height = 316.8, band * len(rows)

    def draw(figure: Any) -> None:
        # All in one pair of axes, measured in points: a pair for each image takes four times as long.
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        room_across, room_down = width / columns - 2 * gap, band - above - gap
        for row, (label, images) in enumerate(rows.items()):
            top = row * band
            axes.text(gap, top + gap, label, fontsize=9, va="top")
            for column, image in enumerate(images):
                tall, wide = len(image), len(image[0])
                scale = min(room_across / wide, room_down / tall)
                x, y = (column + 0.5) * width / columns, top + above + room_down / 2  # of its centre
                across, down = wide * scale / 2, tall * scale / 2
                place = (x - across, x + across, y + down, y - down)
                axes.imshow(image, extent=place, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
        axes.set(xlim=(0, width), ylim=(height, 0))

    return _svg(draw, width=width / 72, height=height / 72)


def _plot(axes: Any, x: Sequence[float], lines: Mapping[str, Sequence[float | None]]) -> None:
    """Each line in a style of its own; None is a gap."""
    for (name, values), (colour, dashes, marker) in zip(lines.items(), _STYLES[: len(lines)], strict=True):
        heights = [float("nan") if value is None else value for value in values]
        axes.plot(x, heights, color=colour, linestyle=dashes, marker=marker, label=name)


def _set_ticks(axes: Any, x: Sequence[float]) -> None:
    """Ticks where the values are, and nowhere else."""
    axes.set_xticks(list(x), [f"{value:g}" for value in x])
    axes.minorticks_off()


def _label_powers(*scales: Any) -> None:
    """Powers of ten on logarithmic scales of two decades or more: labels as text, which matplotlib would typeset."""
    for scale in scales:
        scale.set_major_formatter(lambda value, _: "10" + str(round(math.log10(value))).translate(_RAISED))
        scale.minorticks_off()


def _label_range(scale: Any, low: float, high: float) -> None:
    """Labels of a logarithmic scale: powers of ten, or plain numbers where these are too few."""
    from matplotlib.ticker import LogLocator

    decades = math.log10(high / low)
    if decades >= 2:
        _label_powers(scale)
        return
    scale.set_major_locator(LogLocator(subs=(1, 2, 5) if decades > 0.4 else range(1, 10)))
    scale.set_major_formatter("{x:g}")
    scale.set_minor_formatter("")


def _percent(share: float, _: object) -> str:
    return f"{100 * share:.3g} %"


def _count(value: float, _: object) -> str:
    return f"{value:,.0f}".replace(",", " ")


def light(svg: str) -> str:
    """The picture in light colours only, for pages that ignore the reader's colour scheme, such as notebooks."""
    return re.sub(r"@media \(prefers-color-scheme: dark\)\{:root\{[^}]*\}\}", "", svg, count=1)


def _svg(draw: Callable[[Any], None], *, width: float, height: float) -> str:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        # `figure.savefig` would draw everything twice.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for placeholder, (name, _, _) in _PALETTE.items():
        svg = svg.replace(placeholder, f"var(--{name})")
    light = "".join(f"--{name}:{colour};" for name, colour, _ in _PALETTE.values())
    dark = "".join(f"--{name}:{colour};" for name, _, colour in _PALETTE.values())
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}</style>"
    return re.sub(r"(<svg[^>]*>)", lambda match: match[1] + style, svg, count=1)
