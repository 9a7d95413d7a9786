"""Which functions of `tacit.theory.leakage` lead from a certified quantity to each reading of a certificate."""

from __future__ import annotations

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
"""By the loss that was certified, as `limits.confidence_limits` computes them."""

_READ_FROM = {
    "advantage": ("variation",),
    "balanced accuracy": ("variation",),
    "error": ("variation",),
    "bits": ("information",),
    "log loss": ("information",),
    "squared loss": ("squared",),
    "auc": ("squared", "variation"),
}


def conversions(loss: str, method: str, reading: str) -> tuple[str, ...]:
    """The functions whose values entered a reading, beside those that the certificate's own theorem names."""
    follows = _FOLLOWS.get(loss)
    if follows is None:  # nothing was certified
        return ()
    found: list[str] = []
    for quantity in _READ_FROM[reading]:
        found += follows[quantity]
        if method == "noise added":  # as `limits.unsmoothed` takes the lesser of several
            found += [*follows["variation"], *follows["squared"]]
            found += {"squared": [], "information": [_INFORMATION], "variation": [_ADVANTAGE]}[quantity]
    return tuple(dict.fromkeys([*found, *[_AUC] * (reading == "auc")]))
