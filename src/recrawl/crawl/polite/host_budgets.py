"""Host budgets: requests that a host may get in all, by rule, also across restarts.

A crawl takes its first request when it starts (``take``). Requests that follow in the same crawl (redirects) do not
wait, but are charged: the next crawl starts only when they are paid for. Before a request is made, the store is given
the time up to which the budget counts as spent, so that a run that was killed is not repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from recrawl.crawl.polite.budget import SaveNotes
from recrawl.engine.names.addresses import host_of

PREFIX = "host_paced:"  # of the notes that hold up to when the budget of a host is spent
_AHEAD = 1.0  # seconds that a note lies ahead, so that not every request needs one
_MOST = 16  # requests that a note may lie ahead: a crawl makes fewer
_SAME = 1e-6  # seconds: times this close are the same
_REMEMBERED = 200_000  # hosts whose rate is remembered

RateOf = Callable[[str], float | None]


@dataclass(slots=True)
class _Host:
    rate: float  # requests per second
    free_at: float  # when the next request may start
    covered: float = -math.inf  # up to here the store knows


class HostBudgets:
    """Requests per second that single hosts may get; ``rate_of(host)`` is the rate of a host, None: no limit.

    In any window of W seconds a host gets at most rate·W + 1 crawls, and over time no more than rate·W requests.

    >>> budgets = HostBudgets(lambda host: 0.5)
    >>> budgets.take("https://a.example/1", 10.0), budgets.take("https://a.example/2", 11.0)
    (True, False)
    >>> budgets.charge("https://a.example/3", 1, 11.0)     # a redirect
    >>> budgets.next_at("https://a.example/2", 11.0)
    14.0
    """

    def __init__(self, rate_of: RateOf | None = None, save_notes: SaveNotes | None = None) -> None:
        self._rate_of, self._save_notes = rate_of, save_notes
        self._rates: dict[str, float | None] = {}
        self._hosts: dict[str, _Host] = {}

    def take(self, url: str, now: float) -> bool:
        """Start a crawl: whether its host may get a request now, which is then counted."""
        one = self._host(url, now)
        if one is None:
            return True
        if now < one.free_at - _SAME:
            return False
        one.free_at = max(one.free_at, now) + 1.0 / one.rate
        return True

    def charge(self, url: str, n: int, now: float) -> None:
        """Count requests that a crawl makes after its first."""
        one = self._host(url, now) if n else None
        if one is not None:
            one.free_at = max(one.free_at, now) + n / one.rate

    def next_at(self, url: str, now: float) -> float:
        """When a crawl of the URL's host may start: now where nothing limits it."""
        one = self._host(url, now)
        return now if one is None else max(one.free_at, now)

    async def cover(self, host: str) -> None:
        """Write up to when the budget of a host is spent, before a request is made."""
        one = self._hosts.get(host)
        if one is not None and one.free_at > one.covered and self._save_notes is not None:
            covered = one.free_at + _AHEAD
            await self._save_notes({PREFIX + host: covered})
            one.covered = max(one.covered, covered)

    # --- across restarts and reloads ----------------------------------------------------------------------------------

    def last_notes(self, now: float) -> dict[str, float | None]:
        """Notes to write when no further request will be made."""
        return {PREFIX + host: one.free_at if one.free_at > now else None for host, one in self._hosts.items()}

    def restore(self, notes: Mapping[str, float], now: float) -> dict[str, float]:
        """Continue after what an earlier run may have spent; until when each such host must wait."""
        waits = {}
        for name, spent in notes.items():
            host = name.removeprefix(PREFIX)
            rate = self._rate(host)
            if rate is not None and spent > now:
                waits[host] = min(float(spent), now + _AHEAD + _MOST / rate)
                self._hosts[host] = _Host(rate, waits[host])
        return waits

    def refresh(self, now: float) -> None:
        """Use other rules from now on: what is owed stays owed, at the new rate."""
        self._rates.clear()
        for host, one in list(self._hosts.items()):
            rate = self._rate(host)
            if rate is None:
                del self._hosts[host]
            else:
                one.free_at = max(now, now + (one.free_at - now) * one.rate / rate)
                one.rate = rate

    def limits(self, host: str) -> bool:
        """Whether a host has a budget."""
        return host in self._hosts or self._rate(host) is not None

    def hosts(self) -> list[str]:
        """The hosts that have a budget and were asked."""
        return list(self._hosts)

    def _host(self, url: str, now: float) -> _Host | None:
        host = host_of(url)
        one = self._hosts.get(host)
        if one is None and (rate := self._rate(host)) is not None:
            one = self._hosts[host] = _Host(rate, now)
        return one

    def _rate(self, host: str) -> float | None:
        if self._rate_of is None:
            return None
        if host not in self._rates:
            if len(self._rates) >= _REMEMBERED:
                self._rates.clear()
            self._rates[host] = self._rate_of(host)
        return self._rates[host]
