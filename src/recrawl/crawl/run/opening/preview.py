"""Preview: which pages a crawl would crawl next, and when, if every crawl succeeded at once and taught nothing."""

from __future__ import annotations

from typing import Any

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.polite.budget import MARK, Budget
from recrawl.crawl.polite.host_budgets import PREFIX as HOST_PACED
from recrawl.crawl.polite.host_budgets import HostBudgets
from recrawl.crawl.polite.host_limiter import DELAY, HostLimiter
from recrawl.crawl.run.opening.assemble import check_settings, engine_of
from recrawl.crawl.run.opening.components import host_rates
from recrawl.store.protocol import Store

_LONGEST = 365 * 86400.0  # seconds that are looked ahead
_STEP = 1e-3  # seconds


class _SetClock:
    """A clock that shows the time that it is set to."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Nobody waits in a preview."""


async def preview(store: Store, settings: Settings, n: int, start: float) -> list[dict[str, Any]]:
    """The next n crawls of a store under these settings: seconds from now, URL and crawl value.

    Budget, hours, and what was learned of hosts (delays, holds, budgets) count as in a crawl.
    """
    check_settings(settings)
    engine, clock, found = await engine_of(store, settings, start), _SetClock(start), list[dict[str, Any]]()
    if not len(engine):
        return found
    budget = Budget.parse(settings.budget, len(engine), start, settings.opening())
    mark = (await store.notes(MARK)).get(MARK)
    budget.resume(mark, start)
    budgets = HostBudgets(host_rates(settings.rules(), budget))
    limiter = HostLimiter(engine, clock, settings.seconds("longest_delay"), budgets)
    limiter.restore(await store.notes(DELAY), resumed=mark is not None)
    limiter.restore_budgets(await store.notes(HOST_PACED))
    while len(found) < n and clock.at < start + _LONGEST:
        now = clock.at
        for page in engine.pick(now, min(budget.ready(now), 1)).tolist():
            url = engine.url([page])[0]
            if not limiter.reserve(url):
                engine.release([page], now)
                continue
            worth = float(engine.scheduler.value([page], now)[0])
            found.append({"in": round(now - start, 3), "url": url, "value": worth})
            budget.take(now, 1)
            engine.record([page], now)
        at = max(budget.next_at(now), engine.next_at(now))
        if at == float("inf"):
            break
        clock.at = max(at, now + _STEP)
    return found
