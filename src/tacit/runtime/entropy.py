"""Exact privacy noise from cryptographic generators, seeded by the operating system. Nothing takes a seed.

Floating-point noise leaks through its low bits (Mironov, CCS 2012, doi:10.1145/2382196.2382264), so privacy noise is
made of integers. Discrete Laplace and Gaussian noise come from OpenDP, which samples them exactly (Canonne, Kamath and
Steinke, arXiv:2004.00010v4) with OpenSSL's generator, seeded by the operating system. OpenDP has no Bernoulli variable
with a rational probability, so that one is drawn here, with the operating system's own generator.
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..core import validate
from ..core.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LARGEST_SCALE = 2.0**40
"""OpenDP clamps its noise to 64-bit integers; up to this scale that happens with probability below exp(−2²²)."""


def discrete_laplace(scale: float, *, size: int) -> NDArray[np.int64]:
    """Draw independent integers x with probabilities proportional to exp(−|x|/scale).

    Parameters
    ----------
    scale
        The scale of the noise.
    size
        The number of integers.

    Returns
    -------
    ndarray
        The integers.
    """
    scale, size = _scale_and_size(scale, size)
    return _noise(_laplace(scale), size)


def discrete_gaussian(scale: float, *, size: int) -> NDArray[np.int64]:
    """Draw independent integers x with probabilities proportional to exp(−x²/(2·scale²)).

    Parameters
    ----------
    scale
        The scale of the noise, close to its standard deviation.
    size
        The number of integers.

    Returns
    -------
    ndarray
        The integers.
    """
    scale, size = _scale_and_size(scale, size)
    return _noise(_gaussian(scale), size)


def bernoulli(probability: Fraction | int, *, size: int) -> NDArray[np.bool_]:
    """Draw independent coins that are true with exactly the given probability.

    Parameters
    ----------
    probability
        A rational number between 0 and 1.
    size
        The number of coins.

    Returns
    -------
    ndarray
        The coins, as booleans.
    """
    if isinstance(probability, bool) or not isinstance(probability, Fraction | int) or not 0 <= probability <= 1:
        raise InputError(
            "probability",
            probability,
            requirement="must be a Fraction between 0 and 1",
            remedy="write Fraction(1, 3), or Fraction(0.3) for exactly the float 0.3",
        )
    import numpy as np

    size = _size(size)
    exact = Fraction(probability)
    coins = (secrets.randbelow(exact.denominator) < exact.numerator for _ in range(size))
    return np.fromiter(coins, dtype=np.bool_, count=size)


def _scale_and_size(scale: object, size: object) -> tuple[float, int]:
    remedy = "give the scale of the noise, e.g. sensitivity/epsilon for Laplace"
    return validate.number("scale", scale, above=0, at_most=_LARGEST_SCALE, remedy=remedy), _size(size)


def _size(size: object) -> int:
    return validate.whole("size", size, at_least=1, remedy="say how many values to draw")


# What draws at a scale holds nothing that was drawn. It is made once, as that takes four times as long as a draw.


@lru_cache(maxsize=32)
def _laplace(scale: float) -> Any:
    domains, metrics, measurements = _opendp()
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l1_distance(T="i64")
    return measurements.make_laplace(*space, scale=scale)


@lru_cache(maxsize=32)
def _gaussian(scale: float) -> Any:
    domains, metrics, measurements = _opendp()
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l2_distance(T="f64")
    return measurements.make_gaussian(*space, scale=scale)


def _noise(measurement: Any, size: int) -> NDArray[np.int64]:
    import numpy as np

    return np.array(measurement([0] * size), dtype=np.int64)


def _opendp() -> tuple[Any, Any, Any]:
    """OpenDP's domains, metrics and measurements; its prelude would load scikit-learn and whatever else it can wrap."""
    try:
        from opendp import domains, measurements, metrics
        from opendp.mod import enable_features
    except ImportError:
        raise MissingExtraError(
            "exact privacy noise must come from OpenDP, got no such package; pip install 'tacit-privacy[learning]'"
        ) from None
    enable_features("contrib")  # OpenDP's name for all its samplers but the newest
    return domains, metrics, measurements
