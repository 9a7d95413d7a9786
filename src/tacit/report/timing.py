"""Lines of progress with the share that is done and the time that is left."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from .wording import duration

TAKES = "this takes about"
WORTH_SAYING = 10.0
"""Seconds from which on the time that a run takes is said beforehand."""
_TRUSTED = 0.05
"""The share of a run that the estimate weighs, against what was measured."""

_COUNTED = re.compile(r"(\d+) of ([1-9]\d*) ")


def takes(seconds: float, *, at_most: bool = False) -> str:
    """How long a run takes, in words."""
    return f"{TAKES} {duration(seconds)}{' at most' * at_most}"


class Timed:
    """Passes lines of progress on, with the time that is left as soon as somebody has estimated it.

    Parameters
    ----------
    advance
        Called with each line.
    clock
        The time in seconds.
    """

    def __init__(self, advance: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._advance, self._clock = advance, clock
        self._started, self._expected = clock(), 0.0

    @property
    def spent(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._started

    def expect(self, left: float, *, remedy: str = "") -> None:
        """Say how long the run takes, if that is more than a few seconds; `remedy` is what makes it shorter."""
        self._expected = self.spent + left
        if self._expected >= WORTH_SAYING:
            self._advance(f"{takes(self._expected)}{'; ' * bool(remedy)}{remedy}")

    def __call__(self, line: str) -> None:
        """A step begins."""
        if self._expected >= WORTH_SAYING:
            left, share = self._expected - self.spent, self.spent / self._expected
            rest = f"about {duration(left)} left" if left > 0 else "longer than expected"
            counted = _COUNTED.match(line)
            if left <= 0 and counted is not None:  # the clock no longer says how much is done
                share = int(counted[1]) / int(counted[2])
            line = f"{min(99, int(100 * share))} % done, {rest}: {line}"
        self._advance(line)


class Paced:
    """Passes lines about the steps of a run on, with the share that is done and the time that is left.

    How long the steps take is an estimate, corrected by how long those that are done have taken.

    Parameters
    ----------
    advance
        Called with each line. How long the run takes is said when the first step that takes any time begins, if that
        is more than a few seconds.
    seconds
        About how long each step takes, in their order; 0 for steps in which files may still be refused.
    resumed
        Whether some steps may be finished already, so that the run takes this long at most.
    remedy
        What makes the run shorter; empty if it needs none.
    clock
        The time in seconds.
    """

    def __init__(
        self,
        advance: Callable[[str], None],
        seconds: Sequence[float],
        *,
        resumed: bool = False,
        remedy: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._advance, self._seconds, self._clock = advance, seconds, clock
        self._started, self._begun, self._whole = clock(), 0, sum(seconds)
        self._said = f"{takes(self._whole, at_most=resumed)}{'; ' * bool(remedy)}{remedy}"

    def __call__(self, line: str) -> None:
        """A step begins."""
        self._begun += 1
        if self._said and self._seconds[self._begun - 1] and self._whole >= WORTH_SAYING:
            self._advance(self._said)
            self._said = ""
        self.within(line, 0.0)

    def within(self, line: str, share: float) -> None:
        """Of the present step, this share is done."""
        *before, present = self._seconds[: self._begun]
        done = sum(before) + share * present
        if self._whole >= WORTH_SAYING and not self._said:
            known = _TRUSTED * self._whole  # so that a few short steps do not decide
            pace = (self._clock() - self._started + known) / (done + known)
            left = duration(pace * (self._whole - done))
            line = f"{min(99, int(100 * done / self._whole))} % done, about {left} left: {line}"
        self._advance(line)
