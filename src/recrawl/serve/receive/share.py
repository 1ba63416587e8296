"""The share of the event loop's time that requests with signals may take while the crawl wants all of it.

A request is charged for the time of the processor that its steps use in the loop. A second that others used pays
share/(1 − share), so that requests get that share of a loop that is never idle. A second in which it was idle pays 2:
they get about two thirds of what nobody else wants. A request that is due waits while more is owed than was paid. A
bounded number waits; further ones are turned away, as a rule before they are parsed (`recrawl.serve.receive.refusal`).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter, thread_time

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from recrawl._system.loops import stepped
from recrawl.serve.receive.refusal import busy, is_received

MOST_WAITING = 64  # requests
PARSING = "recrawl.parsing"  # in the scope of a request: seconds for which its bytes were parsed
_TICKET = "recrawl.ticket"
_IDLE_PAYS = 2.0
_SAVED = 0.05  # seconds that quiet times save up
_MOST_OWED = 1.0  # seconds: what requests that are turned away cost beyond it is forgotten
_FIRST_COST = 0.002  # seconds of a request, before any was measured
_SMOOTH = 0.1
_BEHIND = 5.0  # seconds for which a crawl counts as behind its budget after a part of it has lapsed
_SHORTEST = 0.001  # seconds between two looks whether the next may begin


class Ticket:
    """One request: what it is expected to cost still, and what it has cost."""

    __slots__ = ("_cost", "_left", "_share", "admitted")

    def __init__(self, share: LoopShare) -> None:
        self._share, self._left, self._cost, self.admitted = share, 0.0, 0.0, False

    async def admit(self) -> None:
        """Wait for the request's turn; ProblemError if too many wait already."""
        await self._share.turn()
        self.admitted = True
        self._left = self._share.mean_cost
        self._share.reserved += self._left

    def charge(self, seconds: float) -> None:
        """The request has kept the loop for some seconds."""
        used = min(self._left, seconds)
        self._left -= used
        self._cost += seconds
        self._share.reserved -= used
        self._share.charge(seconds)

    def end(self) -> None:
        """The request is answered."""
        self._share.reserved -= self._left
        self._left = 0.0
        if self.admitted:
            self._share.learn(self._cost)


@dataclass(frozen=True)
class LoopTimes:
    """The times of a loop: seconds in which it had nothing to do, of its processor, and by the clock; how it waits."""

    idle: Callable[[], float]
    now: Callable[[], float] = thread_time
    wall: Callable[[], float] = perf_counter
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class LoopShare:
    """Admits requests within a share of the time.

    ``lapsed`` gives the requests of the crawl's budget that have lapsed: while none do, nobody is limited.
    """

    def __init__(
        self,
        share: float,
        times: LoopTimes,
        *,
        most_waiting: int = MOST_WAITING,
        on_turned_away: Callable[[], None] = lambda: None,
        lapsed: Callable[[], float] | None = None,
    ) -> None:
        self._rate, self._most = share / (1.0 - share), most_waiting
        self._times = times
        self._on_turned_away = on_turned_away
        self._lapsed, self._lapsed_before, self._behind_until = lapsed, 0.0 if lapsed is None else lapsed(), -math.inf
        self._at, self._idle_at = times.now(), times.idle()
        self._owed = 0.0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._admitting: asyncio.Task[None] | None = None
        self.reserved = 0.0  # what requests that were admitted are expected to cost still
        self.mean_cost = _FIRST_COST

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """Whether as many requests wait as may."""
        return len(self._queue) >= self._most

    def turn_away(self) -> int:
        """Count a request that may not even wait; the seconds after which it may come again."""
        self._on_turned_away()
        return max(math.ceil((self._due() + self.waiting * self.mean_cost) / self._rate), 1)

    def ticket(self) -> Ticket:
        """For a request that has come."""
        return Ticket(self)

    def charge(self, seconds: float) -> None:
        """Work for signals has kept the loop for some seconds until now."""
        self._settle(seconds)

    def learn(self, cost: float) -> None:
        """An admitted request has cost so many seconds."""
        self.mean_cost += _SMOOTH * (cost - self.mean_cost)

    async def turn(self) -> None:
        """Return when the next request may begin; ProblemError if too many wait."""
        if not self._queue and self._due() <= 0.0:
            return
        if self.is_full:
            raise busy(self.turn_away())
        mine = asyncio.get_running_loop().create_future()
        self._queue.append(mine)
        if self._admitting is None:
            self._admitting = asyncio.create_task(self._admit())
        await mine

    async def _admit(self) -> None:
        """Let requests begin one after the other, each when what is owed is paid."""
        try:
            while self._queue:
                owed = self._due()
                if owed > 0.0:
                    await self._times.sleep(max(owed, _SHORTEST))
                    continue
                first = self._queue.popleft()
                if not first.done():
                    first.set_result(None)
                    await asyncio.sleep(0)  # it reserves what it is expected to cost
        finally:
            self._admitting = None

    def _due(self) -> float:
        self._settle(0.0)
        if not self._is_behind():
            self._owed = min(self._owed, 0.0)
            return 0.0
        return self._owed + self.reserved

    def _is_behind(self) -> bool:
        """Whether a part of the crawl's budget has lapsed lately; without a budget it always wants all of the loop."""
        if self._lapsed is None:
            return True
        lapsed = self._lapsed()
        if lapsed > self._lapsed_before:
            self._lapsed_before, self._behind_until = lapsed, self._times.wall() + _BEHIND
        return self._times.wall() < self._behind_until

    def _settle(self, own: float) -> None:
        """Pay what has passed since the last time, of which ``own`` seconds were work for signals."""
        at, idle = self._times.now(), self._times.idle()
        idled = idle - self._idle_at
        others = max(at - self._at - own, 0.0)
        self._at, self._idle_at = at, idle
        self._owed = max(self._owed - _IDLE_PAYS * idled - self._rate * others, -_SAVED)
        self._owed = min(self._owed + own, _MOST_OWED)


class Metered:
    """Charges requests with signals for the time they take; `admitted` lets them wait for it."""

    def __init__(self, app: ASGIApp, share: LoopShare) -> None:
        self._app, self._share = app, share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not is_received(scope["method"], scope["path"]):
            return await self._app(scope, receive, send)
        ticket = scope[_TICKET] = self._share.ticket()
        ticket.charge(scope.pop(PARSING, 0.0))
        try:
            await stepped(_awaited(self._app(scope, receive, send)), ticket.charge, thread_time)
        finally:
            ticket.charge(scope.pop(PARSING, 0.0))
            ticket.end()


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def admitted(request: Request) -> None:
    """Wait until a request with signals may be read; ProblemError if too many wait."""
    ticket: Ticket | None = request.scope.get(_TICKET)
    if ticket is not None:
        await ticket.admit()
