"""PageColumns: parameters between the caller's columns and the scheduler's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kinds import OBJECTIVES, first_row
from recrawl.model.pages import Pages
from recrawl.model.signals import matched_source, signal_weight
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.kernels.events import fill_sources, valid
from recrawl.schedule.exact.kernels.value.values import NO_SIGNALS
from recrawl.schedule.exact.memory import Memory

Ids = NDArray[np.int64]
Array = NDArray[np.float64]
Schedule = Literal["freshness", "harmonic", "age", "rates"]

# How each policy believes signals, and how many terms of the value it sums (0: all).
POLICIES = {
    "no-signals": (0, 0),
    "trusting": (1, 0),
    "signals": (2, 0),
    "signals-delayed": (2, 0),
    "trusting-plus": (3, 0),
    "approx-1": (2, 1),
    "approx-2": (2, 2),
    "approx-3": (2, 3),
}
SCHEDULES: tuple[Schedule, ...] = (*OBJECTIVES, "rates")  # their places are the numbers that kernels know
_ALL_TERMS = 1 << 62
_ONE = np.ones(1)
_DEFAULTS = {"cost": 1.0, "evidence": np.inf}  # optional columns


class PageColumns:
    """What is known of every page, in the records of a `Memory`; with several signal sources also per source."""

    def __init__(self, memory: Memory, objective: Schedule, policy: str, floor: float) -> None:
        if policy not in POLICIES:
            raise ParameterError(f"policy {policy!r} is not one of {', '.join(POLICIES)}")
        if objective not in SCHEDULES:
            raise ParameterError(f"objective {objective!r} is not one of {', '.join(SCHEDULES)}")
        if not (0 <= floor < np.inf):
            raise ParameterError(f"floor is {floor}: must be finite and at least 0")
        self._memory = memory
        self._objective = objective
        self._floor = floor
        self._hosts: dict[Any, int] = {}
        self._sources: Array | None = None  # (2, pages, sources): recall and false rate; None while all are 0
        believe, terms = POLICIES[policy]
        self._trusting = believe in (1, 3)
        memory.state.head[0]["policy"] = believe
        memory.state.head[0]["terms"] = terms or _ALL_TERMS
        memory.state.head[0]["objective"] = SCHEDULES.index(objective)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept beside the records."""
        return 0 if self._sources is None else self._sources.nbytes

    def append(self, pages: Pages, fetched_at: Array) -> Ids:
        """Take over new pages."""
        self._check(pages)
        self._check_sources(pages)
        ids = self._memory.append(len(pages))
        rec = self._memory.state.rec
        rows = slice(int(ids[0]), int(ids[-1]) + 1)
        rec["band"][rows] = at.FAR
        rec["last"][rows] = fetched_at
        rec["state"][rows] = at.PAUSED  # until it is placed
        if self._floor > 0:
            self.set_floor(ids, self._floor)
        self.write(ids, pages)
        return ids

    def set_floor(self, rows: Ids, floor: ArrayLike) -> None:
        """The least crawl rate of some pages."""
        rate = np.asarray(floor, dtype=np.float64)
        if not ((rate >= 0) & np.isfinite(rate)).all():
            raise ParameterError("floor must be finite and at least 0")
        self._memory.optional("floor", self._floor)[rows] = rate

    def set_crawl_rate(self, rows: Ids, crawl_rate: ArrayLike) -> None:
        """The crawl rates of some pages, for the objective "rates"."""
        rate = np.asarray(crawl_rate, dtype=np.float64)
        if not ((rate >= 0) & np.isfinite(rate)).all():
            raise ParameterError("crawl_rate must be finite and at least 0")
        self._memory.optional("crawl_rate", 0.0)[rows] = rate

    def revised(self, rows: Ids, columns: Mapping[str, Any]) -> Pages:
        """What some pages will be with some columns exchanged, if that is valid."""
        pages = self.read(rows).replace(**columns)
        if len(pages) != len(rows):
            raise ParameterError(f"{next(iter(columns))} has {len(pages)} rows for {len(rows)} ids")
        self._check(pages)
        if (self._sources is None and pages.n_sources > 1) or (
            self._sources is not None and pages.n_sources != self._sources.shape[2]
        ):
            raise ParameterError("recall: the number of signal sources cannot change")
        return pages

    def read(self, rows: Ids) -> Pages:
        """The parameters of some pages."""
        state = self._memory.state
        rec = state.rec[rows]
        names = {index: name for name, index in self._hosts.items()}
        host = None
        if self._hosts and len(state.host):
            host = np.array([names.get(int(h)) for h in self._memory.state.host[rows]], dtype=object)
        optional = {name: self._optional(name, rows) for name in _DEFAULTS}
        recall, false_rate = self._signals(rows)
        return Pages(rec["change_rate"], rec["importance"], recall, false_rate, host, **optional)

    def _signals(self, rows: Ids) -> tuple[Array | float, Array | float]:
        """Recall and false rate of some pages, per source if there are several."""
        if self._sources is None:
            return 0.0, 0.0
        recall, false_rate = self._sources[:, rows] if self._sources.shape[2] > 1 else self._sources[:, rows, 0]
        return recall, false_rate

    def _optional(self, name: str, rows: Ids) -> Array | float:
        """An optional column of some pages; its default while it is not in use."""
        row = int(self._memory.state.head[f"{name}_row"][0])
        return _DEFAULTS[name] if row < 0 else np.asarray(self._memory.state.extra[row][rows])

    def _write(self, name: str, rows: Ids, column: Array) -> None:
        """Write an optional column, which is made when it first differs from its default."""
        default = _DEFAULTS[name]
        if self._memory.state.head[f"{name}_row"][0] >= 0 or not (column == default).all():
            self._memory.optional(name, default)[rows] = column

    def whole(self, ids: ArrayLike) -> Ids:
        """Ids as an array of whole numbers; that they exist is left to be checked."""
        rows = np.asarray(ids)
        if rows.dtype == np.int64 and rows.ndim == 1 and rows.flags.c_contiguous:
            return rows
        if (rows.size and rows.dtype.kind not in "iu") or rows.ndim > 1:
            raise ParameterError("ids must be whole numbers in one dimension")
        return np.ascontiguousarray(np.atleast_1d(rows), dtype=np.int64)

    def check(self, ids: ArrayLike, *, distinct: bool = False) -> Ids:
        """Ids as an array, or ParameterError for one that does not exist (any more)."""
        rows = self.whole(ids)
        self.raise_for(*valid(self._memory.header, rows))
        if distinct and len(np.unique(rows)) != len(rows):
            raise ParameterError("ids repeat")
        return rows

    def raise_for(self, problem: int, bad: int) -> None:
        """ParameterError for what a kernel found wrong with an id."""
        if problem == at.UNKNOWN_ID:
            last = int(self._memory.state.head[0]["n_pages"]) - 1
            raise ParameterError(f"id {bad} does not exist: ids go from 0 to {last}")
        if problem == at.REMOVED_ID:
            raise ParameterError(f"id {bad} was removed")

    def weights(self, rows: Ids, source: int) -> Array:
        """What a signal of a source weighs on each page (counted only with several sources or delays)."""
        n_sources = 1 if self._sources is None else self._sources.shape[2]
        if not 0 <= source < n_sources:
            raise ParameterError(f"source is {source}: there are {n_sources}, counted from 0")
        if self._memory.state.head[0]["exponent_row"] < 0 or len(rows) == 0:
            return _ONE
        if self._trusting:
            heard = np.zeros(len(rows), np.bool_) if self._sources is None else self._sources[0][rows, source] > 0
            return np.where(heard, np.inf, 0.0)
        weight = signal_weight(self.read(rows))
        return np.ascontiguousarray(weight if weight.ndim == 1 else weight[:, source])

    def host_index(self, host: Any) -> int:
        """The index of a host; a new one for a host not seen before."""
        if host not in self._hosts:
            self._hosts[host] = len(self._hosts)
            self._memory.add_hosts(1)
        return self._hosts[host]

    def saved(self) -> dict[str, Any]:
        """What is kept beside the records."""
        return {"hosts": list(self._hosts), "sources": self._sources, "floor": self._floor}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take over what was saved."""
        self._hosts = {host: index for index, host in enumerate(saved["hosts"])}
        self._sources = None if saved["sources"] is None else np.array(saved["sources"])
        self._floor = saved["floor"]

    def _check(self, pages: Pages) -> None:
        useful = (pages.recall if pages.recall.ndim == 1 else pages.recall.max(axis=1)) > 0
        if self._memory.state.head[0]["policy"] == 0:
            return
        first_row("evidence", useful & np.isfinite(pages.evidence), "a page with signals needs a known rate")
        if self._objective == "age":
            first_row("recall", useful, "no age value is known for pages with signals")
        if self._objective == "harmonic":
            source = matched_source(pages)
            noisy = useful & (source.weight > 0) & ~((source.missed_rate == 0) & np.isinf(source.weight))
            first_row("recall", noisy, "no harmonic value is known for noisy signals (neither absent nor complete)")

    def _check_sources(self, pages: Pages) -> None:
        n = 0 if self._sources is None else self._sources.shape[2]
        if self._memory.state.head[0]["n_pages"] == 0:
            if pages.n_sources > 1:
                self._sources = np.zeros((2, 0, pages.n_sources))
                self._memory.optional("exponent", 0.0)
        elif pages.n_sources != max(n, 1):
            raise ParameterError(f"recall has {pages.n_sources} signal sources, the scheduler {max(n, 1)}")

    def write(self, rows: Ids, pages: Pages) -> None:
        """Take over the parameters of some pages."""
        rec = self._memory.state.rec
        rec["change_rate"][rows] = pages.change_rate
        rec["importance"][rows] = pages.importance
        rec["least"][rows] = 0.0
        if self._sources is not None or pages.recall.any() or pages.false_rate.any():
            self._write_sources(rows, pages)
        self._write("cost", rows, pages.cost)
        self._write("evidence", rows, pages.evidence)
        if pages.host is not None:
            self._memory.set_hosts(rows, self._host_indices(pages.host.tolist()))

    def _host_indices(self, hosts: list[Any]) -> NDArray[np.int32]:
        new = [host for host in dict.fromkeys(hosts) if host is not None and host not in self._hosts]
        self._hosts.update({host: len(self._hosts) + k for k, host in enumerate(new)})
        self._memory.add_hosts(len(new))
        return np.fromiter((self._hosts.get(host, -1) for host in hosts), np.int32, len(hosts))

    def _write_sources(self, rows: Ids, pages: Pages) -> None:
        """Keep recall and false rate of each source; what is believed of them, several sources as one."""
        n, k = len(self._memory.state.rec), pages.n_sources
        if self._sources is None or self._sources.shape[1] < n:
            larger = np.zeros((2, n, k))
            if self._sources is not None:
                larger[:, : self._sources.shape[1]] = self._sources
            self._sources = larger
        recall, false_rate = pages.recall, pages.false_rate
        self._sources[0][rows], self._sources[1][rows] = recall.reshape(-1, k), false_rate.reshape(-1, k)
        if k > 1:
            matched = matched_source(pages)
            with np.errstate(divide="ignore", invalid="ignore"):
                recall = np.where(pages.change_rate > 0, 1.0 - matched.missed_rate / pages.change_rate, 0.0)
            false_rate = pages.false_rate.sum(axis=1)
        if self._memory.state.head[0]["policy"] != NO_SIGNALS:
            self._memory.use_sources()
            fill_sources(self._memory.header, rows, recall, false_rate)
