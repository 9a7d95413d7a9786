"""Which functions of `tacit.theory` a reading of a certificate rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..theory import leakage

if TYPE_CHECKING:
    from .certificate import Certificate

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


def theorem_of(certificate: Certificate, reading: str) -> tuple[str, ...]:
    """All functions whose values enter a reading; the one that gave the number comes last."""
    names = [*certificate.theorem, *_conversions(certificate.loss, certificate.method, reading)]
    last = _decisive(certificate, reading, names)
    return (*(name for name in names if name != last), last)


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


def _decisive(certificate: Certificate, reading: str, names: list[str]) -> str:
    """The function whose value is the number, among several limits of which the least counts."""
    quantity = _READ_FROM[reading][-1]
    if reading == "auc" or certificate.loss == "none":
        return names[-1]
    if quantity == "variation":
        by_conversion = _ADVANTAGE in names and leakage.advantage_upper(certificate.squared) == certificate.variation
        kinds = [_ADVANTAGE if by_conversion else "variation"]
    elif quantity == "information":
        by_conversion = (
            _INFORMATION in names and leakage.information_upper(certificate.squared) == certificate.information
        )
        kinds = [_INFORMATION if by_conversion else "smoothing_root", "log_"]
    else:
        equal = certificate.squared == certificate.variation
        kinds = ["lipschitz_excess", *["variation"] * equal, "smoothing_root", _SQUARED, "squared_"]
    functions = [name for name in reversed(names) if name.startswith("theory.")]
    return next((name for kind in kinds for name in functions if kind in name), names[-1])
