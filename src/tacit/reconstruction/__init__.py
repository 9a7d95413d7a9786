"""How well can anyone rebuild an input from its noisy features? The only room that imports torch."""

from .anyone import TwoPointBounds, gallery_bound, identification_bound, two_point_bounds
from .local import LocalLimit, local_limit
from .noise import Gaussian, Laplace, Noise, Uniform
from .perturbation import perturbation
from .unbiased import UnbiasedBounds, hcr_bounds, multipoint_bounds, single_mode_bounds

__all__ = [
    "Gaussian",
    "Laplace",
    "LocalLimit",
    "Noise",
    "TwoPointBounds",
    "UnbiasedBounds",
    "Uniform",
    "gallery_bound",
    "hcr_bounds",
    "identification_bound",
    "local_limit",
    "multipoint_bounds",
    "perturbation",
    "single_mode_bounds",
    "two_point_bounds",
]
