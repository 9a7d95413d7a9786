"""What `--help` shows: two examples first, then options in named groups; and the old names of renamed options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from ..core.errors import InputError
from .printing import say

INPUTS = "Inputs"
NOISE = "Noise and prior"
PROVE = "What to prove"
LEARN = "Teachers and student"
BUDGET = "Privacy budget and ledger"
TIME = "Time and machine"
REPLAY = "Run it again"
SERVE = "Service and access"
OUTPUT = "Output"
_GROUPS = (INPUTS, NOISE, LEARN, PROVE, BUDGET, SERVE, TIME, REPLAY, OUTPUT)
"""In the order of the help."""

Documented = TypeVar("Documented", bound=Callable[..., Any])


def described(*examples: str, renamed: Mapping[str, str] | None = None) -> Callable[[Documented], Documented]:
    """Give a command its examples, and the options that were renamed as {old: new}.

    An old name goes on working for one version; it is not in the help, and says what to use.
    """

    def decorate(command: Documented) -> Documented:
        command.examples = examples  # type: ignore[attr-defined]
        command.renamed = renamed or {}  # type: ignore[attr-defined]
        return command

    return decorate


class _Described:
    """What the commands and the groups of commands share."""

    callback: Callable[..., Any] | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the examples, then the help."""
        examples = getattr(self.callback, "examples", ())
        if examples:
            typer.echo(" Examples:")
            for example in examples:
                typer.echo("   " + example.replace("\n", "\n       "))
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, in the order of their groups; flags take no value, so none is shown."""
        found = super().get_params(ctx)  # type: ignore[misc]
        for option in found:
            if isinstance(option, TyperOption):
                if option.is_flag:
                    option.metavar = ""
                if isinstance(self, TyperCommand):
                    option.rich_help_panel = option.rich_help_panel or OUTPUT
        return sorted(found, key=lambda one: _GROUPS.index(getattr(one, "rich_help_panel", None) or INPUTS))

    def get_usage(self, ctx: Any) -> str:
        """The usage line, without braces around arguments."""
        usage: str = super().get_usage(ctx)  # type: ignore[misc]
        return usage.replace("{", "").replace("}", "")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the command, with old names of options replaced by the new ones."""
        for old, new in getattr(self.callback, "renamed", {}).items():
            args = _renamed(args, old, new)
        parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return parsed


class Command(_Described, TyperCommand):
    """A command with examples."""


class Group(_Described, TyperGroup):
    """A group of commands with examples."""


def _renamed(args: list[str], old: str, new: str) -> list[str]:
    end = args.index("--") if "--" in args else len(args)
    given = [word.partition("=")[0] for word in args[:end]]
    if old not in given:
        return args
    if new in given:
        raise InputError(old, new, requirement=f"must not stand beside {new}, its new name", remedy=f"leave {old} out")
    say(f"tacit: {old} will be removed; use {new}", err=True)
    return [new + word[len(old) :] if place < end and given[place] == old else word for place, word in enumerate(args)]
