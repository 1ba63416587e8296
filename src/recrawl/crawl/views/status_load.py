"""Parts of ``recrawl status``: pages that fail, with their next try, and the load of each host."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from recrawl.engine.names.addresses import host_of
from recrawl.model.spans import format_span

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, Outcome, OwnedStore

_HOUR, _DAY = 3600.0, 86400.0
_LISTED = 1000  # pages and hosts at most
_SHOWN = 10  # of them in the text


def failing_figures(store: BlockingStore[OwnedStore], failing: Iterable[tuple[Outcome, str]]) -> dict[str, Any]:
    """Pages that fail, the last failure first: reason, last and next try; how many there are, and at most 1000."""
    found = sorted(failing, key=lambda one: -one[0].began_at)
    listed = found[:_LISTED]
    rows = store.load([outcome.url for outcome, _ in listed])
    until = {} if rows is None else dict(zip(rows["url"], rows["wait_until"], strict=True))
    pages = [
        {
            "url": outcome.url,
            "reason": reason,
            "status": outcome.status,
            "last_try": outcome.began_at,
            "next_try": at if (at := float(until.get(outcome.url, -1.0))) > 0.0 else None,
        }
        for outcome, reason in listed
    ]
    return {"total": len(found), "pages": pages}


def load_figures(store: BlockingStore[OwnedStore], settings: Settings, pages: int, now: float) -> dict[str, Any]:
    """Hosts that were asked in the last day, most requests first; how many there are, and at most 1000.

    Requests are those of crawls, the last read of robots.txt of each origin and the last poll of each listing.
    """
    counts: dict[str, list[int]] = {}
    origins: dict[str, set[str]] = {}
    polled: dict[str, list[float]] = {}
    for one in store.listings():
        state = one.state or {}
        at = state.get("polled_at")
        own = not state.get("as_page") and state.get("failure") != "robots"  # a request besides those of crawls
        if at is not None and at >= now - _DAY and own:
            polled.setdefault(host_of(one.url), []).append(float(at))
            counts.setdefault(host_of(one.url), [0, 0])
            origins.setdefault(host_of(one.url), set())
    for url, day, hour in store.requests(now - _DAY, now - _HOUR):
        parts, mine = urlsplit(url), counts.setdefault(host_of(url), [0, 0])
        mine[0] += day
        mine[1] += hour
        origins.setdefault(host_of(url), set()).add(f"{parts.scheme}://{parts.netloc}")
    order = sorted(counts, key=lambda host: (-counts[host][0], host))
    known = _Known(store, settings, pages)
    listed = []
    for host in order[:_LISTED]:
        read = [at for origin in sorted(origins[host]) if (at := known.robots_read_at(origin)) is not None]
        read += polled.get(host, [])
        day, hour = (
            n + sum(at >= now - ago for at in read) for n, ago in zip(counts[host], (_DAY, _HOUR), strict=True)
        )
        listed.append(known.host(host, day, hour, now))
    return {"total": len(order), "hosts": listed}


class _Known:
    """What a database and its settings say of hosts."""

    def __init__(self, store: BlockingStore[OwnedStore], settings: Settings, pages: int) -> None:
        from recrawl.crawl.polite.host_limiter import DELAY

        self._store, self._rules, self._hours = store, settings.rules(), settings.opening()
        rows = store.load([])
        self._held = {} if rows is None else {host: until for host, (*_, until) in rows["hosts"].items()}
        self._delays = {name.removeprefix(DELAY): float(delay) for name, delay in store.notes(DELAY).items()}
        self._delay = settings.seconds("delay")
        self._allowed = settings.rates(max(pages, 1))[1] * _DAY

    def host(self, host: str, day: int, hour: int, now: float) -> dict[str, Any]:
        """The figures of one host."""
        from recrawl.crawl.polite.hours import rates

        budget, held = self._rules.budget_of(host), self._held.get(host, 0.0)
        own = None if budget is None else rates(budget, 1, self._hours)[1] * _DAY
        return {
            "host": host,
            "requests_last_hour": hour,
            "requests_last_day": day,
            "budget_share": day / self._allowed,
            "delay": max(self._delay, self._delays.get(host, 0.0)),
            "held_until": held if held > now else None,
            "budget": budget,
            "budget_used": None if own is None else day / own,
        }

    def robots_read_at(self, origin: str) -> float | None:
        """When the robots.txt of an origin was last read."""
        from recrawl.crawl.polite.robots_cache import PREFIX

        note = self._store.notes(PREFIX + origin).get(PREFIX + origin)
        return None if note is None else float(note["at"][0])


def failing_lines(found: dict[str, Any], now: float) -> list[str]:
    """The text about pages that fail."""
    pages, total = found["pages"], found["total"]
    lines = [f"pages that fail: {total}"] if total else []
    for one in pages[:_SHOWN]:
        status = f" ({one['status']})" if one["status"] else ""
        lines.append(f"  {one['url']}: {one['reason']}{status}; next try {_when(one['next_try'], now)}")
    return lines + _more(total)


def load_lines(found: dict[str, Any], now: float) -> list[str]:
    """The text about the load of hosts."""
    hosts = found["hosts"]
    lines = [f"{'load per host':<42}{'last hour':>9}{'last day':>10}{'of the budget':>15}"] if hosts else []
    for one in hosts[:_SHOWN]:
        text = f"  {one['host']:<40}{one['requests_last_hour']:>9}{one['requests_last_day']:>10}"
        text += f"{one['budget_share']:>15.1%}  a request every {format_span(one['delay'])} at most"
        if one["budget"] is not None:
            text += f"; {one['budget_used']:.0%} of its {one['budget']}"
        if one["held_until"] is not None and one["held_until"] - now > one["delay"]:
            text += f"; not asked until {_date(one['held_until'])}"
        lines.append(text)
    return lines + _more(found["total"])


def _more(total: int) -> list[str]:
    return [f"  and {total - _SHOWN} more; --json lists up to {_LISTED}"] if total > _SHOWN else []


def _when(at: float | None, now: float) -> str:
    return "as soon as it is worth it" if at is None or at <= now else _date(at)


def _date(at: float) -> str:
    return datetime.fromtimestamp(at).isoformat(" ", "seconds")
