"""Engine: a policy that learns. Estimation, scheduling, host rules and retries behind one protocol, keyed by URL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl._system.memory import give_back
from recrawl.engine.among import pick_among
from recrawl.engine.core import own_belief
from recrawl.engine.eligibility.likely import hasten, in_order, pick_likely
from recrawl.engine.names.addresses import Addresses, Urls, named, urls_of
from recrawl.engine.names.arena import new_rows
from recrawl.engine.outcomes.calibration import Calibration
from recrawl.engine.outcomes.ended import Said, one_by_one, optional, record_crawls
from recrawl.engine.outcomes.lessons import Lessons, alike
from recrawl.engine.policies.choice import Choice
from recrawl.engine.questions import Questions
from recrawl.engine.rows import fill
from recrawl.engine.settings import EngineOptions, Settings, without_removed
from recrawl.engine.signals.pages import confirm_signals, hear_signals
from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.importance import RequestRates
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.schedule.table import column_of, count_of, positive, time_of

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_MANY = 100_000  # pages that are added at a time: freed memory is given back afterwards


class Engine(Questions):
    """Decides which page to crawl next from what its crawls have found; no input or output, no clock.

    Pages are URLs; times are seconds (``day`` says how many of the caller's units make a day). The belief about every
    page's change rate is a gamma distribution that its crawls sharpen. New pages start from a prior that is fitted to
    all pages (``prior`` is its first form), so that pages with few crawls are explored. Evidence counts half after
    ``half_life`` days. With ``siblings``, the default, a change found on one page counts for those of its folder or
    host, once that has predicted outcomes better. Up to ``sources`` kinds of change signals are weighed by how often
    they were right. Failed pages wait longer each time; pages that are gone are checked rarely. Pages without a copy
    come before pages that change as often; a page is not picked while it has changed with a probability under
    ``min_change_probability``.

    >>> engine = Engine(budget=1.0)
    >>> ids = engine.add(["https://a.example/", "https://b.example/"], now=0.0, importance=[1.0, 5.0])
    >>> engine.url(engine.pick(60.0, 1))
    ['https://b.example/']
    """

    def __init__(
        self,
        budget: float | None = None,
        *,
        prior: GammaPrior | None = None,
        start: float = 0.0,
        **settings: Unpack[EngineOptions],
    ) -> None:
        try:
            chosen = Settings(budget, **settings)
        except TypeError as problem:
            raise ParameterError(f"engine: {str(problem).split('__() ')[-1]}") from None
        super().__init__(chosen, prior, start)

    # --- the Policy protocol; what it asks is in `Questions` ---------------------------------------------------------

    def add(
        self,
        pages: Any,
        now: float,
        *,
        fetched_at: ArrayLike | None = None,
        importance: ArrayLike = 1.0,
        change_rate: ArrayLike | None = None,
        evidence: ArrayLike = 2.0,
    ) -> Ids:
        """Add pages by URL; their ids. A URL that is there already keeps its id and all that is known.

        URLs are brought into canonical form, as by the crawler; other names of pages are used as they are.
        ``fetched_at`` is when the copies that exist were fetched; by default, or at −infinity, a page has no copy yet:
        it is certainly not fresh. ``change_rate`` (per time) with ``evidence`` (the gamma shape behind it) is what is
        known of pages beforehand.
        """
        now = max(time_of(now), self.now)
        if isinstance(pages, Pages):
            first = len(self.addresses)
            urls = urls_of([f"page:{first + k}" for k in range(len(pages))])
            importance, change_rate = pages.importance, pages.change_rate
            evidence = np.where(np.isfinite(pages.evidence), pages.evidence, 1e6)
        else:
            urls = named(pages, canonical=self.settings.canonical_urls)
        known: dict[str, Any] = {
            "fetched_at": fetched_at,
            "importance": importance,
            "change_rate": change_rate,
            "evidence": evidence,
        }
        return self._add_named(urls, now, **known)

    def _add_named(
        self,
        urls: Urls,
        now: float,
        *,
        fetched_at: ArrayLike | None,
        importance: ArrayLike,
        change_rate: ArrayLike | None = None,
        evidence: ArrayLike = 2.0,
        admit: bool = True,
    ) -> Ids:
        """Add pages by their names; they may be picked at once, unless the caller admits them later."""
        n, before = len(urls), len(self.addresses)
        weight, fetched = column_of("importance", importance, n, 1.0), self._copies(fetched_at, n)
        ids = self.addresses.add(urls.packed)
        new = new_rows(ids, before)
        try:
            if len(new):
                own = None if change_rate is None else own_belief(change_rate, evidence, n, new, self.beliefs.prior)
                some = urls if len(new) == n else urls.take(new)
                rows = self._append(some, weight[new], fetched[new], now, own)
                if admit:
                    self._admit(rows, np.full(len(rows), own is None))
        except ParameterError:
            self.addresses.withdraw(before)
            raise
        if len(new) >= _MANY:
            give_back()
        return ids

    def pick(self, now: float, n: int, *, among: ArrayLike | None = None) -> Ids:
        """At most n pages to crawl now, best first, leased until recorded, released or out of time.

        Pages without a copy that are worth the same come in the order in which they were added. ``among`` are the ids
        of the only pages that may be picked: all of them are valued, and the threshold stays.
        """
        now, n = time_of(now), count_of(n)
        self.eligibility.wake(now)
        self.choice.begin(self, now)
        if among is not None:
            some = pick_among(self, now, n, access.check_ids(self.scheduler, among, distinct=True))
            self.choice.picked(some)
            return some
        cohorts = self.eligibility.cohorts
        selective = n > 0 and self.settings.selective
        ids = pick_likely(self, now, n) if selective else cohorts.pick(self.scheduler, now, n)
        cohorts.promote(self.scheduler, ids)
        self.choice.picked(ids)
        return in_order(self, ids)

    def record(
        self,
        ids: ArrayLike,
        now: float,
        *,
        changed: ArrayLike | None = None,
        as_of: ArrayLike | None = None,
        failed: ArrayLike | None = None,
        gone: ArrayLike | None = None,
    ) -> None:
        """Crawls that ended: learn from what they found. Without ``changed`` nothing is learned but the copy's age.

        The first crawl of a page without a copy has nothing to compare: its ``changed`` is not used.
        """
        alone = as_of is None and failed is None and gone is None
        if alone and changed is not None and self._recorded_plain(ids, now, changed):
            return
        rows = access.check_ids(self.scheduler, ids)
        n = len(rows)
        seen, lost, missed = optional("changed", changed, n), optional("gone", gone, n), optional("failed", failed, n)
        here = max(time_of(now), self.now)
        began = None if as_of is None else column_of("as_of", as_of, n, here)
        if began is not None and not (began <= here).all():
            raise ParameterError(f"as_of, row {int(np.argmax(began > here))}: must not lie after now")
        said = Said(rows, here, seen, began, missed, lost)
        for one in [said] if n == 1 or len(np.unique(rows)) == n else one_by_one(said):
            record_crawls(self, one)

    def _recorded_plain(self, ids: ArrayLike, now: float, changed: ArrayLike) -> bool:
        """Record crawls that ended as most do, at once; whether they did. Otherwise nothing was done."""
        flags = np.array([changed]) if isinstance(changed, bool | np.bool_) else changed
        rows = access.whole_ids(self.scheduler, ids)
        if not isinstance(flags, np.ndarray) or flags.dtype != np.bool_ or flags.shape != rows.shape:
            return False
        if self.requests is not None or type(self.choice) is not Choice or self.eligibility.cohorts.any_of(rows):
            return False
        if not flags.flags.c_contiguous:
            flags = np.ascontiguousarray(flags)
        if not self.end_plain(rows, max(time_of(now), self.now), flags):
            return False
        self.eligibility.fetched(rows)
        self._counts["recorded"] += len(rows)
        return True

    def release(self, ids: ArrayLike, now: float) -> None:
        """Leased crawls that did not happen."""
        self.scheduler.release(ids, now)
        self.choice.released(access.check_ids(self.scheduler, ids))

    def put_back(self, ids: ArrayLike) -> None:
        """Undo the last pick of pages: their hosts need not wait, and the pages may be picked again at once."""
        rows = access.check_ids(self.scheduler, ids)
        access.return_picked(self.scheduler, rows, self.threshold, withdraw=False)
        self.choice.released(rows)

    def lengthen_leases(self, seconds: float) -> None:
        """Leases of pages that are picked from now on end after so long at the earliest."""
        self.scheduler.lengthen_leases(seconds)

    def signal(
        self,
        ids: ArrayLike,
        now: float,
        *,
        source: int = 0,
        changed_at: ArrayLike | None = None,
        resolution: ArrayLike = 0.0,
    ) -> None:
        """Change signals from a source; how far each is believed is learned.

        ``changed_at`` is when the change was, at any time from then to ``resolution`` later: a date alone has that of a
        day. A signal about a change before the copy was fetched brings no crawl forward; it counts as one that came
        before the crawl of that copy, if none did. For a page without a copy it says nothing.
        """
        scheduler = self.scheduler
        rows = access.check_ids(scheduler, ids)
        n_sources = self.settings.sources
        if not 0 <= source < max(n_sources, 1):
            raise ParameterError(f"source is {source}: there are {n_sources}, counted from 0")
        about = column_of("changed_at", changed_at, len(rows), math.inf)
        uncertain = column_of("resolution", resolution, len(rows), 0.0)
        about = np.minimum(about + uncertain, np.where(np.isinf(about), about, now))
        now = max(time_of(now), self.now)
        self._counts["signals"] += len(rows)
        if not self.settings.uses_signals:
            return
        last = access.last_fetched(scheduler, rows)
        copied = last > self.no_copy_at
        if changed_at is not None:
            late = copied & (about <= last)
            self._confirm(rows[late], source, about[late], now)
            copied &= about > last
        new = rows if copied.all() else rows[copied]
        if len(new):
            self._hear(new, source, about if new is rows else about[copied], now)
        dated = np.isfinite(about)
        if changed_at is not None and dated.any():
            self.beliefs.signals.learn_stated_delays(rows[dated], source, now - about[dated])

    def _confirm(self, rows: Ids, source: int, about: Array, now: float) -> None:
        """Signals about changes that the copies have already."""
        if len(rows):
            confirm_signals(access.header(self.scheduler), self.beliefs.belief, rows, source, about, now)
            access.place_waiting(self.scheduler, rows)

    def _hear(self, rows: Ids, source: int, about: Array, now: float) -> None:
        """Signals about changes after the copies."""
        self.eligibility.cohorts.leave(self.scheduler, rows)
        self.reserve_signals(rows)
        hear_signals(access.header(self.scheduler), self.beliefs.belief, rows, source, about, now)
        access.log_signals(self.scheduler, rows, now, source)
        self.eligibility.reconsider(rows)

    def update(self, ids: ArrayLike, **columns: ArrayLike) -> None:
        """Set importance or cost of pages, or a change rate (with the evidence behind it) from now on."""
        rows = access.check_ids(self.scheduler, ids, distinct=True)
        known = {name: columns.pop(name) for name in ("change_rate", "evidence") if name in columns}
        if "importance" in columns:
            columns["importance"] = column_of("importance", columns["importance"], len(rows), 1.0)
        strange = set(columns) - {"importance", "cost"}
        if strange:
            raise ParameterError(f"{min(strange)} is not a column that can be updated")
        own = None
        if "change_rate" in known:
            own = own_belief(
                known["change_rate"], known.get("evidence", 2.0), len(rows), np.arange(len(rows)), self.beliefs.prior
            )
        if columns:
            self.scheduler.update(rows, **columns)
        self.eligibility.cohorts.leave(self.scheduler, rows)
        if "importance" in columns:
            self.given[rows] = columns["importance"]
            self.eligibility.reconsider(rows)
        if own is not None:
            self.beliefs.set_rate(rows, own)
            self.refresh_signals(rows)
            self._believe(rows, self.now)
            self.eligibility.reconsider(rows)

    def remove(self, ids: ArrayLike) -> None:
        """Pages that are no longer wanted; a URL that is added again is a new page."""
        rows = access.check_ids(self.scheduler, ids, distinct=True)
        self.eligibility.cohorts.leave(self.scheduler, rows)
        last = access.last_fetched(self.scheduler, rows)
        self._close(rows, np.column_stack([last, np.maximum(last, self.now)]))
        self.scheduler.remove(rows)
        self.beliefs.forget(rows)
        self.addresses.forget(rows)
        self.eligibility.forget(rows)

    def next_at(self, now: float) -> float:
        """When ``pick`` can next return something."""
        now = time_of(now)
        self.eligibility.wake(now)
        self.choice.begin(self, now)
        soonest = self.scheduler.next_at(now)
        if soonest <= self.now and self.settings.selective:
            threshold = self.threshold
            picked = pick_likely(self, now, 1)
            access.return_picked(self.scheduler, picked, threshold, withdraw=False)
            soonest = self.scheduler.next_at(now)
        return min(soonest, max(self.eligibility.next_at(), now))

    @classmethod
    def restore(cls, state: Mapping[str, Any], now: float | None = None) -> Engine:
        """The engine of a saved ``state()``; or, given ``now``, one built from ``rows()``."""
        if "scheduler" not in state:
            if now is None:
                raise ParameterError("now is missing: without it rows cannot be restored")
            engine = cls(start=time_of(now), **without_removed(state["settings"]))
            fill(engine, state, time_of(now))
            return engine
        if "curvature" not in state.get("clocks", ()):
            raise ParameterError("state: saved by an earlier version; restore it there and build from its rows() here")
        engine = cls(**without_removed(state["settings"]))
        engine.scheduler = Scheduler.restore(state["scheduler"])
        engine.beliefs.load(state["beliefs"])
        engine.calibration = Calibration(**{name: np.array(value) for name, value in state["calibration"].items()})
        engine.clocks.load(state["clocks"])
        engine.addresses = Addresses.load(state["addresses"])
        engine.eligibility.scheduler = engine.scheduler
        engine.eligibility.load(state["eligibility"])
        if state["requests"] is not None:
            engine.requests, engine._given = RequestRates.restore(state["requests"]), np.array(state["given"])
        engine._ruled = set(state["ruled"])
        engine.added_without_copy = not engine.copied(engine.ids()).all()
        engine._counts = dict(state["counts"])
        engine.choice.restore(state.get("policy", {}))
        if "upkeep" in state:
            engine.upkeep.load(state["upkeep"])
        return engine

    # --- beyond it ---------------------------------------------------------------------------------------------------

    @property
    def budget(self) -> float | None:
        """Crawls per time; can be changed at any time."""
        return self.scheduler.budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self.scheduler.budget = positive("budget", budget)
        self.settings = replace(self.settings, budget=self.scheduler.budget)
        self.choice.budget_changed()

    @property
    def min_change_probability(self) -> float:
        """A page that is less likely to have changed is not picked; can be changed at any time."""
        return self.settings.min_change_probability

    @min_change_probability.setter
    def min_change_probability(self, probability: float) -> None:
        self.settings = replace(self.settings, min_change_probability=probability)
        hasten(self, self.now)

    @property
    def price(self) -> float:
        """What a crawl costs, in importance × time; one that is worth less is not made; 0: none."""
        return self.settings.price

    def set_price(self, price: float = 0.0, *, very_stale: float = 0.0, very_stale_share: float = 0.0) -> None:
        """Another price of a crawl, with another bound on very stale copies or none."""
        self.settings = replace(self.settings, price=price, very_stale=very_stale, very_stale_share=very_stale_share)
        hasten(self, self.now)

    def request(self, ids: ArrayLike, now: float) -> None:
        """Readers asked for pages: their importance is what was given plus requests per day, old ones fading.

        A page counts as watched for a day at least, so that one request does not make a page important at once.
        """
        rows, now = access.check_ids(self.scheduler, ids), max(time_of(now), self.now)
        self.count_requests(now - self.settings.day).update(rows, now)
        asked = np.unique(rows)
        self.eligibility.cohorts.leave(self.scheduler, asked)
        self.weigh_pages(asked, now)
        self._counts["requests"] += len(rows)

    def pause(self, ids: ArrayLike) -> None:
        """Pages are not picked until they are resumed."""
        self.eligibility.pause(access.check_ids(self.scheduler, ids))

    def resume(self, ids: ArrayLike) -> None:
        """Paused pages may be picked again; those that failed or are gone when their time has come."""
        self.eligibility.resume(np.unique(access.check_ids(self.scheduler, ids)))

    def defer(self, ids: ArrayLike, until: ArrayLike) -> None:
        """Pages are not picked before a time, whatever their value; a longer wait after a failure stays."""
        rows = access.check_ids(self.scheduler, ids)
        rows = np.unique(rows) if np.ndim(until) == 0 else rows
        self.eligibility.defer(rows, column_of("until", until, len(rows), 0.0))

    def end_deferral(self, ids: ArrayLike, until: float = math.inf) -> None:
        """Pages that were deferred up to a time at most may be picked again; those that failed or are gone wait on."""
        self.eligibility.end_deferral(np.unique(access.check_ids(self.scheduler, ids)), until)

    def set_floor(self, ids: ArrayLike, floor: float) -> None:
        """Least crawl rate of pages: one that was not crawled for longer than 1/floor comes before all others."""
        rows = np.unique(access.check_ids(self.scheduler, ids))
        self.scheduler.set_floor(rows, floor)
        self.eligibility.reconsider(rows)
        self.eligibility.cohorts.split(self.scheduler, rows, self.no_copy_at)

    def stand_for(self, n_pages: ArrayLike) -> None:
        """The pages are a sample, each of which stands for so many: importance and cost count as often.

        Questions about freshness, of `forecast` too, are then about all pages. Such an engine must not be saved.
        """
        rows = self.ids()
        self.stands_for = column_of("n_pages", n_pages, len(rows), 1.0)
        weight, cost = access.importance(self.scheduler, rows), access.cost(self.scheduler, rows)
        self.eligibility.cohorts.leave(self.scheduler, rows)
        self.scheduler.update(rows, importance=weight * self.stands_for, cost=cost * self.stands_for)

    def learn_from(self, others: Sequence[Lessons], now: float, sources: Sequence[str] | None = None) -> None:
        """Take the lessons of engines of other pages, in place of all that were taken before.

        New pages start from what all pages teach at once; tables, clocks and signals are fitted to all at the next fit.
        """
        taken = alike(others, self.settings.day, self.beliefs.table)
        self.beliefs.learn_from(taken)
        self.clocks.learn_from(taken)
        if self.settings.uses_signals:
            self.beliefs.signals.learn_from(taken, self._source_names(sources), max(time_of(now), self.now))
            self.move_gates()
