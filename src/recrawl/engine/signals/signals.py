"""Signals: what every source's signals are worth on every page, host and in general. Used only where it has paid."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.signals.arrays import COUNTED, COUNTED_TIME, EXPOSURE, FIRSTS, OPEN, WEIGHT, empty
from recrawl.engine.signals.components import mixture_value, open_component, update_components
from recrawl.engine.signals.gate import HOST_SHUT, NOTHING, SOURCE_SHUT, score, shut
from recrawl.engine.signals.learning import begin_row, hear, learn_row, settle
from recrawl.engine.signals.tables import count_rows, set_tables, sum_hosts, update_host

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_ROUNDS = 3  # of EM per refit
_REPEATS = 5.0  # by how much, in ln evidence, repetitions must explain the outcomes better (or worse) to count
_SAMPLE = 20_000  # pages that a refit reads at most
_PER_ROW = (
    "statistics",
    "both",
    "heard",
    "first",
    "last",
    "share",
    "bins",
    "components",
    "mean_kappa",
    "rate",
    "main",
    "host",
)
_PER_HOST = ("host_share", "host_prior", "host_gate")
_WHOLE = ("log_table", "bin_classes", "classes", "log_base", "repeats", "mean_rate", "gate")


class Outcome(NamedTuple):
    """A crawl's outcome: when the copy before was fetched, clock time since, what was found, how sums fade."""

    begin: float
    elapsed: float
    changed: bool
    own: float  # exponent that the belief without signals predicted
    keep: float = 1.0


class Components(NamedTuple):
    """What the scheduler needs to value a page with signals, one entry per component."""

    weight: Array
    missed_rate: Array
    shape: Array
    signal_weight: Array
    signal_rate: Array
    heard: Array  # what the signals since the copy add to the exponent
    repeated: Array  # whether further signals add to it (1) or only the first (0)


class Learned(NamedTuple):
    """Rows whose components an outcome changed, and evidence (changes, time) that replaces the totals of some."""

    rows: Ids
    settled: dict[int, tuple[float, float]]


class Signals:
    """Statistics of the pages that have had signals, the population's tables, and the gates."""

    def __init__(self, rates: Array, prior: Array, n_sources: int, groups: tuple[int, ...] = (0, 1, 2, 3, 3, 4, 4, 4)):
        self.arrays = empty(np.asarray(rates, float), n_sources, 0, 0, np.array(groups))
        self.row: dict[int, int] = {}
        self.pages: list[int] = []
        self._out = np.zeros((n_sources, len(rates), len(groups)))
        self.set_prior(prior)
        self._set_tables(None)

    def set_prior(self, prior: Array) -> None:
        """The population's distribution of change rates, over the grid."""
        self.arrays.log_base[:] = np.log(np.maximum(np.asarray(prior) / np.sum(prior), 1e-30))

    def heard(self, page: int, host: int, source: int, totals: Array, elapsed: float) -> int:
        """Count a signal, a clock time after the copy; the page's row."""
        row = self.row.get(page)
        if row is None:
            row = self.row[page] = len(self.pages)
            self.pages.append(page)
            self._make_room(row + 1, host + 1)
            begin_row(self.arrays, row, host, totals)
        hear(self.arrays, row, source, totals, elapsed, self._out)
        return row

    def learn(self, page: int, totals: Array, outcome: Outcome, all_totals: Array, now: float) -> Learned:
        """Score the gates by an outcome and learn from it; `totals` have it already, `all_totals` are those of rows."""
        b, row = self.arrays, self.row[page]
        rows, settled = {row}, dict[int, tuple[float, float]]()
        for k in range(b.rate.shape[1]):
            if b.rate[row, k] <= 0.0:
                continue
            event = score(b, row, k, outcome.begin, outcome.elapsed, outcome.own, outcome.changed)
            if event != NOTHING:
                rows |= self._moved(event, row, k, now, settled)
        if row in settled:
            totals = np.array([0.0, 0.0, 0.0, *settled[row]])
        learn_row(b, row, totals, (outcome.elapsed, outcome.changed, outcome.keep), self._out)
        for other in rows - {row}:
            self.refresh(other, all_totals[other], 0.0)
        return Learned(np.array(sorted(rows)), settled)

    def _moved(self, event: int, row: int, k: int, now: float, settled: dict[int, tuple[float, float]]) -> set[int]:
        """A gate has opened or shut: the rows it concerns. On shutting their statistics become evidence."""
        b, n, host = self.arrays, len(self.pages), int(self.arrays.host[row])
        of_host = event <= HOST_SHUT
        concerned = b.host[:n] == host if of_host else b.host_gate[b.host[:n], k, OPEN] == 0.0
        rows = np.flatnonzero(concerned & (b.rate[:n, k] > 0.0))
        if event in (HOST_SHUT, SOURCE_SHUT):
            shut(b, host if event == HOST_SHUT else -1, k, now)
            for r in rows:
                evidence = settle(b, int(r), k)
                if evidence[0] >= 0.0:
                    settled[int(r)] = evidence
        return set(rows.tolist())

    def refresh(self, row: int, totals: Array, elapsed: float) -> None:
        """Compute a page's components again, after its totals, a gate or the tables have changed."""
        update_components(self.arrays, row, totals, elapsed, self._out)
        update_host(self.arrays, row, self._out)

    def value(self, page: int, elapsed: float) -> float:
        """Crawl value per unit of importance; negative where no open source has signalled the page."""
        row = self.row.get(page)
        return -1.0 if row is None else mixture_value(self.arrays, row, elapsed)

    def components(self, page: int) -> Components | None:
        """The components of a page as the open gates let them count; None where its own belief holds."""
        row = self.row.get(page)
        if row is None or mixture_value(self.arrays, row, 0.0) < 0.0:
            return None
        found = [
            (float(c[WEIGHT]), *open_component(self.arrays, row, m))
            for m, c in enumerate(self.arrays.components[row])
            if c[WEIGHT] > 0.0
        ]
        weight, mean, shape, rate, kappa, heard, repeated = np.array(found).T
        return Components(weight, mean, shape, kappa, rate, heard, repeated)

    def refit(self, prior: Array, totals: Array, elapsed: Array) -> None:
        """Fit tables and classes to the pages; `totals` and `elapsed` by row. The caller refreshes the rows."""
        b, n = self.arrays, len(self.pages)
        self.set_prior(prior)
        if n == 0:
            return
        mean_time = 1.0 / float(np.sum(np.exp(b.log_base) * b.rates))
        st = b.statistics[:n].sum(axis=0)
        count = np.where(b.repeats > 0.0, st[:, COUNTED], st[:, FIRSTS])
        b.mean_rate[:] = (count + 1.0) / (np.where(b.repeats > 0.0, st[:, COUNTED_TIME], st[:, EXPOSURE]) + mean_time)
        rows = np.arange(0, n, max(n // _SAMPLE, 1))
        evidence = np.zeros((2, b.rate.shape[1]))
        for _ in range(_ROUNDS):
            counts = np.zeros(b.log_table.shape)
            evidence = count_rows(b, rows, totals, elapsed, counts, self._out)
            self._set_tables(counts)
        gain = evidence[1] - evidence[0]
        b.repeats[gain > _REPEATS] = 1.0
        b.repeats[gain < -_REPEATS] = 0.0
        sum_hosts(b, n)

    def _set_tables(self, counts: Array | None) -> None:
        b = self.arrays
        set_tables(b, np.zeros(b.log_table.shape) if counts is None else counts)
        sum_hosts(b, len(self.pages))

    def _make_room(self, rows: int, hosts: int) -> None:
        b = self.arrays
        self.arrays = b._replace(
            **{name: _larger(getattr(b, name), rows) for name in _PER_ROW},
            **{name: _larger(getattr(b, name), hosts) for name in _PER_HOST},
        )
        for host in range(len(b.host_gate), len(self.arrays.host_gate)):
            self.arrays.host_gate[host] = empty(b.rates, b.rate.shape[1], 0, 1, b.groups).host_gate[0]
        self.arrays.bins[len(b.bins) :] = -1

    def saved(self) -> dict[str, NDArray[Any]]:
        """All that was learned, as arrays."""
        b, n = self.arrays, len(self.pages)
        rows = {name: getattr(b, name)[:n].copy() for name in _PER_ROW}
        rest = {name: getattr(b, name).copy() for name in (*_PER_HOST, *_WHOLE)}
        return {"pages": np.array(self.pages, np.int64), **rows, **rest}

    def load(self, saved: dict[str, NDArray[Any]]) -> None:
        """Continue from what was saved, perhaps with fewer sources: those that are new know nothing."""
        self.pages = saved["pages"].tolist()
        self.row = {page: row for row, page in enumerate(self.pages)}
        self._make_room(len(self.pages), len(saved["host_gate"]))
        for name in (*_PER_ROW, *_PER_HOST, *_WHOLE):
            part = saved[name]
            getattr(self.arrays, name)[tuple(slice(size) for size in part.shape)] = part


def _larger(column: NDArray[Any], size: int) -> NDArray[Any]:
    """The column with room for a size, twice as large where it grows."""
    if size <= len(column):
        return column
    larger = np.zeros((max(size, 2 * len(column)), *column.shape[1:]), column.dtype)
    larger[: len(column)] = column
    return larger
