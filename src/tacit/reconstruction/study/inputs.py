"""What the user gives: inputs and a model from files, the noise from its text.

Errors name parameters: `data` and `model` of `bound_files`, `inputs` and `features` of `bound`. In the middle of a
sentence a parameter stands in backquotes, so that the command line can put its own option there.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import InputError, NoTheoremError
from ...core.near import did_you_mean
from ...runtime import files, run_folder
from ...runtime.user_functions import UserFunction
from ..basis import usual_basis
from ..latent_priors import LatentPrior
from ..noise import Gaussian, Laplace, Noise, Quantized, Uniform
from ..priors import Gallery, Jittered, Mixture, Prior
from ..release import as_weights, open_release, weight_type
from .options import METHODS, Task, has_theorem

_Array = NDArray[np.float64]

_FUNCTION = "write model.py:function, a Python file and a function in it that returns the module"

_TRIED = 16
"""Inputs on which the model is tried before any work begins."""

_LARGEST = 1e100
"""The largest entry of an input: squares of such numbers, and sums of them, still fit into float64."""

_NOISES = ("gaussian", "laplace", "uniform", "quantized")
_PRIORS = "auto, gaussian, spectrum, jittered:SIZE or generator:FILE"
_MOST_GAUSSIAN = 4096
"""Entries of an input up to which `auto` fits a covariance; larger images have a spectrum."""

_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")


def inputs_of(path: Path, name: str = "data") -> _Array:
    """Read inputs from .npy, .npz, or a folder of images of one size (scaled to [0, 1], channels first)."""
    remedy = "pass a .npy or .npz file of numbers, or a folder of images"
    if files.existing(path, name).is_dir():
        values = _pictures(path, name)
    elif path.suffix not in (".npy", ".npz"):
        raise InputError(name, str(path), requirement="must be a folder, .npy or .npz", remedy=remedy)
    elif path.suffix == ".npy":
        values = files.array(path, name)
    else:
        held = files.arrays(path, name)
        if len(held) != 1:
            raise InputError(name, list(held), requirement="must hold one array", remedy="save the inputs alone")
        (values,) = held.values()
    return checked_inputs(values, name, remedy=remedy)


def checked_inputs(values: object, name: str, *, remedy: str = "pass numbers, one input per row") -> _Array:
    """Check that there are two inputs or more, of finite numbers that are not all the same."""
    array = validate.array(name, values, at_least=-_LARGEST, at_most=_LARGEST, remedy=remedy)
    if array.ndim < 2 or len(array) < 2:
        raise InputError(name, array.shape, requirement="must hold two inputs or more, one per row", remedy=remedy)
    if array.min() == array.max():
        raise InputError(name, float(array.min()), requirement="must not be the same number everywhere", remedy=remedy)
    return array


def prior_of(task: Task, inputs: _Array, name: str) -> Prior | LatentPrior:
    """Return the prior of `bayes`: the inputs themselves, or what `prior` names."""
    if not task.states_prior:
        if task.steps is not None:
            requirement = "must be left out: only chains take it, which need `public` or `prior`"
            raise InputError("steps", task.steps, requirement=requirement, remedy="leave it out, or give one of them")
        return Gallery(inputs)
    if "bayes" not in task.methods:
        raise InputError(
            "method",
            ",".join(task.methods),
            requirement="must include bayes, the only one that uses `public` and `prior`",
            remedy="add bayes",
        )
    if task.public is not None and task.public.shape[1:] != inputs.shape[1:]:
        raise InputError(
            "the shape of an input in `public`",
            task.public.shape[1:],
            requirement=f"must be that in `{name}`, {inputs.shape[1:]}",
            remedy="prepare both in the same way",
        )
    prior = _named_prior(task.prior, task.public) if isinstance(task.prior, str) else task.prior
    if not isinstance(prior, Mixture | LatentPrior):
        raise InputError(
            "prior",
            prior,
            requirement=f"must be {_PRIORS}, or a Mixture, Spectrum or Generator",
            remedy="leave it out; without `public` the adversary then holds the inputs themselves",
        )
    if tuple(prior.shape) != inputs.shape[1:]:
        raise InputError(
            "the shape of an input of `prior`",
            tuple(prior.shape),
            requirement=f"must be that in `{name}`, {inputs.shape[1:]}",
            remedy="fit it to inputs that are prepared in the same way",
        )
    return prior


def _named_prior(text: str, public: _Array | None) -> Mixture | LatentPrior:
    kind, _, rest = text.partition(":")
    if kind == "generator" and rest:
        files.existing(Path(rest), "prior")
        from ..learned_priors import Generator

        return Generator.load(rest)
    if text not in ("auto", "gaussian", "spectrum") and not (kind == "jittered" and rest):
        known = ("auto", "gaussian", "spectrum", "jittered:SIZE", "generator:FILE")
        raise InputError(
            "prior", text, requirement=f"must be {_PRIORS}", remedy=did_you_mean(text, known, "leave it out")
        )
    if public is None:
        requirement = f"must be given for `prior` {text}, which is fitted to public inputs"
        raise InputError("public", None, requirement=requirement, remedy="give some, or use generator:FILE")
    if kind == "jittered":
        try:
            size = float(rest)
        except ValueError:
            remedy = "write for example jittered:0.05"
            raise InputError("prior", text, requirement="must be jittered:SIZE", remedy=remedy) from None
        return Jittered(public, jitter=size)
    large = public[0].size > _MOST_GAUSSIAN and public.ndim in (3, 4)
    if text == "spectrum" or (text == "auto" and large):
        from ..spectrum import Spectrum

        return Spectrum.fitted(public)
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
            if unrounded.startswith(kind):  # rounded twice: a stranger's text could go on for ever
                raise ValueError
            return Quantized(noise_of(unrounded), float(step))
        return kinds[kind](float(size))
    except InputError as failure:  # of the noise itself, which calls its size by another name
        what = failure.what if failure.what == "noise" else "the size in `noise`"
        raise InputError(what, failure.value, requirement=failure.requirement, remedy=failure.remedy) from None
    except (KeyError, ValueError):
        raise InputError(
            "noise",
            text,
            requirement="must be gaussian:SIGMA, laplace:SCALE, uniform:WIDTH or quantized:STEP:gaussian:SIGMA",
            remedy=did_you_mean(kind, set(_NOISES) - {kind}, "write for example gaussian:1.7"),
        ) from None


def methods_of(text: str, noise: Noise, *, prior: bool) -> tuple[str, ...]:
    """Return the methods in a comma-separated list; `all` means those with a theorem for this noise."""
    if text == "all":
        return tuple(method for method in METHODS if has_theorem(method, noise, prior=prior))
    named = [method.strip() for method in text.split(",")]
    for method in named:
        validate.choice("method", method, METHODS, remedy="or use all")
        if not has_theorem(method, noise, prior=prior):
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


def device_of(device: str, engine: str) -> str:
    """Return where torch computes: "auto" takes a GPU if there is one here, and on a cluster the CPU."""
    import torch

    validate.device("device", device)
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "device",
            device,
            requirement="must be a device of this machine",
            remedy="use cpu, or install torch for CUDA",
        )
    return ("cuda" if torch.cuda.is_available() and engine == "local" else "cpu") if device == "auto" else device


def model_of(text: str, weights: Path | None, device: str, name: str = "model") -> Any:
    """Return the module that a function in a Python file returns, in evaluation mode, with its weights loaded."""
    from torch import nn

    made = made_by(text, name)
    if not isinstance(made, nn.Module):
        raise InputError(name, type(made).__name__, requirement="must return a torch module", remedy=_FUNCTION)
    if weights is not None:
        run_folder.load_weights(made, weights, name="weights" if name == "model" else f"{name}_weights")
    return made.eval().to(device)


def labels_of(path: Path) -> Any:
    """Read class numbers from .npy or .npz."""
    remedy = "save the class number of each input as .npy"
    if path.suffix not in (".npy", ".npz"):
        raise InputError("labels", str(path), requirement="must be .npy or .npz", remedy=remedy)
    files.existing(path, "labels")
    if path.suffix == ".npy":
        return files.array(path, "labels")
    held = files.arrays(path, "labels")
    if len(held) != 1:
        raise InputError("labels", list(held), requirement="must hold one array", remedy="save the labels alone")
    return next(iter(held.values()))


def checked_labels(labels: object, head: Any, inputs: int, features: Any, gallery: _Array) -> NDArray[np.int64] | None:
    """Check that labels and head come together, fit the inputs, and that the head reads the features."""
    import torch

    if labels is None and head is None:
        return None
    if labels is None or head is None:
        missing = "labels" if labels is None else "head"
        raise InputError(missing, None, requirement="must be given: accuracy needs labels and head", remedy="give both")
    numbers = np.asarray(labels)
    if numbers.shape != (inputs,) or numbers.dtype.kind not in "iu":
        raise InputError(
            "labels",
            f"{numbers.dtype} of shape {numbers.shape}",
            requirement=f"must be {inputs} whole numbers, one for each input",
            remedy="save the class number of each input",
        )
    try:
        with torch.no_grad():
            released = features(as_weights(torch.tensor(gallery[:_TRIED]), features))
            scores = head(as_weights(released, head))
        classes = scores.shape[1]
    except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
        raise InputError(
            "head",
            f"{type(failure).__name__}: {failure}",
            requirement="must turn features into scores, one row for each input",
            remedy="pass the rest of the network",
        ) from None
    if numbers.min() < 0 or numbers.max() >= classes:
        raise InputError(
            "labels",
            int(numbers.max() if numbers.min() >= 0 else numbers.min()),
            requirement=f"must be from 0 to {classes - 1}, the classes of `head`",
            remedy="number the classes as the head does",
        )
    return numbers.astype(np.int64)


def made_by(text: str, name: str) -> Any:
    """Return what FUNCTION of FILE.py returns; the file is run."""
    function = UserFunction.named(text, name, remedy=_FUNCTION)
    try:
        return function()
    except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
        raise function.refused(failure) from None


def error_of(
    model: Any, inputs: _Array, feature_error: float | None, *, names: tuple[str, str] = ("model", "data")
) -> float:
    """Return the error of released features that the bounds allow for: as given, or that of the model's type.

    A model that does not take the inputs, or computes them less exactly than stated, is refused before any work begins.
    """
    import torch

    place = next((tensor.device for tensor in model.state_dict().values()), torch.device("cpu"))
    some = torch.tensor(inputs[:_TRIED], device=place)
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
