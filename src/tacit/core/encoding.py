"""Results to JSON and back: plain read-only data, and the base class of the classes in `guarantee`."""

from __future__ import annotations

import dataclasses
import json
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from .errors import InputError

SCHEMA = 2
"""The schema that is written; schema 1, with one text as theorem and at most one attack, is still read."""

_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def frozen(name: str, value: object) -> Any:
    """A read-only copy of plain data."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        return float(value)
    if isinstance(value, list | tuple):
        return tuple(frozen(f"{name}[{index}]", item) for index, item in enumerate(value))
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise InputError(
                    f"a key of {name}",
                    key,
                    requirement="must be a string that does not begin with '$'",
                    remedy="rename it",
                )
        return MappingProxyType({key: frozen(f"{name}[{key!r}]", item) for key, item in value.items()})
    raise InputError(
        name,
        value,
        requirement="must be made of text, numbers, booleans, None, lists and dicts",
        remedy="convert arrays with .tolist()",
    )


def encoded(value: object) -> Any:
    """The value in strict JSON types; non-finite floats become {"$float": "inf"} and the like."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, Encodable):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    return value


def decoded(value: object) -> Any:
    """The inverse of `encoded` for plain data."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {"$float"} and value["$float"] in _NON_FINITE:
            return _NON_FINITE[value["$float"]]
        return {key: decoded(item) for key, item in value.items()}
    return value


@dataclass(frozen=True, kw_only=True)
class Encodable:
    """The base class of results that can be written to JSON and read back."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types with the schema version; `from_dict` reads them back without loss."""
        fields = {field.name: encoded(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"schema": SCHEMA, **fields}

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=2)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read what `to_dict` wrote; anything else is refused."""
        names = [field.name for field in dataclasses.fields(cls)]
        entries = checked_entries(cls.__name__, data, lambda _: names)
        return cls(**{name: cls._field_from_dict(name, entries[name]) for name in names})

    @classmethod
    def _field_from_dict(cls, name: str, value: object) -> Any:  # noqa: ARG003 — subclasses with nested objects need it
        return decoded(value)

    @classmethod
    def from_json(cls, source: object) -> Self:
        """Read what `to_json` wrote; anything else is refused."""
        try:
            data = json.loads(source)  # type: ignore[arg-type]  # refused below, in our own words
        except (TypeError, ValueError, RecursionError):
            raise InputError(
                f"the JSON of a {cls.__name__}",
                source,
                requirement="must be text that to_json() wrote",
                remedy="check that the file is whole",
            ) from None
        return cls.from_dict(data)

    def __reduce__(self) -> tuple[Callable[[object], object], tuple[dict[str, Any]]]:
        # Read-only mappings cannot be pickled or deep-copied; their JSON form can.
        return type(self).from_dict, (self.to_dict(),)


def checked_entries(kind: str, data: object, names_in: Callable[[int], list[str]]) -> dict[str, Any]:
    """Return `data` after checking that it is a dict of a known schema with exactly the entries of that schema."""
    if not isinstance(data, dict):
        raise InputError(
            f"the JSON of a {kind}", data, requirement="must be an object", remedy="pass what to_dict() returned"
        )
    schema: Any = data.get("schema")
    if schema not in range(1, SCHEMA + 1):
        raise InputError(
            f"the schema of a {kind}",
            schema,
            requirement=f"must be one from 1 to {SCHEMA}",
            remedy="write the file again with this version of tacit",
        )
    names = names_in(int(schema))
    found = sorted(str(key) for key in data if key != "schema")
    if found != sorted(names):
        raise InputError(
            f"the entries of a {kind}",
            found,
            requirement=f"must be {', '.join(names)}",
            remedy="pass what to_dict() returned",
        )
    return data


def check_derived(kind: str, entries: Mapping[str, Any], derived: Mapping[str, Any]) -> None:
    """Refuse derived entries that do not follow from the others."""
    for name, value in derived.items():
        if entries[name] != value:
            raise InputError(
                f"{name} in the JSON of a {kind}",
                entries[name],
                requirement=f"must follow from the other entries ({value})",
                remedy="do not edit results by hand",
            )


def require_instance(name: str, value: object, kind: type) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kind):
        raise InputError(name, value, requirement=f"must be a {kind.__name__}", remedy=f"build a {kind.__name__} first")


def set_field(record: object, name: str, value: object) -> None:
    """Set a field of a frozen dataclass, to normalise it in `__post_init__`."""
    object.__setattr__(record, name, value)
