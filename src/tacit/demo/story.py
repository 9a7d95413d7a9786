"""The three parts in one report."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from ..core import validate
from ..core.errors import MissingExtraError
from ..report import Report
from . import classifier, features, scores
from .digits import PRIVATE, drawn

SECONDS = (2.0, 4.0, 8.0, 18.0, 10.0, 1.0, 17.0, 2.0, 0.5, 0.5, 0.5, 1.0)
"""About how long each step takes on two cores."""


def demo(*, seed: int = 0, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Make three releases; bound each, attack it and compare.

    Parameters
    ----------
    seed
        The seed of all draws but the noise of the second part, which takes none: its numbers differ between runs.
    advance
        Called with the name of each step, in the order of `SECONDS`, as it begins.

    Returns
    -------
    Report
        One chapter per release.
    """
    from threadpoolctl import threadpool_limits

    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    _require_extras()
    digits = drawn(seed)
    with threadpool_limits(1):  # the arrays are small: more threads would only wait for each other
        first, first_detail = features.part(digits, seed, advance)
        second, student, second_detail = classifier.part(digits, advance)
        third, third_detail = scores.part(digits, student, seed, advance)
    return Report(
        command="demo",
        title="Three releases of handwritten digits: what nobody can learn, and what attackers got",
        summary=(
            f"1797 small pictures of digits take the place of your data; {PRIVATE} are private.",
            "They are released in three ways, two weak on purpose.",
        ),
        chapters=(first, second, third),
        detail={
            "seed": seed,
            "features": first_detail,
            "classifier": second_detail,
            "scores": third_detail,
        },
    )


def _require_extras() -> None:
    missing = [name for name in ("torch", "opendp") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"tacit demo must have torch and opendp, got no {' and no '.join(missing)}; "
            "pip install 'tacit-privacy[demo]'"
        )
