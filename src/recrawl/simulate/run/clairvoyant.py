"""Clairvoyant: a policy that knows future changes, as an upper bound for all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recrawl.simulate.run.clairvoyant_kernels import Future
from recrawl.simulate.trace import Trace


class Clairvoyant:
    """Crawls the stale copy that, once fetched, is fresh for the most importance × time; none when none is stale.

    That time ends with the page's next change or its end. It is greedy: with a small budget another choice can be
    better still. It exists in simulations only, where the trace is known.
    """

    def __init__(self, trace: Trace) -> None:
        n = len(trace)
        page = np.repeat(np.arange(n), trace.n_changes)
        until = np.append(trace.changed_at[1:], 0.0)[: len(page)]
        last = np.append(page[1:] != page[:-1], True)[: len(page)]
        order = np.argsort(trace.changed_at, kind="stable")
        self.future = Future(
            changed_at=trace.changed_at[order],
            page=page[order],
            until=np.where(last, trace.deleted_at[page], until)[order],
            gone_at=np.where(trace.deleted_at < trace.end, trace.deleted_at, np.inf),
            weight=trace.importance,
            fresh_until=np.zeros(n),
            stale=np.zeros(n, np.int64),
            place=np.full(n, -1, np.int64),
            counts=np.zeros(2, np.int64),
        )

    def remove(self, ids: ArrayLike) -> None:
        """Pages that go; their ends are known already."""
