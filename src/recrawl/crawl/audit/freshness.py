"""Freshness of the copies of a crawl as it is reported: expected now, found so far, or not known yet.

A running crawl writes the figures to its store from time to time, because it knows more than the store: what the
siblings of a page did lately is kept in memory alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.audit.history import NOTE as HISTORY
from recrawl.crawl.audit.history import History
from recrawl.engine import Engine
from recrawl.engine.views.expected import expected_fresh
from recrawl.schedule.exact import access

Ids = NDArray[np.int64]

NOTE = "freshness"  # the name of the note that holds the figures
_PAGES_PER_SECOND = 2000.0  # so many pages that a second between two notes stands for: large crawls write rarely
ENOUGH = 50  # comparisons before freshness is reported; with few pages two for each of them


def audited_pages(engine: Engine) -> Ids:
    """The pages that audits draw from: all that are not paused."""
    ids = engine.ids()
    return ids[~engine.is_paused(ids)]


def expected_freshness(engine: Engine, now: float) -> float:
    """The expected share of fresh copies, weighted by importance; a page without a copy is not fresh."""
    ids = audited_pages(engine)
    weight = access.importance(engine.scheduler, ids)
    if not weight.sum() > 0:
        return math.nan
    return float(np.average(expected_fresh(engine, ids, now), weights=weight))


class Freshness(NamedTuple):
    """What is known of how fresh the copies are; None: not known yet.

    ``now`` is expected by the change rates, ``so_far`` is the share of past time by what crawls found. Both are None
    until ``comparisons`` of a page with its copy were made as often as ``needed``: until then they would repeat what
    was assumed of the pages.
    """

    now: float | None
    so_far: float | None
    comparisons: int
    needed: int

    @property
    def known(self) -> bool:
        """Whether there were enough comparisons."""
        return self.comparisons >= self.needed

    def __str__(self) -> str:
        if not self.known:
            return f"not known yet: {self.comparisons} of {self.needed} comparisons were made"
        return "not known" if self.now is None else f"{self.now:.3f} (expected)"


def reported_freshness(engine: Engine, now: float) -> Freshness:
    """The freshness of all pages that are not paused, weighted by importance, as every command reports it."""
    unknown = int((~engine.beliefs.belief.fixed_rate[engine.ids()]).sum())
    made, needed = engine.beliefs.crawls, min(ENOUGH, 2 * unknown)
    if made < needed:
        return Freshness(None, None, made, needed)
    expected = expected_freshness(engine, now)
    return Freshness(None if math.isnan(expected) else expected, _so_far(engine, now), made, needed)


def _so_far(engine: Engine, now: float) -> float | None:
    """Share of past time in which copies were fresh, by the outcomes of crawls; None before the first outcome."""
    ledger = engine.ledger(now, audited_pages(engine))
    return 1.0 - ledger.staleness if ledger.time > 0.0 else None


class FreshnessNotes:
    """The freshness that a running crawl reports, as notes in its store: of now, and over time.

    ``counts`` answers how many requests, comparisons and changes this run has made until now.
    """

    def __init__(self, engine: Engine, every: float = 60.0, counts: Callable[[], tuple[int, int, int]] | None = None):
        self._engine, self._every, self._counts = engine, every, counts  # seconds between two notes, at least
        self._due_at = -math.inf
        self.history = History()
        self._last: Freshness | None = None

    def last(self, name: str) -> float | None:
        """A figure of the last note; None: not known."""
        return None if self._last is None else getattr(self._last, name)

    def pending_notes(self, now: float, *, last: bool = False) -> dict[str, object]:
        """What is to be written to the store now; the ``last`` note of a run holds for its moment alone."""
        if not last and now < self._due_at:
            return {}
        every = 0.0 if last else max(self._every, len(self._engine) / _PAGES_PER_SECOND)
        self._due_at = now + every
        fresh = self._last = reported_freshness(self._engine, now)
        notes: dict[str, object] = {NOTE: {"at": now, "every": every, **fresh._asdict()}}
        if self._counts is not None:
            self.history.add(now, (fresh.now, fresh.so_far), self._counts())
            notes[HISTORY] = self.history.as_note()
        return notes


def noted_freshness(note: Mapping[str, Any] | None, now: float) -> tuple[Freshness, float] | None:
    """The figures of a note and their time; None if no crawl has written them lately.

    >>> note = {"at": 10.0, "every": 5.0, "now": 0.5, "so_far": None, "comparisons": 60, "needed": 50}
    >>> noted_freshness(note, 12.0)
    (Freshness(now=0.5, so_far=None, comparisons=60, needed=50), 10.0)
    >>> noted_freshness(note, 30.0) is noted_freshness(None, 30.0) is None
    True
    """
    if note is None or not 0.0 <= now - note["at"] <= 2.0 * note["every"]:
        return None
    return Freshness(*(note[name] for name in Freshness._fields)), float(note["at"])
