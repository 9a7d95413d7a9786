"""A pytest plugin that makes one theorem 1 % too optimistic before any test is imported; see soundness.py."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import sys
from typing import Any

import numpy as np

OPTIMISM = {"at_least": 1.01, "at_most": 0.99}
CLAIMS = ("value", "std", "rmse", "distance", "remaining")  # what a result object claims


def _mutate(module_name: str, function_name: str) -> None:
    original = getattr(importlib.import_module(module_name), function_name)
    factor = OPTIMISM[original.side]

    @functools.wraps(original)
    def optimistic(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        if dataclasses.is_dataclass(result):
            claims = [name for name in CLAIMS if getattr(result, name, None) is not None]
            return dataclasses.replace(result, **{name: getattr(result, name) * factor for name in claims})
        if not isinstance(result, float | np.ndarray):  # a tensor
            return result * factor
        # What holds trivially (0, 1, inf) stays: a mutant has to die of a number that says something.
        trivial = np.isin(result, (0.0, 1.0, np.inf))
        return np.where(trivial, result, np.multiply(result, factor))[()]

    # Other rooms may hold the function under the same or another name.
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "tacit"]:
        for name, value in list(vars(module).items()):
            if value is original:
                setattr(module, name, optimistic)


_mutate(*os.environ["TACIT_MUTANT"].split(":"))
