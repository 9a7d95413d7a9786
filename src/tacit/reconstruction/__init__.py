"""How well can anyone rebuild an input from its noisy features? The only package that imports torch."""

import warnings
from typing import Any

from .algorithm1 import perturbation
from .attacks import (
    evaluate_decoder,
    gradient_inversion,
    learned_decoder,
    linear_decoder,
    nearest_candidate,
    posterior_mean,
    trained_decoder,
)
from .bayes import BayesBounds, bayes_bound
from .calibration import Calibration, calibrate
from .causal_prior import CausalPrior
from .dithered import Dithered
from .identification import identification_bound
from .learned_priors import Generator, train_generator
from .local import LocalLimit, local_limit
from .noise import Gaussian, Laplace, Noise, Quantized, Uniform
from .other_noise import Density, Sampled
from .posterior_attacks import posterior_attack
from .posterior_bounds import PosteriorBounds, posterior_bound
from .priors import Gallery, Jittered, Mixture, Prior
from .spectrum import Spectrum
from .study import bound, bound_files, bound_texts_files
from .text_prior import TextPrior
from .texts import Rounding, TextAttack, TextBounds, text_attack, text_bounds
from .twin_search import Twins, twins
from .two_point import TwoPointBounds, two_point_bounds
from .unbiased import (
    UnbiasedBounds,
    hcr_bounds,
    multipoint_bounds,
    release_assumptions,
    single_mode_bounds,
    unbiased_assumptions,
)

__all__ = [
    "BayesBounds",
    "Calibration",
    "CausalPrior",
    "Density",
    "Dithered",
    "Gallery",
    "Gaussian",
    "Generator",
    "Jittered",
    "Laplace",
    "LocalLimit",
    "Mixture",
    "Noise",
    "PosteriorBounds",
    "Prior",
    "Quantized",
    "Rounding",
    "Sampled",
    "Spectrum",
    "TextAttack",
    "TextBounds",
    "TextPrior",
    "Twins",
    "TwoPointBounds",
    "UnbiasedBounds",
    "Uniform",
    "bayes_bound",
    "bound",
    "bound_files",
    "bound_texts_files",
    "calibrate",
    "evaluate_decoder",
    "gradient_inversion",
    "hcr_bounds",
    "identification_bound",
    "learned_decoder",
    "linear_decoder",
    "local_limit",
    "multipoint_bounds",
    "nearest_candidate",
    "perturbation",
    "posterior_attack",
    "posterior_bound",
    "posterior_mean",
    "release_assumptions",
    "single_mode_bounds",
    "text_attack",
    "text_bounds",
    "train_generator",
    "trained_decoder",
    "twins",
    "two_point_bounds",
    "unbiased_assumptions",
]


def __getattr__(name: str) -> Any:
    """Return what an old name stands for, with a warning."""
    if name == "tried_decoder":
        warnings.warn("tried_decoder is evaluate_decoder now", DeprecationWarning, stacklevel=2)
        return evaluate_decoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
