"""How well can anyone rebuild an input from its noisy features? The only room that imports torch."""

from .anyone import TwoPointBounds, gallery_bound, identification_bound, two_point_bounds
from .attacks import linear_decoder, nearest_candidate
from .calibration import Calibration, calibrate
from .dithered import Dithered
from .local import LocalLimit, local_limit
from .noise import Gaussian, Laplace, Noise, Uniform
from .perturbation import perturbation
from .twins import Twins, twins
from .unbiased import (
    UnbiasedBounds,
    hcr_bounds,
    multipoint_bounds,
    release_assumptions,
    single_mode_bounds,
    unbiased_assumptions,
)

__all__ = [
    "Calibration",
    "Dithered",
    "Gaussian",
    "Laplace",
    "LocalLimit",
    "Noise",
    "Twins",
    "TwoPointBounds",
    "UnbiasedBounds",
    "Uniform",
    "calibrate",
    "gallery_bound",
    "hcr_bounds",
    "identification_bound",
    "linear_decoder",
    "local_limit",
    "multipoint_bounds",
    "nearest_candidate",
    "perturbation",
    "release_assumptions",
    "single_mode_bounds",
    "twins",
    "two_point_bounds",
    "unbiased_assumptions",
]
