"""How bounds on every mode are shown: a few lines, or a histogram."""

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
    """Return the headline and the rows that summarise the bounds."""
    ordered = np.sort(bounds.ravel())
    # With an even number of modes, the upper of the two middle values: half of all bounds are at least as large.
    half, least, greatest = (safe_text(float(ordered[place]), toward="down") for place in (ordered.size // 2, 0, -1))
    return (
        f"{what}: {bounds[0].size} {basis} modes of {len(bounds)} inputs",
        [
            ("half of the modes", f"at least {half}"),
            ("smallest and largest bound", f"{least} and {greatest}"),
            ("against", adversary.in_words),
            ("noise", repr(noise)),
        ],
    )


def mode_histogram(what: str, bounds: _Array, *, spread: float, caption: str) -> Figure:
    """Return a histogram of the bounds of all modes, with the inputs' own spread marked if it is known."""
    from ..report import Figure, figures

    shown = bounds[np.isfinite(bounds) & (bounds > 0)]
    if not shown.size:
        raise InputError(
            "the bounds", "only 0 or inf", requirement="must include a positive finite one", remedy="print them instead"
        )
    left = bounds.size - shown.size
    half = safe_text(float(np.median(shown)), toward="down")
    return Figure(
        title=f"{what[:1].upper()}{what[1:]}, by mode",
        caption=caption + f" Not shown: {left} of {bounds.size} modes, whose bounds are 0 or infinite." * bool(left),
        alternative=f"A histogram of bounds: half of those shown exceed {half}.",
        svg=figures.histogram(
            {"bounds": shown}, marked=(spread, "spread of the inputs") if spread > 0 else None, x_label="bound"
        ),
    )
