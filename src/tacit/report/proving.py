"""Theorems by name: what each states, and its proof, from the installed version of the package.

Statements are the docstrings of `tacit.theory`, read without importing it; proofs come from docs/proofs/.
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
from itertools import groupby
from pathlib import Path
from typing import Any

from ..core import validate
from ..core.encoding import SCHEMA
from ..core.errors import InputError
from ..core.guarantee import proof_page
from .rendering import template

_PACKAGE = "tacit"
_SIDES = ("at_least", "at_most")


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """A function of `tacit.theory`, what it states, and the proof.

    Attributes
    ----------
    name
        Its full name, `theory.MODULE.FUNCTION`.
    side
        Which way its value errs: `"at_least"` for lower bounds, `"at_most"` for upper bounds.
    signature
        Its name and parameters.
    statement
        Its docstring, in numpydoc format.
    proof
        Markdown in parts: the openings of the page and of the chapter, which define the symbols, and the section with
        the proof.
    """

    name: str
    side: str
    signature: str
    statement: str
    proof: tuple[str, ...]

    @property
    def page(self) -> str:
        """The page with the proof, relative to the root of the project."""
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
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What each parameter means, by its name."""
        parts = re.split(r"^(\w+)$", self._section("Parameters"), flags=re.MULTILINE)
        return tuple((name, " ".join(text.split())) for name, text in zip(parts[1::2], parts[2::2], strict=True))

    @property
    def stated(self) -> tuple[tuple[str, str], ...]:
        """Statement, Assumptions and Direction from the notes, then the References."""
        parts = re.split(r"^(Statement|Assumptions|Direction)\.\s", self._section("Notes"), flags=re.MULTILINE)
        texts = [*zip(parts[1::2], parts[2::2], strict=True), ("References", self._section("References"))]
        return tuple((name, " ".join(text.split())) for name, text in texts)

    def _section(self, name: str) -> str:
        """The text of a section of the docstring: up to the next underlined heading."""
        _, _, after = self.statement.partition(f"\n{name}\n{'-' * len(name)}\n")
        return re.split(r"\n\n\w+\n-{3,}\n", after)[0]

    def mentions(self, words: str) -> bool:
        """Whether the statement contains these words."""
        return _folded(words) in _folded(self.statement)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` of its `Proofs` writes."""
        fields = {"name": self.name, "side": self.side, "signature": self.signature, "statement": self.statement}
        return {**fields, "page": self.page, "proof": "\n\n".join(self.proof)}


@dataclass(frozen=True, kw_only=True)
class Proofs:
    """What `tacit proof` found: theorems, whole pages or, if no name was given, the list of all theorems.

    Attributes
    ----------
    theorems
        The theorems found.
    pages
        The name and the text of each page that was asked for as a whole.
    listing
        Whether no name was given, so that theorems are listed without their proofs.
    contradicted, met
        Always False and True: `tacit` takes its exit status from these attributes of every result.
    """

    theorems: tuple[Theorem, ...]
    pages: tuple[tuple[str, str], ...] = ()
    listing: bool = False

    contradicted = False
    met = True

    @property
    def title(self) -> str:
        """The title of the page."""
        if self.listing:
            return "All theorems"
        return ", ".join([theorem.name for theorem in self.theorems] + [name for name, _ in self.pages])

    @property
    def parts(self) -> tuple[tuple[Theorem, tuple[str, ...]], ...]:
        """Each theorem with the parts of its proof that no theorem before it has shown."""
        seen: set[str] = set()
        found = []
        for theorem in self.theorems:
            fresh = tuple(part for part in theorem.proof if part not in seen)
            seen.update(fresh)
            found.append((theorem, fresh))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the theorems, and the pages that were asked for."""
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
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=2) + "\n"

    def to_text(self) -> str:
        """Return text for a terminal, 80 columns wide except for tables, code and signatures that do not fit."""
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
            lines += [*_filled(theorem.statement), "", f"Proof ({theorem.page})", ""]
            for part in parts or (theorem.proof[-1].splitlines()[0] + ": see above",):
                lines += [*_wrapped(part), ""]
        for name, text in self.pages:
            lines += [name, "=" * len(name), "", *_wrapped(text), ""]
        return "\n".join(lines).rstrip() + "\n"

    def to_html(self) -> str:
        """Return one self-contained HTML page."""
        from .. import __version__

        return template("proof.html.j2").render(found=self, version=__version__)


def proofs(names: Sequence[str] = ()) -> Proofs:
    """Look up theorems and their proofs.

    Parameters
    ----------
    names
        Names of functions of `tacit.theory`, with or without their modules; names of modules, which give the whole
        page; or words by which a report names a theorem, such as "Theorem B". Without names, all theorems are listed.

    Returns
    -------
    Proofs
        What was found.

    Raises
    ------
    InputError
        If nothing has one of the names.
    """
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
            pages[f"docs/proofs/{name}.md"] = page_text(name)
        else:
            found = _by_words(name)
            if not found:
                raise InputError(
                    "NAME",
                    given,
                    requirement="must be a function or a module of tacit.theory, or words from a theorem's statement",
                    remedy=_nearest(name),
                )
            chosen |= {theorem.name: theorem for theorem in found}
    return Proofs(theorems=tuple(chosen.values()), pages=tuple(pages.items()))


@cache
def theorems() -> dict[str, Theorem]:
    """All theorems of `tacit.theory`, by their full names `theory.MODULE.FUNCTION`.

    Returns
    -------
    dict
        The theorems, in the order of the modules and of the source.
    """
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
    """The text of a page of docs/proofs/."""
    return _pages()[name].read_text(encoding="utf-8")


@cache
def _pages() -> dict[str, Traversable]:
    """The pages by name: from tacit/proofs/ in a wheel, from docs/ in a checkout."""
    held = files(_PACKAGE).joinpath("proofs")
    if held.is_dir():
        return {file.name.removesuffix(".md"): file for file in held.iterdir() if file.name.endswith(".md")}
    return {file.stem: file for file in sorted((Path(__file__).resolve().parents[3] / "docs" / "proofs").glob("*.md"))}


def _side(node: ast.stmt) -> str | None:
    marks = [mark.id for mark in getattr(node, "decorator_list", ()) if isinstance(mark, ast.Name)]
    return next((mark for mark in marks if mark in _SIDES), None)


def _sections(module: str, function: str) -> tuple[str, ...]:
    """The opening of the page, that of the chapter if there is one, and the section; empty if there is no section.

    A section is about the functions whose reference it links to.
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


def _by_words(words: str) -> list[Theorem]:
    """The theorems whose statements contain the words, or else the words before a punctuation mark, the last first."""
    phrase = words.strip()
    while len(phrase) > 4:
        found = [theorem for theorem in theorems().values() if theorem.mentions(phrase)]
        if found:
            return found
        phrase = re.sub(r"[^,;:(]*$", "", phrase).rstrip(" ,;:(")
    return []


def _folded(text: str) -> str:
    """The text in lower case, without line breaks, and with plain hyphens."""
    return " ".join(text.casefold().replace("–", "-").split())


def _nearest(name: str) -> str:
    known = {theorem.short for theorem in theorems().values()} | set(_pages())
    near = difflib.get_close_matches(name.rpartition(".")[2], sorted(known), n=3, cutoff=0.5)
    hint = "run tacit proof to see all names"
    return f"did you mean {' or '.join(near)}? Else {hint}" if near else hint


def _filled(docstring: str) -> list[str]:
    """The docstring with its paragraphs filled to 80 columns; headings and indentation stay as they are."""
    lines: list[str] = []
    for indent, group in groupby(docstring.splitlines(), key=_indent):
        block = list(group)
        if indent is None:
            lines += block
            continue
        heading = 2 if len(block) > 1 and set(block[1]) == {"-"} else 0
        text = " ".join(line.strip() for line in block[heading:])
        wrapper = textwrap.TextWrapper(80, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
        wrapper.break_long_words = False
        lines += [*block[:heading], *wrapper.wrap(text)]
    return lines


def _indent(line: str) -> str | None:
    return line[: len(line) - len(line.lstrip())] if line else None


def _wrapped(text: str) -> list[str]:
    """Lines of at most 80 columns; tables, code and indented lines stay as they are."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code = code != line.startswith("```")
        keep = code or len(line) <= 80 or line.startswith(("|", "    ", "```"))
        indent = "  " if line.startswith(("- ", "* ")) else ""
        wrapper = textwrap.TextWrapper(80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [line] if keep else wrapper.wrap(line)
    return lines
