"""HTML pages from templates."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


_INSIDE = re.compile(r" (?:(?<=\d )(?=%)|(?<=[εδ] )(?==)|(?<=[εδ] = ))")
"""Each match begins with its space: pictures are long texts with few of them."""


@cache
def template(name: str, *, room: str = "report") -> Template:
    """A template from `templates/` of a room; it escapes all values, and a missing value is an error.

    Templates of other rooms may include and import those of this one.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(f"tacit.{known}") for known in dict.fromkeys((room, "report"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_unbroken,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template(name)


def _unbroken(value: object) -> object:
    """Text in which no line ends between a number and its unit, or inside an equation such as ε = 2."""
    if not isinstance(value, str):
        return value
    return type(value)(_INSIDE.sub("\N{NO-BREAK SPACE}", value))


def _breakable(name: str) -> str:
    """The name of a function, with places after its dots and underscores where a narrow page may break it."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<=[._])", "<wbr>", str(escape(name))))  # noqa: S704 — escaped
