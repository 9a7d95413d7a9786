"""How long a run may take: what is left, how far it is, and a stop when the time is over.

Time decides how much is done, never what a result is: steps and inputs that were done are recorded, and a run that is
given these numbers gives the same results.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from ...report.wording import duration

SECONDS = 120.0
"""How long a run takes unless told otherwise."""
_REPORT = 0.1
"""The share of the time that is kept for drawing and writing the report."""


class OutOfTime(BaseException):
    """Raised inside a method when the time is over. Like a `KeyboardInterrupt`, it is no failure of the method."""


class Budget:
    """The time of one run.

    Parameters
    ----------
    seconds
        How long the run may take.
    steps
        How many steps it would have with all the time it needs.
    advance
        Called with a line: how much is done, how much time is left at most, and what is being done.
    clock
        The time in seconds.
    """

    def __init__(
        self,
        seconds: float,
        *,
        steps: int,
        advance: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds, self.steps, self.advance, self.clock = seconds, steps, advance, clock
        self.started, self.begun, self.said = clock(), 0, ""

    @property
    def spent(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.started

    @property
    def left(self) -> float:
        """Seconds that are left for computing, or 0; some are kept for the report."""
        return max(0.0, (1 - _REPORT) * self.seconds - self.spent)

    def begin(self, line: str) -> None:
        """The next step begins."""
        self.begun += 1
        self._say(line)

    def within(self, line: str, share: float) -> None:
        """Within a step, this share of something is done."""
        self._say(f"{line}, {100 * share:.0f} %")

    def _say(self, line: str) -> None:
        if line == self.said:
            return
        self.said = line
        share = min(0.99, max((self.begun - 1) / self.steps, self.spent / self.seconds))
        rest = f"at most {duration(self.left)} left" if self.left else "longer than planned"
        self.advance(f"{100 * share:.0f} % done, {rest}: {line}")

    @contextlib.contextmanager
    def stopping(self, features: nn.Module, share: float = 1.0) -> Iterator[None]:
        """Within this, the module raises `OutOfTime` when it is called after this share of the time is over."""
        end = share * (1 - _REPORT) * self.seconds

        def check(*_: Any) -> None:
            if self.spent >= end:
                raise OutOfTime

        hooks = [module.register_forward_pre_hook(check) for module in features.modules()]
        try:
            check()
            yield
        finally:
            for hook in hooks:
                hook.remove()
