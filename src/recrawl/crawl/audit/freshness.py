"""Freshness of the copies of a crawl as it is reported: expected now, found so far, or not known yet.

A running crawl writes the figures to its store from time to time, because it knows more than the store: what the
siblings of a page did lately is kept in memory alone.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Generator, Mapping
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
_PIECE = 20_000  # pages that are looked at without a break
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
    steps = freshness_steps(engine, now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Freshness = end.value
            return found


def freshness_steps(engine: Engine, now: float) -> Generator[None, None, Freshness]:
    """The same in pieces of some pages each; between two of them pages may be crawled, added and removed."""
    ids = engine.ids()
    unknown = int((~engine.beliefs.belief.fixed_rate[ids]).sum())
    made, needed = engine.beliefs.crawls, min(ENOUGH, 2 * unknown)
    if made < needed:
        return Freshness(None, None, made, needed)
    judged = engine.ledger(now, ids[:0])
    time, stale, total, fresh = judged.time, judged.stale, 0.0, 0.0
    for first in range(0, int(ids[-1]) + 1 if len(ids) else 0, _PIECE):
        part = ids[slice(*np.searchsorted(ids, (first, first + _PIECE)))]
        part = part[~engine.is_paused(part)]
        weight, piece = access.importance(engine.scheduler, part), engine.ledger(now, part)
        total, fresh = total + weight.sum(), fresh + (weight * expected_fresh(engine, part, now)).sum()
        time, stale = time + piece.open_time, stale + piece.open_stale
        if first + _PIECE <= ids[-1]:
            yield
            ids = engine.ids()
            if not len(ids):
                break
    so_far = 1.0 - stale / time if time > 0.0 else None
    return Freshness(float(fresh / total) if total > 0 else None, so_far, made, needed)


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
        if not last and (now < self._due_at or self.is_large):
            return {}
        return self._note(now, reported_freshness(self._engine, now), last=last)

    @property
    def is_large(self) -> bool:
        """Whether there are so many pages that the figures are computed in pieces, by `renewed_notes`."""
        return len(self._engine) > _PIECE

    def are_due(self, now: float) -> bool:
        """Whether it is time for `renewed_notes`; then it is so no longer."""
        if now < self._due_at or not self.is_large:
            return False
        self._due_at = math.inf
        return True

    async def renewed_notes(self, now: float) -> dict[str, object]:
        """What is to be written to the store, computed in pieces: other tasks run in between."""
        steps = freshness_steps(self._engine, now)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return self._note(now, end.value)
            await asyncio.sleep(0)

    def _note(self, now: float, fresh: Freshness, *, last: bool = False) -> dict[str, object]:
        every = 0.0 if last else max(self._every, len(self._engine) / _PAGES_PER_SECOND)
        self._due_at, self._last = now + every, fresh
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
