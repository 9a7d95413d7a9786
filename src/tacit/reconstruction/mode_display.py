"""What is shown of bounds on every mode: a few words, or a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.display import Rows
from ..core.errors import InputError
from ..core.guarantee import Adversary
from ..core.wording import safe_text

if TYPE_CHECKING:
    from ..report import Figure

_Array = NDArray[np.float64]


def mode_card(what: str, bounds: _Array, *, basis: str, noise: object, adversary: Adversary) -> tuple[str, Rows]:
    """A card of the bounds' range."""
    ordered = np.sort(bounds.ravel())
    # Of an even number the upper of the two middle values: half of all modes have a bound at least as large.
    half, least, greatest = (safe_text(float(ordered[place]), toward="down") for place in (ordered.size // 2, 0, -1))
    return (
        f"{what}, for {bounds[0].size} {basis} modes of {len(bounds)} inputs",
        [
            ("for half of the modes", f"at least {half}"),
            ("the least and the greatest bound", f"{least} and {greatest}"),
            ("against", adversary.in_words),
            ("noise", repr(noise)),
        ],
    )


def mode_histogram(what: str, bounds: _Array, *, spread: float, caption: str) -> Figure:
    """How the bounds of all modes are spread, with the inputs' own spread marked where it is known."""
    from ..report import Figure, figures

    shown = bounds[np.isfinite(bounds) & (bounds > 0)]
    if not shown.size:
        raise InputError(
            "the bounds", "0 or inf alone", requirement="must hold one between these to be drawn", remedy="print them"
        )
    left = bounds.size - shown.size
    half = safe_text(float(np.median(shown)), toward="down")
    return Figure(
        title=f"{what[:1].upper()}{what[1:]}, mode by mode",
        caption=caption + f" {left} of {bounds.size} modes, whose bounds are 0 or infinite, are left out." * bool(left),
        alternative=f"A histogram of bounds: half of those shown exceed {half}.",
        svg=figures.histogram(
            {"bounds": shown}, marked=(spread, "spread of the inputs") if spread > 0 else None, x_label="bound"
        ),
    )
