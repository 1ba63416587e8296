"""Spans of time and counts as a person would say them."""

from __future__ import annotations

import math

DAY = 86400.0
_UNITS = (("years", 365.25 * DAY, 2.0), ("days", DAY, 2.0), ("h", 3600.0, 2.0), ("min", 60.0, 2.0), ("s", 1.0, 0.0))
_LONGEST = 1000 * 365.25 * DAY
_SHORTEST = 1e-3


def format_span(seconds: float) -> str:
    """A span of time in the largest unit of which it has at least two; three digits at most.

    >>> [format_span(seconds) for seconds in (9.2, 0.25, 90, 1500, 3600 * 30, DAY * 5.5, DAY * 1000)]
    ['9.2 s', '0.25 s', '90 s', '25 min', '30 h', '5.5 days', '2.74 years']
    >>> format_span(0), format_span(2e-5), format_span(2.6e15), format_span(float("inf"))
    ('0 s', 'under 1 ms', 'over 1000 years', 'forever')
    """
    if math.isinf(seconds):
        return "forever"
    if abs(seconds) >= _LONGEST:
        return "over 1000 years"
    if 0.0 < abs(seconds) < _SHORTEST:
        return "under 1 ms"
    unit, size, _ = next(one for one in _UNITS if abs(seconds) >= one[1] * one[2] - 0.005 * one[1])
    return f"{_digits(seconds / size)} {unit}"


def _digits(amount: float) -> str:
    """Three digits, without an exponent.

    >>> _digits(729.6), _digits(5.0), _digits(0.0123)
    ('730', '5', '0.012')
    """
    return f"{amount:.0f}" if abs(amount) >= 100 else f"{round(amount, 3):.3g}"


def number(amount: float, digits: int = 3) -> str:
    """A number as people read it: whole from so many digits before the point on, without an exponent.

    >>> number(1134.2), number(1234567), number(0.51234), number(12.3), number(2e-7), number(0.0)
    ('1,134', '1,234,567', '0.512', '12.3', 'under 0.0001', '0')
    >>> number(113.4, 2), number(99.97, 2), number(9.97, 2), number(0.994, 2)
    ('113', '100', '10', '0.99')
    """
    if 0.0 < amount < 1e-4:
        return "under 0.0001"
    whole = abs(amount) >= 10 ** (digits - 1) or amount == int(amount)
    return f"{amount:,.0f}" if whole else f"{amount:.{digits}g}"


def count(n: int, what: str) -> str:
    """A number and its noun, in the plural where needed.

    >>> count(1, "page"), count(2, "page")
    ('1 page', '2 pages')
    """
    return f"{n} {what}{'s' * (n != 1)}"
