"""Templates: HTML in which every value is text, with times and shares as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from recrawl.model import spans
from recrawl.model.spans import format_span
from recrawl.serve.dashboard.gate import HEADERS

HERE = Path(__file__).parent


@cache
def environment() -> Environment:
    """The templates; everything that is put into them is escaped."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"percent": percent, "span": span, "number": number, "date": date}
    return found


def render(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, or a part of one."""
    text = environment().get_template(template).render(ago=_ago(values.get("now")), **values)
    return HTMLResponse(text, status, headers=HEADERS)


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent.

    >>> percent(0.9234), percent(None), percent(1.0)
    ('92.3%', '–', '100.0%')
    """
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}%"


def span(seconds: float | None) -> str:
    """A span of time with two digits; a dash where there is none.

    >>> span(792.0), span(8000.0), span(None), span(math.inf)
    ('13 min', '2.2 h', '–', 'forever')
    """
    if seconds is None or math.isnan(seconds):
        return "–"
    amount, _, unit = format_span(seconds).rpartition(" ")
    try:
        return f"{float(amount):.{3 if abs(float(amount)) >= 100 else 2}g} {unit}"
    except ValueError:
        return format_span(seconds)


def number(amount: float | None) -> str:
    """A number as people read it.

    >>> number(1234567), number(0.51234), number(12.3), number(None)
    ('1,234,567', '0.512', '12.3', '–')
    """
    if amount is None or not math.isfinite(amount):
        return "–"
    return spans.number(amount)


def date(at: float) -> str:
    """A time in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _ago(now: float | None) -> Any:
    """A function that writes a time as the span until or since it."""

    def written(at: float | None, never: str = "never") -> Markup | str:
        if at is None or not math.isfinite(at) or now is None:
            return never
        since = now - at
        words = "just now" if abs(since) < 1.0 else f"{span(since)} ago" if since > 0 else f"in {span(-since)}"
        stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
        return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(stamp, date(at), words)

    return written
