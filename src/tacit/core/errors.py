"""The errors that Tacit raises. All are `TacitError`s.

Every message is one line: what is wrong, the requirement, the value found, and what to do about it.
"""

from __future__ import annotations

_LONGEST_VALUE = 80


def shown(value: object) -> str:
    """Any value as one short line of printable text."""
    try:
        text = repr(value)
    except Exception as failure:  # a foreign __repr__ must not hide the error being reported
        text = f"<{type(value).__name__}, whose repr raised {type(failure).__name__}>"
    text = " ".join(text.split())
    text = "".join(character if character.isprintable() else "�" for character in text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


class TacitError(Exception):
    """The base class of all errors that Tacit raises: catch this to catch all of them."""


class InputError(TacitError, ValueError):
    """A value, an option or a file that cannot be used; also a ValueError.

    Parameters
    ----------
    what
        The name of the parameter, option or file.
    value
        The value found.
    requirement
        What is required, such as "must be positive".
    remedy
        What to do about it.
    """

    def __init__(self, what: str, value: object, *, requirement: str, remedy: str) -> None:
        self.what, self.value, self.requirement, self.remedy = what, value, requirement, remedy
        super().__init__(f"{what} {requirement}, got {shown(value)}; {remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        return _input_error, (self.what, self.value, self.requirement, self.remedy)


def _input_error(what: str, value: object, requirement: str, remedy: str) -> InputError:
    return InputError(what, value, requirement=requirement, remedy=remedy)


class IncomparableError(TacitError):
    """An attack cannot be compared with a guarantee, because it says nothing about it."""


class NoTheoremError(TacitError):
    """No proven statement covers what was asked."""


class BudgetSpentError(TacitError):
    """A release costs more privacy than is left."""


class InputWarning(UserWarning):
    """An input can be used, and is probably not what was meant."""


class PrivacyWarning(UserWarning):
    """A guarantee holds for what was done here, but more was done with the same private records."""


class MissingExtraError(TacitError, ImportError):
    """An optional dependency is not installed; also an ImportError."""
