"""Turns: no host is asked sooner after its last answer than its delay, whoever asks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from recrawl.crawl.clock import Clock
from recrawl.engine import Engine

_POLL = 0.05  # seconds between looks at a host all of whose places are taken
_REMEMBERED = 200_000  # hosts, beyond which those that are free are forgotten
_FIRST_HOLD, _LAST_HOLD = 30.0, 3600.0  # seconds a host rests that fails again and again
_PATIENCE = 3  # failures in a row that are the page's matter


class Turns:
    """Delay and concurrency of hosts, counted from the end of the request before: a server never sees less.

    The engine knows the same rules and does not pick pages of a host that is not free; redirects and robots.txt are
    not its picks, and wait here.
    """

    def __init__(self, engine: Engine, clock: Clock, now: Callable[[], float]) -> None:
        self._engine, self._clock, self._now = engine, clock, now
        self._delay = engine.settings.host_spacing or 0.0
        self._most = engine.settings.host_concurrency or math.inf
        self._own: dict[str, float] = {}  # delays of hosts with one of their own
        self._free_at: dict[str, float] = {}
        self._running: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()

    def delay(self, host: str) -> float:
        """Seconds between the end of a request and the start of the next."""
        return self._own.get(host, self._delay)

    def slow_down(self, host: str, delay: float) -> bool:
        """Take over a host's own delay where it is longer than everyone's; whether that is new."""
        delay = max(delay, self._delay)
        if delay == self.delay(host):
            return False
        self._own[host] = delay
        self._engine.host(host, spacing=delay)
        return True

    def wait(self, host: str) -> float:
        """Seconds until the host may be asked, as far as is known now."""
        wait = self._free_at.get(host, -math.inf) - self._now()
        if wait <= 0 and self._running[host] >= self._most:
            return _POLL
        return max(wait, 0.0)

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Ask a host, when it may be asked."""
        while (wait := self.wait(host)) > 0:
            await self._clock.sleep(wait)
        self._running[host] += 1
        try:
            yield
        finally:
            self._running[host] -= 1
            if not self._running[host]:
                del self._running[host]
            if (delay := self.delay(host)) > 0:
                self.hold(host, self._now() + delay)

    def hold(self, host: str, until: float) -> None:
        """Leave a host alone until a time, or longer if it was to be left alone longer."""
        if until <= self._free_at.get(host, -math.inf):
            return
        until = max(until, self._engine.held_until(host))
        self._free_at[host] = until
        self._engine.hold(host, until)
        if len(self._free_at) > _REMEMBERED:
            now = self._now()
            self._free_at = {name: at for name, at in self._free_at.items() if at > now}

    def answered(self, host: str) -> None:
        """The host is well."""
        self._failures.pop(host, None)

    def failed(self, host: str, *, busy: bool) -> float:
        """The host does not answer, or says that it is busy: how long it is left alone, in seconds."""
        self._failures[host] += 1
        count = self._failures[host] - (0 if busy else _PATIENCE)
        if count <= 0:
            return 0.0
        rest = min(_FIRST_HOLD * 2.0 ** min(count - 1, 20), _LAST_HOLD)
        self.hold(host, self._now() + rest)
        return rest
