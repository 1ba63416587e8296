"""Audits in simulated worlds, where the truth is known: the engine crawls, and is audited at some moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.engine.views.expected import expected_fresh
from recrawl.errors import ParameterError
from recrawl.estimate.audit import Audit, Judged, audit_of, draw_pages
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.runners import runner_of
from recrawl.simulate.tally import Judge
from recrawl.simulate.trace import Trace

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Moment:
    """The true freshness at a moment, what the engine forecast for it, and what audits showed."""

    at: float
    truth: float
    forecast: float
    audits: list[Audit]


def audited(
    trace: Trace,
    budget: float,
    moments: Sequence[float],
    *,
    draws: int = 100,
    repeats: int = 1,
    lying: Flags | None = None,
    learn: bool = True,
    rng: np.random.Generator,
    **settings: object,
) -> list[Moment]:
    """Let an engine crawl a trace whose pages stay, and audit its copies at some moments, ``repeats`` times each.

    Servers of ``lying`` pages answer "not modified" to every crawl, whatever happened; an audit asks for the page in
    full. With ``learn`` the engine learns what the first audit of a moment finds. ``settings`` are those of `Engine`.
    """
    if (trace.created_at > trace.start).any() or (trace.deleted_at < trace.end).any():
        raise ParameterError("audits are simulated for pages that stay")
    world = _Audited(trace, np.zeros(len(trace), np.bool_) if lying is None else lying, budget, rng, settings)
    return [world.audit(at, draws, repeats, learn) for at in moments]


class _Audited:
    """An engine that crawls a trace; copies of lying pages are as old as their last audit."""

    def __init__(
        self, trace: Trace, lying: Flags, budget: float, rng: np.random.Generator, settings: dict[str, object]
    ) -> None:
        self._trace, self._lying, self._rng = trace, lying, rng
        self._period, self._slot = 1.0 / budget, 1
        shown = _silenced(trace, lying)
        self.engine: Engine = learning(**settings)(shown, budget, rng)
        admit_unknown(self.engine, shown, np.arange(len(trace)), trace.start)
        self._judge = Judge(shown)
        self._runner = runner_of(self.engine, shown, self._judge)
        self._copied_at = np.full(len(trace), trace.start)  # of lying pages

    def audit(self, now: float, draws: int, repeats: int, learn: bool) -> Moment:
        """Crawl up to a moment, and audit."""
        last = int(np.floor((now - self._trace.start) / self._period * (1 + 1e-12))) + 1
        self._slot = self._runner.run(self._trace.start, self._period, self._slot, last, 1)
        fresh, believed = self.fresh(now), expected_fresh(self.engine, np.arange(len(self._trace)), now)
        weight = self._trace.importance
        forecast = float(np.average(believed, weights=weight))
        samples = [np.unique(draw_pages(weight, draws, self._rng), return_counts=True) for _ in range(repeats)]
        audits = [
            audit_of(
                [Judged(int(m), bool(fresh[i]), float(believed[i])) for i, m in zip(pages, times, strict=True)],
                began_at=now,
                ended_at=now,
                forecast=forecast,
                requests=len(pages),
            )
            for pages, times in samples
        ]
        moment = Moment(now, float(np.average(fresh, weights=weight)), forecast, audits)
        if learn:
            self._learn(samples[0][0], fresh[samples[0][0]], now)
        return moment

    def fresh(self, now: float) -> Flags:
        """Whether each page's copy is the page."""
        tally, trace = self._judge.tally, self._trace
        some = tally.next_change < tally.offset[1:]
        fresh = np.ones(len(trace), np.bool_)
        fresh[some] = tally.changed_at[tally.next_change[some]] > now
        for page in np.flatnonzero(self._lying).tolist():
            mine = trace.changed_at[trace.offset[page] : trace.offset[page + 1]]
            fresh[page] = not ((mine > self._copied_at[page]) & (mine <= now)).any()
        return fresh

    def _learn(self, pages: Ids, fresh: Flags, now: float) -> None:
        self._judge.crawl(pages, now)
        self._copied_at[pages] = now
        self.engine.record(pages, now, changed=~fresh)


def _silenced(trace: Trace, lying: Flags) -> Trace:
    """What crawls are shown: nothing of the changes of lying pages."""
    if not lying.any():
        return trace
    page = np.repeat(np.arange(len(trace)), trace.n_changes)
    shown = ~lying[page]
    offset = np.concatenate([[0], np.cumsum(np.bincount(page[shown], minlength=len(trace)))])
    return replace(trace, offset=offset, changed_at=trace.changed_at[shown])
