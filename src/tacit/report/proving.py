"""Theorems by name: what each states, and its proof, as they come with this very version of the package.

Statements are read from the source of `tacit.theory`, which need not be imported, and proofs from docs/proofs/.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..core import validate
from ..core.encoding import SCHEMA
from ..core.errors import InputError
from ..core.guarantee import proof_page
from .rendering import template

_PACKAGE = "tacit"
_SIDES = ("at_least", "at_most")
_BESIDE = {"ledger": "docs/ledger.md"}
"""Pages that prove something in their part "What holds", by the name under which that is shown."""


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """A function of `tacit.theory`: which side its value is on, what it states, and the proof.

    `proof` is Markdown in parts: the page's opening and that of the chapter, which say what symbols mean, and last the
    section that proves it.
    """

    name: str
    side: str
    signature: str
    statement: str
    proof: tuple[str, ...]

    @property
    def page(self) -> str:
        """Where the proof stands, from the root of the project."""
        return proof_page(self.name)

    @property
    def short(self) -> str:
        """The name without its modules, which `tacit proof` takes."""
        return self.name.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """The first paragraph of the statement."""
        return " ".join(self.statement.split("\n\n")[0].split())

    @property
    def stated(self) -> tuple[tuple[str, str], ...]:
        """What the statement is made of: its parts by their names, such as Assumptions."""
        parts = re.split(r"^(Statement|Assumptions|Direction|Reference)\.\s", self.statement, flags=re.MULTILINE)
        return tuple((name, " ".join(text.split())) for name, text in zip(parts[1::2], parts[2::2], strict=True))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        fields = {"name": self.name, "side": self.side, "signature": self.signature, "statement": self.statement}
        return {**fields, "page": self.page, "proof": "\n\n".join(self.proof)}


@dataclass(frozen=True, kw_only=True)
class Proofs:
    """What `tacit proof` found: theorems, whole pages, or, where no name was given, the list of all theorems."""

    theorems: tuple[Theorem, ...]
    pages: tuple[tuple[str, str], ...] = ()
    """The name and the text of each page that was asked for as a whole."""
    listing: bool = False

    contradicted = False
    met = True

    @property
    def title(self) -> str:
        """Of the page."""
        if self.listing:
            return "All theorems"
        return ", ".join([theorem.name for theorem in self.theorems] + [name for name, _ in self.pages])

    @property
    def parts(self) -> tuple[tuple[Theorem, tuple[str, ...]], ...]:
        """Each theorem with those parts of its proof that do not stand before it already."""
        seen: set[str] = set()
        found = []
        for theorem in self.theorems:
            fresh = tuple(part for part in theorem.proof if part not in seen)
            seen.update(fresh)
            found.append((theorem, fresh))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """The theorems, and the pages that were asked for."""
        found: dict[str, Any] = {"schema": SCHEMA, "command": "proof"}
        if self.listing:
            names = ("name", "side", "page")
            found["theorems"] = [
                {**{name: getattr(theorem, name) for name in names}, "summary": theorem.summary}
                for theorem in self.theorems
            ]
            return found
        found["theorems"] = [theorem.to_dict() for theorem in self.theorems]
        found["pages"] = [{"page": name, "text": text} for name, text in self.pages]
        return found

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=2) + "\n"

    def to_text(self) -> str:
        """For a terminal, 80 columns wide where that breaks nothing."""
        if self.listing:
            lines = ["tacit proof NAME prints a theorem and its proof; these are the names:"]
            for module in dict.fromkeys(theorem.name.split(".")[1] for theorem in self.theorems):
                lines += ["", module]
                for theorem in self.theorems:
                    if theorem.name.split(".")[1] == module:
                        lines += textwrap.wrap(
                            f"{theorem.short}: {theorem.summary}", 80, initial_indent="  ", subsequent_indent="      "
                        )
            return "\n".join(lines) + "\n"
        lines = []
        for theorem, parts in self.parts:
            lines += [theorem.name, "=" * len(theorem.name), "", *_wrapped(theorem.signature), ""]
            lines += [*theorem.statement.splitlines(), "", f"Proof ({theorem.page})", ""]
            for part in parts or (theorem.proof[-1].splitlines()[0] + ": see above",):
                lines += [*_wrapped(part), ""]
        for name, text in self.pages:
            lines += [name, "=" * len(name), "", *_wrapped(text), ""]
        return "\n".join(lines).rstrip() + "\n"

    def to_html(self) -> str:
        """One file that needs nothing else."""
        from .. import __version__

        return template("proof.html.j2").render(found=self, version=__version__)


def proofs(names: Sequence[str] = ()) -> Proofs:
    """The theorems of these names, with or without their modules; a module's name gives its whole page."""
    if not names:
        return Proofs(theorems=tuple(theorems().values()), listing=True)
    chosen: dict[str, Theorem] = {}
    pages: dict[str, str] = {}
    for given in names:
        name = validate.text("NAME", given, remedy="run tacit proof to see all names").strip()
        name = name.removeprefix(f"{_PACKAGE}.").removeprefix("theory.")
        found = [theorem for theorem in theorems().values() if name in (theorem.short, theorem.name[len("theory.") :])]
        if len(found) == 1:
            chosen[found[0].name] = found[0]
        elif name in _pages():
            pages[_BESIDE.get(name, f"docs/proofs/{name}.md")] = page_text(name)
        else:
            raise InputError(
                "NAME",
                given,
                requirement="must be a theorem or a module of tacit.theory, and one alone",
                remedy=_nearest(name),
            )
    return Proofs(theorems=tuple(chosen.values()), pages=tuple(pages.items()))


@cache
def theorems() -> dict[str, Theorem]:
    """All marked functions of `tacit.theory` by their full names, `theory.module.function`."""
    found = {}
    for source in sorted(files(_PACKAGE).joinpath("theory").iterdir(), key=lambda file: file.name):
        if not source.name.endswith(".py") or source.name == "__init__.py":
            continue
        module = source.name.removesuffix(".py")
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            side = _side(node)
            if isinstance(node, ast.FunctionDef) and side is not None:
                name = f"theory.{module}.{node.name}"
                found[name] = Theorem(
                    name=name,
                    side=side,
                    signature=f"{node.name}({ast.unparse(node.args)})",
                    statement=inspect.cleandoc(ast.get_docstring(node) or ""),
                    proof=_sections(module, node.name),
                )
    return found


def page_text(name: str) -> str:
    """A page of docs/proofs/, or the part of another that proves something."""
    text = _pages()[name].read_text(encoding="utf-8")
    if name not in _BESIDE:
        return text
    return next(part for part in re.split(r"^(?=## )", text, flags=re.MULTILINE) if part.startswith("## What holds"))


@cache
def _pages() -> dict[str, Traversable]:
    """Wheels hold the pages in tacit/proofs/; a checkout has them where they are written."""
    held = files(_PACKAGE).joinpath("proofs")
    if held.is_dir():
        return {file.name.removesuffix(".md"): file for file in held.iterdir() if file.name.endswith(".md")}
    root = Path(__file__).resolve().parents[3]
    found: dict[str, Traversable] = {file.stem: file for file in sorted((root / "docs" / "proofs").glob("*.md"))}
    return found | {name: root / path for name, path in _BESIDE.items() if (root / path).is_file()}


def _side(node: ast.stmt) -> str | None:
    marks = [mark.id for mark in getattr(node, "decorator_list", ()) if isinstance(mark, ast.Name)]
    return next((mark for mark in marks if mark in _SIDES), None)


def _sections(module: str, function: str) -> tuple[str, ...]:
    """The page's opening, that of the chapter where the section stands in one, and the section; empty if none is there.

    A section is about the functions to whose reference it links.
    """
    if module not in _pages():
        return ()
    parts = [part.strip() for part in re.split(r"^(?=#+ )", page_text(module), flags=re.MULTILINE) if part.strip()]
    opening, chapter = parts[0], ""
    for part in parts:
        if part.startswith("## "):
            chapter = part
        if f"[`{function}`](../reference/" in part:
            return tuple(dict.fromkeys(one for one in (opening, chapter, part) if one))
    return ()


def _nearest(name: str) -> str:
    known = {theorem.short for theorem in theorems().values()} | set(_pages())
    near = difflib.get_close_matches(name.rpartition(".")[2], sorted(known), n=3, cutoff=0.5)
    hint = "run tacit proof to see all names"
    return f"did you mean {' or '.join(near)}? Else {hint}" if near else hint


def _wrapped(text: str) -> list[str]:
    """Lines of at most 80 columns; tables, code and what is indented stay as they are."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code = code != line.startswith("```")
        keep = code or len(line) <= 80 or line.startswith(("|", "    ", "```"))
        indent = "  " if line.startswith(("- ", "* ")) else ""
        wrapper = textwrap.TextWrapper(80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [line] if keep else wrapper.wrap(line)
    return lines
