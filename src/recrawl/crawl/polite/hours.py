"""Hours: when crawling is allowed, and what a budget comes to while it is."""

from __future__ import annotations

import math
import re
from datetime import datetime, tzinfo

from recrawl.errors import ParameterError
from recrawl.model.budget import parse_budget, unit_seconds

_PART = re.compile(r"(\d{1,2})(?::(\d\d))?\s*-\s*(\d{1,2})(?::(\d\d))?", re.ASCII)
_DAY = 1440  # minutes
_QUOTA = unit_seconds("day")  # a budget per day or longer is a quota


class Hours:
    """Times of day at which crawling is allowed, such as ``22-6`` or ``0:30-5, 12-13``, in a time zone or local time.

    >>> from datetime import UTC
    >>> nights = Hours("22-6", UTC)
    >>> nights.open(3 * 3600.0), nights.open(12 * 3600.0), nights.next_change(12 * 3600.0) / 3600, nights.share
    (True, False, 22.0, 0.3333333333333333)
    """

    def __init__(self, text: str, zone: tzinfo | None = None) -> None:
        self.text = text
        self._zone = zone
        self._minutes = [False] * _DAY
        self._lasting = (math.inf, -math.inf, False)  # from, until: open or not
        for part in text.split(","):
            first, last = _bounds(part.strip(), text)
            for k in range((last - first) % _DAY or _DAY):
                self._minutes[(first + k) % _DAY] = True

    @property
    def share(self) -> float:
        """The share of a day that is open."""
        return sum(self._minutes) / _DAY

    def open(self, now: float) -> bool:
        """Whether crawling is allowed at a time (seconds since 1970)."""
        if not self._lasting[0] <= now < self._lasting[1]:
            self._lasting = (now, self._change_after(now), self._open(now))
        return self._lasting[2]

    def next_change(self, now: float) -> float:
        """When crawling next begins or ends to be allowed; infinity where it is always allowed."""
        self.open(now)
        return self._lasting[1]

    def _change_after(self, now: float) -> float:
        if all(self._minutes):
            return math.inf
        is_open, at = self._open(now), math.floor(now / 60.0) * 60.0
        for _ in range(2 * _DAY + 120):  # a day may be longer where clocks are put back
            at += 60.0
            if self._open(at) != is_open:
                return at
        raise AssertionError("hours that never change")

    def _open(self, now: float) -> bool:
        local = datetime.fromtimestamp(now, self._zone)
        return self._minutes[local.hour * 60 + local.minute]


def _bounds(part: str, text: str) -> tuple[int, int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ParameterError(f"hours {text!r} are not understood; write for example 22-6 or 0:30-5, 12-13")
    first, last = (int(match[k]) * 60 + int(match[k + 1] or 0) for k in (1, 3))
    if max(first, last) > _DAY or max(int(match[2] or 0), int(match[4] or 0)) > 59:
        raise ParameterError(f"hours {text!r}: a day has 24 hours of 60 minutes")
    return first % _DAY, last % _DAY


def rates(budget: str, n_pages: int, hours: Hours | None) -> tuple[float, float]:
    """Crawls per second while crawling is allowed, and on average over the day.

    A budget per day or longer is a quota: all of it is spent in the open hours. One per second, minute or hour is a
    rate: it holds in the open hours, and nothing is spent in others.

    >>> nights = Hours("0-6")
    >>> rates("86400/day", 1, nights), rates("1/s", 1, nights), rates("1/s", 1, None)
    ((4.0, 1.0), (1.0, 0.25), (1.0, 1.0))
    """
    rate = parse_budget(budget, max(n_pages, 1))
    if hours is None:
        return rate, rate
    unit = next(
        (part for part in reversed(budget.split("/")[1:]) if part.strip().lower() not in ("page", "pages")), "s"
    )
    is_quota = unit_seconds(unit) >= _QUOTA
    return (rate / hours.share, rate) if is_quota else (rate, rate * hours.share)
