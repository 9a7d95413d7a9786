"""Docstrings are numpydoc, and what a package exports documents every parameter. ruff checks the format of sections."""

import inspect
import re
from importlib import import_module
from itertools import pairwise

import pytest

PACKAGES = ("tacit", "tacit.reconstruction", "tacit.learning", "tacit.audit", "tacit.report", "tacit.ledger")
EXPORTED = {
    f"{found.__module__}.{found.__qualname__}": found
    for package in PACKAGES
    for name in import_module(package).__all__
    if callable(found := getattr(import_module(package), name))
}


def documented(text: str, *sections: str) -> set[str]:
    """The names that these sections of a docstring explain."""
    names = set()
    for section in sections:
        _, _, after = text.partition(f"\n{section}\n{'-' * len(section)}\n")
        body = re.split(r"\n\n\w[\w ]*\n-{3,}\n", after)[0]
        for line, below in pairwise(body.splitlines()):
            if line and not line.startswith(" ") and below.startswith("    "):
                names |= {name.strip(" *") for name in line.split(",")}
    return names


def has_parameters(found):
    """Exceptions without a constructor of their own take a message, and have no signature."""
    return not (inspect.isclass(found) and issubclass(found, Exception)) or "__init__" in vars(found)


@pytest.mark.parametrize("name", [name for name, found in EXPORTED.items() if has_parameters(found)])
def test_every_parameter_of_what_is_exported_is_documented(name):
    found = EXPORTED[name]
    given = {
        parameter.name
        for parameter in inspect.signature(found).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and not parameter.name.startswith("_")
    }
    explained = documented(inspect.getdoc(found) or "", "Parameters")
    assert not explained - set(inspect.signature(found).parameters), f"{name} explains others"
    for base in (
        found.__mro__ if inspect.isclass(found) else ()
    ):  # fields may be explained where they are inherited from
        explained |= documented(inspect.cleandoc(base.__doc__ or ""), "Parameters", "Attributes")
    assert not given - explained, f"{name} leaves parameters without a meaning"


def test_documented_names_are_read_from_their_sections():
    text = "Summary.\n\nParameters\n----------\na, b\n    Two.\n**options\n    More.\n\nReturns\n-------\nint\n    One."
    assert documented(text, "Parameters") == {"a", "b", "options"}
    assert documented(text, "Parameters", "Returns") == {"a", "b", "options", "int"}
    assert documented("Summary.\n\na   columns\nb   of old", "Parameters") == set()
