"""Of ``recrawl status``: who follows the events and how far, and which hosts fail and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from recrawl.engine import Engine
    from recrawl.store import Outcome, SqliteStore

_DAY = 86400.0
_SHOWN = 200  # hosts in words
_LISTED = 10_000  # hosts in JSON
_DOUBTED = "not-modified lies"  # the reason of hosts whose 304 is not believed


def events(store: SqliteStore, now: float) -> dict[str, Any]:
    """Events that are kept, and how far behind each follower is."""
    found: dict[str, Any] = store.event_counts()
    followers = []
    for one in store.followers():
        lag = found["last"] - one.cursor
        waiting = store.events(one.cursor, 1)
        behind = now - waiting[0].at if waiting else 0.0
        followers.append({**asdict(one), "lag": lag, "seconds_behind": round(max(behind, 0.0), 3)})
    return {**found, "followers": followers}


def hosts(store: SqliteStore, engine: Engine, now: float) -> list[dict[str, Any]]:
    """Hosts that fail: how many pages for which reason, the last try, and until when they are left alone."""
    by_host: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in store.failing(now - _DAY):
        by_host[urlsplit(outcome.url).netloc].append(outcome)
    found = []
    for host, outcomes in by_host.items():
        reasons = Counter(filter(None, (_reason(store, outcome) for outcome in outcomes)))
        if reasons:
            last = max(outcome.began_at for outcome in outcomes)
            found.append({"host": host, "reasons": dict(reasons.most_common()), "last_try": last})
    found += [{"host": host, "reasons": {_DOUBTED: 1}, "last_try": None} for host in _doubted(store, now, by_host)]
    for one in found:
        until = engine.held_until(str(one["host"]))
        one["left_alone_until"] = until if until > now else None
    return sorted(found, key=lambda one: str(one["host"]))[:_LISTED]


def _reason(store: SqliteStore, outcome: Outcome) -> str | None:
    """Why a page fails; None where robots.txt was read and does not allow it: that is no failure of its host."""
    if outcome.failure != "robots":
        return outcome.failure
    from recrawl.crawl.polite.robots_cache import PREFIX

    parts = urlsplit(outcome.final_url or outcome.url)
    name = f"{PREFIX}{parts.scheme}://{parts.netloc}"
    kept = store.noted(name).get(name)
    return f"robots.txt: {kept['failure']}" if kept and kept["failure"] else None


def _doubted(store: SqliteStore, now: float, known: Any) -> list[str]:
    trust = store.noted("trust").get("trust", {"hosts": {}})
    return [host for host, one in trust["hosts"].items() if one["doubted_until"] > now and host not in known]


def sections(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    kept = found["events"]
    lines = [f"{'events':<26}{kept['last']} so far, {kept['rows']} kept from number {kept['first']} on"]
    for one in kept["followers"]:
        words = f"{one['lag']} events behind" + (f" ({_span(one['seconds_behind'])})" if one["lag"] else "")
        if one["failures"]:
            words += f"; failed {one['failures']} times in a row, last: {one['failure']}"
        if one["dropped"]:
            words += f"; {one['dropped']} EVENTS DROPPED before it took them: it must start anew"
        lines.append(f"{'follower ' + one['name']:<26}{words}")
    if found["hosts"]:
        lines.append(f"hosts that fail: {len(found['hosts'])}")
    lines += [_host(one) for one in found["hosts"][:_SHOWN]]
    more = len(found["hosts"]) - _SHOWN
    return lines + ([f"  and {more} more; --json lists them"] if more > 0 else [])


def _host(one: dict[str, Any]) -> str:
    reasons = ", ".join(f"{word} ({n} pages)" if n > 1 else word for word, n in one["reasons"].items())
    until = one["left_alone_until"]
    rest = "" if until is None else f"; left alone until {datetime.fromtimestamp(until).isoformat(' ', 'seconds')}"
    return f"  {one['host']:<40}{reasons}{rest}"


def _span(seconds: float) -> str:
    for size, word in ((_DAY, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {word}"
    return f"{seconds:.0f} s"
