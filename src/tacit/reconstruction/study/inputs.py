"""What the user gives: inputs and a model from files, the noise from its text."""

from __future__ import annotations

import copy
import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import InputError, NoTheoremError
from ...runtime import files, run_folder
from ..basis import usual_basis
from ..noise import Gaussian, Laplace, Noise, Quantized, Uniform
from ..priors import Gallery, Mixture, Prior
from ..release import open_release, weight_type
from .options import METHODS, Task, has_theorem

_Array = NDArray[np.float64]

_TRIED = 16
"""Inputs on which the model is tried before any work begins."""

_LARGEST = 1e100
"""Of an entry of an input: squares of such, and their sums, are far from the end of float64."""

_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")


def inputs_of(path: Path, option: str = "--data") -> _Array:
    """Inputs from .npy, .npz, or a folder of images of one size (scaled to [0, 1], channels first)."""
    remedy = "pass a .npy or .npz file of numbers, or a folder of images"
    if path.is_dir():
        values = _pictures(path, option)
    elif path.suffix == ".npy":
        values = files.array(path, option)
    elif path.suffix == ".npz":
        held = files.arrays(path, option)
        if len(held) != 1:
            raise InputError(option, list(held), requirement="must hold one array", remedy="save the inputs alone")
        (values,) = held.values()
    else:
        raise InputError(option, str(path), requirement="must be a folder, .npy or .npz", remedy=remedy)
    return checked_inputs(values, option, remedy=remedy)


def checked_inputs(values: object, option: str, *, remedy: str = "pass numbers, one input a row") -> _Array:
    """Two inputs or more, of finite numbers that are not all the same."""
    array = validate.array(option, values, at_least=-_LARGEST, at_most=_LARGEST, remedy=remedy)
    if array.ndim < 2 or len(array) < 2:
        raise InputError(option, array.shape, requirement="must hold two inputs or more, one a row", remedy=remedy)
    if array.min() == array.max():
        raise InputError(option, float(array.min()), requirement="must not be the same everywhere", remedy=remedy)
    return array


def prior_of(task: Task, inputs: _Array) -> Prior:
    """What the adversary of `bayes` knows: the inputs, or mean and covariance of public ones."""
    public = task.public
    if public is None:
        return Gallery(inputs)
    if "bayes" not in task.methods:
        raise InputError(
            "--method", ",".join(task.methods), requirement="must name bayes, which --public is for", remedy="add it"
        )
    if public.shape[1:] != inputs.shape[1:]:
        raise InputError(
            "the shape of --public",
            public.shape[1:],
            requirement=f"must be that of the inputs of --data, {inputs.shape[1:]}",
            remedy="prepare both in the same way",
        )
    return Mixture.fitted(public)


def _pictures(folder: Path, option: str) -> _Array:
    from PIL import Image

    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _IMAGES)
    except OSError as failure:
        raise InputError(
            option, f"{folder}: {failure.strerror}", requirement="must be readable", remedy="check your rights"
        ) from None
    if not paths:
        raise InputError(option, str(folder), requirement="must hold images", remedy=f"use {', '.join(_IMAGES)}")
    images = []
    for path in paths:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(files.plain(path, f"an image of {option}")) as picture:
                    images.append(_picture(picture))
        except InputError:
            raise
        except Exception as failure:  # readers of images raise what they like
            raise InputError(
                f"an image of {option}",
                f"{path.name}: {type(failure).__name__}",
                requirement="must be readable",
                remedy="mend it, or take it away",
            ) from None
    if len({image.shape for image in images}) > 1:
        sizes = sorted({image.shape for image in images})
        requirement = "must be of one size, all grey or all in colour"
        raise InputError(f"the images of {option}", sizes, requirement=requirement, remedy="convert them first")
    stacked = np.stack(images)
    return stacked[:, None] if stacked.ndim == 3 else stacked.transpose(0, 3, 1, 2)


def _picture(picture: Any) -> _Array:
    """Entries from 0 to 1: (high, wide) of a grey picture, whose 16 bits are kept, else (high, wide, 3)."""
    if picture.mode.startswith("I"):
        return np.asarray(picture, dtype=np.float64) / 65535.0
    return np.asarray(picture.convert("L" if picture.mode in ("1", "L") else "RGB")) / 255.0


def noise_of(text: str) -> Noise:
    """The noise that KIND:SIZE names."""
    kind, _, size = text.partition(":")
    kinds: dict[str, Callable[[float], Noise]] = {"gaussian": Gaussian, "laplace": Laplace, "uniform": Uniform}
    try:
        if kind == "quantized":
            step, _, unrounded = size.partition(":")
            return Quantized(noise_of(unrounded), float(step))
        return kinds[kind](float(size))
    except (KeyError, ValueError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "--noise",
            text,
            requirement="must be gaussian:SIGMA, laplace:SCALE, uniform:WIDTH or quantized:STEP:gaussian:SIGMA",
            remedy="write for example gaussian:1.7",
        ) from None


def methods_of(text: str, noise: Noise, *, public: bool) -> tuple[str, ...]:
    """The methods that a text with commas names; `all` are those that have a theorem for this noise."""
    if text == "all":
        return tuple(method for method in METHODS if has_theorem(method, noise, public=public))
    named = [method.strip() for method in text.split(",")]
    for method in named:
        validate.choice("--method", method, METHODS, remedy="or use all")
        if not has_theorem(method, noise, public=public):
            others = " or bayes with --public" if method == "bayes" else ""
            raise NoTheoremError(
                f"--method {method} must have Gaussian noise, got {noise!r}; use --method two-point,hcr{others}, or "
                "release with gaussian:SIGMA"
            )
    return tuple(method for method in METHODS if method in named)


def basis_of(text: str, inputs: _Array) -> str:
    """The basis that is asked for, or that of inputs of this shape."""
    validate.choice("--basis", text, ("auto", "dct", "pixel"), remedy="leave it out")
    if text == "auto":
        return usual_basis(inputs.shape[1:])
    if text == "dct" and inputs.ndim < 3:
        raise InputError("--basis", text, requirement="must be pixel for vectors", remedy="leave it out")
    return text


def model_of(text: str, weights: Path | None) -> Any:
    """The module that the factory of a Python file returns, in evaluation mode, with its weights."""
    from torch import nn

    name, _, factory = text.rpartition(":")
    remedy = "write model.py:factory, a Python file of yours and a function in it that returns the module"
    if not name or not Path(name).is_file():
        raise InputError("MODEL", text, requirement="must be FILE.py:FUNCTION, and the file must exist", remedy=remedy)
    specification = importlib.util.spec_from_file_location("tacit_model", name)
    if specification is None or specification.loader is None:
        raise InputError("MODEL", text, requirement="must be a Python file", remedy=remedy)
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
        made = getattr(module, factory)()
    except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
        raise InputError(
            "MODEL", f"{type(failure).__name__}: {failure}", requirement="must run", remedy=f"mend it, or {remedy}"
        ) from None
    if not isinstance(made, nn.Module):
        raise InputError("MODEL", type(made).__name__, requirement="must return a torch module", remedy=remedy)
    if weights is not None:
        run_folder.load_weights(made, weights)
    return made.eval()


def error_of(model: Any, inputs: _Array, feature_error: float | None) -> float:
    """The error of released features that bounds will pay for: as given, or by the model's type.

    Refuses a model that does not take the inputs, or takes them less exactly than is said, before any work begins.
    """
    import torch

    some = torch.tensor(inputs[:_TRIED])
    try:
        with torch.no_grad():
            model(some.to(weight_type(model), copy=True))
            copy.deepcopy(model).double()(some.clone())
    except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
        raise InputError(
            "MODEL",
            f"{type(failure).__name__}: {failure}",
            requirement=f"must take a batch of the inputs of --data, floats of shape {inputs.shape[1:]}",
            remedy="change one of them; of a text model give the embeddings as --data, and a MODEL that returns "
            "torch.nn.Identity()",
        ) from None
    return open_release(model, torch.tensor(inputs), feature_error=feature_error, only_these=True).error
