"""Upkeep: refits, clocks and unlikely pages in pieces of a few milliseconds, so that no pick or record waits for them.

What a refit does is written in `Core.refit_if_due`; a refit in pieces does the same in the same order, with crawls in
between: pages are counted in the tables, the strengths are fitted, then every page is believed and placed again. Until
the last piece some pages are valued by the new tables and others by the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.beliefs import ROUNDS
from recrawl.engine.beliefs.kernels import apply_beliefs
from recrawl.engine.eligibility.likely import ready_at
from recrawl.engine.signals.pages import refresh_pages
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_COUNTED, _PLACED, _SAMPLED, _REFRESHED = 2500, 500, 800, 100  # pages of a piece
_CLOCKS = 250  # clocks of a piece
_COHORTS = 50  # cohorts of a piece: the pages of each are believed again together, so that they stay alike
_UNLIKELY = 500  # unlikely pages of a piece
_PHASES = (
    *["count"] * ROUNDS,
    "strengths",
    "tables",
    "refresh",
    "clocks",
    "publish",
    "cohorts",
    "place",
    "hasten",
)


def _none() -> Ids:
    return np.zeros(0, np.int64)


@dataclass
class Progress:
    """How far a refit is: its phase, and from which page, row or place in ``some`` on that is to be done."""

    phase: int = 0
    at: int = 0
    some: Ids = field(default_factory=_none)  # what the phase is about, if not all pages
    step: int = 1  # each of ``some`` stands for so many
    score: Array = field(default_factory=lambda: np.zeros((0, 0)))  # of strengths, so far


class Upkeep:
    """What is due and how far it is. Nothing is due unless ``in_pieces`` is set: then calls do all of it themselves."""

    def __init__(self) -> None:
        self.in_pieces = False
        self._refit: Progress | None = None
        self._publish_from: int | None = None  # the first clock that is not published yet
        self._unlikely: Progress | None = None  # unlikely pages that are examined again

    def takes_refit(self) -> bool:
        """Whether a refit that is due is made in pieces."""
        if not self.in_pieces:
            self._refit = None
            return False
        self._refit = self._refit or Progress()
        return True

    def takes_clocks(self, engine: Core) -> bool:
        """Whether clocks whose bin has ended are published in pieces."""
        if not self.in_pieces or len(engine.clocks) <= _CLOCKS:
            return False
        if self._publish_from is None:
            self._publish_from = 0
        return True

    def takes_unlikely(self, engine: Core) -> bool:
        """Whether unlikely pages that are due are examined in pieces."""
        if not self.in_pieces or len(engine.eligibility.unlikely) <= _UNLIKELY:
            return False
        if self._unlikely is None:
            engine.crawls_since = 0
            self._unlikely = Progress(some=engine.eligibility.unlikely.numbers())
        return True

    @property
    def due(self) -> bool:
        """Whether there is a piece to do."""
        return self._refit is not None or self._publish_from is not None or self._unlikely is not None

    def step(self, engine: Core) -> bool:
        """Do the next piece, if one is due; whether there is another."""
        if self._publish_from is not None:
            self._publish_from = self._publish_part(engine, self._publish_from)
        elif self._unlikely is not None:
            self._unlikely = self._unlikely if self._examine(engine, self._unlikely) else None
        elif self._refit is not None and not self._step(engine, self._refit):
            self._refit = None
        return self.due

    # --- a refit ------------------------------------------------------------------------------------------------------

    def _step(self, engine: Core, job: Progress) -> bool:
        """A piece of a refit; whether it goes on."""
        if getattr(self, f"_{_PHASES[job.phase]}")(engine, job):
            return True
        job.phase, job.at, job.some = job.phase + 1, 0, _none()
        if job.phase < len(_PHASES):
            return True
        engine.ended_refit()
        return False

    def _next_pages(self, engine: Core, job: Progress, most: int) -> Ids:
        """The next of all pages."""
        rows = np.arange(job.at, min(job.at + most, access.id_count(engine.scheduler)))
        job.at += most
        return _without_removed(engine, rows)

    def _next_of(self, engine: Core, job: Progress, most: int) -> Ids:
        """The next of some pages."""
        job.at += most
        return _without_removed(engine, job.some[job.at - most : job.at])

    def _count(self, engine: Core, job: Progress) -> bool:
        if job.at == 0:
            job.some = _crawled(engine)
        engine.beliefs.count(self._next_of(engine, job, _COUNTED))
        return job.at < len(job.some)

    def _strengths(self, engine: Core, job: Progress) -> bool:
        beliefs = engine.beliefs
        if job.at == 0:
            job.some, job.step = beliefs.sampled(_crawled(engine))
            job.score = np.zeros_like(beliefs.strengths)
        part = self._next_of(engine, job, _SAMPLED)
        if len(part):
            job.score = job.score + beliefs.score_strengths(part)
        if job.at < len(job.some):
            return True
        if len(job.some):
            beliefs.strengths = job.step * job.score
        beliefs.use_strengths(fitted=len(job.some) > 0)
        return False

    def _tables(self, engine: Core, job: Progress) -> bool:
        engine.beliefs.set_prior()
        engine.fit_signals(engine.now)
        return False

    def _refresh(self, engine: Core, job: Progress) -> bool:
        belief = engine.beliefs.belief
        if job.at == 0:
            job.some = engine.beliefs.signals.outdated()
        part = job.some[job.at : job.at + _REFRESHED]
        refresh_pages(access.header(engine.scheduler), belief, part, engine.now)
        pages = belief.signals.page[part]
        access.place_waiting(engine.scheduler, pages[belief.signals.row_of[pages] == part])
        job.at += _REFRESHED
        return job.at < len(job.some)

    def _clocks(self, engine: Core, job: Progress) -> bool:
        engine.clocks.fit()
        if engine.clocks.respan(engine.scheduler):  # all at once: a clock has one width of bins
            engine.clocks.join(engine.scheduler, engine.ids())
            engine.clocks.publish(engine.scheduler, engine.now, reinsert=False)
            access.place_all(engine.scheduler)
        return False

    def _publish(self, engine: Core, job: Progress) -> bool:
        more = self._publish_part(engine, job.at)
        job.at = more or 0
        return more is not None

    def _publish_part(self, engine: Core, first: int) -> int | None:
        """Publish some clocks from one on; the next one, None: that were all."""
        last = first + _CLOCKS
        engine.clocks.publish_part(engine.scheduler, engine.now, first, last)
        return last if last < len(engine.clocks) else None

    def _cohorts(self, engine: Core, job: Progress) -> bool:
        cohorts = engine.eligibility.cohorts
        self._believe_again(engine, cohorts.pages(job.at, job.at + _COHORTS))
        cohorts.regroup(engine.scheduler, engine.no_copy_at)
        job.at += _COHORTS
        return job.at < len(cohorts)

    def _place(self, engine: Core, job: Progress) -> bool:
        rows = self._next_pages(engine, job, _PLACED)
        self._believe_again(engine, rows[~engine.eligibility.cohorts.members(rows)])
        return job.at < access.id_count(engine.scheduler)

    def _believe_again(self, engine: Core, rows: Ids) -> None:
        engine.beliefs.believe_again(rows)
        apply_beliefs(access.header(engine.scheduler), engine.beliefs.belief, rows)
        access.place_waiting(engine.scheduler, rows)

    def _hasten(self, engine: Core, job: Progress) -> bool:
        if job.at == 0:
            engine.crawls_since = 0
            job.some = engine.eligibility.unlikely.numbers()
        return self._examine(engine, job)

    # --- unlikely pages -----------------------------------------------------------------------------------------------

    def _examine(self, engine: Core, job: Progress) -> bool:
        """Pages that were unlikely to have changed may be picked earlier; whether there are more."""
        numbers, rows, until = engine.eligibility.unlikely_pages(job.some[job.at : job.at + _UNLIKELY].tolist())
        if len(rows):
            at = ready_at(engine, rows, engine.now)
            engine.eligibility.hasten(numbers[at < until], at[at < until])
        job.at += _UNLIKELY
        return job.at < len(job.some)

    # --- saved state --------------------------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """Everything, as plain arrays and values."""
        jobs = {"refit": self._refit, "unlikely": self._unlikely}
        return {
            "in_pieces": self.in_pieces,
            "publish_from": self._publish_from,
            **{name: None if job is None else asdict(job) for name, job in jobs.items()},
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take over what was saved."""
        self.in_pieces, self._publish_from = saved["in_pieces"], saved["publish_from"]
        self._refit, self._unlikely = (
            None if saved[k] is None else Progress(**saved[k]) for k in ("refit", "unlikely")
        )


def _crawled(engine: Core) -> Ids:
    """All pages that were crawled."""
    rows = engine.ids()
    return np.asarray(rows[engine.beliefs.belief.n_crawls[rows] > 0])


def _without_removed(engine: Core, rows: Ids) -> Ids:
    return np.asarray(rows[access.status(engine.scheduler, rows) != access.REMOVED])
