"""Judge: counts how stale the copies were, and returns the result as a Run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.tally_kernels import Tally, close, count_crawls
from recrawl.simulate.trace import Trace

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """How fresh the copies were while it counted, and what that took.

    ``staleness`` is Σ importance · stale time / Σ importance · time, exact; ``staleness_unweighted`` counts every page
    alike; ``request_freshness`` is the share of reader requests that met a fresh copy (None: none were drawn).
    ``crawls``, ``found`` and ``page_staleness`` are per page, ``window_freshness`` per bin of time.
    """

    staleness: float
    staleness_unweighted: float
    requests: int
    changes_found: int
    request_freshness: float | None
    crawls: Ids
    found: Ids
    page_staleness: Array
    window_freshness: Array

    @property
    def freshness(self) -> float:
        """1 − staleness."""
        return 1.0 - self.staleness

    def as_dict(self) -> dict[str, Any]:
        """The figures, without the columns."""
        names = ("staleness", "staleness_unweighted", "requests", "changes_found", "request_freshness")
        return {name: getattr(self, name) for name in names}


class Judge:
    """Counts over a trace from ``count_from`` on, in ``bins`` equal parts of that time if asked to."""

    def __init__(self, trace: Trace, *, count_from: float | None = None, bins: int = 0) -> None:
        begin = trace.start if count_from is None else float(count_from)
        if not trace.start <= begin < trace.end:
            raise ParameterError(f"count_from is {begin:g}: must lie from {trace.start:g} to before {trace.end:g}")
        n = len(trace)
        asked = trace.request_offset is not None and trace.requested_at is not None
        self._trace, self._begin = trace, begin
        self.tally = Tally(
            offset=trace.offset,
            changed_at=trace.changed_at,
            deleted_at=trace.deleted_at,
            weight=trace.importance,
            request_offset=np.asarray(trace.request_offset if asked else np.zeros(0), np.int64),
            requested_at=np.asarray(trace.requested_at if asked else np.zeros(0), np.float64),
            span=np.array([begin, trace.end, (trace.end - begin) / max(bins, 1)]),
            next_change=trace.offset[:-1].copy(),
            next_request=np.array(trace.request_offset[:-1] if asked else np.zeros(0), np.int64),  # type: ignore[index]
            stale=np.zeros(n),
            crawls=np.zeros(n, np.int64),
            found=np.zeros(n, np.int64),
            requests=np.zeros((2, n), np.int64),
            bins=np.zeros(bins),
        )

    def crawl(self, ids: Ids, now: float) -> NDArray[np.bool_]:
        """Crawl pages: which of them changed since their copies were fetched."""
        changed = np.zeros(len(ids), np.bool_)
        count_crawls(self.tally, np.ascontiguousarray(ids, np.int64), now, changed)
        return changed

    def verdict(self) -> Run:
        """The result, at the end of the trace."""
        tally, trace = self.tally, self._trace
        close(tally)
        seen = np.maximum(trace.deleted_at - np.maximum(trace.created_at, self._begin), 0.0)
        asked = int(tally.requests[0].sum())
        return Run(
            staleness=_share(tally.stale * trace.importance, seen * trace.importance),
            staleness_unweighted=_share(tally.stale, seen),
            requests=int(tally.crawls.sum()),
            changes_found=int(tally.found.sum()),
            request_freshness=float(tally.requests[1].sum() / asked) if asked else None,
            crawls=tally.crawls,
            found=tally.found,
            page_staleness=np.divide(tally.stale, seen, out=np.zeros(len(seen)), where=seen > 0),
            window_freshness=1.0 - tally.bins / self._in_bins(),
        )

    def _in_bins(self) -> Array:
        """Importance × time of the pages that exist, by bin."""
        trace, width = self._trace, self.tally.span[2]
        low = self._begin + width * np.arange(len(self.tally.bins))
        total = np.zeros(len(low))
        for b, edge in enumerate(low.tolist()):
            there = np.minimum(trace.deleted_at, edge + width) - np.maximum(trace.created_at, edge)
            total[b] = float((np.maximum(there, 0.0) * trace.importance).sum())
        return np.maximum(total, 1e-300)


def _share(part: Array, whole: Array) -> float:
    total = float(whole.sum())
    return float(part.sum()) / total if total > 0 else 0.0
