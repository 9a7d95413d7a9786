"""Checks of what callers pass in. Values are checked here once, and nothing further inside checks them again.

Each function returns its value in the type that the library expects, or raises `InputError`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .near import did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_TEXT = 200
"""The most characters that an entry of a column may have."""


def number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
    remedy: str,
) -> float:
    """Check a real number within the given limits; nan is refused."""
    result = math.nan
    if isinstance(value, float | numbers.Real) and not isinstance(value, bool):
        try:
            result = float(value)
        except (OverflowError, ValueError):
            result = math.nan
    if (
        math.isnan(result)
        or (finite and math.isinf(result))
        or (above is not None and not result > above)
        or (at_least is not None and not result >= at_least)
        or (below is not None and not result < below)
        or (at_most is not None and not result <= at_most)
    ):
        limits = {">": above, "≥": at_least, "<": below, "≤": at_most}
        wanted = " and ".join(f"{sign} {limit:g}" for sign, limit in limits.items() if limit is not None)
        kind = "a finite number" if finite else "a number (not nan)"
        requirement = f"must be {kind}{' ' if wanted else ''}{wanted}"
        raise InputError(name, value, requirement=requirement, remedy=remedy)
    return result


def budget(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    remedy: str,
) -> float:
    """Check an ε or a δ that may be spent; the float returned is never larger than the number given.

    Shares of the budget are computed from this float: in a narrower type they could add up to more than the whole.
    """
    near: object = value
    if isinstance(value, Decimal):
        near = math.nan if value.is_snan() else float(value)
    try:
        result = number(name, near, above=above, at_least=at_least, below=below, at_most=at_most, remedy=remedy)
    except InputError as refusal:
        raise InputError(name, value, requirement=refusal.requirement, remedy=remedy) from None
    if isinstance(value, float | numbers.Integral):
        return result
    ratio = getattr(value, "as_integer_ratio", None)
    exact = None if ratio is None else Fraction(*map(int, ratio()))
    return result if exact is not None and Fraction(result) <= exact else math.nextafter(result, -math.inf)


def probability(name: str, value: object, *, remedy: str) -> float:
    """Check a probability strictly between 0 and 1."""
    return number(name, value, above=0, below=1, remedy=remedy)


def whole(name: str, value: object, *, at_least: int, remedy: str) -> int:
    """Check a whole number that float64 can represent."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not at_least <= int(value) <= 2**53:
        most = " and ≤ 2**53" * (isinstance(value, numbers.Integral) and int(value) > 2**53)
        raise InputError(name, value, requirement=f"must be a whole number ≥ {at_least}{most}", remedy=remedy)
    return int(value)


def place(name: str, value: object, shape: tuple[int, ...], *, remedy: str) -> tuple[int, ...]:
    """Check an index into an array of this shape: one number per axis, from 0; for one axis also the bare number."""
    axes = value if isinstance(value, tuple) else (value,)
    fits = len(axes) == len(shape) and all(
        isinstance(number, numbers.Integral) and not isinstance(number, bool) and 0 <= int(number) < length
        for number, length in zip(axes, shape, strict=True)
    )
    if not fits:
        wanted = " × ".join(f"0 to {length - 1}" for length in shape)
        raise InputError(name, value, requirement=f"must lie in {wanted}", remedy=remedy)
    return tuple(int(number) for number in axes)


def text(name: str, value: object, *, remedy: str) -> str:
    """Check a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(name, value, requirement="must be a non-empty string", remedy=remedy)
    return str(value)


def texts(name: str, values: Sequence[str]) -> Sequence[str]:
    """Check the texts of a column: NumPy drops a final NUL, and gives every text the room of the longest."""
    longest = max(map(len, values), default=0)
    if longest > LONGEST_TEXT:
        raise InputError(
            name,
            f"one of {longest} characters",
            requirement=f"must hold texts of {LONGEST_TEXT} characters or fewer",
            remedy="number the different texts, or hash them",
        )
    if any(value.endswith("\0") for value in values):
        raise InputError(
            name,
            "text that ends in NUL",
            requirement="must not end in what NumPy drops",
            remedy="escape the text, e.g. by repr",
        )
    return values


def choice(name: str, value: object, options: Sequence[str], *, remedy: str) -> str:
    """Check that the value is one of the options."""
    if not isinstance(value, str) or value not in options:
        wanted = ", ".join(repr(option) for option in options)
        remedy = did_you_mean(value, options, remedy)
        raise InputError(name, value, requirement=f"must be one of {wanted}", remedy=remedy)
    return str(value)


def device(name: str, value: object) -> str:
    """Check where torch computes: on the CPU, on a GPU, or on whichever there is."""
    if value not in ("cpu", "cuda", "auto"):
        raise InputError(name, value, requirement="must be cpu, cuda or auto", remedy="use cuda for a GPU, or auto")
    return str(value)


def array(
    name: str,
    value: object,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    dimensions: int | None = None,
    finite: bool = True,
    remedy: str,
) -> NDArray[np.float64]:
    """Check a non-empty array of numbers within the limits, returned as float64 in row-major order; nan is refused.

    It is copied only if necessary, such as for columns of a data frame: sums in another order round differently.
    """
    import numpy as np

    shape = "" if dimensions is None else f" of {dimensions} dimension{'s' if dimensions > 1 else ''}"
    limits = [f"≥ {at_least:g}"] * (at_least > -math.inf) + [f"≤ {at_most:g}"] * (at_most < math.inf)
    requirement = " ".join(
        [
            f"must be a non-empty array{shape} of {'finite real numbers' if finite else 'real numbers'}",
            " and ".join(limits),
        ]
    ).strip()
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(name, value, requirement=requirement, remedy="fill in or leave out what is masked")
    try:
        found: NDArray[Any] = np.asarray(detached(value))
    except Exception:  # ragged lists and foreign __array__ methods raise what they like
        raise InputError(name, value, requirement=requirement, remedy=remedy) from None
    if found.dtype.kind not in "iuf":
        raise InputError(name, value, requirement=requirement, remedy=remedy)
    with np.errstate(all="ignore"):  # signalling nans and overflows; their results are checked below
        result = found.astype(np.float64, order="C", copy=False)
    if result.size == 0 or (dimensions is not None and result.ndim != dimensions):
        raise InputError(f"{name}, of shape {result.shape},", value, requirement=requirement, remedy=remedy)
    good = (result >= at_least) & (result <= at_most) & (np.isfinite(result) | (not finite))
    if not good.all():
        bad = result[~good].flat[0]
        raise InputError(name, float(bad), requirement=requirement, remedy=remedy)
    return result


def floats(name: str, value: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as float64, refused where that would make different ones equal; no copy where they are that already."""
    if value.dtype.kind in "iu":
        lost = bool(value.size) and (int(value.max()) > 2**53 or int(value.min()) < -(2**53))
    else:
        lost = value.dtype.itemsize > 8 and bool((value.astype("float64").astype(value.dtype) != value).any())
    if lost:
        raise InputError(
            name,
            f"{value.dtype} with more digits than float64 has",
            requirement="must hold numbers that float64 tells apart: whole ones up to 2**53",
            remedy="round them before they are released, and audit what is released",
        )
    return value.astype("float64", copy=False)


def detached(value: Any) -> Any:
    """A torch tensor in a form that NumPy can read: without its gradient, on the host, in a type that both have.

    Anything else is returned unchanged: arrays, columns of pandas, Polars and Arrow, lists.
    """
    if not (hasattr(value, "detach") and hasattr(value, "cpu")):
        return value
    found = value.detach().cpu()
    return found.float() if str(found.dtype) == "torch.bfloat16" else found


def unmasked(name: str, value: Any) -> Any:
    """The value unchanged; a masked array is refused, as others would read what is masked as if it were there."""
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):
        raise InputError(
            name,
            "a masked array",
            requirement="must be without masked entries",
            remedy="fill in or leave out what is masked",
        )
    return value


def table(name: str, value: Any) -> Mapping[Any, Any] | None:
    """The columns of a mapping or a data frame (pandas, Polars, Arrow) by name; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "collect"):  # a lazy frame has no columns to take
        raise InputError(name, type(value).__name__, requirement="must be a table", remedy="collect it first")
    names = getattr(value, "column_names", None)  # Arrow, whose `columns` are the columns themselves
    names = getattr(value, "columns", None) if names is None else names
    if names is None:
        return None
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise InputError(f"the columns of {name}", listed, requirement="must have different names", remedy="rename one")
    return {column: value[column] for column in listed}


def is_loader(value: object) -> bool:
    """Whether this is a torch DataLoader, or behaves like one."""
    return all(hasattr(value, name) for name in ("dataset", "sampler", "batch_size", "__iter__"))


def gathered(name: str, loader: Any) -> tuple[NDArray[Any], ...]:
    """Join all batches of a DataLoader: one array for each part of a batch, such as inputs and labels.

    A DataLoader that shuffles is refused, since reading it again would give another order.
    """
    import numpy as np

    order = type(loader.sampler).__name__
    if order != "SequentialSampler":
        raise InputError(
            f"the order of {name}",
            order,
            requirement="must be the same at every reading",
            remedy="make the DataLoader with shuffle=False, or put its batches into one array",
        )
    batches = [batch if isinstance(batch, list | tuple) else [batch] for batch in loader]
    try:
        parts = [[np.asarray(detached(part)) for part in batch] for batch in batches]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    except (TypeError, ValueError) as failure:
        raise InputError(
            f"the batches of {name}",
            f"{type(failure).__name__}: {failure}",
            requirement="must be tensors of one shape but for their number of rows, or tuples of such",
            remedy="give the DataLoader a collate_fn",
        ) from None
