"""``POST /v1/signals``: whoever has a token says which pages have changed."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.routing import Route

from recrawl.crawl.formats.dates import moment
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import WEBHOOK, Source
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError
from recrawl.serve.guard import authorize, read_body
from recrawl.serve.problems import ProblemError
from recrawl.serve.receive.share import admitted

if TYPE_CHECKING:
    from recrawl.serve.app import Context, Listings

MOST_SIGNALS = 10_000  # of one request, pages under prefixes included
MOST_BYTES = 1_000_000  # of one request
_LATEST = 1e11  # seconds since 1970: times beyond are in other units
_FIELDS = dict.fromkeys(("url", "prefix", "changed_at"))


class _Row(NamedTuple):
    """One signal of a request."""

    number: int
    url: str
    is_prefix: bool
    changed_at: float | None
    resolution: float


def signal_route(context: Context) -> Route:
    """The route for signals. It reads requests itself: what FastAPI would do for each is left out."""

    async def take_signals(request: Request) -> JSONResponse:
        token = authorize(request, context.tokens, "signal")
        await admitted(request)
        rows = parse_signals(await read_body(request, MOST_BYTES))
        signals = await _expanded(rows, Source(WEBHOOK, token.name), context.store)
        taken = await context.inbox.take(signals, whole=True)
        if taken.limited == len(signals) > 0 and math.isinf(taken.retry_after):
            raise ProblemError(413, f"there are {len(signals)} signals: more than this token may send at once")
        if taken.limited:
            raise ProblemError.limited("this token has sent too many signals: none was taken", taken.retry_after)
        return JSONResponse({name: getattr(taken, name) for name in ("accepted", "repeated", "outdated", "unknown")})

    return Route("/v1/signals", take_signals, methods=["POST"])


async def _expanded(rows: list[_Row], source: Source, store: Listings) -> list[Signal]:
    """A signal for each URL, and for each page under a prefix; a prefix without pages stands for an unknown URL."""
    if not any(row.is_prefix for row in rows):
        return [Signal(url, source, changed_at, resolution) for _, url, _, changed_at, resolution in rows]
    found: list[Signal] = []
    for row in rows:
        urls = [row.url]
        if row.is_prefix:
            left = MOST_SIGNALS - len(found)
            urls = await store.urls(row.url, most=left + 1) or urls
            if len(urls) > left:
                detail = f"more than {MOST_SIGNALS} pages with the prefixes: use longer ones"
                raise ProblemError(422, f"signals, row {row.number}: {detail}", field="prefix", row=row.number)
        found += [Signal(url, source, row.changed_at, row.resolution) for url in urls]
    return found


def parse_signals(body: bytes) -> list[_Row]:
    """The signals of a request, or ProblemError for the first that cannot be used.

    >>> [row.url for row in parse_signals(b'["https://docs.example.org"]')]
    ['https://docs.example.org/']
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise ProblemError(422, "the body is not JSON") from None
    if isinstance(given, dict):
        if set(given) != {"signals"}:
            raise ProblemError(422, 'the body must be a list of URLs, or an object with the one member "signals"')
        given = given["signals"]
    if not isinstance(given, list):
        raise ProblemError(422, "signals must be a list", field="signals")
    if len(given) > MOST_SIGNALS:
        detail = f"there are {len(given)} signals: at most {MOST_SIGNALS} are taken at once"
        raise ProblemError(422, detail, field="signals")
    return [_row(number, row) for number, row in enumerate(given)]


def _row(number: int, given: Any) -> _Row:
    """One signal: a URL, or an object with a URL or a prefix, and perhaps the time of the change."""
    row = {"url": given} if isinstance(given, str) else given
    if not isinstance(row, dict) or ("url" in row) == ("prefix" in row):
        raise _refused(number, None, "must be a URL, or an object with either url or prefix")
    if not row.keys() <= _FIELDS.keys():
        name = next(name for name in row if name not in _FIELDS)
        raise _refused(number, name[:100], f"is not one of {', '.join(_FIELDS)}")
    name = "url" if "url" in row else "prefix"
    changed_at, resolution = _changed_at(number, row.get("changed_at"))
    return _Row(number, _url(number, name, row[name]), name == "prefix", changed_at, resolution)


def _url(number: int, name: str, given: Any) -> str:
    try:
        if not isinstance(given, str):
            raise ParameterError("must be a text")
        return canonical(given)
    except ParameterError as problem:
        raise _refused(number, name, str(problem)) from None


def _changed_at(number: int, given: Any) -> tuple[float | None, float]:
    """The time of a change and its resolution; seconds since 1970 are exact."""
    if given is None:
        return None, 0.0
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < _LATEST:
        return float(given), 0.0
    found = moment(given) if isinstance(given, str) else None
    if found is None:
        why = "must be a time such as 2026-01-31T12:00:00Z, a date, or seconds since 1970"
        raise _refused(number, "changed_at", why)
    return found.at, found.until - found.at


def _refused(number: int, field: str | None, why: str) -> ProblemError:
    where = "" if field is None else f", {field}"
    return ProblemError(422, f"signals, row {number}{where}: {why}", field=field, row=number)
