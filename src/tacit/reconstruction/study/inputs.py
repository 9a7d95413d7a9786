"""What the user gives: inputs and a model from files, the noise from its text.

Errors name parameters: `data` and `model` of `bound_files`, `inputs` and `features` of `bound`. In the middle of a
sentence a parameter stands in backquotes, so that the command line can put its own option there.
"""

from __future__ import annotations

import copy
import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
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
"""The largest entry of an input: squares of such numbers, and sums of them, still fit into float64."""

_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")


def inputs_of(path: Path, name: str = "data") -> _Array:
    """Read inputs from .npy, .npz, or a folder of images of one size (scaled to [0, 1], channels first)."""
    remedy = "pass a .npy or .npz file of numbers, or a folder of images"
    if path.is_dir():
        values = _pictures(path, name)
    elif path.suffix not in (".npy", ".npz"):
        raise InputError(name, str(path), requirement="must be a folder, .npy or .npz", remedy=remedy)
    elif not path.exists():
        raise _missing(name, path)
    elif path.suffix == ".npy":
        values = files.array(path, name)
    else:
        held = files.arrays(path, name)
        if len(held) != 1:
            raise InputError(name, list(held), requirement="must hold one array", remedy="save the inputs alone")
        (values,) = held.values()
    return checked_inputs(values, name, remedy=remedy)


def _missing(name: str, path: Path) -> InputError:
    return InputError(name, str(path), requirement="must be a file that exists", remedy="check the path")


def checked_inputs(values: object, name: str, *, remedy: str = "pass numbers, one input per row") -> _Array:
    """Check that there are two inputs or more, of finite numbers that are not all the same."""
    array = validate.array(name, values, at_least=-_LARGEST, at_most=_LARGEST, remedy=remedy)
    if array.ndim < 2 or len(array) < 2:
        raise InputError(name, array.shape, requirement="must hold two inputs or more, one per row", remedy=remedy)
    if array.min() == array.max():
        raise InputError(name, float(array.min()), requirement="must not be the same number everywhere", remedy=remedy)
    return array


def prior_of(task: Task, inputs: _Array, name: str) -> Prior:
    """Return the prior of `bayes`: the inputs themselves, or a Gaussian fitted to public ones."""
    public = task.public
    if public is None:
        return Gallery(inputs)
    if "bayes" not in task.methods:
        raise InputError(
            "method",
            ",".join(task.methods),
            requirement="must include bayes, the only one that uses `public`",
            remedy="add bayes",
        )
    if public.shape[1:] != inputs.shape[1:]:
        raise InputError(
            "the shape of an input in `public`",
            public.shape[1:],
            requirement=f"must be that in `{name}`, {inputs.shape[1:]}",
            remedy="prepare both in the same way",
        )
    return Mixture.fitted(public)


def _pictures(folder: Path, name: str) -> _Array:
    from PIL import Image

    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _IMAGES)
    except OSError as failure:
        raise InputError(
            name, f"{folder}: {failure.strerror}", requirement="must be readable", remedy="check its permissions"
        ) from None
    if not paths:
        raise InputError(name, str(folder), requirement="must hold images", remedy=f"use {', '.join(_IMAGES)}")
    images = []
    for path in paths:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(files.plain(path, f"an image in `{name}`")) as picture:
                    images.append(_picture(picture))
        except InputError:
            raise
        except Exception as failure:  # image readers raise anything
            raise InputError(
                f"an image in `{name}`",
                f"{path.name}: {type(failure).__name__}",
                requirement="must be readable",
                remedy="repair or remove it",
            ) from None
    if len({image.shape for image in images}) > 1:
        sizes = sorted({image.shape for image in images})
        requirement = "must be of one size, all grey or all in colour"
        raise InputError(f"the images in `{name}`", sizes, requirement=requirement, remedy="convert them first")
    stacked = np.stack(images)
    return stacked[:, None] if stacked.ndim == 3 else stacked.transpose(0, 3, 1, 2)


def _picture(picture: Any) -> _Array:
    """Return entries from 0 to 1: (height, width) for grey, with all of its 16 bits, else (height, width, 3)."""
    if picture.mode.startswith("I"):
        return np.asarray(picture, dtype=np.float64) / 65535.0
    return np.asarray(picture.convert("L" if picture.mode in ("1", "L") else "RGB")) / 255.0


def noise_of(text: str) -> Noise:
    """Return the noise that KIND:SIZE names."""
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
            "noise",
            text,
            requirement="must be gaussian:SIGMA, laplace:SCALE, uniform:WIDTH or quantized:STEP:gaussian:SIGMA",
            remedy="write for example gaussian:1.7",
        ) from None


def methods_of(text: str, noise: Noise, *, public: bool) -> tuple[str, ...]:
    """Return the methods in a comma-separated list; `all` means those with a theorem for this noise."""
    if text == "all":
        return tuple(method for method in METHODS if has_theorem(method, noise, public=public))
    named = [method.strip() for method in text.split(",")]
    for method in named:
        validate.choice("method", method, METHODS, remedy="or use all")
        if not has_theorem(method, noise, public=public):
            others = ", or bayes with `public`" if method == "bayes" else ""
            raise NoTheoremError(
                f"`method` {method} must have Gaussian noise, got {noise!r}; use two-point,hcr{others}, or "
                "release with gaussian:SIGMA"
            )
    return tuple(method for method in METHODS if method in named)


def basis_of(text: str, inputs: _Array) -> str:
    """Return the basis that was asked for, or the usual one for inputs of this shape."""
    validate.choice("basis", text, ("auto", "dct", "pixel"), remedy="leave it out")
    if text == "auto":
        return usual_basis(inputs.shape[1:])
    if text == "dct" and inputs.ndim < 3:
        raise InputError("basis", text, requirement="must be pixel for vectors", remedy="leave it out")
    return text


def model_of(text: str, weights: Path | None) -> Any:
    """Return the module that a function in a Python file returns, in evaluation mode, with its weights loaded."""
    from torch import nn

    name, _, factory = text.rpartition(":")
    remedy = "write model.py:function, a Python file and a function in it that returns the module"
    if not name or not Path(name).is_file():
        raise InputError("model", text, requirement="must be FILE.py:FUNCTION, and the file must exist", remedy=remedy)
    specification = importlib.util.spec_from_file_location("tacit_model", name)
    if specification is None or specification.loader is None:
        raise InputError("model", text, requirement="must be a Python file", remedy=remedy)
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
        if not hasattr(module, factory):
            raise InputError(
                "model",
                text,
                requirement=f"must name a function of {name}",
                remedy=f"it has {', '.join(_functions(module)) or 'none'}",
            )
        made = getattr(module, factory)()
    except InputError:
        raise
    except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
        raise InputError(
            "model",
            f"{type(failure).__name__}: {failure}",
            requirement=f"must run: {text}",
            remedy=f"correct the file, or {remedy}",
        ) from None
    if not isinstance(made, nn.Module):
        raise InputError("model", type(made).__name__, requirement="must return a torch module", remedy=remedy)
    if weights is not None:
        if not weights.exists():
            raise _missing("weights", weights)
        run_folder.load_weights(made, weights, name="weights")
    return made.eval()


def _functions(module: ModuleType) -> list[str]:
    """The names of what a file itself defines and can be called."""
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]


def error_of(
    model: Any, inputs: _Array, feature_error: float | None, *, names: tuple[str, str] = ("model", "data")
) -> float:
    """Return the error of released features that the bounds allow for: as given, or that of the model's type.

    A model that does not take the inputs, or computes them less exactly than stated, is refused before any work begins.
    """
    import torch

    some = torch.tensor(inputs[:_TRIED])
    try:
        with torch.no_grad():
            model(some.to(weight_type(model), copy=True))
            copy.deepcopy(model).double()(some.clone())
    except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
        raise InputError(
            names[0],
            f"{type(failure).__name__}: {failure}",
            requirement=f"must take a batch of `{names[1]}`, floats of shape {inputs.shape[1:]}",
            remedy=f"change one of them; for a text model, pass its embeddings as `{names[1]}` and a `{names[0]}` "
            "that does nothing, torch.nn.Identity()",
        ) from None
    return open_release(model, torch.tensor(inputs), feature_error=feature_error, only_these=True).error
