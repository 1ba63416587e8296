"""Dates as listings write them, with how exact they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", re.ASCII)
_TIME = re.compile(r"T\d\d:?\d\d(:?\d\d)?", re.ASCII)
_LONGEST = 100  # characters of a date
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """A time that is known up to a resolution: it lies from ``at`` to ``until``, in seconds since 1970."""

    at: float
    until: float


def moment(text: str) -> Moment | None:
    """A W3C date or time, or a date as mail and RSS write it; without a zone it is UTC.

    A date alone stands for any time of that day, a month for any time of that month.

    >>> moment("1970-01-02"), moment("1970-01-01T00:01:00Z"), moment("Thu, 01 Jan 1970 00:00:10 GMT")
    (Moment(at=86400.0, until=172800.0), Moment(at=60.0, until=60.0), Moment(at=10.0, until=10.0))
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    return _w3c(text) or _mail(text)


def instant(text: str) -> float | None:
    """Seconds since the epoch of a W3C date or time; what is left out is the earliest, without a zone it is UTC.

    >>> instant("1970-01-02"), instant("1970-01-01T01:00:10+01:00"), instant("1970"), instant("yesterday")
    (86400.0, 10.0, 0.0, None)
    """
    found = _w3c(text)
    return None if found is None else found.at


def _w3c(text: str) -> Moment | None:
    try:
        if found := _DATE.fullmatch(text):
            year, month, day = found.groups()
            return _part(int(year), None if month is None else int(month), None if day is None else int(day))
        at = _seconds(datetime.fromisoformat(text))
        exact = _TIME.search(text.replace(" ", "T", 1))
        return Moment(at, at if exact is None or exact[1] else at + 60.0)
    except (ValueError, OverflowError):
        return None


def _part(year: int, month: int | None, day: int | None) -> Moment:
    """A year, a month or a day, whole."""
    begin = datetime(year, 1 if month is None else month, 1 if day is None else day, tzinfo=UTC)
    if day is not None:
        end = begin + timedelta(days=1)
    elif month is not None:
        end = (begin + timedelta(days=32)).replace(day=1)
    else:
        end = (begin + timedelta(days=366)).replace(month=1, day=1)
    return Moment(_seconds(begin), _seconds(end))


def _mail(text: str) -> Moment | None:
    try:
        at = _seconds(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return Moment(at, at)


def _seconds(at: datetime) -> float:
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH).total_seconds()
