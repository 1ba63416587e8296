"""Host limiter: the one place that decides how soon a host may be asked again, whoever asks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from recrawl.crawl.clock import Clock
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.polite.host_budgets import HostBudgets
from recrawl.engine import Engine
from recrawl.engine.names.addresses import host_of

DELAY = "delay:"  # prefix of the notes that hold the delays of single hosts
HOST_FAILURES = frozenset({"dns", "connect", "tls", "timeout", "reset"})  # the host did not answer
_ANY = 1 << 30  # requests to a host at a time: as many as there are
_POLL = 0.05  # seconds between checks of a host whose concurrency is used up
_REMEMBERED = 200_000  # hosts, beyond which those that may be asked are forgotten
_FIRST_HOLD, _LAST_HOLD = 30.0, 3600.0  # seconds that a failing host is not asked
_PATIENCE = 3  # failures in a row that do not count against the host


class HostLimiter:
    """Delay and concurrency of hosts, measured from the end of the last request: a server never sees a shorter gap.

    The engine has the same rules and does not pick pages of a host that may not be asked. Redirects, robots.txt and
    audits are not its picks and wait here. A crawl-delay counts up to ``longest_delay`` seconds.
    """

    def __init__(
        self, engine: Engine, clock: Clock, longest_delay: float = 60.0, budgets: HostBudgets | None = None
    ) -> None:
        self._engine, self._clock, self._longest_delay = engine, clock, longest_delay
        self.budgets = budgets or HostBudgets()
        self.on_held: Callable[[str, float, str], None] | None = None  # called with host, seconds and reason
        self._troubled: dict[str, float] = {}  # hosts held because of what they answered, and until when
        self._spent_until: dict[str, float] = {}  # until when the engine is held by a host's budget
        self._put_off: dict[str, float] = {}  # until when the engine is held because no crawl of the host may start
        self._delay = engine.settings.host_spacing or 0.0
        self._most = engine.settings.host_concurrency or math.inf
        self._own: dict[str, float] = {}  # delays of hosts with a delay of their own
        self._free_at: dict[str, float] = {}
        self._running: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()

    # --- requests -----------------------------------------------------------------------------------------------------

    def delay(self, host: str) -> float:
        """Seconds between the end of a request and the start of the next."""
        return self._own.get(host, self._delay)

    def wait(self, host: str) -> float:
        """Seconds until the host may be asked, as far as is known now."""
        wait = self._free_at.get(host, -math.inf) - self._clock.now()
        if wait <= 0 and self._running[host] >= self._most:
            return _POLL
        return max(wait, 0.0)

    def start_wait(self, url: str) -> float:
        """Seconds until a crawl of the URL's host may start: the host may be asked, and its budget allows it."""
        now = self._clock.now()
        return max(self.wait(host_of(url)), self.budgets.next_at(url, now) - now)

    def reserve(self, url: str, host: str | None = None) -> bool:
        """Start a crawl: whether the budget of its host allows that now. If not, the engine picks none of its pages.

        ``host`` is that of the URL, where it is known.
        """
        if not self.budgets.limits(host_of(url) if host is None else host):
            return True
        taken = self.budgets.take(url, self._clock.now())
        self._hold_if_spent(url)
        return taken

    async def reserved(self, url: str) -> None:
        """Wait until the budget of a URL's host allows a crawl, and start it."""
        while not self.reserve(url):
            now = self._clock.now()
            await self._clock.sleep(self.budgets.next_at(url, now) - now)

    def charge(self, url: str, n: int = 1) -> None:
        """Count further requests of a running crawl against the budget of the URL's host."""
        self.budgets.charge(url, n, self._clock.now())
        self._hold_if_spent(url)

    def _hold_if_spent(self, url: str) -> None:
        """Let the engine pick no page of a host whose budget is spent; requests of running crawls do not wait."""
        now, host = self._clock.now(), host_of(url)
        until = self.budgets.next_at(url, now)
        if until > now:
            self._spent_until[host] = until
            self._engine.hold(host, max(until, self._free_at.get(host, -math.inf), self._engine.held_until(host)))

    @asynccontextmanager
    async def request(self, host: str) -> AsyncIterator[None]:
        """Wait until the host may be asked; the request runs inside the context."""
        while (wait := self.wait(host)) > 0:
            await self._clock.sleep(wait)
        self._running[host] += 1
        try:
            await self.budgets.cover(host)
            yield
        finally:
            self._running[host] -= 1
            if not self._running[host]:
                del self._running[host]
            self.ended(host, self._clock.now())

    def ended(self, host: str, at: float) -> None:
        """A request to a host ended at a time: the next one waits for the host's delay."""
        if (delay := self.delay(host)) > 0:
            self.hold(host, at + delay)

    def rest(self, host: str, n: int) -> None:
        """Let a host rest for one delay for each of ``n`` requests that did not wait, such as those of scripts."""
        if (delay := self.delay(host)) > 0:
            self.hold(host, max(self._clock.now(), self._free_at.get(host, -math.inf)) + n * delay)

    # --- what hosts answer --------------------------------------------------------------------------------------------

    def answered(self, host: str, fetched: Fetched) -> None:
        """Take in what a host answered: Retry-After and failures make it wait."""
        if fetched.retry_after is not None and fetched.failure is not None:
            self._hold_back(host, fetched.retry_after, f"Retry-After ({fetched.status or fetched.failure})")
        elif fetched.failure == "busy" or fetched.failure in HOST_FAILURES:
            self.failed(host, busy=fetched.failure == "busy", reason=fetched.failure)
        else:
            self.succeeded(host)

    def succeeded(self, host: str) -> None:
        """The host answered without a failure."""
        if self._failures:
            self._failures.pop(host, None)

    def failed(self, host: str, *, busy: bool, reason: str = "timeout") -> float:
        """The host did not answer, or answered that it is busy: for how many seconds it is not asked."""
        self._failures[host] += 1
        count = self._failures[host] - (0 if busy else _PATIENCE)
        if count <= 0:
            return 0.0
        seconds = min(_FIRST_HOLD * 2.0 ** min(count - 1, 20), _LAST_HOLD)
        self._hold_back(host, seconds, reason)
        return seconds

    def _hold_back(self, host: str, seconds: float, reason: str) -> None:
        """Hold a host because of what it answered."""
        self.hold(host, self._clock.now() + seconds)
        if seconds > self.delay(host):
            self._troubled[host] = self._clock.now() + seconds
            if self.on_held is not None:
                self.on_held(host, seconds, reason)

    def n_held(self) -> int:
        """How many hosts are held because of what they answered."""
        now = self._clock.now()
        self._troubled = {host: until for host, until in self._troubled.items() if until > now}
        return len(self._troubled)

    def hold(self, host: str, until: float) -> None:
        """Do not ask a host until a time; a later time that is set already stays."""
        if until <= self._free_at.get(host, -math.inf):
            return
        held = self._engine.held_until(host)
        if held > max(self._spent_until.get(host, -math.inf), self._put_off.get(host, -math.inf)):
            # not by its budget or for want of a slot: for these, running crawls do not wait
            until = max(until, held)
        self._free_at[host] = until
        self._engine.hold(host, max(until, held))
        if len(self._free_at) > _REMEMBERED:
            now = self._clock.now()
            self._free_at = {name: at for name, at in self._free_at.items() if at > now}

    def put_off(self, host: str, until: float) -> None:
        """Pick no page of a host until a time; requests of crawls that run do not wait."""
        self._put_off[host] = until
        self._engine.hold(host, max(until, self._engine.held_until(host)))

    def resume(self, host: str) -> None:
        """Pick pages again of a host that was put off."""
        if self._engine.held_until(host) <= self._put_off.pop(host, -math.inf):
            self._engine.hold(host, max(self._free_at.get(host, -math.inf), self._spent_until.get(host, -math.inf)))

    # --- delays of single hosts ---------------------------------------------------------------------------------------

    def set_crawl_delay(self, host: str, crawl_delay: float | None) -> dict[str, float]:
        """Use the crawl-delay of robots.txt where it is longer than the general delay; the note to write if new."""
        if not self._slow_down(host, min(crawl_delay or 0.0, self._longest_delay)):
            return {}
        self.hold(host, self._clock.now() + self.delay(host))
        return {f"{DELAY}{host}": self.delay(host)}

    def restore(self, notes: Mapping[str, float], *, resumed: bool) -> None:
        """Use the delays of an earlier run, and wait them out where that run may have asked a host just now."""
        for name, delay in notes.items():
            self._slow_down(name.removeprefix(DELAY), float(delay))
        now = self._clock.now()
        for host in self._engine.hosts() if resumed else ():
            self.ended(host, now)

    def restore_budgets(self, notes: Mapping[str, float]) -> None:
        """Wait for what an earlier run may have spent of the budgets of hosts."""
        for host, until in self.budgets.restore(notes, self._clock.now()).items():
            self._spent_until[host] = until
            self._engine.hold(host, max(until, self._engine.held_until(host)))

    def refresh_budgets(self) -> None:
        """Use other budgets of hosts from now on."""
        self.budgets.refresh(self._clock.now())
        for host, until in self._spent_until.items():
            if self._engine.held_until(host) <= until:
                self._engine.hold(host, self._free_at.get(host, -math.inf))
        self._spent_until.clear()
        for host in self.budgets.hosts():
            self._hold_if_spent(f"//{host}/")

    def set_rules(self, *, host_spacing: float | None, host_concurrency: int | None, longest_delay: float) -> None:
        """Another general delay and concurrency; hosts with a longer delay of their own keep it."""
        engine = self._engine
        hosts = engine.hosts()
        if engine.settings.host_spacing is None and host_spacing is not None:  # hosts had no rules so far
            hosts = sorted({*hosts, *map(host_of, engine.url(engine.ids()))})
        self._delay, self._most, self._longest_delay = host_spacing or 0.0, host_concurrency or math.inf, longest_delay
        self._own = {host: own for host, own in self._own.items() if own > self._delay}
        engine.settings = replace(engine.settings, host_spacing=host_spacing, host_concurrency=host_concurrency)
        for host in hosts:
            engine.host(host, spacing=self.delay(host), concurrency=host_concurrency or _ANY)

    def _slow_down(self, host: str, delay: float) -> bool:
        """Set a host's own delay; whether it is new."""
        delay = max(delay, self._delay)
        if delay == self.delay(host):
            return False
        self._own[host] = delay
        self._engine.host(host, spacing=delay)
        return True
