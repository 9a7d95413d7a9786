"""Which functions of `tacit.theory` a reading of a certificate rests on."""

from __future__ import annotations

from ..theory import leakage

_ADVANTAGE = "theory.leakage.advantage_upper"
_INFORMATION = "theory.leakage.information_upper"
_SQUARED = "theory.leakage.squared_from_information"
_AUC = "theory.leakage.auc_upper"

_FOLLOWS = {
    "squared": {"squared": (), "information": (_INFORMATION,), "variation": (_ADVANTAGE,)},
    "log": {"squared": (_SQUARED,), "information": (), "variation": (_SQUARED, _ADVANTAGE)},
    "zero-one": {"squared": (), "information": (_INFORMATION,), "variation": ()},
    "joint": {"squared": (), "information": (_INFORMATION,), "variation": (_ADVANTAGE,)},
}
"""By the loss that was certified: the conversions to each quantity, as `limits.confidence_limits` makes them."""

_READ_FROM = {
    "advantage": ("variation",),
    "balanced accuracy": ("variation",),
    "error": ("variation",),
    "bits": ("information",),
    "log loss": ("information",),
    "squared loss": ("squared",),
    "auc": ("squared", "variation"),
}


def theorem_of(
    theorem: tuple[str, ...],
    reading: str,
    *,
    loss: str,
    method: str,
    squared: float,
    information: float,
    variation: float,
) -> tuple[str, ...]:
    """All functions whose values enter a reading of a certificate; the one that gives the number comes first.

    `theorem` names those that lead to the certificate's three bounds, after a few words.
    """
    names = [*theorem, *_conversions(loss, method, reading)]
    if loss == "none":
        return tuple(names)
    if reading == "auc":
        return _first(_AUC, names)
    # Each bound is the least of several limits.
    quantity = _READ_FROM[reading][0]
    if quantity == "variation":
        converted = _ADVANTAGE in names and leakage.advantage_upper(squared) == variation
        decisive = [_ADVANTAGE if converted else "variation"]
    elif quantity == "information":
        converted = _INFORMATION in names and leakage.information_upper(squared) == information
        decisive = [_INFORMATION if converted else "smoothing_root", "log_"]
    else:
        by_variation = ["variation"] * (squared == variation)
        decisive = ["lipschitz_excess", *by_variation, "smoothing_root", _SQUARED, "squared_"]
    functions = [name for name in reversed(names) if name.startswith("theory.")]
    return _first(next((name for part in decisive for name in functions if part in name), names[-1]), names)


def _first(function: str, names: list[str]) -> tuple[str, ...]:
    """The words, this function, and the other functions."""
    words = [name for name in names if not name.startswith("theory.")]
    return tuple(dict.fromkeys([*words, function, *names]))


def _conversions(loss: str, method: str, reading: str) -> tuple[str, ...]:
    """The functions beside those that the certificate's own theorem names."""
    follows = _FOLLOWS.get(loss)
    if follows is None:  # nothing was certified
        return ()
    found: list[str] = []
    for quantity in _READ_FROM[reading]:
        found += follows[quantity]
        if method == "noise added":  # `limits.unsmoothed` takes the least of several
            found += [*follows["variation"], *follows["squared"]]
            found += {"squared": [], "information": [_INFORMATION], "variation": [_ADVANTAGE]}[quantity]
    return tuple(dict.fromkeys([*found, *[_AUC] * (reading == "auc")]))
