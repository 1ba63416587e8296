"""Times as logs write them, in seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_DIGITS = re.compile(r"\d{14}", re.ASCII)
_ACCESS = re.compile(r"\d{2}/[A-Za-z]{3}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}", re.ASCII)


class Moment(NamedTuple):
    """A time, and its zone in words; None where the form itself says it, as in access logs."""

    at: float
    zone: str | None


def written_time(text: str) -> Moment | None:
    """A time that is not a plain number: ISO 8601, 14 digits of a CDX file, an access log's, or an HTTP date.

    >>> written_time("20240229120000") == written_time("29/Feb/2024:13:00:00 +0100") == Moment(1709208000.0, None)
    True
    >>> written_time("Thu, 29 Feb 2024 12:00:00 GMT"), written_time("soon")
    (Moment(at=1709208000.0, zone=None), None)
    """
    try:
        if _DIGITS.fullmatch(text):
            return Moment(datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp(), None)
        if _ACCESS.fullmatch(text):
            return Moment(datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp(), None)
        if text[:3].isalpha():
            return Moment(_aware(parsedate_to_datetime(text)).timestamp(), None)
        when = datetime.fromisoformat(text)
        shift = when.utcoffset()
        zone = "no time zone" if shift is None else f"UTC offset {shift.total_seconds() / 3600:+g} h"
        return Moment(_aware(when).timestamp(), zone)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _aware(when: datetime) -> datetime:
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
