"""Questions: what may be asked of an engine. None of them changes a byte of its state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl._system.trees import copied
from recrawl.engine.beliefs.staleness_kernels import fill_fresh
from recrawl.engine.core import Core
from recrawl.engine.names.addresses import url_list
from recrawl.engine.outcomes.calibration import calibrated_fresh
from recrawl.engine.outcomes.lessons import Lessons
from recrawl.engine.rows import rows_of
from recrawl.engine.views.curve import threshold_curve
from recrawl.engine.views.expected import expected_pages
from recrawl.engine.views.explain import Explanation, explain
from recrawl.engine.views.forecast import Forecast, Question, forecast
from recrawl.engine.views.ledger import Ledger, ledger_of
from recrawl.engine.views.window import Window
from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access
from recrawl.schedule.table import time_of
from recrawl.urls import name_of

Ids = NDArray[np.int64]
Array = NDArray[np.float64]


class Questions(Core):
    """The part of an engine that only reads."""

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere, exactly."""
        saved: dict[str, Any] = copied(self.live_state())
        return saved

    def live_state(self) -> dict[str, Any]:
        """The same with the arrays themselves, which change with the engine."""
        return {
            "settings": self.settings.as_dict(),
            "scheduler": self.scheduler.live_state(),
            "beliefs": self.beliefs.saved(),
            "calibration": self.calibration._asdict(),
            "clocks": self.clocks.saved(),
            "addresses": self.addresses.saved(),
            "eligibility": self.eligibility.saved(),
            "given": None if self._given is None else self.given,
            "requests": None if self.requests is None else self.requests.state(),
            "ruled": sorted(self._ruled),
            "counts": dict(self._counts),
            "policy": self.choice.state(),
            "upkeep": self.upkeep.saved(),
        }

    def __len__(self) -> int:
        return len(self.scheduler)

    def __repr__(self) -> str:
        copied = int(self.copied(self.ids()).sum())
        return (
            f"<Engine: {len(self)} pages, {copied} with a copy, budget {self.scheduler.budget}, time {self.now:.12g}>"
        )

    @property
    def stats(self) -> dict[str, int]:
        """Counts of decisions, crawls, signals and requests."""
        failing, gone = self.eligibility.waiting.counts()
        unlikely = len(self.eligibility.unlikely)
        return {**self.scheduler.stats, **self._counts, "failing": failing, "away": gone, "unlikely": unlikely}

    def id(self, urls: Any) -> Ids:
        """The ids of URLs."""
        return self.addresses.ids(self._names(urls))

    def _names(self, pages: Any) -> list[str]:
        """The names of pages that a caller gave."""
        given = url_list(pages)
        return list(map(name_of, given)) if self.settings.canonical_urls else given

    def url(self, ids: ArrayLike) -> list[str]:
        """The URLs of ids."""
        return self.addresses.urls(access.check_ids(self.scheduler, ids))

    def pages(self, ids: ArrayLike | None = None) -> Pages:
        """The beliefs about pages as of the last known time: all of them, or some."""
        rows = self.ids() if ids is None else access.check_ids(self.scheduler, ids)
        return expected_pages(self, rows)

    def fresh(self, ids: ArrayLike, now: float) -> Array:
        """The probability that each page's copy is fresh, calibrated against recent outcomes; 0 without a copy."""
        rows = access.check_ids(self.scheduler, ids)
        out = np.empty(len(rows))
        fill_fresh(access.header(self.scheduler), self.beliefs.belief, rows, time_of(now), out)
        return np.where(self.copied(rows), calibrated_fresh(self.calibration, out), 0.0)

    def has_copy(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Which pages have a copy: they were fetched once, or added with ``fetched_at``."""
        return self.copied(access.check_ids(self.scheduler, ids))

    def ledger(self, now: float, ids: ArrayLike | None = None) -> Ledger:
        """The staleness ledger: how stale copies were as crawls found, and (for some pages) as is believed since.

        The time of a page counts from its first crawl, or from when it was added if its copy was fetched then.
        """
        return ledger_of(self, self.ids() if ids is None else access.check_ids(self.scheduler, ids), time_of(now))

    def is_paused(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Which pages the user has paused."""
        return self.eligibility.is_paused(access.check_ids(self.scheduler, ids))

    def deferred_until(self, ids: ArrayLike) -> Array:
        """Before when pages are not picked, whatever the reason; −infinity: they do not wait."""
        rows = access.check_ids(self.scheduler, ids)
        return self.eligibility.waiting.columns(rows.tolist())[2]

    def explain(self, page: int | str, now: float) -> Explanation:
        """Everything behind the decision about a page, given by its id or URL; printed, it is in words."""
        row = self.id(page) if isinstance(page, str) else access.check_ids(self.scheduler, [page])
        return explain(self, int(row[0]), time_of(now))

    def forecast(
        self,
        budget: float,
        *,
        level: float = 0.9,
        start: float | None = None,
        duration: float | None = None,
        ids: ArrayLike | None = None,
        rng: np.random.Generator | None = None,
    ) -> Forecast:
        """Expected freshness at a budget with an interval: of ``duration`` from ``start`` on, or of the long run.

        All pages are crawled at the budget; the freshness is that of ``ids`` (default: all).
        ``start`` (default: the last known time) is when crawling at the budget and counting begin. The interval of a
        window holds the freshness that comes true with probability ``level``; that of the long run (no ``duration``)
        holds the mean of a plan for the believed rates, as far as those are not known.
        """
        if start is not None and duration is None:
            raise ParameterError("start is given without duration: a forecast of the long run has no start")
        known = max(self.now, float(access.last_fetched(self.scheduler, self.ids()).max(initial=self.now)))
        window = None if duration is None else Window(known if start is None else time_of(start), float(duration))
        rows = self.ids() if ids is None else np.unique(access.check_ids(self.scheduler, ids))
        asked = Question(budget, level, rows, window)
        return forecast(self, asked, np.random.default_rng(0) if rng is None else rng)

    def threshold_curve(
        self, least: float, most: float, now: float, *, horizon: float = math.inf
    ) -> tuple[Array, Array]:
        """Budgets from about ``least`` to ``most``, ascending, and the threshold at each by a plan for the beliefs.

        This is what a shard says when a budget is divided. With ``horizon`` the budgets contain what it costs to crawl,
        within that time, the pages that are worth more than the threshold already. A threshold of 0: the pages cannot
        use more. Of more than 5,000 pages a sample is read.
        """
        return threshold_curve(self, least, most, time_of(now), horizon)

    def lessons(self, sources: Sequence[str] | None = None) -> Lessons:
        """What the engine's own pages teach about all pages, for engines of other pages; ``sources`` names sources."""
        return Lessons(
            day=self.settings.day,
            pages=len(self),
            budget=self.scheduler.budget or 0.0,
            crawls=self.beliefs.crawls,
            table=self.beliefs.table,
            strengths=self.beliefs.strengths.copy(),
            clocks=self.clocks.lessons(),
            sources=self.beliefs.signals.lessons(self._source_names(sources)),
        )

    def _source_names(self, sources: Sequence[str] | None) -> Sequence[str]:
        return [str(k) for k in range(self.settings.sources)] if sources is None else sources

    def rows(self, ids: ArrayLike | None = None) -> dict[str, Any]:
        """What a driver writes beside the observation: columns of pages by URL, and the engine's own settings."""
        rows = self.ids() if ids is None else access.check_ids(self.scheduler, ids)
        return rows_of(self, rows, all_hosts=ids is None)
