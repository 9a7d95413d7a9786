"""Functions of the user's own files, given as FILE.py:FUNCTION."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from ..core.errors import InputError
from ..core.near import did_you_mean
from . import files


@dataclass(frozen=True)
class UserFunction:
    """A function by the source of its file, so that it travels to workers which have no such file.

    Attributes
    ----------
    source
        What the file holds.
    path, function
        Where it lies, and the function's name.
    name, remedy
        How errors call it, and what they advise.
    """

    source: str
    path: str
    function: str
    name: str
    remedy: str

    @classmethod
    def named(cls, text: str, name: str, *, remedy: str) -> Self:
        """Read the file of FILE.py:FUNCTION; it is run by a call.

        Parameters
        ----------
        text
            FILE.py:FUNCTION.
        name
            The parameter, for errors.
        remedy
            What to write instead.
        """
        path, _, function = text.rpartition(":")
        if not path:
            raise InputError(name, text, requirement="must be FILE.py:FUNCTION", remedy=remedy)
        content = files.plain(Path(path), name).read_bytes()
        try:
            source = content.decode()
            if not path.endswith(".py"):
                raise ValueError
        except ValueError:
            raise InputError(name, text, requirement="must be a Python file", remedy=remedy) from None
        return cls(source, path, function, name, remedy)

    def __call__(self, *arguments: Any) -> Any:
        """Run the file anew, so that calls share nothing, and call the function.

        Raises
        ------
        InputError
            Where the file has no such function; whatever else the user's own code raises is passed on.
        """
        module = ModuleType("tacit_model")
        module.__file__ = self.path
        exec(compile(self.source, self.path, "exec"), module.__dict__)  # noqa: S102 — the file that the user named
        if not callable(getattr(module, self.function, None)):
            known = _functions(module)
            raise InputError(
                self.name,
                f"{self.path}:{self.function}",
                requirement=f"must name a function of {self.path}",
                remedy=did_you_mean(self.function, known, f"it has {', '.join(known) or 'none'}"),
            )
        return getattr(module, self.function)(*arguments)

    def refused(self, failure: BaseException) -> InputError:
        """What is said of a file or function that raised an exception."""
        if isinstance(failure, InputError):
            return failure
        return InputError(
            self.name,
            f"{type(failure).__name__}: {failure}",
            requirement=f"must run: {self.path}:{self.function}",
            remedy=f"correct the file, or {self.remedy}",
        )


def _functions(module: ModuleType) -> list[str]:
    """The names of what a file itself defines and can be called."""
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
