"""Learners from their names on the command line."""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import io
import os
import pkgutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.near import did_you_mean, listed
from ..teachers import random_states


def learner(option: str, text: str, setting: str, settings: Sequence[str]) -> Any:
    """An instance of a class of an installed package, with these settings."""
    module, _, name = text.partition(":")
    requirement = "must be MODULE:CLASS of an installed package"
    remedy = "write for example sklearn.linear_model:LogisticRegression"
    try:
        with warnings.catch_warnings(), _installed_alone():
            warnings.simplefilter("ignore")
            room = importlib.import_module(module)
            if not hasattr(room, name):
                classes = [one for one, value in vars(room).items() if isinstance(value, type)]
                raise InputError(option, text, requirement=requirement, remedy=did_you_mean(name, classes, remedy))
            found = getattr(room, name)
            # Nothing is called that is no such class: a function may do anything.
            words = ("fit", "predict", "get_params", "set_params")
            good = isinstance(found, type) and all(callable(getattr(found, word, None)) for word in words)
            made = found() if good else None
    except InputError:
        raise
    except ModuleNotFoundError as failure:
        raise InputError(
            option, f"{text}: {failure}", requirement=requirement, remedy=did_you_mean(module, _modules(module), remedy)
        ) from None
    except Exception as failure:  # whatever a foreign module raises
        raise InputError(
            option, f"{text}: {type(failure).__name__}: {failure}", requirement=requirement, remedy=remedy
        ) from None
    if made is None:
        raise InputError(
            option, text, requirement="must be a class of classifiers in the style of scikit-learn", remedy=remedy
        )
    known = made.get_params()
    for pair in settings:
        key, sign, value = pair.partition("=")
        if not sign or key not in known:
            remedy = did_you_mean(key, known, f"it has {listed(sorted(known))}") if sign else f"write {key}=VALUE"
            raise InputError(setting, pair, requirement=f"must be NAME=VALUE of {name}", remedy=remedy)
        made.set_params(**{key: _value(value)})
    return made


def place(device: str, found: Sequence[Any]) -> None:
    """Tell learners that compute on a device which one to use; "auto" leaves it to them."""
    if device == "auto":
        return
    placed = [one for one in found if "device" in one.get_params()]
    if not placed:
        raise InputError(
            "device",
            device,
            requirement="must be left out for learners that have no parameter of this name",
            remedy="leave it out, or use a learner of torch or XGBoost",
        )
    for one in placed:
        one.set_params(device=device)


def _modules(name: str) -> list[str]:
    """The modules that lie where the one of this name would."""
    package = name.rpartition(".")[0]
    try:
        paths = importlib.import_module(package).__path__ if package else None
    except Exception:  # whatever a foreign module raises
        return []
    return [f"{package}.{found.name}" if package else found.name for found in pkgutil.iter_modules(paths)]


@contextlib.contextmanager
def _installed_alone() -> Iterator[None]:
    """Do not import from the current folder, where `python -m` would look first."""
    before = list(sys.path)
    if sys.path[:1] in ([""], [os.getcwd()]):
        del sys.path[0]
    try:
        yield
    finally:
        sys.path[:] = before


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def proposer(untrained: Any, records: NDArray[np.float64], labels: NDArray[Any]) -> Any:
    """A copy of a learner, fitted to labelled records that are not private."""
    model = copy.deepcopy(untrained)
    for name in random_states(model):
        if model.get_params()[name] is None:
            model.set_params(**{name: 0})  # a run that goes on must propose the same
    try:
        return model.fit(records, labels)
    except Exception as failure:  # of foreign code
        raise InputError(
            "labelled_public",
            f"{type(failure).__name__}: {failure}",
            requirement="must hold records that the student, or else the learner, can be fitted to",
            remedy="see that there are more than a few, of two classes or more",
        ) from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discard what learners print and warn about, here and in processes that train: it may be private."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    sys.stdout.flush()
    printed, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what libraries in C print passes Python by
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(printed, 1)
        os.close(printed)
        os.close(nowhere)
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before
