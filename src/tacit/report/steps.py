"""A count over time as a small picture within a page, which gives it its colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from .rendering import template

_WIDTH, _HEIGHT = 340.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 330.0, 22.0, 140.0
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """How often something has happened, against a number at which it ends.

    Attributes
    ----------
    began, now
        The ends of the axis of time.
    times
        When it happened.
    most
        The number at which it ends.
    what
        What happened, in the plural, such as "refusals".
    """

    began: datetime
    now: datetime
    times: Sequence[datetime]
    most: int
    what: str

    @property
    def reading(self) -> str:
        """What the picture shows, for readers who cannot see it."""
        count = len(self.times)
        if not count:
            return f"{self.what.capitalize()} over time: none of {self.most} since {_long(self.began)}."
        return (
            f"{self.what.capitalize()} over time: {count} of {self.most} since {_long(self.began)}, the first at "
            f"{_long(min(self.times))}, the last at {_long(max(self.times))}."
        )

    def to_svg(self) -> str:
        """The picture, for the inside of a page."""
        places = [(_LEFT, self._height(0))]
        for count, when in enumerate(sorted(self.times), start=1):
            across = self._across(when)
            places += [(across, self._height(count - 1)), (across, self._height(count))]
        places.append((_RIGHT, places[-1][1]))
        return template("steps.svg.j2").render(
            reading=self.reading,
            what=self.what,
            size=(_WIDTH, _HEIGHT),
            axes=(_LEFT, _RIGHT, _TOP, _BOTTOM),
            path=" ".join(f"{x:.1f},{y:.1f}" for x, y in places),
            end=places[-1],
            heights=[(count, self._height(count)) for count in dict.fromkeys((0, self.most // 2, self.most))],
            ends=(self._short(self.began), self._short(self.now)),
        )

    def _across(self, when: datetime) -> float:
        whole = (self.now - self.began) / timedelta(seconds=1)
        share = (when - self.began) / timedelta(seconds=1) / whole if whole > 0 else 1.0
        return _LEFT + (_RIGHT - _LEFT) * min(max(share, 0.0), 1.0)

    def _height(self, count: int) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * min(count, self.most) / max(self.most, 1)

    def _short(self, when: datetime) -> str:
        span = self.now - self.began
        day = f"{when.day} {when:%b}"
        if span < _HOUR:
            return f"{when:%H:%M:%S}"
        return f"{when:%H:%M}" if span < _DAY / 2 else f"{day} {when:%H:%M}" if span < 7 * _DAY else f"{day} {when:%Y}"


def _long(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
