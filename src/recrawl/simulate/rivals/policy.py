"""DuePolicy: pages that are due at dates which a system's own rule sets after each crawl."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.schedule.outcomes import Outcomes, ended_of
from recrawl.schedule.rates.kernels import DUE, LEASED, WAKE, Book, accept, put_leased
from recrawl.schedule.table import Ids, Table, column_of, count_of, ids_of, positive, time_of
from recrawl.simulate.rivals import kernels
from recrawl.simulate.rivals.rule import ORDERS, Cap, Rule
from recrawl.simulate.rivals.rule_kernels import CHANGED, FAILED, UNCHANGED, Rows

_COUNTERS = ("picked", "recorded", "outdated", "failed", "released", "leases_ended", "signals", "time_back")
_ALIVE, _GONE, _REMOVED = 0, 1, 2
_NOTES = ("importance", "interval", "changed_at", "memory", "lastmod", "crawled_at", "due_at")


class DuePolicy:
    """A ``Policy`` that crawls what is due; ``cap`` is what comes first when more is due than asked for.

    ``due``: the earliest due date; ``score``: the most important; ``oldest``: the longest not crawled; None: what the
    system itself does. A page added without ``fetched_at`` is due at once. Through ``record`` alone, a change that a
    crawl found counts as of that crawl for rules that read dates; a simulation shows them the true ones.

    >>> from recrawl.simulate.rivals.intervals import fixed
    >>> policy = DuePolicy(fixed(interval=2.0, day=1.0), Pages([1.0, 1.0]), start=0.0)
    >>> ids = policy.pick(0.0, 1)
    >>> policy.record(ids, 0.0)
    >>> policy.pick(1.0, 5).tolist(), policy.next_at(1.0)
    ([1], 2.0)
    """

    def __init__(
        self,
        rule: Rule,
        pages: Pages | None = None,
        *,
        cap: Cap | None = None,
        start: float = 0.0,
        lease: float = 300.0,
    ) -> None:
        if cap is not None and cap not in ORDERS:
            raise ParameterError(f"cap {cap!r} is not one of {', '.join(ORDERS)}")
        self._rule = replace(rule, cap=cap or rule.cap, settings=tuple(map(float, rule.settings)))
        self.now = time_of(start)
        self._lease = positive("lease", lease, endless=True)
        notes = dict.fromkeys(_NOTES, np.float64)
        self._table = Table(
            **notes, errors=np.int64, n_seen=np.int64, status=np.uint8, key=np.float64, place=np.uint8, slot=np.int64
        )
        self._seen = np.zeros((0, rule.n_dates))
        self._heap, self._size = np.zeros((2, 0), np.int64), np.zeros(2, np.int64)
        self._stats = dict.fromkeys(_COUNTERS, 0)
        self._bind()
        if pages is not None:
            self.add(pages, self.now)

    def add(self, pages: Pages, now: float, *, fetched_at: ArrayLike | None = None) -> Ids:
        """New pages, due at once, or as after a first crawl at ``fetched_at``."""
        n, first, at = len(pages), len(self._table), time_of(now)
        fetched = np.minimum(column_of("fetched_at", fetched_at, n, -math.inf), max(at, self.now))
        self._advance(at)
        blank = {"interval": np.nan, "changed_at": np.nan, "lastmod": -np.inf, "crawled_at": -np.inf}
        self._table.append(n, importance=pages.importance, due_at=self.now, **blank)
        self._bind()
        ids = np.arange(first, first + n)
        known = fetched > -math.inf
        self._learn(ids[known], fetched[known], np.full(np.count_nonzero(known), UNCHANGED))
        kernels.place_all(self.agenda, ids[~known], self.now)
        return ids

    def pick(self, now: float, n: int) -> Ids:
        """At most ``n`` of the due pages, each leased."""
        n, at = count_of(n), time_of(now)
        self._advance(at)
        out = np.empty(min(n, int(self._size[DUE])), np.int64)
        self._stats["picked"] += kernels.pick(self.agenda, self.now + self._lease, out)
        return out

    def record(self, ids: ArrayLike, now: float, **outcomes: Unpack[Outcomes]) -> None:
        """Crawls that ended; dates count from when the fetch began. A page that is gone is not picked again."""
        rows, at = self._ids(ids, repeated=True), time_of(now)
        found, missed, lost, as_of = ended_of(outcomes, len(rows))
        began = np.minimum(as_of, max(at, self.now))
        self._advance(at)
        valid = accept(self._table["crawled_at"].copy(), rows, began, missed)
        for name, which in (("recorded", valid), ("outdated", ~valid), ("failed", valid & missed)):
            self._stats[name] += int(np.count_nonzero(which))
        outcome = np.where(missed, FAILED, np.where(found, CHANGED, UNCHANGED))
        here = valid & (self._table["status"][rows] == _ALIVE)
        self._learn(rows[here], began[here], outcome[here])
        self._drop(rows[valid & lost], _GONE)

    def release(self, ids: ArrayLike, now: float) -> None:
        """Leased crawls that did not happen; pages that are not leased stay as they are."""
        rows, at = self._ids(ids), time_of(now)
        self._advance(at)
        self._stats["released"] += kernels.release(self.agenda, rows, self.now)

    def signal(self, ids: ArrayLike, now: float, *, source: int = 0, changed_at: ArrayLike | None = None) -> None:
        """Signals are counted; the rule that reads sitemaps uses their dates of change."""
        rows, at = self._ids(ids, repeated=True), time_of(now)
        count_of(source)
        about = column_of("changed_at", changed_at, len(rows), math.inf)
        self._advance(at)
        self._stats["signals"] += len(rows)
        for page, when in zip(rows.tolist(), about.tolist(), strict=True):
            if self._table["status"][page] == _ALIVE:
                kernels.tell(self.agenda, page, self.now, when)

    def update(self, ids: ArrayLike, **columns: ArrayLike) -> None:
        """New parameters: columns of ``Pages``, of which importance matters."""
        rows = self._ids(ids)
        if len(rows):
            pages = Pages(np.ones(len(rows)), self._table["importance"][rows]).replace(**columns)
            self._table["importance"][rows] = pages.importance
            kernels.place_all(self.agenda, rows[self._table["status"][rows] == _ALIVE], self.now)

    def remove(self, ids: ArrayLike) -> None:
        """Pages that are no longer crawled; their ids are not used again."""
        self._drop(self._ids(ids), _REMOVED)

    def next_at(self, now: float) -> float:
        """When a page is next due or a lease ends."""
        at = max(time_of(now), self.now)
        if self._size[DUE]:
            return at
        return max(at, float(self.agenda.book.key[self._heap[WAKE, 0]])) if self._size[WAKE] else math.inf

    @property
    def rule(self) -> Rule:
        """When a page is due again, and what comes first."""
        return self._rule

    @property
    def due_at(self) -> NDArray[np.float64]:
        """When each page is due; infinity: not without a signal."""
        return self._table["due_at"].copy()

    @property
    def stats(self) -> dict[str, int]:
        """Counts of picks, records and signals."""
        return dict(self._stats)

    def state(self) -> dict[str, Any]:
        """The rule, the clock and the columns."""
        table = self._table.copy()
        ends = np.where(table.pop("place") == LEASED, table.pop("key"), np.nan)
        del table["slot"]
        rule = {name: getattr(self._rule, name) for name in ("name", "code", "settings", "cap", "n_dates")}
        clock = {"now": self.now, "lease": self._lease, "stats": self.stats}
        return {**clock, "rule": rule, "pages": table, "lease_ends": ends, "seen": self._seen[: len(ends)].copy()}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The policy whose state was saved."""
        policy = cls(Rule(**state["rule"]), start=state["now"], lease=state["lease"])
        ends = np.asarray(state["lease_ends"], np.float64)
        blank = np.zeros(len(ends))
        policy._table.load({**state["pages"], "key": blank, "place": blank, "slot": blank})
        policy._bind()
        policy._seen[: len(ends)] = state["seen"]
        put_leased(policy.agenda.book, ends)
        alive = policy._table["status"] == _ALIVE
        kernels.place_all(policy.agenda, np.flatnonzero(alive & np.isnan(ends)), policy.now)
        policy._stats = dict(state["stats"])
        return policy

    def _bind(self) -> None:
        """Make room for all rows, and show them to the kernels."""
        room, raw = self._table.room, self._table.raw
        if len(self._seen) < room:
            self._seen = np.pad(self._seen, ((0, room - len(self._seen)), (0, 0)))
            self._heap = np.pad(self._heap, ((0, 0), (0, room - self._heap.shape[1])))
        none = {"rate": raw["due_at"], "since": raw["due_at"], "work": raw["due_at"], "done": raw["slot"]}
        heaps = {name: raw[name] for name in ("key", "place", "slot")}
        self.agenda = kernels.Agenda(
            kind=np.array([self._rule.code, ORDERS[self._rule.cap], self._rule.n_dates]),
            p=np.array(self._rule.settings),
            rows=Rows(**{name: raw[name] for name in _NOTES}, errors=raw["errors"]),
            book=Book(**none, **heaps, heap=self._heap, size=self._size),
        )

    def _ids(self, ids: ArrayLike, *, repeated: bool = False) -> Ids:
        return ids_of(ids, self._table["status"], _REMOVED, repeated=repeated)

    def _advance(self, now: float) -> None:
        self._stats["time_back"] += now < self.now
        self.now = max(now, self.now)
        self._stats["leases_ended"] += kernels.wake(self.agenda, self.now)

    def _learn(self, rows: Ids, began: NDArray[np.float64], outcome: Ids) -> None:
        kernels.record(self.agenda, self._seen, self._table["n_seen"], rows, began, outcome, self.now)

    def _drop(self, rows: Ids, status: int) -> None:
        self._table["status"][rows] = status
        kernels.drop_all(self.agenda, rows)
