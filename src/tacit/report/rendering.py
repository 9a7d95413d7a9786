"""HTML pages from templates."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


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
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template(name)


def _breakable(name: str) -> str:
    """The name of a function, with places after its dots and underscores where a narrow page may break it."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<=[._])", "<wbr>", str(escape(name))))  # noqa: S704 — escaped
