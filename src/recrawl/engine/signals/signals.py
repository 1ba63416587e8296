"""What signals are worth, as a whole: rows of the pages that have had signals, the population's tables, gates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl._compile.plain import plain
from recrawl.engine.outcomes.lessons import Lessons, SourceLessons
from recrawl.engine.signals.arrays import (
    COUNTED,
    COUNTED_TIME,
    FIRSTS,
    FOLLOWS,
    MOST_MOVED,
    N_STATISTICS,
    NO_ROW,
    OPEN,
    SHUT_AT,
    SQUARES,
    SignalArrays,
    empty,
    reserved,
)
from recrawl.engine.signals.delays import SHARE
from recrawl.engine.signals.shared import SignalSums, move_gates
from recrawl.engine.signals.stated_delays import StatedDelays
from recrawl.engine.signals.tables import count_rows, forget_row, set_tables, sum_hosts

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_GROUPS = np.array([0, 1, 2, 3, 3, 4, 4, 4])  # component that each precision class belongs to
_ROUNDS = 3  # of EM per refit
_REPEATS = 1.0  # by how much, in ln evidence, repetitions must explain the outcomes better (or worse) to count
_ERRORS = 2.0  # and by how many standard errors, from the differences by page
_SAMPLE = 4000  # pages that a refit reads, at most twice as many
_REFRESHED = 20_000  # pages that are computed again after a refit; of more, others each time
_OBSERVED = ("statistics", "both", "heard", "first", "last", "heard_at")  # of a row; all else follows from these
_PER_ROW = (
    *_OBSERVED,
    "age",
    "credit",
    "ended",
    "share",
    "bins",
    "components",
    "mean_kappa",
    "rate",
    "main",
    "host",
    "page",
)
_PER_HOST = ("host_share", "host_prior", "host_gate", "host_delay", "host_pages")
_TAUGHT = ("repeats", "mean_rate", "gate", "delay")
_FITTED = ("log_table", "bin_classes", "classes", "log_missed", "log_base")  # these follow from the pages
_WHOLE = (*_FITTED, *_TAUGHT)


class Moved(NamedTuple):
    """A gate that has opened or shut, and the rows it concerns."""

    source: int
    has_shut: bool
    rows: Ids


class Signals:
    """Statistics of the pages that have had signals, the population's tables, and the gates."""

    def __init__(self, rates: Array, prior: Array, n_sources: int) -> None:
        self.arrays: SignalArrays = empty(rates, n_sources, 0, 0, _GROUPS)
        self.stated_delays = StatedDelays(n_sources)
        self.n_rows = 0
        self._fits = 0
        self._hosts: dict[str, int] = {}
        self._gates: dict[str, Any] = {}  # taken over of hosts none of whose pages has had a signal here
        self._delays: dict[str, Any] = {}  # the same
        self._kept: Mapping[str, Any] | None = None  # of an engine of a part of the pages: what all pages have taught
        self._order, self._starts = np.zeros(0, np.int64), np.zeros(1, np.int64)  # rows by host, as far as sorted
        self._own: SignalSums | None = None  # sums of the last refit
        self._others: SignalSums | None = None  # of engines of other pages
        self._set_prior(prior)
        self._set_tables(None)

    def _set_prior(self, prior: Array) -> None:
        """The population's distribution of change rates, over the grid."""
        self.arrays.log_base[:] = np.log(np.maximum(prior / np.sum(prior), 1e-30))

    @property
    def rows(self) -> Ids:
        """The rows in use, or reserved."""
        return np.arange(self.n_rows)

    def outdated(self) -> Ids:
        """The rows to be computed again after a refit: all, or of many a part, another each time."""
        step = -(-self.n_rows // _REFRESHED)
        self._fits += 1
        return self.rows[self._fits % step :: step] if step > 1 else self.rows

    def grow(self, n_pages: int) -> None:
        """Room for so many pages, once some have had signals."""
        if len(self.arrays.row_of):
            self._grow_pages(n_pages)

    def _grow_pages(self, n_pages: int) -> None:
        size = len(self.arrays.row_of)
        if n_pages > size:
            larger = np.full(max(n_pages, size * 3 // 2), NO_ROW, np.int32)
            larger[:size] = self.arrays.row_of
            self.arrays = self.arrays._replace(row_of=larger)

    def reserve(self, pages: Ids, hosts: Iterable[str], n_pages: int) -> int:
        """Reserve rows for pages that have none, by the names of their hosts; how many are new."""
        self._grow_pages(n_pages)
        first = self.n_rows
        numbers = [self._hosts.setdefault(host, len(self._hosts)) for host in hosts]
        self._make_room(first + len(pages), len(self._hosts))
        self._take_hosts()
        for page, host in zip(pages.tolist(), numbers, strict=True):
            if self.arrays.row_of[page] == NO_ROW:
                row = self.n_rows
                self.arrays.row_of[page] = plain(reserved)(row)
                self.arrays.page[row], self.arrays.host[row] = page, host
                self.arrays.host_pages[host] += 1
                self.n_rows += 1
        return self.n_rows - first

    def learn_stated_delays(self, pages: Ids, source: int, delay: Array) -> None:
        """Count how long after the changes that they state signals of a source came; pages without a row are none."""
        rows = self.arrays.row_of[pages] if len(self.arrays.row_of) else np.full(len(pages), NO_ROW)
        number = self.arrays.host[rows[rows >= 0]]
        if not len(number):
            return
        names, delay = self.hosts, delay[rows >= 0]
        for host in np.unique(number).tolist():
            self.stated_delays.learn(names[host], source, delay[number == host])

    def host_number(self, host: str) -> int:
        """The number of a host, −1 where none of its pages has had a signal."""
        return self._hosts.get(host, -1)

    @property
    def judged(self) -> bool:
        """Whether a page was crawled after a signal: what it says of the source depends on the other pages."""
        return bool((self.arrays.statistics[: self.n_rows, :, FIRSTS] > 0.0).any())

    @property
    def hosts(self) -> list[str]:
        """The hosts with rows, by number."""
        return list(self._hosts)

    def host_gates(self) -> dict[str, Any]:
        """The gates of hosts by name, also of hosts none of whose pages has had a signal here."""
        gates = {host: np.array(gate) for host, gate in self._gates.items()}
        return {**gates, **{host: self.arrays.host_gate[k] for host, k in self._hosts.items()}}

    def take_moved(self) -> list[Moved]:
        """The gates that have opened or shut since the last call."""
        b = self.arrays
        n, b.n_moved[0] = int(b.n_moved[0]), 0
        if n > MOST_MOVED:  # more than are noted: any may have opened or shut
            return [Moved(k, False, self.rows) for k in range(b.rate.shape[1])]
        found = []
        for host, k, has_shut in b.moved[:n].tolist():
            rows = self._of_host(host) if host >= 0 else self.rows[b.host_gate[b.host[self.rows], k, OPEN] == FOLLOWS]
            found.append(Moved(k, bool(has_shut), rows[b.rate[rows, k] > 0.0]))
        return found

    def _of_host(self, host: int) -> Ids:
        """The rows of a host."""
        if len(self._order) != self.n_rows:
            hosts = self.arrays.host[: self.n_rows]
            self._order = np.argsort(hosts, kind="stable")
            self._starts = np.searchsorted(hosts[self._order], np.arange(len(self._hosts) + 1))
        return np.asarray(self._order[self._starts[host] : self._starts[host + 1]])

    def refit(self, prior: Array, totals: Array, elapsed: Array) -> None:
        """Fit tables and classes to the pages; `totals` and `elapsed` by row. The caller refreshes the rows."""
        b, n = self.arrays, self.n_rows
        self._set_prior(prior)
        if n == 0 and self._others is None:
            return
        mean_time = 1.0 / float(np.sum(np.exp(b.log_base) * b.rates))
        own = SignalSums.empty(b)
        own.statistics[:] = b.statistics[:n].sum(axis=0)
        st = own.statistics if self._others is None else own.statistics + self._others.statistics
        b.mean_rate[:] = (st[:, COUNTED] + 1.0) / (st[:, COUNTED_TIME] + mean_time)
        rows = np.arange(0, n, max(n // _SAMPLE, 1))
        for _ in range(_ROUNDS):
            own.counts[:] = 0.0
            own.evidence = count_rows(b, rows, totals, elapsed, own.counts, b.out)
            self._set_tables(own.counts if self._others is None else own.counts + self._others.counts)
        evidence = own.evidence if self._others is None else own.evidence + self._others.evidence
        gain = evidence[1] - evidence[0]
        sure = np.maximum(_REPEATS, _ERRORS * np.sqrt(evidence[SQUARES]))
        b.repeats[gain > sure] = 1.0
        b.repeats[gain < -sure] = 0.0
        sum_hosts(b, n)
        self._own = own

    def lessons(self, names: Sequence[str]) -> dict[str, SourceLessons]:
        """What the engine's own pages teach about sources, by their names, as of the last refit."""
        return {} if self._own is None else self._own.lessons(names, self.arrays.gate)

    def learn_from(self, others: Sequence[Lessons], names: Sequence[str], now: float) -> None:
        """Take the lessons of engines of other pages, in place of those taken before; `take_moved` has the gates."""
        self._others = SignalSums.empty(self.arrays)
        self._others.add(names, others)
        move_gates(self.arrays, self._others, now)

    def _set_tables(self, counts: Array | None) -> None:
        b = self.arrays
        set_tables(b, np.zeros(b.log_table.shape) if counts is None else counts)
        sum_hosts(b, self.n_rows)

    def forget(self, pages: Ids) -> None:
        """Pages are removed: nothing of them counts any more."""
        if len(self.arrays.row_of):
            for row in self.arrays.row_of[pages].tolist():
                if row >= 0:
                    forget_row(self.arrays, row)
            self.arrays.row_of[pages] = NO_ROW

    def _make_room(self, rows: int, hosts: int) -> None:
        b = self.arrays
        if rows <= len(b.page) and hosts <= len(b.host_pages):
            return
        self.arrays = b._replace(
            **{name: _larger(getattr(b, name), rows) for name in _PER_ROW},
            **{name: _larger(getattr(b, name), hosts) for name in _PER_HOST},
        )
        if len(self.arrays.host_gate) > len(b.host_gate):
            new = empty(b.rates, b.rate.shape[1], 0, 1, b.groups)
            self.arrays.host_gate[len(b.host_gate) :] = new.host_gate[0]
            self.arrays.host_delay[len(b.host_delay) :] = new.host_delay[0]
        self.arrays.age[len(b.age) :], self.arrays.credit[len(b.credit) :] = math.inf, 1.0
        self.arrays.bins[len(b.bins) :] = -1
        self.arrays.heard_at[len(b.heard_at) :] = math.inf
        self.arrays.ended[len(b.ended) :] = math.inf

    def observed(self, pages: Ids) -> list[list[float] | None]:
        """What was observed of pages with signals, as plain numbers; None for others."""
        b = self.arrays
        rows = b.row_of[pages] if len(b.row_of) else np.full(len(pages), NO_ROW)

        def numbers(row: int) -> list[float]:
            return [float(x) for name in _OBSERVED for x in np.ravel(getattr(b, name)[row])]

        return [None if row < 0 else numbers(row) for row in rows.tolist()]

    def fitted(self) -> dict[str, Any]:
        """What all pages have taught: tables and gates, by the names of hosts."""
        if self._kept is not None:
            return dict(self._kept)
        b = self.arrays
        if self.n_rows == 0 and not self._gates and not b.gate[:, OPEN].any():
            return {}
        gates = {host: gate.tolist() for host, gate in self.host_gates().items()}
        late = {host: b.host_delay[k] for host, k in self._hosts.items() if (b.host_delay[k, :, SHARE, 0] < 0.5).any()}
        delays = {**self._delays, **{host: delay.round(6).tolist() for host, delay in late.items()}}
        taught = {name: getattr(b, name).tolist() for name in _TAUGHT}
        return {**taught, "host_gate": gates, "host_delay": delays, "stated_delays": self.stated_delays.saved()}

    def take(self, fitted: Mapping[str, Any], *, partial: bool) -> None:
        """Take over what all pages have taught, perhaps of fewer sources; with `partial` it is saved as it is."""
        self._kept = fitted if partial else None
        for name in (name for name in _TAUGHT if name in fitted):
            _put(getattr(self.arrays, name), np.array(fitted[name]))
        self._gates, self._delays = dict(fitted.get("host_gate", {})), dict(fitted.get("host_delay", {}))
        self.stated_delays.load(fitted.get("stated_delays", {}))

    def take_later(self, fitted: Mapping[str, Any]) -> None:
        """The same where pages are known already: gates and delays of their hosts are taken over too."""
        if fitted:
            self.take(fitted, partial=False)
            self._take_hosts()

    def _take_hosts(self) -> None:
        """Use the gates and delays that were taken over of hosts that have rows now."""
        for column, taken in (("host_gate", self._gates), ("host_delay", self._delays)):
            for name in taken.keys() & self._hosts.keys():
                _put(getattr(self.arrays, column)[self._hosts[name]], np.array(taken.pop(name)))

    def fill(self, pages: Ids, observed: list[list[float]]) -> None:
        """Continue from rows, perhaps with fewer sources: those that are new know nothing. The caller refits."""
        b = self.arrays
        for page, numbers in zip(pages.tolist(), observed, strict=True):
            row = plain(reserved)(int(b.row_of[page]))
            b.row_of[page] = row
            _unpack(b, row, np.array(numbers))

    def saved(self) -> dict[str, Any]:
        """All that was learned: the arrays themselves."""
        b, n = self.arrays, self.n_rows
        rows = {name: getattr(b, name)[:n] for name in _PER_ROW}
        rest = {name: getattr(b, name) for name in (*_PER_HOST, *_WHOLE, "row_of")}
        shared = {"own": self._own, "others": self._others}
        taken = {"gates": dict(self._gates), "delays_taken": dict(self._delays)}
        stated = {"stated_delays": self.stated_delays.saved()}
        sums = {name: None if one is None else asdict(one) for name, one in shared.items()}
        return {**rows, **rest, **sums, "hosts": list(self._hosts), "fits": self._fits, **taken, **stated}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Continue from what was saved, perhaps with fewer sources: those that are new know nothing."""
        self.n_rows = len(saved["page"])
        self._hosts = {host: k for k, host in enumerate(saved["hosts"])}
        self._gates, self._delays = dict(saved["gates"]), dict(saved.get("delays_taken", {}))
        self._fits = int(saved["fits"])
        self.stated_delays.load(saved.get("stated_delays", {}))
        self._own, self._others = (SignalSums.of(self.arrays, saved.get(name)) for name in ("own", "others"))
        self._make_room(self.n_rows, len(saved["host_gate"]))
        self.arrays = self.arrays._replace(row_of=np.array(saved["row_of"], np.int32))
        for name in (*_PER_ROW, *_PER_HOST, *_WHOLE):
            if name in saved:
                _put(getattr(self.arrays, name), np.asarray(saved[name]))


def moved_gates(gates: ArrayLike, back: float) -> list[Any]:
    """Gates as they are saved, with their times set back."""
    found = np.array(gates)
    found[..., SHUT_AT] -= back
    return list(found.tolist())


def without_latest(numbers: Sequence[float]) -> list[float]:
    """What was observed of a page (`Signals.observed`) without the signals since its copy."""
    k = (len(numbers) - 3) // (N_STATISTICS + 3)
    return [*numbers[: k * N_STATISTICS + 2], *[0.0] * (3 * k), math.inf]


def _put(column: NDArray[Any], part: NDArray[Any]) -> None:
    """Write a part that may be of fewer sources, or of more."""
    common = tuple(slice(min(sizes)) for sizes in zip(column.shape, part.shape, strict=True))
    column[common] = part[common]


def _unpack(b: SignalArrays, row: int, numbers: Array) -> None:
    """Write what was observed of a page, by fewer sources or as many."""
    each = N_STATISTICS + 3
    k = (len(numbers) - 3) // each
    at = 0
    for name in _OBSERVED:
        shape = getattr(b, name).shape[1:]
        shape = (k, *shape[1:]) if shape and name != "both" else shape
        size = math.prod(shape)
        part = numbers[at : at + size].reshape(shape)
        at += size
        if shape:
            _put(getattr(b, name)[row], part)
        else:
            getattr(b, name)[row] = part


def _larger(column: NDArray[Any], size: int) -> NDArray[Any]:
    """The column with room for a size, half as large again where it grows."""
    if size <= len(column):
        return column
    larger = np.zeros((max(size, len(column) * 3 // 2), *column.shape[1:]), column.dtype)
    larger[: len(column)] = column
    return larger
