"""The glossary: its names exist, and what it rules out is used nowhere."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from typer.main import get_command

import tacit
from tacit.cli import app

ROOT = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| word")
]
PRIVACY = (
    *("tacit.learning", "tacit.ledger", "tacit.theory.accounting", "tacit.theory.divergences", "tacit.theory.gate"),
    *(
        "tacit.theory.label_moments",
        "tacit.theory.adaptive_threshold",
        "tacit.theory.open_threshold",
        "tacit.theory.membership",
        "tacit.audit.record_audit",
        "tacit.audit.study.model",
    ),  # claims that attacks refute
)
"""Where δ may stand without an ε beside it: everything there is about differential privacy."""


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def public_modules():
    for found in pkgutil.walk_packages(tacit.__path__, "tacit."):
        old = found.name in ("tacit.errors", "tacit.guarantee", "tacit.entropy")
        if not old and not found.name.endswith("__main__") and not found.name.startswith("tacit.cli"):
            yield importlib.import_module(found.name)


@functools.cache
def signatures():
    return list(_signatures())


def _signatures():
    """Every public function and class of the library, and the names of its parameters."""
    for module in public_modules():
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            members = [value]
            if inspect.isclass(value):
                members += [
                    member for key, member in vars(value).items() if inspect.isfunction(member) and key[0] != "_"
                ]
            for member in members:
                if inspect.isfunction(member) or (inspect.isclass(member) and dataclasses.is_dataclass(member)):
                    yield module.__name__, member.__qualname__, set(inspect.signature(member).parameters)


@functools.cache
def options():
    """Every command, and the names of its options."""
    return {
        name: [option for one in command.params if not getattr(one, "hidden", False) for option in one.opts]
        for name, command in get_command(app).commands.items()
    }


@functools.cache
def texts():
    """Documents and code, in small letters."""
    found = [
        path
        for pattern in ("README.md", "docs/**/*.md", "src/**/*.py", "examples/**/*.py")
        for path in ROOT.glob(pattern)
    ]
    return {path: path.read_text().lower() for path in found if path.name != "glossary.md"}


def test_words_are_in_order_and_explained():
    words = [row[0] for row in ROWS]
    assert words == sorted(words)
    assert all(row[1].endswith(".") for row in ROWS)


@pytest.mark.parametrize("name", [name for row in ROWS for name in names(row[2])])
def test_names_in_python_exist(name):
    place, parameter = re.fullmatch(r"tacit\.([\w.]+)(?:\((\w+)\))?", name).groups()
    value = tacit
    for part in place.split("."):
        fields = getattr(value, "__dataclass_fields__", {})
        if inspect.ismodule(value) and not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = fields[part] if part in fields else getattr(value, part)
    assert parameter is None or parameter in inspect.signature(value).parameters


@pytest.mark.parametrize("name", [name for row in ROWS for name in names(row[3])])
def test_names_in_commands_exist(name):
    command, _, option = name.removeprefix("tacit ").partition(" ")
    assert command in options()
    assert not option or option in options()[command]


RULED_OUT = [(row[0], name) for row in ROWS for name in names(row[4])]


@pytest.mark.parametrize(("word", "other"), RULED_OUT, ids=[other for _, other in RULED_OUT])
def test_other_words_are_not_used(word, other):
    spelt = other.replace(" ", "_")
    called = [f"{module}.{name}" for module, name, parameters in signatures() if spelt in parameters]
    assert not called, f"say {word}, not {other}"
    every = [option for some in options().values() for option in some]
    asked = [option for option in every if option.lstrip("-").replace("-", "_") == spelt]
    assert not asked, f"say {word}, not {other}"
    if " " in other:
        found = [path for path, text in texts().items() if other in text]
        assert not found, f"say {word}, not {other}"


def test_delta_is_privacys_alone():
    others = [
        f"{module}.{name}"
        for module, name, parameters in signatures()
        if "delta" in parameters and "epsilon" not in parameters and not module.startswith(PRIVACY)
    ]
    assert not others
    assert {command for command, some in options().items() if "--delta" in some} <= {
        "learn",
        "plan",
        "serve",
        "audit-model",
    }
