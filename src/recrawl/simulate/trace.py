"""Trace: what happened to pages between two instants. Worlds draw one, recorded histories are one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.simulate.worlds.events import Events

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


class Signals(NamedTuple):
    """Change signals in the order of their arrival."""

    at: Array
    page: Ids
    source: Ids
    changed_at: Array  # when the change was, as the signal says; infinity where it does not

    @classmethod
    def of(cls, at: ArrayLike, page: ArrayLike, source: ArrayLike = 0, changed_at: ArrayLike = np.inf) -> Signals:
        """Signals from columns in any order."""
        when = np.asarray(at, np.float64)
        order = np.argsort(when, kind="stable")
        rest = (np.broadcast_to(np.asarray(c), when.shape)[order] for c in (page, source, changed_at))
        number, origin, about = rest
        return cls(when[order], number.astype(np.int64), origin.astype(np.int64), about.astype(np.float64))


class Past(NamedTuple):
    """What is on record of pages from before a trace begins: their changes, and since when each was watched."""

    changes: Events
    since: Array  # the trace's start, or later, where nothing is on record


@dataclass(frozen=True, eq=False)
class Trace:
    """Changes of pages by page and time, and all else that a policy may know or be judged by.

    Page i changed at ``changed_at[offset[i]:offset[i + 1]]`` (sorted), existed from ``created_at`` to ``deleted_at``
    (both within ``start`` to ``end``; ``end``: it stayed), and its copy is fresh at ``created_at``. Pages are in the
    order of ``created_at``. ``pages`` are the parameters they were drawn with, where they were; ``requested_at`` is
    when readers asked, per page like the changes; ``past`` is what is on record from before ``start``.

    >>> trace = Trace(0.0, 10.0, offset=[0, 2, 3], changed_at=[1.0, 4.0, 2.5])
    >>> len(trace), trace.n_changes.tolist(), trace.change_rate.tolist()
    (2, [2, 1], [0.2, 0.1])
    """

    start: float
    end: float
    offset: Ids
    changed_at: Array
    importance: Array = field(default_factory=lambda: np.ones(1))
    created_at: Array = field(default_factory=lambda: np.full(1, -np.inf))
    deleted_at: Array = field(default_factory=lambda: np.full(1, np.inf))
    pages: Pages | None = None
    url: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    signals: Signals | None = None
    request_offset: Ids | None = None
    requested_at: Array | None = None
    past: Past | None = None
    name: str = "trace"
    day: float = 1.0  # how much time is a day

    def __post_init__(self) -> None:
        offset = np.ascontiguousarray(self.offset, np.int64)
        n = len(offset) - 1
        if n < 1:
            raise ParameterError(f"{self.name} has no pages")
        if not (np.isfinite(self.start) and np.isfinite(self.end) and self.end > self.start):
            raise ParameterError(f"{self.name} ends at {self.end:g}, not after its start, {self.start:g}")
        columns = {
            "offset": offset,
            "changed_at": np.ascontiguousarray(self.changed_at, np.float64),
            "importance": _column("importance", self.importance, n),
            "created_at": np.maximum(_column("created_at", self.created_at, n), self.start),
            "deleted_at": np.minimum(_column("deleted_at", self.deleted_at, n), self.end),
        }
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        if (np.diff(self.created_at) < 0).any():
            raise ParameterError(f"{self.name}: pages must be in the order of created_at")
        if not ((self.importance >= 0) & np.isfinite(self.importance)).all():
            raise ParameterError(f"{self.name}: importance must be finite and at least 0")

    def __len__(self) -> int:
        return len(self.offset) - 1

    @property
    def changes(self) -> Events:
        """The changes by page."""
        return Events(self.offset, self.changed_at)

    @property
    def n_changes(self) -> Ids:
        """Changes per page."""
        return np.diff(self.offset)

    @property
    def span(self) -> Array:
        """How long each page existed."""
        return np.maximum(self.deleted_at - self.created_at, 0.0)

    @property
    def change_rate(self) -> Array:
        """Changes per time of each page while it existed."""
        return np.divide(self.n_changes, self.span, out=np.zeros(len(self)), where=self.span > 0)

    @property
    def n_live(self) -> float:
        """Pages that exist at a time, on average."""
        return float(self.span.sum() / (self.end - self.start))

    @cached_property
    def true_pages(self) -> Pages:
        """The true parameters, for a policy that knows them: those the pages were drawn with, or their mean rates."""
        return self.pages if self.pages is not None else Pages(self.change_rate, self.importance)

    def shuffled(self, rng: np.random.Generator) -> Trace:
        """The same trace with pages that come at the same time in a random order.

        Policies take pages of equal value in the order in which they were added: this varies the order among equals.

        >>> trace = Trace(0.0, 10.0, offset=[0, 2, 3, 3], changed_at=[1.0, 4.0, 2.5])
        >>> sorted(trace.shuffled(np.random.default_rng(1)).n_changes.tolist())
        [0, 1, 2]
        """
        order = np.lexsort((rng.random(len(self)), self.created_at))
        place = np.empty(len(self), np.int64)
        place[order] = np.arange(len(self))
        changes, asked, past = _moved(self.changes, place), None, self.past
        if self.request_offset is not None and self.requested_at is not None:
            asked = _moved(Events(self.request_offset, self.requested_at), place)
        return replace(
            self,
            offset=changes.offset,
            changed_at=changes.at,
            importance=self.importance[order],
            created_at=self.created_at[order],
            deleted_at=self.deleted_at[order],
            pages=None if self.pages is None else self.pages[order],
            url=None if self.url is None else self.url[order],
            group=None if self.group is None else self.group[order],
            signals=None if self.signals is None else self.signals._replace(page=place[self.signals.page]),
            request_offset=asked and asked.offset,
            requested_at=asked and asked.at,
            past=past and Past(_moved(past.changes, place), past.since[order]),
        )


def _moved(events: Events, place: Ids) -> Events:
    """The instants of pages that have new places."""
    return Events.of(place[events.page], events.at, len(place))


def _column(name: str, value: ArrayLike, n: int) -> Array:
    column = np.asarray(value, np.float64)
    if column.shape not in ((), (1,), (n,)):
        raise ParameterError(f"{name} has {len(column)} rows but there are {n} pages")
    return np.ascontiguousarray(np.broadcast_to(column, (n,)))
