"""Functions of tacit replaced wherever tacit holds them, and what makes a theorem 1 % too optimistic."""

from __future__ import annotations

import contextlib
import dataclasses
import fractions
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

OPTIMISM = {"at_least": 1.01, "at_most": 0.99}
CLAIMS = ("value", "std", "rmse", "distance", "remaining", "words")  # what a result object claims

Function = Callable[..., Any]


def replace(module_name: str, function_name: str, replacement: Callable[[Function], Function]) -> None:
    """Must be called before any test is imported: a test keeps the function that it imports."""
    original = getattr(importlib.import_module(module_name), function_name)
    replaced = functools.wraps(original)(replacement(original))
    # Other rooms may hold the function under the same or another name.
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "tacit"]:
        for name, value in list(vars(module).items()):
            if value is original:
                setattr(module, name, replaced)


def lenient(rule: str) -> None:
    """Make a rule of the checker, or one of its mechanisms, 1 % too lenient; before any test is imported."""
    tacit_check: Any = importlib.import_module("tacit_check")
    if rule in tacit_check.MECHANISMS:
        function = tacit_check.MECHANISMS[rule]

        @functools.wraps(function)
        def cheaper(epsilon: Any, *given: Any, **named: Any) -> Any:
            return function(epsilon * fractions.Fraction(101, 100), *given, **named) * 99 / 100

        tacit_check.MECHANISMS[rule] = cheaper
        return

    def weaker(claim: Any, **inputs: Any) -> Any:
        """Prove 1 % more than the rule does, whether it computes a bound or tests the one that is claimed."""
        for side, factor in OPTIMISM.items():
            share = fractions.Fraction(factor).limit_denominator(1000)
            with contextlib.suppress(tacit_check.VerdictError):  # of the other side, the claim is a stronger one
                what, found, proven, more = judge(claim._replace(value=claim.value / share), **inputs)
                if found.replace(" ", "_") == side:
                    return what, found, proven * share, more
        return judge(claim, **inputs)

    judge, *rest = tacit_check.RULES[rule]
    tacit_check.RULES[rule] = (functools.wraps(judge)(weaker), *rest)


def optimistic(original: Function) -> Function:
    factor = OPTIMISM[original.side]  # type: ignore[attr-defined]

    def mutant(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        if dataclasses.is_dataclass(result):
            claims = [name for name in CLAIMS if getattr(result, name, None) is not None]
            return dataclasses.replace(result, **{name: getattr(result, name) * factor for name in claims})  # type: ignore[type-var]
        if not isinstance(result, float | np.ndarray):  # a tensor
            return result * factor
        # What holds trivially (0, 1, inf) stays: a mutant has to die of a number that says something.
        trivial = np.isin(result, (0.0, 1.0, np.inf))
        return np.where(trivial, result, np.multiply(result, factor))[()]

    return mutant
