"""The glossary: its names exist, and what it rules out is used nowhere."""

import dataclasses
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
    *("tacit.theory.membership", "tacit.audit.record_audit", "tacit.audit.study.model"),  # claims that attacks refute
)
"""Where δ may stand without an ε beside it: everything there is about differential privacy."""


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def public_modules():
    for found in pkgutil.walk_packages(tacit.__path__, "tacit."):
        old = found.name in ("tacit.errors", "tacit.guarantee", "tacit.entropy")
        if not old and not found.name.endswith("__main__") and not found.name.startswith("tacit.cli"):
            yield importlib.import_module(found.name)


def signatures():
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


def options():
    """Every command, and the names of its options."""
    for name, command in get_command(app).commands.items():
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                yield from ((name, option) for option in parameter.opts)


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
    assert command in get_command(app).commands
    assert not option or (command, option) in set(options())


RULED_OUT = [(row[0], name) for row in ROWS for name in names(row[4])]


@pytest.mark.parametrize(("word", "other"), RULED_OUT, ids=[other for _, other in RULED_OUT])
def test_other_words_are_not_used(word, other):
    spelt = other.replace(" ", "_")
    called = [f"{module}.{name}" for module, name, parameters in signatures() if spelt in parameters]
    assert not called, f"say {word}, not {other}"
    asked = [option for _, option in options() if option.lstrip("-").replace("-", "_") == spelt]
    assert not asked, f"say {word}, not {other}"
    if " " in other:
        texts = [
            *ROOT.glob("README.md"),
            *ROOT.glob("docs/**/*.md"),
            *ROOT.glob("src/**/*.py"),
            *ROOT.glob("examples/**/*.py"),
        ]
        found = [path for path in texts if other in path.read_text().lower() and path.name != "glossary.md"]
        assert not found, f"say {word}, not {other}"


def test_delta_is_privacys_alone():
    others = [
        f"{module}.{name}"
        for module, name, parameters in signatures()
        if "delta" in parameters and "epsilon" not in parameters and not module.startswith(PRIVACY)
    ]
    assert not others
    assert {command for command, option in options() if option == "--delta"} <= {
        "learn",
        "plan",
        "serve",
        "audit-model",
    }
