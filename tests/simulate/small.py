"""Small random traces, with everything in them: pages that come and go, signals, readers."""

import numpy as np

from recrawl.model import Pages
from recrawl.simulate import Signals, Trace
from recrawl.simulate.worlds.events import Events


def small_trace(seed, *, n=12, end=40.0, sources=1, signals=True, requests=True):
    """A trace of n pages, some of which come late, go early or live for no time at all."""
    rng = np.random.default_rng(seed)
    created = np.sort(np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0, end, n)))
    deleted = np.where(rng.random(n) < 0.5, end, np.minimum(created + rng.exponential(end / 2, n), end))
    deleted = np.where(rng.random(n) < 0.1, created, deleted)
    pages = Pages(
        rng.uniform(0.02, 1.0, n),
        rng.uniform(0, 2, n),
        recall=rng.uniform(0.1, 0.9, (n, sources)) if signals else 0.0,
        false_rate=rng.uniform(0.05, 0.4, (n, sources)) if signals else 0.0,
    )
    changes = _within(rng, pages.change_rate, created, deleted)
    asked = _within(rng, pages.importance, created, deleted)
    return Trace(
        0.0,
        end,
        offset=changes.offset,
        changed_at=changes.at,
        importance=pages.importance,
        created_at=created,
        deleted_at=deleted,
        pages=pages,
        signals=_signals(rng, pages, changes, created, deleted) if signals else None,
        request_offset=asked.offset if requests else None,
        requested_at=asked.at if requests else None,
    )


def _within(rng, rate, low, high):
    count = rng.poisson(rate * (high - low))
    page = np.repeat(np.arange(len(rate)), count)
    return Events.of(page, rng.uniform(low[page], high[page]), len(rate))


def _signals(rng, pages, changes, created, deleted):
    parts = []
    for k in range(pages.n_sources):
        recall, false_rate = (column.reshape(len(pages), -1)[:, k] for column in (pages.recall, pages.false_rate))
        caught = rng.random(len(changes.at)) < recall[changes.page]
        false = _within(rng, false_rate, created, deleted)
        at = np.concatenate([changes.at[caught], false.at])
        page = np.concatenate([changes.page[caught], false.page])
        about = np.where(rng.random(len(at)) < 0.2, at - 1.0, np.inf)
        parts.append((at, page, np.full(len(at), k), about))
    return Signals.of(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def as_lists(trace):
    """The pages of a trace for the naive judge."""
    asked = trace.request_offset is not None
    return [
        {
            "created": float(trace.created_at[i]),
            "deleted": float(trace.deleted_at[i]),
            "importance": float(trace.importance[i]),
            "changes": trace.changed_at[trace.offset[i] : trace.offset[i + 1]].tolist(),
            "requests": trace.requested_at[trace.request_offset[i] : trace.request_offset[i + 1]].tolist()
            if asked
            else [],
        }
        for i in range(len(trace))
    ]
