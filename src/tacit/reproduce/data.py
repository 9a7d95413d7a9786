"""The data sets of the experiments, read from a folder and normalised as published."""

from __future__ import annotations

import csv
import gzip
import os
import re
import tarfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from ..runtime.files import arrays, existing, plain
from .networks import IMAGENET_MEAN, IMAGENET_STD

_Array = NDArray[np.float64]

SIDE = 91
"""The side of ImageNet images in pixels, before the networks upsample them."""

_ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
)

_PICTURES = (".webp", ".png", ".jpg", ".jpeg")
_LARGEST = 2**28
"""Bytes, unpacked; the largest of these files, MNIST's training images, has a fifth of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """Evaluated images with labels, and images that an adversary may learn from; all normalised.

    Attributes
    ----------
    images, labels
        Evaluated images and their classes.
    known, known_labels
        Images that an adversary may learn from, in float32, and their classes.
    mean, std
        What undoes the normalisation.
    """

    images: _Array
    labels: NDArray[np.int64]
    known: NDArray[np.float32]
    known_labels: NDArray[np.int64]
    mean: _Array
    std: _Array

    def pictures(self, images: _Array) -> list[_Array]:
        """Return images for viewing: between 0 and 1, grey or with the colours last."""
        seen = np.clip(images * self.std + self.mean, 0, 1)
        return [image[0] if len(image) == 1 else image.transpose(1, 2, 0) for image in seen]


def data_folder(given: Path | None) -> Path:
    """Return where the data are: as given, or from the environment variable TACIT_DATA."""
    named = given or (Path(os.environ["TACIT_DATA"]) if os.environ.get("TACIT_DATA") else None)
    if given is not None:
        existing(given, "--data", kind="folder")
    if named is None or not named.is_dir():
        raise InputError(
            "--data",
            None if named is None else str(named),
            requirement="must be a folder, unless the environment variable TACIT_DATA names one",
            remedy="put mnist/*.gz, cifar10.npz or imagenet/*.png there",
        )
    return named


def data_of(name: str, folder: Path, *, images: int | None, seed: int) -> Data:
    """Return the images of one experiment: all, or this many drawn at random without replacement."""
    if name == "mnist":
        return _small(_mnist(folder / "mnist"), images, seed, mean=0.1307, std=0.3081)
    if name == "cifar10":
        return _small(_cifar10(folder / "cifar10.npz"), images, seed, mean=0.5, std=0.5)
    return _imagenet(folder / "imagenet", images, seed)


def _small(arrays: tuple[Any, Any, Any, Any], images: int | None, seed: int, *, mean: float, std: float) -> Data:
    known, known_labels, tested, labels = arrays
    chosen = _chosen(len(tested), images, seed)
    return Data(
        images=(tested[chosen] / 255 - mean) / std,
        labels=labels[chosen].astype(np.int64),
        known=((known / np.float32(255) - np.float32(mean)) / np.float32(std)).astype(np.float32),
        known_labels=known_labels.astype(np.int64),
        mean=np.full((tested.shape[1], 1, 1), mean),
        std=np.full((tested.shape[1], 1, 1), std),
    )


def _chosen(available: int, images: int | None, seed: int) -> NDArray[np.int64]:
    count = available if images is None else validate.whole("--images", images, at_least=2, remedy="leave it out")
    if count > available:
        raise InputError("--images", count, requirement=f"must be at most {available}", remedy="lower it")
    return np.sort(np.random.default_rng(seed).permutation(available)[:count])


def _mnist(folder: Path) -> tuple[Any, Any, Any, Any]:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    known, known_labels, tested, labels = (_idx(folder / f"{name}-ubyte.gz") for name in names)
    return known[:, None], known_labels, tested[:, None], labels


def mnist_rows(folder: Path) -> tuple[_Array, NDArray[np.int64], _Array, NDArray[np.int64]]:
    """Return MNIST's training images and labels, then its test images and labels; rows of numbers from 0 to 1."""
    known, known_labels, tested, labels = _mnist(folder)
    rows = (images.reshape(len(images), -1) / 255.0 for images in (known, tested))
    return next(rows), known_labels.astype(np.int64), next(rows), labels.astype(np.int64)


_Table = dict[str, NDArray[np.str_]]


def adult_tables(path: Path) -> tuple[tuple[_Table, NDArray[np.int64]], tuple[_Table, NDArray[np.int64]]]:
    """Return the records of adult.data and of adult.test by column, and whether each person earns more than 50K."""
    try:
        with tarfile.open(plain(path, "the data")) as archive:
            names = {Path(name).name: name for name in archive.getnames()}
            files = [archive.extractfile(names[name]) for name in ("adult.data", "adult.test")]
            data, test = (_limited(file).decode() for file in files if file is not None)
    except InputError:
        raise
    except Exception:  # tarfile and its decompressors raise anything
        raise _unusable(
            path, "must be an archive with adult.data and adult.test", "put UCI's Adult there as adult.tar.xz"
        ) from None
    return _adult(data, path), _adult(test, path)


def _adult(text: str, path: Path) -> tuple[_Table, NDArray[np.int64]]:
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if len(row) == len(_ADULT) + 1]
    rows = [row for row in rows if row[0].isdigit()]  # some copies have a header, and UCI's test file a remark
    if not rows:
        raise _unusable(path, "must hold records of 15 values", "put UCI's Adult there as adult.tar.xz")
    columns = np.array(rows, dtype=str).T
    return dict(zip(_ADULT, columns, strict=False)), np.array([row[-1].startswith(">") for row in rows], dtype=np.int64)


def _idx(path: Path) -> NDArray[np.uint8]:
    try:
        with gzip.open(plain(path, "the data")) as file:
            raw = _limited(file)
        shape = [int.from_bytes(raw[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(raw[3])]
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
    except InputError:
        raise
    except Exception:  # gzip, its decompressor and NumPy raise anything
        raise _unusable(path, "must be MNIST's gzipped IDX file", "put MNIST's four .gz files there") from None


def _cifar10(path: Path) -> tuple[Any, Any, Any, Any]:
    remedy = "save x_train, y_train, x_test, y_test there (images as rows of height × width × 3, 0 to 255)"
    try:
        held = arrays(path, "the data")
        known, known_labels, tested, labels = (held[key] for key in ("x_train", "y_train", "x_test", "y_test"))
    except (InputError, KeyError):
        raise _unusable(path, "must hold CIFAR-10", remedy) from None
    if not all(images.ndim == 4 and images.shape[1:] == (32, 32, 3) for images in (known, tested)):
        raise _unusable(path, "must hold images of 32 × 32 × 3", remedy)
    return known.transpose(0, 3, 1, 2), known_labels.ravel(), tested.transpose(0, 3, 1, 2), labels.ravel()


def pictures_in(folder: Path) -> list[Path]:
    """Return the image files of a folder, in order; their names begin with the class index."""
    remedy = "put ImageNet images there, named by class index, e.g. 0207_golden_retriever.png"
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _PICTURES) if folder.is_dir() else []
    if len(paths) < 2:
        raise _unusable(folder, "must hold two images or more", remedy)
    for path in paths:
        if not re.match(r"\d+", path.name):
            raise _unusable(path, "must have a name that begins with the class index", remedy)
    return paths


def _imagenet(folder: Path, images: int | None, seed: int) -> Data:
    paths = pictures_in(folder)
    chosen = _chosen(len(paths), images, seed)
    mean, std = (np.array(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
    everything = (np.stack([_picture(path) for path in paths]) - mean) / std
    labels = np.array([int(re.match(r"\d+", path.name)[0]) for path in paths])  # type: ignore[index]
    rest = np.setdiff1d(np.arange(len(paths)), chosen)
    return Data(
        images=everything[chosen],
        labels=labels[chosen],
        known=everything[rest].astype(np.float32),
        known_labels=labels[rest],
        mean=mean,
        std=std,
    )


def _picture(path: Path) -> _Array:
    """Return the middle square of an image, antialiased, between 0 and 1, colours first."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(plain(path, "the data")) as picture:
                colours = picture.convert("RGB")
    except InputError:
        raise
    except Exception:  # image readers raise anything
        raise _unusable(path, "must be an image", "repair or delete it") from None
    side = min(colours.size)
    left, top = ((length - side) // 2 for length in colours.size)
    box = (left, top, left + side, top + side)
    return np.asarray(colours.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box)).transpose(2, 0, 1) / 255.0


def _limited(file: IO[bytes] | gzip.GzipFile) -> bytes:
    """Read a compressed file, unless it unpacks to more than any of these data sets."""
    content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError
    return content


def _unusable(path: Path, requirement: str, remedy: str) -> InputError:
    return InputError("the data", str(path), requirement=requirement, remedy=remedy)
