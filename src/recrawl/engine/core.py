"""Core: the parts of an engine, and what happens to all of them when pages come and crawls end."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine.addresses import Addresses, host_of
from recrawl.engine.beliefs.beliefs import Beliefs
from recrawl.engine.beliefs.kernels import believe_all, kept_time, learn_all
from recrawl.engine.effects.cohorts import Newcomers
from recrawl.engine.effects.effects import TRIED, Influences
from recrawl.engine.waiting import Waiting
from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.importance import RequestRates
from recrawl.model.kinds import Objective
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.schedule.table import column_of

Ids = NDArray[np.int64]
Array = NDArray[np.float64]


PARTS = ("siblings", "priors", "bursts", "drift", "seasons")  # what may count besides a page's own rate


@dataclass(frozen=True)
class Settings:
    """What an engine is told about itself; ``half_life`` in days, other times in the engine's unit."""

    budget: float | None = None
    objective: Objective = "freshness"
    sources: int = 1
    lease: float = 300.0
    floor: float = 0.0
    day: float = 86400.0
    half_life: float = 730.0
    host_spacing: float | None = None
    host_concurrency: int | None = None
    siblings: bool = True
    priors: bool = False
    bursts: bool = False
    drift: bool = False
    seasons: bool = False

    def __post_init__(self) -> None:
        if self.sources not in range(17):
            raise ParameterError(f"sources is {self.sources}: must lie between 0 and 16")
        if not (self.half_life > 0 and 0 < self.day < math.inf):
            raise ParameterError("half_life and day must be above 0")
        if self.host_spacing is not None and not 0 <= self.host_spacing < math.inf:
            raise ParameterError(f"host_spacing is {self.host_spacing}: must be finite and at least 0")
        if self.host_concurrency is not None and not self.host_concurrency >= 1:
            raise ParameterError(f"host_concurrency is {self.host_concurrency}: must be at least 1")

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


class Core:
    """Scheduler, beliefs, addresses, pages in line and pages set aside, kept in step."""

    def __init__(self, settings: Settings, prior: GammaPrior | None, start: float) -> None:
        self.settings = settings
        self.scheduler = Scheduler(
            budget=settings.budget,
            objective=settings.objective,
            policy="signals" if settings.sources and settings.objective == "freshness" else "no-signals",
            start=start,
            lease=settings.lease,
            floor=settings.floor,
        )
        first = GammaPrior.hours(settings.day) if prior is None else prior
        self.beliefs = Beliefs(first, settings.sources, settings.half_life * settings.day)
        self.parts = Influences(settings)
        if self.parts.related:
            self.scheduler.relate(settings.day)
        self.addresses = Addresses()
        self.newcomers = Newcomers()
        self.waiting = Waiting(settings.day)
        self.given = np.zeros(0)  # importance as given
        self.requests: RequestRates | None = None
        self._ruled: set[str] = set()
        self._paused: set[int] = set()  # by the user
        self._counts = dict.fromkeys(("recorded", "changed", "failed", "gone", "signals", "requests", "refits"), 0)

    @property
    def request_half_life(self) -> float:
        """After how much time a reader's request counts half."""
        return 30.0 * self.settings.day

    @property
    def now(self) -> float:
        """The largest time that the engine was told."""
        return access.now(self.scheduler)

    def ids(self) -> Ids:
        """All pages that are kept fresh."""
        return access.present_ids(self.scheduler)

    def _append(self, urls: list[str], weight: Array, fetched: Array, now: float, own: GammaPrior | None) -> Ids:
        first, n = len(self.beliefs), len(urls)
        rows = np.arange(first, first + n)
        same: dict[str, str] = {}
        hosts = [same.setdefault(host, host) for host in map(host_of, urls)]
        default = self.settings.host_spacing, self.settings.host_concurrency
        ruled = default != (None, None)
        listed = np.array([h if ruled or h in self._ruled else None for h in hosts], dtype=object)
        factor = self.parts.foretold(urls)
        shape, rate = self.beliefs.prior.rows(n) if own is None else own.rows(n)
        rate = rate / factor if own is None else rate
        pages = Pages(shape / rate, weight, evidence=shape, host=listed if any(h is not None for h in listed) else None)
        if self.settings.sources > 1:
            pages = pages.replace(recall=np.zeros((n, self.settings.sources)), false_rate=0.0)
        ids = self.scheduler.add(pages, now, fetched_at=np.minimum(fetched, max(now, self.now)))
        assert np.array_equal(ids, rows)
        self.beliefs.append(fetched >= now, factor, own)
        self.parts.enrol(urls, rows)
        self.parts.start_twins(self.beliefs, rows)
        if self.parts.siblings:
            self.parts.gather(self.scheduler, rows)
            access.place(self.scheduler, rows, self.now)
        self.addresses.append(urls)
        self.given = np.concatenate([self.given, weight])
        if self.requests is not None:
            self.requests.grow(len(self.addresses), now - self.settings.day)
        self.newcomers.append(self.scheduler, rows, weight, fetched, self.parts.folder_of(rows), alike=own is None)
        if ruled:
            for host in set(hosts) - self._ruled:
                self._ruled.add(host)
                self.scheduler.host(host, spacing=default[0], concurrency=default[1])
        return ids

    def _kept(self, rows: Ids) -> Array:
        """Signals that came after the fetch began and still stand; with several sources they are not told apart."""
        heard = self.beliefs.belief.heard[rows]
        if heard.shape[1] != 1:
            return np.zeros_like(heard)
        return np.asarray(np.minimum(access.signal_counts(self.scheduler, rows)[:, None], heard))

    def _learn(self, rows: Ids, begin: Array, end: Array, changed: NDArray[np.bool_], now: float) -> None:
        header, parts = access.header(self.scheduler), self.parts.arrays
        learn_all(header, self.beliefs.belief, parts, rows, begin, end, changed, self._kept(rows))
        self.beliefs.crawls += len(rows)
        self._counts["changed"] += int(changed.sum())
        if not self.refit_if_due():
            self._believe(rows, now)
        if self.parts.siblings:
            for group in np.unique(self.parts.arrays.group[rows, self.parts.arrays.active[0]]).tolist():
                access.reinsert_group(self.scheduler, group, now)

    def _renew(self, rows: Ids, begin: Array, end: Array, now: float) -> None:
        """New copies of which nothing is learned: the signals before them say nothing any more."""
        if len(rows) == 0:
            return
        self._close(rows, begin, end)
        self.beliefs.belief.counted[rows] = True
        if self.settings.sources:
            self.beliefs.hear(rows, self._kept(rows), end)
            self._believe(rows, now)

    def _close(self, rows: Ids, begin: Array, end: Array) -> None:
        """Copies that are no longer kept go into the account as far as is believed of them."""
        self.beliefs.belief.account[:] += kept_time(
            access.header(self.scheduler), self.beliefs.belief, self.parts.arrays, rows, begin, end
        )

    def refit_if_due(self) -> bool:
        """Fit the prior anew when enough was learned since the last time; whether all pages were placed anew."""
        if self.beliefs.crawls < self.beliefs.refit_at:
            return False
        rows = self.ids()
        fit = self.beliefs.fit(rows)
        if fit is None:
            return False
        if self.parts.choose_siblings(self.beliefs):
            fit = self.beliefs.fit_now(rows) or fit
        before = self.beliefs.prior_rows(TRIED)
        self.parts.forget_stated(float(self.beliefs.prior.mean), fit.mean)
        self.beliefs.move(fit, self.parts.factors(fit, len(self.beliefs)))
        self.parts.move_trials(before, self.beliefs.prior_rows(TRIED), self.parts.twin_mean(self.beliefs, rows))
        self.parts.refit(self.scheduler, rows, self.now)
        self.beliefs.belief.half_life[0] = self.parts.half_life
        self._counts["refits"] += 1
        self._believe(rows, self.now, everyone=True)
        return True

    def _believe(self, rows: Ids, now: float, *, everyone: bool = False) -> None:
        """Let the scheduler know what is believed of pages."""
        scheduler = self.scheduler
        if len(rows) == 0:
            return
        if self.settings.sources <= 1:
            believe_all(access.header(scheduler), self.beliefs.belief, self.parts.arrays, rows, now)
            if everyone:
                access.place_all(scheduler)
            else:
                access.place_waiting(scheduler, rows)
            return
        elapsed = np.maximum(now - access.last_fetched(scheduler, rows), 0.0)
        scheduler.update(rows, **self.beliefs.columns(rows, elapsed))

    def _settle(self, rows: Ids, now: float, failed: NDArray[np.bool_], gone: NDArray[np.bool_]) -> None:
        """Set failed and gone pages aside for a while; nothing stands against the others any more."""
        aside = rows[failed | gone]
        if len(aside):
            self.scheduler.pause(aside)
        for page in rows[failed].tolist():
            self.waiting.fail(page, now)
        for page in rows[gone].tolist():
            self.waiting.lose(page, now)
        if self.waiting.counts() != (0, 0):
            fetched = rows[~(failed | gone)]
            for page in fetched.tolist():
                self.waiting.clear(page)
            self._free(fetched)
        self._counts["failed"] += int(failed.sum())
        self._counts["gone"] += int(gone.sum())

    def _wake(self, now: float) -> None:
        self._free(self.waiting.due(now))

    def _free(self, rows: Ids) -> None:
        """Let those pages be picked again that neither the user nor a failure keeps back."""
        free = [page for page in rows.tolist() if page not in self._paused and self.waiting.until(page) == -math.inf]
        if free:
            self.scheduler.resume(free)

    def _rule(self, host: str) -> None:
        if host in self._ruled:
            return
        self._ruled.add(host)
        mine = self.addresses.on_host(host)
        if len(mine):
            self.scheduler.update(mine, host=np.full(len(mine), host, dtype=object))
            self.newcomers.part(self.scheduler, mine)

    def _weigh(self, rows: Ids, now: float) -> None:
        """Importance is what was given plus readers' requests per day, as of now."""
        if self.requests is None or len(rows) == 0:
            return
        rate = self.requests.rate(now, rows) * self.settings.day
        self.scheduler.update(rows, importance=self.given[rows] + rate)


def own_belief(change_rate: ArrayLike, evidence: ArrayLike, n: int, rows: Ids, prior: GammaPrior) -> GammaPrior:
    """What a caller says of pages' rates, as gammas; a rate of 0 is far below the prior's."""
    rate = column_of("change_rate", change_rate, n, 0.0)[rows]
    shape = column_of("evidence", evidence, n, 2.0)[rows]
    if not ((rate >= 0) & np.isfinite(rate) & (shape > 0)).all():
        raise ParameterError("change_rate must be finite and at least 0, evidence above 0")
    return GammaPrior.from_mean(np.maximum(rate, 1e-6 * float(prior.mean)), np.minimum(shape, 1e9))
