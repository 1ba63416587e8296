"""Budgets in words: one grammar for every rate a user writes, such as ``5000/day`` or ``0.05/page/day``."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from recrawl.errors import ParameterError

_SECONDS = {
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "day": 86400.0,
    "week": 7 * 86400.0,
    "month": 30.4375 * 86400.0,
    "year": 365.25 * 86400.0,
}
_SPELLINGS = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "day": ("d", "day", "days"),
    "week": ("w", "wk", "week", "weeks"),
    "month": ("mo", "month", "months"),
    "year": ("y", "yr", "year", "years"),
}
_UNITS = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings}
_SCALES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_AMOUNT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([kKMG]?)", re.ASCII)


def unit_name(unit: str) -> str:
    """The short name of a time unit: s, min, h, day, week, month (30.4375 days) or year (365.25 days).

    >>> unit_name("hours")
    'h'
    """
    name = _UNITS.get(unit.strip().lower())
    if name is None:
        raise ParameterError(f"{unit!r} is not a unit of time; use one of {', '.join(_SECONDS)}")
    return name


def unit_seconds(unit: str) -> float:
    """How many seconds a time unit lasts.

    >>> unit_seconds("min")
    60.0
    """
    return _SECONDS[unit_name(unit)]


def parse_budget(text: str | float, n_pages: float | None = None, *, plain: str = "s", per: str = "s") -> float:
    """Crawls per second, or per the unit ``per``, from ``amount[k|M|G][/page]/unit``.

    A number counts per the unit ``plain``, but text must name its unit. ``/page`` multiplies by ``n_pages``.

    >>> parse_budget("2/s"), parse_budget("7200/h"), parse_budget("0.5/page/min", n_pages=240)
    (2.0, 2.0, 2.0)
    >>> parse_budget("100k/month", per="month"), parse_budget(150, plain="day", per="day")
    (100000.0, 150.0)
    """
    amount, *rest = (part.strip() for part in str(text).split("/"))
    match = _AMOUNT.fullmatch(amount)
    per_page, unit = _tail(text, rest)
    if match is None:
        raise ParameterError(f"budget {text!r} is not understood; write for example 2/s, 5000/day or 0.05/page/day")
    given = float(match[1]) * _SCALES[match[2]]
    if 0 < given < math.inf and unit is None and isinstance(text, str):
        bare = f"{amount}/page" if per_page else amount
        raise ParameterError(f"budget {text!r}: {bare} what? {bare}/day or {bare}/s")
    if per_page and n_pages is None:
        raise ParameterError(f"budget {text!r} is per page, but the number of pages is not known here")
    pages = n_pages if per_page and n_pages is not None else 1
    seconds = unit_seconds(plain if unit is None else unit)
    rate = given * pages * (unit_seconds(per) / seconds)
    if not (0 < rate < math.inf):
        raise ParameterError(f"budget {text!r} must be above 0 and finite")
    return rate


def scaled_budget(text: str, factor: float) -> str:
    """A budget times a factor, in the words of the budget: its unit, and per page if it is.

    >>> scaled_budget("5/s", 2), scaled_budget("100k/month", 0.5), scaled_budget("0.05 / page / day", 3)
    ('10/s', '50k/month', '0.15/page/day')
    """
    parse_budget(text, 1)
    if not 0 < factor < math.inf:
        raise ParameterError(f"factor is {factor}: must be above 0 and finite")
    amount, *rest = (part.strip() for part in text.split("/"))
    match = _AMOUNT.fullmatch(amount)
    assert match is not None  # it was parsed
    return "/".join([format_amount(float(match[1]) * _SCALES[match[2]] * factor), *rest])


def format_rate(rate: float, *, per: str = "s", unit: str | None = None, digits: int = 4) -> str:
    """A rate per the unit ``per`` in the same grammar, in ``unit`` or the shortest one that gives at least 1.

    >>> format_rate(2.0), format_rate(150, per="day"), format_rate(0.25, per="day")
    ('2/s', '6.25/h', '1.75/week')
    >>> format_rate(123456, per="day", unit="day")
    '123.5k/day'
    """
    per_second = rate / unit_seconds(per)
    if unit is None:
        fitting = (name for name, seconds in _SECONDS.items() if per_second * seconds >= 1)
        unit = next(fitting, "year")
    else:
        unit = unit_name(unit)
    return f"{format_amount(rate * (_SECONDS[unit] / unit_seconds(per)), digits)}/{unit}"


def format_amount(amount: float, digits: int = 4) -> str:
    """A number with k, M or G from ten thousand on, without an exponent.

    >>> format_amount(2500), format_amount(25000), format_amount(0.05), format_amount(9999.7), format_amount(2e-5)
    ('2500', '25k', '0.05', '10000', '0.00002')
    """
    for letter in ("G", "M", "k"):
        scale = _SCALES[letter]
        if abs(amount) >= (10 * scale if letter == "k" else scale):
            return _rounded(amount / scale, digits) + letter
    return _rounded(amount, digits)


def _rounded(amount: float, digits: int) -> str:
    return format(Decimal(f"{amount:.{digits}g}"), "f")


def _tail(text: str | float, parts: list[str]) -> tuple[bool, str | None]:
    """Whether a budget is per page, and the name of its unit of time; None where it has none."""
    per_page = [part for part in parts if part.lower() in ("page", "pages")]
    units = [part for part in parts if part.lower() not in ("page", "pages")]
    if len(per_page) > 1 or len(units) > 1:
        raise ParameterError(f"budget {text!r} has too many parts; write amount/unit or amount/page/unit")
    try:
        return bool(per_page), unit_name(units[0]) if units else None
    except ParameterError as problem:
        raise ParameterError(f"budget {text!r}: {problem}") from None
