"""Beliefs: what was observed of every page, and the tables that all pages share and fill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl._system.memory import larger
from recrawl.engine.beliefs.arrays import ALL, CHANGES, FOLDER, HOST, LOG_INTERVALS, UNCHANGED, UNIT, Belief
from recrawl.engine.beliefs.posterior_kernels import (
    FIRST_PAGES,
    MOST_SHAPE,
    believe_all,
    count_all,
    likelihood_of_strengths,
    matched_shape,
)
from recrawl.engine.outcomes.lessons import Lessons
from recrawl.engine.signals.signals import Signals
from recrawl.estimate.gamma import GammaPrior

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_GRID = (1e-4, 2.0, 32)  # rates per day: the lowest, the ratio of neighbours, how many
_FIRST = (-0.4, 10.0, -1.8)  # density over ln r before anything is known: r^−0.4, falling faster above ten a day
_COUNTS = ("watched", "n_crawls", "n_changes", "fixed_rate", "counted")
_PER_PAGE = ("seen", "evidence", "share", "table", "gamma", *_COUNTS)
_WHOLE = ("first", "tables", "sizes", "strength", "prior", "half_life", "ledger")
_MOST_SPREAD = 0.06  # of a table moves from a rate to the next one, at most
_FIRST_REFIT, _REFIT_GROWTH = 50, 1.3  # crawls before the tables are fitted, and growth until they are fitted again
ROUNDS = 3  # of expectation maximisation in a fit
_FEW_PAGES = 10  # with fewer, the strengths are not fitted
_STRENGTHS = np.array([3.0, 12.0, 50.0, 200.0, 1e6])
_SAMPLED = 4000  # pages that the strengths are fitted to


@dataclass
class OtherPages:
    """What engines of other pages have taught: their table of rates, likelihoods of strengths, crawls."""

    table: Array
    strengths: Array
    crawls: int


class Beliefs:
    """Observations per page; tables of change rates of all pages, hosts and folders, by expectation maximisation."""

    def __init__(self, prior: GammaPrior | None, n_sources: int, half_life: float, day: float) -> None:
        low, ratio, n = _GRID
        rates = np.asarray(low * ratio ** np.arange(n) / day, np.float64)
        first = _first(rates * day) if prior is None else _as_table(prior, rates)
        self.signals = Signals(rates, first, n_sources)
        self.belief = Belief(
            seen=np.zeros((0, 3)),
            evidence=np.zeros((0, 2)),
            share=np.zeros((0, n), np.uint8),
            table=np.zeros((0, 2), np.int32),
            gamma=np.zeros((0, 2)),
            watched=np.zeros(0),
            n_crawls=np.zeros(0, np.int32),
            n_changes=np.zeros(0, np.int32),
            fixed_rate=np.zeros(0, np.bool_),
            counted=np.zeros(0, np.bool_),
            rates=rates,
            first=first,
            spread=_spread(first),
            tables=np.zeros((1, n)),
            sizes=np.zeros(1),
            strength=np.full(2, 5.0),
            prior=np.ones(2),
            half_life=np.array([half_life]),
            ledger=np.zeros(2),
            signals=self.signals.arrays,
        )
        self._names: dict[str, int] = {}  # rows of `tables`, by host or folder
        self.set_prior()
        self.crawls = 0  # outcomes taken in so far
        self.fits = 0  # fits of the tables so far
        self.refit_at = _FIRST_REFIT
        self.partial = False  # whether these are a part of the pages that the table of all pages is about
        self.renewed = 0  # gammas that were computed when pages were read from rows
        self._unknown = False  # whether these are a part of pages that have no such table yet
        self.strengths = np.zeros((len(_STRENGTHS), len(_STRENGTHS)))  # ln likelihood at the last fit
        self._others: OtherPages | None = None
        self._all_crawls = 0  # of these pages and others, when the tables were last fitted
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def prior(self) -> GammaPrior:
        """What is believed of a page that nothing is known of."""
        return GammaPrior(*self.belief.prior)

    def append(
        self,
        groups: list[tuple[str, str]],
        counted: NDArray[np.bool_],
        own: GammaPrior | None = None,
        place: Ids | None = None,
    ) -> None:
        """New pages by host and folder, with given rates or without; and which of their copies are new too.

        With ``place`` the groups are distinct, and ``place`` says which of them each page is in.
        """
        n = len(counted)
        first, self._n = self._n, self._n + n
        if self._n > len(self.belief.watched):
            room = max(16, self._n, len(self.belief.watched) * 3 // 2)
            self.signals.grow(room)
            for name in _PER_PAGE:  # one after the other: two copies of one column are held at a time
                column: dict[str, Any] = {name: larger(getattr(self.belief, name), room)}
                self.belief = self.belief._replace(**column)
            self.belief = self.belief._replace(signals=self.signals.arrays)
        rows = np.arange(first, self._n)
        tables = self._rows(groups)
        self.belief.table[rows] = tables if place is None else tables[place]
        self.belief.counted[rows] = counted
        if own is not None:
            self.set_rate(rows, own)
        else:
            self._believe_alike(rows)

    def _rows(self, groups: list[tuple[str, str]]) -> NDArray[np.int32]:
        """Rows of hosts and folders in the tables; folders to which pages came later are kept apart."""
        late = "+" if self.crawls else "/"
        numbers: dict[tuple[str, str], tuple[int, int]] = {}
        out = np.empty((len(groups), 2), np.int32)
        for j, key in enumerate(groups):
            found = numbers.get(key)
            if found is None:
                names = self._names
                host = names.setdefault(key[0], len(names) + 1)
                found = numbers[key] = (host, names.setdefault(late + key[1], len(names) + 1))
            out[j] = found
        if len(self._names) >= len(self.belief.tables):
            room = max(16, len(self._names) + 1, len(self.belief.tables) * 3 // 2)
            self.belief = self.belief._replace(
                tables=larger(self.belief.tables, room), sizes=larger(self.belief.sizes, room)
            )
        return out

    def believe(self, rows: Ids, *, count: bool = False) -> None:
        """Compute the gammas of pages from their observations and the tables."""
        believe_all(self.belief, rows, count)

    def set_rate(self, rows: Ids, own: GammaPrior) -> None:
        """A given rate of pages: evidence besides what is observed; earlier evidence is replaced."""
        self.belief.fixed_rate[rows] = True
        shape, rate = own.rows(len(rows))
        self.belief.evidence[rows] = np.stack([shape, rate], axis=1)
        self.believe(rows)

    def reserve_signals(self, rows: Ids, hosts: Iterable[str]) -> int:
        """Room for what is learned of pages by their signals; how many pages had none yet."""
        new = self.signals.reserve(rows, hosts, len(self.belief.watched))
        if self.belief.signals is not self.signals.arrays:
            self.belief = self.belief._replace(signals=self.signals.arrays)
        return new

    def refit_signals(self, elapsed: Array) -> None:
        """Fit the tables of signals; `elapsed` is the time since the copy of each page with signals."""
        pages = self.belief.signals.page[self.signals.rows]
        self.signals.refit(self.population, np.hstack([self.belief.seen[pages], self.belief.evidence[pages]]), elapsed)

    def gamma(self, rows: Ids) -> GammaPrior:
        """The belief about pages' change rates without signals."""
        return GammaPrior(self.belief.gamma[rows, 0], self.belief.gamma[rows, 1])

    def fit(self, rows: Ids) -> None:
        """Fit the tables to what was observed of pages: rounds of expectation maximisation, then the strengths."""
        self.ended_fit()
        seen = rows[self.belief.n_crawls[rows] > 0]
        for _ in range(ROUNDS):
            self.count(seen)
        some, step = self.sampled(seen)
        if len(some):
            self.strengths = step * self.score_strengths(some)
        self.use_strengths(fitted=len(some) > 0)
        self.set_prior()
        self.believe_again(rows)

    def count(self, rows: Ids) -> None:
        """A round of a fit: count crawled pages in the tables again. Their gammas follow after the last round."""
        count_all(self.belief, rows)

    def ended_fit(self) -> None:
        """The tables are fitted: count it, and set when they are fitted next."""
        self.refit_at = int(self.crawls * _REFIT_GROWTH) + 1
        self.fits += 1
        if self._others is not None:
            self.refit_at = max(self.refit_at, _FIRST_REFIT)
            self._all_crawls = self.crawls + self._others.crawls

    def believe_again(self, rows: Ids) -> None:
        """Compute the gammas of pages after the tables were fitted."""
        plain = (self.belief.n_crawls[rows] == 0) & ~self.belief.fixed_rate[rows]
        self.believe(rows[~plain])
        self._believe_alike(rows[plain])

    def _believe_alike(self, rows: Ids) -> None:
        """Compute the gammas of pages of which nothing is known: those of a folder have the same."""
        b = self.belief
        folder = b.table[rows, FOLDER]
        page = np.full(len(b.tables), -1)
        page[folder[::-1]] = rows[::-1]  # the first of each folder
        self.believe(page[page >= 0])
        b.gamma[rows] = b.gamma[page[folder]]

    def sampled(self, seen: Ids) -> tuple[Ids, int]:
        """The crawled pages that the strengths are fitted to, each for so many; none where there are too few."""
        step = max(-(-len(seen) // _SAMPLED), 1)
        return (seen[::step] if len(seen) >= _FEW_PAGES else seen[:0]), step

    def score_strengths(self, some: Ids) -> Array:
        """How well each pair of strengths predicts pages; scores of parts add up."""
        return likelihood_of_strengths(self.belief, some, _STRENGTHS, _STRENGTHS)

    def use_strengths(self, *, fitted: bool) -> None:
        """Use the strengths that predict best, these pages (if they were ``fitted`` now) and others."""
        score = self.strengths if self._others is None else self.strengths + self._others.strengths
        if fitted or (self._others is not None and score.any()):
            best = np.unravel_index(int(np.argmax(score)), score.shape)
            self.belief.strength[HOST], self.belief.strength[FOLDER] = _STRENGTHS[list(best)]

    def set_prior(self) -> None:
        """The gamma of a page of which nothing is known, not even its folder and host."""
        b, table = self.belief, self.population
        mean = float(table @ b.rates)
        shape = plain(matched_shape)(float(np.log(mean) - table @ np.log(b.rates)))
        b.prior[:] = shape, shape / mean

    @property
    def population(self) -> Array:
        """The distribution of the change rates of all pages, over the grid."""
        table = self.belief.tables[ALL] + UNIT * FIRST_PAGES * self.belief.first
        return np.asarray(table / table.sum())

    def forget(self, rows: Ids) -> None:
        """Pages are removed: they no longer count in the tables."""
        share = self.belief.share[rows].astype(np.float64)
        for table in (np.zeros(len(rows), np.int64), *self.belief.table[rows].T):
            np.subtract.at(self.belief.tables, table, share)
            np.subtract.at(self.belief.sizes, table, share.sum(axis=1))
        self.belief.share[rows] = 0
        self.signals.forget(rows)

    def take_tables(self, saved: Mapping[str, Any], *, partial: bool) -> None:
        """Take over what was fitted to all pages; rows of earlier versions have no tables."""
        self.partial = partial
        self.crawls, self.refit_at = int(saved["crawls"]), int(saved["refit_at"])
        self.fits = int(saved.get("fits", 0))
        table = np.asarray(saved.get("table", ()), np.float64)
        if len(table) == len(self.belief.rates):
            self.belief.tables[ALL], self.belief.sizes[ALL] = table, table.sum()
            self.belief.strength[:] = saved["strength"]
            self.belief.prior[:] = np.reshape(saved["prior"], (-1, 2))[0]
        else:
            self.set_prior()
        self._unknown = partial and not self.belief.sizes[ALL] > 0.0

    @property
    def table(self) -> Array:
        """The table of all pages, as far as it is known, without what engines of other pages have added."""
        if self._unknown:
            return np.zeros(len(self.belief.rates))
        known = self.belief.tables[ALL].copy()
        return known if self._others is None else np.asarray(known - self._others.table)

    def learn_from(self, others: Sequence[Lessons]) -> None:
        """Add the tables of engines of other pages to that of all pages, in place of those added before.

        The strengths and the beliefs about single pages follow at the next fit, which comes with the next crawl when
        all engines together have learned enough since the last one.
        """
        own, n = self.table, len(self.belief.rates)
        self._others = OtherPages(
            sum((one.table for one in others), np.zeros(n)),
            sum((one.strengths for one in others), np.zeros_like(self.strengths)),
            sum(one.crawls for one in others),
        )
        self.belief.tables[ALL] = own + self._others.table
        self.belief.sizes[ALL] = self.belief.tables[ALL].sum()
        self.set_prior()
        if self.crawls + self._others.crawls >= max(_REFIT_GROWTH * self._all_crawls, _FIRST_REFIT):
            self.refit_at = min(self.refit_at, self.crawls)

    def recount(self, rows: Ids, stale: Ids) -> Ids:
        """Count pages in the tables again by their observations; compute the gammas of pages that are stale.

        The table of all, as it was taken over, may know more pages: it keeps what those have added. Where there is
        none, it is built, and fitted if pages are stale. The pages whose gammas were computed.
        """
        b = self.belief
        seen, kept = rows[b.n_crawls[rows] > 0], b.gamma[rows].copy()
        table, size = b.tables[ALL].copy(), float(b.sizes[ALL])
        b.share[seen] = 0
        self.believe(seen, count=True)
        if size > 0.0:
            mine = b.share[seen].sum(axis=0, dtype=np.float64)
            b.tables[ALL] = mine + table * (max(size - mine.sum(), 0.0) / size)
            b.sizes[ALL] = b.tables[ALL].sum()
            self.believe(seen, count=True)
        if len(stale) and not size > 0.0 and not self.partial:
            self.fit(rows)
            return rows
        b.gamma[rows] = kept
        self.believe(stale)
        self.renewed = len(stale)
        return stale

    def saved(self) -> dict[str, Any]:
        """Everything, as plain numbers and the arrays themselves."""
        columns = {name: getattr(self.belief, name)[: self._n] for name in _PER_PAGE}
        rest = {name: getattr(self.belief, name) for name in _WHOLE}
        whole = {"names": list(self._names), "crawls": self.crawls, "fits": self.fits, "refit_at": self.refit_at}
        others = None if self._others is None else asdict(self._others)
        shared = {"strengths": self.strengths, "others": others, "all_crawls": self._all_crawls}
        return {**columns, **rest, **whole, **shared, "signals": self.signals.saved()}

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        arrays = {name: larger(saved[name], len(saved[name])) for name in _PER_PAGE}
        arrays |= {name: np.array(saved[name]) for name in _WHOLE}
        self.signals.load(saved["signals"])
        self.belief = self.belief._replace(**arrays, spread=_spread(arrays["first"]), signals=self.signals.arrays)
        self._names = {name: k + 1 for k, name in enumerate(saved["names"])}
        self.crawls, self.fits, self.refit_at = (int(saved[name]) for name in ("crawls", "fits", "refit_at"))
        self.strengths = np.array(saved.get("strengths", self.strengths))
        others, self._all_crawls = saved.get("others"), int(saved.get("all_crawls", 0))
        self._others = None if others is None else OtherPages(**others)
        self._n = len(self.belief.watched)


def estimated_seen(n_crawls: Array, n_changes: Array, watched: Array) -> Array:
    """Observations that go with counts alone: crawls at equal distances."""
    interval = watched / np.maximum(n_crawls, 1.0)
    seen = np.zeros((len(n_crawls), 3))
    seen[:, UNCHANGED] = interval * (n_crawls - n_changes)
    seen[:, CHANGES] = n_changes
    seen[:, LOG_INTERVALS] = n_changes * np.log(np.maximum(interval, 1e-300))
    return seen


def _first(per_day: Array) -> Array:
    """The distribution of rates before anything is known."""
    slow, bend, fast = _FIRST
    table = per_day**slow * (1.0 + per_day / bend) ** fast
    return np.asarray(table / table.sum())


def _spread(first: Array) -> Array:
    """How much of a table moves to the next rate and back; the first distribution stays as it is."""
    ratio = first[1:] / first[:-1]
    return _MOST_SPREAD * np.minimum([ratio, 1.0 / ratio], 1.0)


def _as_table(prior: GammaPrior, rates: Array) -> Array:
    """A gamma prior on the grid; no rate is impossible."""
    shape, rate = min(float(prior.shape), MOST_SHAPE), float(prior.rate)
    log = shape * np.log(rates) - rate * rates
    table = np.exp(log - log.max())
    table = table / table.sum() + 1e-9 * _first(rates / rates[0] * _GRID[0])
    return np.asarray(table / table.sum())
