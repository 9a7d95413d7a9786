"""Functions of the user's own files, given as FILE.py:FUNCTION."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
        """Read the file of FILE.py:FUNCTION and run it once, to see that it has such a function.

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
        made = cls(source, path, function, name, remedy)
        try:
            module = _run(source, path)
        except (Exception, SystemExit) as failure:  # the caller's own code may raise anything
            raise made.refused(failure) from None
        if not callable(getattr(module, function, None)):
            known = _functions(module)
            raise InputError(
                name,
                text,
                requirement=f"must name a function of {path}",
                remedy=did_you_mean(function, known, f"it has {', '.join(known) or 'none'}"),
            )
        return made

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return getattr(_run(self.source, self.path), self.function)(*arguments)

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


@lru_cache(maxsize=4)
def _run(source: str, path: str) -> ModuleType:
    """The module that a file makes. It is run once, and leaves no compiled copy beside itself."""
    module = ModuleType("tacit_model")
    module.__file__ = path
    exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 — a file that the user's own command names
    return module


def _functions(module: ModuleType) -> list[str]:
    """The names of what a file itself defines and can be called."""
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
