"""Old parameter names that keep working for one version, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

Documented = TypeVar("Documented", bound=Callable[..., Any])
Renamed = str | tuple[str, Callable[[Any], Any]]


def renamed(**names: Renamed) -> Callable[[Documented], Documented]:
    """Accept old keyword names beside the new ones.

    Parameters
    ----------
    **names
        `old="new"`, or `old=("new", convert)` if the new parameter expresses the same thing differently. On a class,
        the old name also stays readable as an attribute, and `set_params` takes it, if there is one; `convert` must
        then be its own inverse.

    Returns
    -------
    Callable
        A decorator for functions, methods and classes.
    """

    def decorate(target: Documented) -> Documented:
        if isinstance(target, type):
            for old, renaming in names.items():
                setattr(target, old, _attribute(target.__name__, old, renaming))
            target.__init__ = _accepting(target.__init__, target.__qualname__, names)  # type: ignore[misc]
            if hasattr(target, "set_params"):  # an estimator of scikit-learn
                target.set_params = _accepting(target.set_params, f"{target.__qualname__}.set_params", names)
            return cast("Documented", target)
        return cast("Documented", _accepting(target, target.__qualname__, names))

    return decorate


def formerly(old: str, method: Documented) -> Documented:
    """Return a method under its old name: it warns, and calls the new one."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _warn(f"{type(self).__name__}.{old}()", f"{method.__name__}()")
        return method(self, *args, **kwargs)

    return cast("Documented", call)


def _accepting(function: Any, called: str, names: dict[str, Renamed]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for old, renaming in names.items():
            if old in kwargs:
                new, convert = _parts(renaming)
                _warn(f"{called}({old}=…)", f"{new}=…")
                if new in kwargs:
                    raise TypeError(f"{called}() got both {new} and its old name {old}; pass {new} alone")
                kwargs[new] = convert(kwargs.pop(old))
        return function(*args, **kwargs)

    return call


def _attribute(owner: str, old: str, renaming: Renamed) -> property:
    new, convert = _parts(renaming)

    def read(self: Any) -> Any:
        _warn(f"{owner}.{old}", new)
        return convert(getattr(self, new))

    return property(read, doc=f"The old name of `{new}`; it will be removed.")


def _parts(renaming: Renamed) -> tuple[str, Callable[[Any], Any]]:
    return (renaming, lambda value: value) if isinstance(renaming, str) else renaming


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} will be removed; use {new}", DeprecationWarning, stacklevel=3)
