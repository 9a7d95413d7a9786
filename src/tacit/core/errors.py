"""Everything Tacit raises on purpose.

    TacitError                  catch this to catch all of them
    ├── InputError              a value, an option or a file that cannot be used (also a ValueError)
    ├── IncomparableError       an attack that says nothing about a guarantee
    ├── NoTheoremError          no proven statement covers what was asked
    ├── BudgetSpentError        a release that costs more privacy than is left
    └── MissingExtraError       an optional dependency is not installed (also an ImportError)

Every message is one line: what it is about, the value found, what is required, what to do about it.
"""

from __future__ import annotations

_LONGEST_VALUE = 80


def shown(value: object) -> str:
    """`value` as one short line of printable text, whatever it is."""
    try:
        text = repr(value)
    except Exception as failure:  # a foreign __repr__ must not hide the error being reported
        text = f"<{type(value).__name__}, whose repr raised {type(failure).__name__}>"
    text = " ".join(text.split())
    text = "".join(character if character.isprintable() else "�" for character in text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


class TacitError(Exception):
    """The root of the tree above."""


class InputError(TacitError, ValueError):
    """A value, an option or a file that cannot be used."""

    def __init__(self, what: str, value: object, *, requirement: str, remedy: str) -> None:
        self.what, self.value, self.requirement, self.remedy = what, value, requirement, remedy
        super().__init__(f"{what} {requirement}, got {shown(value)}; {remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        return _input_error, (self.what, self.value, self.requirement, self.remedy)


def _input_error(what: str, value: object, requirement: str, remedy: str) -> InputError:
    return InputError(what, value, requirement=requirement, remedy=remedy)


class IncomparableError(TacitError):
    """An attack that says nothing about a guarantee."""


class NoTheoremError(TacitError):
    """No proven statement covers what was asked."""


class BudgetSpentError(TacitError):
    """A release that costs more privacy than is left."""


class MissingExtraError(TacitError, ImportError):
    """An optional dependency is not installed."""
