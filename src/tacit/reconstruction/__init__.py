"""How well can anyone rebuild an input from its noisy features? The only room that imports torch."""

from .local import LocalLimit, local_limit
from .noise import Gaussian, Laplace, Noise, Uniform
from .perturbation import perturbation
from .unbiased import UnbiasedBounds, hcr_bounds, multipoint_bounds, single_mode_bounds

__all__ = [
    "Gaussian",
    "Laplace",
    "LocalLimit",
    "Noise",
    "UnbiasedBounds",
    "Uniform",
    "hcr_bounds",
    "local_limit",
    "multipoint_bounds",
    "perturbation",
    "single_mode_bounds",
]
