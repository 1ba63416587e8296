"""Core: the components of an engine, and what happens to all of them when pages come and crawls end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import is_not
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl._compile.packed import Numbers, pack
from recrawl.engine.beliefs.beliefs import Beliefs
from recrawl.engine.beliefs.kernels import apply_beliefs
from recrawl.engine.beliefs.staleness_kernels import open_time
from recrawl.engine.clocks.clocks import FolderClocks
from recrawl.engine.eligibility.eligibility import Eligibility
from recrawl.engine.eligibility.likely import hasten, hasten_if_due
from recrawl.engine.names.addresses import Addresses, Urls, host_of
from recrawl.engine.outcomes.calibration import Calibration, new_calibration
from recrawl.engine.outcomes.crawl_kernels import NOT_PLAIN, START, Crawls, Learned, end_crawls, place_crawled
from recrawl.engine.policies.choice import choice_of
from recrawl.engine.settings import Settings
from recrawl.engine.signals.arrays import NO_ROW
from recrawl.engine.signals.pages import refresh_pages, renew_signals, settle_pages
from recrawl.engine.upkeep import Upkeep
from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.importance import RequestRates
from recrawl.model.pages import MOST_IMPORTANT, Pages
from recrawl.schedule.exact import access
from recrawl.schedule.exact.access import DONE
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.schedule.table import column_of

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_NO_TIMES = np.zeros((0, 2))
_FEW = 4000  # pages that can be compared at the first pick, without levels
_EARLIER_PREDICTIONS = 0.3  # share that a crawl from before a refit keeps in the calibration


class Packed(NamedTuple):
    """All that was learned and where it lies, for the engine at an address: a copy of it has arrays of its own."""

    learned: Learned
    numbers: Numbers
    at: int


class Core:
    """Scheduler, beliefs, clocks, addresses and eligibility, kept in step."""

    def __init__(self, settings: Settings, prior: GammaPrior | None, start: float) -> None:
        self.settings = settings
        self.scheduler = Scheduler(
            budget=settings.budget,
            objective=settings.schedule,
            policy="no-signals",
            start=start,
            lease=settings.lease,
            floor=settings.floor,
        )
        self.beliefs = Beliefs(prior, settings.sources, settings.half_life * settings.day, settings.day)
        self.calibration: Calibration = new_calibration()
        self.clocks = FolderClocks(settings)
        if self.clocks.enabled:
            access.set_clock_bins(self.scheduler, *map(float, self.clocks.arrays.scale))
        self.addresses = Addresses()
        self.eligibility = Eligibility(self.scheduler, settings.day)
        self.choice = choice_of(settings.policy)
        self.requests: RequestRates | None = None
        self._given: Array | None = None  # importance as given, with room for more pages, while there are `requests`
        self.stands_for: Array | None = None  # of a sample: how many pages each page stands for
        self._ruled: set[str] = set()  # hosts with rules
        self.added_without_copy = False
        self.upkeep = Upkeep()
        self.crawls_since = 0  # since unlikely pages were last examined
        self._packed: Packed | None = None
        self._counts = dict.fromkeys(("recorded", "changed", "failed", "gone", "signals", "requests", "refits"), 0)

    @property
    def given(self) -> Array:
        """Importance of pages as given; where readers' requests count, pages are weighed by another one."""
        given = access.importance_column(self.scheduler) if self._given is None else self._given
        return given[: len(self.addresses)]

    def count_requests(self, start: float) -> RequestRates:
        """Readers' requests, with room for all pages, which are watched from ``start`` on if they were not before."""
        if self.requests is None:
            self._given = self.given.copy()
            self.requests = RequestRates(0, self.request_half_life)
        self.requests.grow(len(self.addresses), start)
        return self.requests

    @property
    def request_half_life(self) -> float:
        """After how much time a reader's request counts half."""
        return 30.0 * self.settings.day

    @property
    def now(self) -> float:
        """The largest time that the engine knows."""
        return access.now(self.scheduler)

    @property
    def hosts_ruled(self) -> bool:
        """Whether any host has rules."""
        return bool(self._ruled)

    @property
    def learned(self) -> Learned:
        """All that was learned, as kernels take it; it must be asked for again after pages were added."""
        return Learned(self.beliefs.belief, self.calibration, self.clocks.arrays)

    @property
    def packed(self) -> Numbers:
        """The same, packed; made again when arrays have moved."""
        packed = self._packed
        if packed is not None and packed.at == id(self) and self._is_learned(packed.learned):
            return packed.numbers
        learned = self.learned
        if packed is None or packed.at != id(self):
            self._packed = packed = Packed(learned, pack(learned), id(self))
        else:
            moved = any(map(is_not, _arrays(packed.learned), _arrays(learned)))
            self._packed = packed = packed._replace(learned=learned, numbers=pack(learned) if moved else packed.numbers)
        return packed.numbers

    def _is_learned(self, learned: Learned) -> bool:
        """Whether this is still what was learned; compared without making another tuple, once per record."""
        belief, calibration, clocks = learned
        return belief is self.beliefs.belief and calibration is self.calibration and clocks is self.clocks.arrays

    def ids(self) -> Ids:
        """All pages that are kept fresh."""
        return access.present_ids(self.scheduler)

    @property
    def no_copy_at(self) -> float:
        """The time of fetching that stands for "no copy" in the scheduler; elsewhere it is −infinity."""
        return self.settings.no_copy_at

    def copied(self, rows: Ids) -> NDArray[np.bool_]:
        """Which pages have a copy."""
        return np.asarray(access.last_fetched(self.scheduler, rows) > self.no_copy_at)

    def all_copied(self) -> bool:
        """Whether every page has a copy; at once where each was added with one."""
        return not self.added_without_copy or bool(self.copied(self.ids()).all())

    def fetched_at(self, rows: Ids) -> Array:
        """When the copies of pages were fetched; −infinity where there is none."""
        last = access.last_fetched(self.scheduler, rows)
        return np.where(last > self.no_copy_at, last, -np.inf)

    def _copies(self, fetched_at: ArrayLike | None, n: int) -> Array:
        """Times of fetching as the scheduler takes them."""
        fetched = column_of("fetched_at", fetched_at, n, -np.inf)
        if (fetched == np.inf).any():
            raise ParameterError(f"fetched_at, row {int(np.argmax(fetched == np.inf))}: must not be infinity")
        return np.maximum(fetched, self.no_copy_at)

    @property
    def threshold(self) -> float:
        """What a crawl was worth at the margin, at the last pick."""
        return self.scheduler.threshold

    def _append(self, urls: Urls, weight: Array, fetched: Array, now: float, own: GammaPrior | None) -> Ids:
        """Add pages whose URLs have the last ids already; they are not picked until they are admitted."""
        self._packed = None  # what it keeps would be kept beside what grows
        first, n = len(self.beliefs), len(urls)
        rows = np.arange(first, first + n)
        default = self.settings.host_spacing, self.settings.host_concurrency
        ruled = default != (None, None)
        hosts, on_host = urls.hosts() if ruled or self._ruled else ([], np.zeros(n, np.int64))
        listed = np.array([host if ruled or host in self._ruled else None for host in hosts], dtype=object)
        column = listed[on_host] if any(name is not None for name in listed) else None
        if not ((weight >= 0.0) & (weight <= MOST_IMPORTANT)).all():
            Pages(1.0, weight)  # says which row is wrong, before anything is added
        folders = urls.folders()
        if first + n > len(self.beliefs.belief.watched):
            self._packed = None  # it would hold the arrays that are outgrown
        self.beliefs.append([(names[0], names[-1]) for names in folders.names], fetched >= now, own, folders.place)
        shape, rate = self.beliefs.belief.gamma[rows].T
        pages = Pages(shape / rate, weight, host=column, evidence=shape)
        ids = access.append(self.scheduler, pages, np.minimum(fetched, max(now, self.now)))
        assert np.array_equal(ids, rows)
        self.added_without_copy |= bool((fetched <= self.no_copy_at).any())
        self.clocks.add(folders, rows)
        if self.clocks.enabled:
            self._follow_clocks(rows)
        self.choice.added(self, rows)
        if self._given is not None:
            self._given = _with_rows(self._given, first, weight)
            self.count_requests(now - self.settings.day)
        self.eligibility.cohorts.reserve(first + n)
        if ruled:
            for host in set(hosts) - self._ruled:
                self._ruled.add(host)
                self.scheduler.host(host, spacing=default[0], concurrency=default[1])
        return ids

    def _admit(self, rows: Ids, alike: NDArray[np.bool_]) -> None:
        """New pages may be picked. Of those that are alike, pages of one folder form cohorts by their importance."""
        some = rows[alike]
        waits = self.eligibility.cohorts.form(self.scheduler, some, self.clocks.folder_of(some), self.no_copy_at)
        placed = ~alike
        placed[alike] = ~waits
        if waits.any() and placed.sum() <= _FEW:
            access.lower_levels(self.scheduler)
        access.place(self.scheduler, rows[placed], self.now)

    def learn_crawls(self, rows: Ids, copies: Array, changed: NDArray[np.bool_], now: float) -> None:
        """Learn from crawls; `copies` has the times of the copies before and of the new ones."""
        done = np.zeros(len(START), np.int64)
        self._end(Crawls(rows, changed, copies), now, done)
        self._place_learned(rows, now, done)

    def end_plain(self, rows: Ids, here: float, changed: NDArray[np.bool_]) -> bool:
        """Crawls that ended as most do: each of another leased page, with its copy compared; whether they did.

        Otherwise nothing was done. ``here`` is not before the engine's time.
        """
        done = np.zeros(len(START), np.int64)
        if self._end(Crawls(rows, changed, _NO_TIMES), here, done) == NOT_PLAIN:
            return False
        self._place_learned(rows, here, done)
        return True

    def _end(self, crawls: Crawls, now: float, done: Ids) -> int:
        """Learn from crawls, and place the pages where no times of copies are given; DONE or NOT_PLAIN."""
        while True:
            status = end_crawls(access.header(self.scheduler), self.packed, crawls, now, self.no_copy_at, done)
            if status == NOT_PLAIN:
                return status
            if status == DONE:
                break
            access.grow(self.scheduler, status)
        self.beliefs.crawls += len(crawls.ids)
        self.crawls_since += len(crawls.ids)
        self._counts["changed"] += int(np.count_nonzero(crawls.changed))
        return DONE

    def _place_learned(self, rows: Ids, now: float, done: Ids) -> None:
        """Place pages after outcomes were learned from, as far as that is not done; fit and publish what is due."""
        if done.item(-1) < len(rows):
            self.move_gates()
            access.repeat(self.scheduler, lambda header: place_crawled(header, rows, now, done))
        self.refit_if_due()
        if self.clocks.due(now) and not self.upkeep.takes_clocks(self):
            self.clocks.publish(self.scheduler, now)
        hasten_if_due(self, now)

    def reserve_signals(self, rows: Ids) -> None:
        """Room for what is learned of pages by their signals, in the beliefs and the scheduler."""
        b = self.beliefs.belief.signals
        new = rows if len(b.row_of) == 0 else rows[b.row_of[rows] == NO_ROW]
        if len(new):
            new = np.unique(new)
            self.beliefs.reserve_signals(new, map(host_of, self.addresses.urls(new)))
            access.reserve_components(self.scheduler, self.beliefs.signals.n_rows)

    def refresh_signals(self, pages: Ids, until: float | None = None) -> None:
        """Compute what is believed of pages with signals again, heard until a time; the caller places them."""
        signals = self.beliefs.belief.signals
        rows = signals.row_of[pages].astype(np.int64) if len(signals.row_of) else np.zeros(0, np.int64)
        heard = self.now if until is None else until
        refresh_pages(access.header(self.scheduler), self.beliefs.belief, rows[rows >= 0], heard)

    def move_gates(self) -> None:
        """Value the pages by their signals, or no longer, whose sources have gained or lost trust."""
        for moved in self.beliefs.signals.take_moved():
            belief, header, rows = self.beliefs.belief, access.header(self.scheduler), moved.rows
            pages = belief.signals.page[rows]
            if moved.has_shut:
                settle_pages(belief, rows, moved.source)
                apply_beliefs(header, belief, pages)
            refresh_pages(header, belief, rows, self.now)
            access.place_waiting(self.scheduler, pages)

    def join_groups(self, rows: Ids, now: float) -> None:
        """Pages have their first copy: they follow their clocks, and are believed to be like others of their folders.

        A page that was added by an engine of few pages was believed to be like any page until now.
        """
        if len(rows) == 0:
            return
        self.beliefs.believe(rows)
        if self.clocks.enabled:
            self._follow_clocks(rows)
        self._believe(rows, now)

    def _follow_clocks(self, rows: Ids) -> None:
        """Let pages follow their clocks; the caller places them. Where clocks start again, all pages are placed."""
        if self.clocks.join(self.scheduler, rows):
            self.clocks.join(self.scheduler, self.ids())
            access.place_all(self.scheduler)

    def renew_copies(self, rows: Ids, copies: Array, now: float) -> None:
        """New copies without an outcome: the signals before them no longer count."""
        if len(rows) == 0:
            return
        self._close(rows, copies)
        self.beliefs.belief.counted[rows] = True
        renew_signals(access.header(self.scheduler), self.beliefs.belief, rows, copies[:, 1].copy())
        self._place(rows)

    def _close(self, rows: Ids, copies: Array) -> None:
        """Add copies that were never judged to the ledger, as stale as they are believed to have been."""
        self.beliefs.belief.ledger[:] += open_time(
            access.header(self.scheduler), self.beliefs.belief, self.calibration, rows, *copies.T.copy()
        )

    def refit_if_due(self) -> bool:
        """Fit the tables when enough was learned since the last time; whether all pages were placed again."""
        if self.beliefs.crawls < self.beliefs.refit_at or self.upkeep.takes_refit():
            return False
        rows = self.ids()
        self.beliefs.fit(rows)
        self.refit_signals()
        self.clocks.fit()
        if self.clocks.respan(self.scheduler):
            self.clocks.join(self.scheduler, rows)
        self.clocks.publish(self.scheduler, self.now, reinsert=False)
        self._counted_refit()
        self._believe(rows, self.now, everyone=True)
        hasten(self, self.now)
        return True

    def ended_refit(self) -> None:
        """A refit in pieces is complete."""
        self.beliefs.ended_fit()
        self._counted_refit()

    def _counted_refit(self) -> None:
        """Predictions will be others from now on: those made before say less of how good they are."""
        self._counts["refits"] += 1
        self.calibration.recent[:] *= _EARLIER_PREDICTIONS

    def count_recorded(self, n: int, failed: int = 0, gone: int = 0) -> None:
        """Crawls were recorded, some of which failed or found their pages gone."""
        for name, count in (("recorded", n), ("failed", failed), ("gone", gone)):
            self._counts[name] += count

    @property
    def refits_in_pieces(self) -> bool:
        """Whether what takes long is left to ``maintain``, so that no call waits for it; False: calls do it at once.

        That are refits of the tables, clocks at the end of a bin, and pages that were unlikely to have changed.
        """
        return self.upkeep.in_pieces

    @refits_in_pieces.setter
    def refits_in_pieces(self, in_pieces: bool) -> None:
        self.upkeep.in_pieces = in_pieces
        while not in_pieces and self.upkeep.step(self):
            pass

    def maintain(self) -> bool:
        """Do a piece of what ``refits_in_pieces`` has left to do, a few milliseconds; whether there is more."""
        return self.upkeep.step(self)

    def refit_signals(self, *, everyone: bool = False, heard_until: float = math.inf) -> None:
        """Fit the tables of signals, and compute what is believed of all pages with signals or of a part of many.

        After ``heard_until`` nobody has listened: that no signal came says nothing. The caller places all pages.
        """
        until = min(self.now, heard_until)
        self.fit_signals(until)
        rows = self.beliefs.signals.rows if everyone else self.beliefs.signals.outdated()
        refresh_pages(access.header(self.scheduler), self.beliefs.belief, rows, until)

    def fit_signals(self, until: float) -> None:
        """Fit the tables of signals, as they were heard until a time."""
        signalled = self.beliefs.belief.signals.page[self.beliefs.signals.rows]
        self.beliefs.refit_signals(np.maximum(until - access.last_fetched(self.scheduler, signalled), 0.0))

    def _believe(self, rows: Ids, now: float, *, everyone: bool = False) -> None:
        """Write the beliefs about pages into the scheduler, and place the pages again."""
        if len(rows):
            apply_beliefs(access.header(self.scheduler), self.beliefs.belief, rows)
        self._place(rows, everyone=everyone)

    def _place(self, rows: Ids, *, everyone: bool = False) -> None:
        """Place pages again after their beliefs were written."""
        if everyone:
            access.place_all(self.scheduler)
            self.eligibility.cohorts.regroup(self.scheduler, self.no_copy_at)
        elif len(rows):
            access.place_waiting(self.scheduler, rows)

    def host(self, host: str, *, spacing: float | None = None, concurrency: int | None = None) -> None:
        """Least time between two crawls of a host, and how many of its pages may be fetched at once."""
        self.scheduler.host(host, spacing=spacing, concurrency=concurrency)
        self._rule(host)

    def hold(self, host: str, until: float) -> None:
        """No crawl of a host before a time."""
        self.scheduler.hold(host, until)
        self._rule(host)

    def held_until(self, host: str) -> float:
        """Before when no page of a host is picked (−infinity: nothing holds it)."""
        rules = access.host_rules(self.scheduler, host)
        return -math.inf if rules is None else rules[2]

    def hosts(self) -> list[str]:
        """The hosts that have rules."""
        return sorted(self._ruled)

    def set_host_rules(self, rules: Mapping[str, tuple[float, float, float]]) -> None:
        """Rules of many hosts: spacing, most pages at once (infinity: any), held until."""
        access.set_host_rules(self.scheduler, rules)
        if len(self.addresses):
            for host in rules.keys() - self._ruled:
                self._rule(host)
        self._ruled |= rules.keys()

    def _start_again(self, rows: Ids, fetched: Array) -> None:
        """Forget all that is known of pages but their URLs, as if they were added with these copies; not admitted."""
        self.eligibility.cohorts.leave(self.scheduler, rows)
        self.eligibility.forget(rows)
        self.beliefs.forget(rows)
        access.renew(self.scheduler, rows, fetched)
        self.added_without_copy |= bool((fetched <= self.no_copy_at).any())
        if self.clocks.enabled:
            self._follow_clocks(rows)

    def _rule(self, host: str) -> None:
        if host in self._ruled:
            return
        self._ruled.add(host)
        mine = self.addresses.on_host(host)
        if len(mine):
            self.scheduler.update(mine, host=np.full(len(mine), host, dtype=object))
            self.eligibility.cohorts.split(self.scheduler, np.sort(mine), self.no_copy_at)

    def weigh_pages(self, rows: Ids, now: float) -> None:
        """Set importance to what was given plus readers' requests per day, as of now."""
        if self.requests is None or len(rows) == 0:
            return
        rate = self.requests.rate(now, rows) * self.settings.day
        self.scheduler.update(rows, importance=self.given[rows] + rate)
        if self.settings.price > 0.0:
            self.eligibility.reconsider(rows)


def _arrays(learned: Learned) -> list[Any]:
    """All arrays of what was learned."""
    return [*learned.belief[:-1], *learned.belief.signals, *learned.calibration, *learned.clocks]


def _with_rows(column: Array, first: int, values: Array) -> Array:
    """The column with values from row ``first`` on; where it is too short, a longer one."""
    n = first + len(values)
    if n > len(column):
        column, short = np.zeros(max(n, len(column) * 3 // 2)), column
        column[:first] = short[:first]
    column[first:n] = values
    return column


def own_belief(change_rate: ArrayLike, evidence: ArrayLike, n: int, rows: Ids, prior: GammaPrior) -> GammaPrior:
    """Given change rates of pages, as gammas; a rate of 0 is far below the prior's."""
    rate = column_of("change_rate", change_rate, n, 0.0)[rows]
    shape = column_of("evidence", evidence, n, 2.0)[rows]
    if not ((rate >= 0) & np.isfinite(rate) & (shape > 0)).all():
        raise ParameterError("change_rate must be finite and at least 0, evidence above 0")
    return GammaPrior.from_mean(np.maximum(rate, 1e-6 * float(prior.mean)), np.minimum(shape, 1e9))
