"""Policies by rates: each page has a crawl rate, found from what is believed of all pages; the most overdue is first.

A crawl is due when rate × elapsed time reaches the length of the page's turn. By deadline a turn has the length 1; what
a crawl came too early or too late is made up for in the next turn (Azar et al. 2018, Algorithm 3). With draws the
length is exponential (Kolobov et al. 2019), drawn for each crawl. Where the rates ask for more or fewer crawls than
can be made, all pages are crawled less or more often by the same factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.policies.choice import Choice, Ended
from recrawl.engine.policies.names import PLANNED
from recrawl.engine.policies.plan import known_pages, requests_known, rule_pages_rates, solved_rates
from recrawl.model.pages import Pages
from recrawl.model.spans import DAY, format_span
from recrawl.schedule.exact import access
from recrawl.schedule.table import generator_of

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_U = np.uint64
_SHARE, _LEAST = 0.1, 20.0  # rates are found again after crawls and new pages: a share of all pages, at least so many
_SHORTEST, _LONGEST = 0.5, 1.5  # lengths of a turn that makes up for the last


def drawn_turns(rows: Ids, began: Array) -> Array:
    """Exponential lengths of turns, drawn by page and time (splitmix64), whatever the order of the crawls.

    >>> turns = drawn_turns(np.arange(10_000), np.full(10_000, 3.5))
    >>> round(float(turns.mean()), 1), round(float(turns.std()), 1)
    (1.0, 1.0)
    """
    with np.errstate(over="ignore"):
        bits = np.asarray(began, np.float64).view(np.uint64) + (rows.astype(np.uint64) + _U(1)) * _U(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> _U(30))) * _U(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> _U(27))) * _U(0x94D049BB133111EB)
        bits ^= bits >> _U(31)
    return np.asarray(np.maximum(-np.log1p(-((bits >> _U(11)) * 2.0**-53)), 1e-6))


class ByRates(Choice):
    """Crawl rates of all pages, and the turns in which they are crawled."""

    def __init__(self, policy: str) -> None:
        self.policy, self.drawn = policy, policy == "poisson"
        self.crawl_rate, self.turn = np.zeros(0), np.zeros(0)  # per page: crawls per time, length of its turn
        self.rng = np.random.default_rng(1)
        self._news = np.inf  # crawls and pages since the rates were found

    # --- what the engine reports --------------------------------------------------------------------------------------

    def added(self, engine: Core, rows: Ids) -> None:
        """New pages: the mean rate, until rates are found again."""
        known = self.crawl_rate[self.crawl_rate > 0]
        rate = float(known.mean()) if len(known) else 1.0 / engine.settings.day
        self.crawl_rate = np.concatenate([self.crawl_rate, np.full(len(rows), rate)])
        self.turn = np.concatenate([self.turn, np.ones(len(rows))])
        self._news += len(rows)
        self._write(engine, rows)

    def begin(self, engine: Core, now: float) -> None:
        """Find the rates again, if enough has happened since the last time."""
        if self._news >= max(_LEAST, _SHARE * len(engine.scheduler)):
            self._news = 0.0
            self.find(engine)

    def recorded(self, engine: Core, ended: Ended) -> None:
        """Crawls ended: the next turn of each page begins."""
        rows = ended.rows[ended.fetched]
        if len(rows) == 0:
            return
        self._news += len(rows)
        late = self.crawl_rate[rows] * ended.elapsed[ended.fetched] - self.turn[rows]
        made_up = np.where(np.isfinite(late), np.clip(1.0 - late, _SHORTEST, _LONGEST), 1.0)
        self.turn[rows] = drawn_turns(rows, access.last_fetched(engine.scheduler, rows)) if self.drawn else made_up
        self._write(engine, rows)
        access.place_waiting(engine.scheduler, rows)

    def budget_changed(self) -> None:
        """The rates are found again before the next pick."""
        self._news = np.inf

    # --- rates --------------------------------------------------------------------------------------------------------

    def find(self, engine: Core) -> None:
        """Find the crawl rates of all pages from what is believed of them."""
        rows = engine.ids()
        pages = known_pages(engine, rows)
        if len(rows) == 0 or not (pages.importance * pages.change_rate).any():
            return
        self.crawl_rate[:] = 0.0
        self.crawl_rate[rows] = self.rates_at(engine, pages, self._budget(engine), rows)
        self.write_all(engine)

    def rates_at(self, engine: Core, pages: Pages, budget: float, rows: Ids) -> Array:
        """The crawl rates of pages at a budget."""
        if self.policy in PLANNED:
            return solved_rates(engine, pages, budget, PLANNED[self.policy])
        return rule_pages_rates(engine, self.policy, pages, budget, rows)

    def write_all(self, engine: Core) -> None:
        """The rates of all pages have changed."""
        self._write(engine, engine.ids())
        access.place_all(engine.scheduler)

    def _budget(self, engine: Core) -> float:
        """Crawls per time; without a budget, one per page and day."""
        budget = engine.scheduler.budget
        return len(engine.scheduler) / engine.settings.day if budget is None else budget

    def _write(self, engine: Core, rows: Ids) -> None:
        """Let the scheduler know; a page without a copy is crawled soon, whatever its rate."""
        rate = self.crawl_rate[rows]
        mean = float(self.crawl_rate.sum()) / max(len(self.crawl_rate), 1)
        rate = np.where(engine.copied(rows), rate / self.turn[rows], np.maximum(rate, mean))
        access.set_crawl_rates(engine.scheduler, rows, rate)

    # --- words and saved state ----------------------------------------------------------------------------------------

    def words(self, engine: Core, page: int | None = None) -> str:
        """How pages are chosen; of one page, how often it is crawled."""
        note = self._note(engine)
        if page is None:
            return f"{self.policy}{note}"
        rate = float(self.crawl_rate[page])
        if rate <= 0.0:
            return f"not crawled by the policy {self.policy}{note}"
        every = format_span(1.0 / rate / engine.settings.day * DAY)
        return f"crawled about every {every} by the policy {self.policy}{note}"

    def _note(self, engine: Core) -> str:
        missing = self.policy == "impression-weighted" and not requests_known(engine)
        return " (all pages alike while no requests of readers are known)" if missing else ""

    def columns(self, rows: Ids) -> dict[str, Array]:
        """What is saved of each page."""
        return {"crawl_rate": self.crawl_rate[rows], "turn": self.turn[rows]}

    def saved(self) -> dict[str, Any]:
        """What is saved beside the pages."""
        return {"name": self.policy, "rng": dict(self.rng.bit_generator.state)}

    def load(self, engine: Core, saved: Mapping[str, Any], pages: Mapping[str, Any]) -> None:
        """Go on with what was saved by the same policy; pages of which nothing is saved keep what they have."""
        if saved.get("name") != self.policy:
            return
        self.rng = generator_of(dict(saved["rng"])) or self.rng
        for name, mine in (("crawl_rate", self.crawl_rate), ("turn", self.turn)):
            given = [np.nan if value is None else value for value in pages.get(name, ())]
            if len(given) == len(mine):
                mine[:] = np.where(np.isnan(np.array(given, np.float64)), mine, given)
        self.write_all(engine)

    def state(self) -> dict[str, Any]:
        """Everything, to go on exactly."""
        pages = {"crawl_rate": self.crawl_rate.copy(), "turn": self.turn.copy()}
        return {**pages, "rng": dict(self.rng.bit_generator.state), "news": self._news}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on exactly; the scheduler knows the rates already."""
        self.rng = generator_of(dict(state["rng"])) or self.rng
        self.crawl_rate, self.turn = np.array(state["crawl_rate"]), np.array(state["turn"])
        self._news = float(state["news"])
