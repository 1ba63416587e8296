"""True freshness of the copies of a live crawl, and what other policies would have reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.simulate.rivals.registry import rival
from recrawl.simulate.rivals.rule import Cap
from recrawl.simulate.run.policies import contender
from recrawl.simulate.run.run import simulate
from recrawl.simulate.tally import Judge, Run
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.events import Events

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_FIRST_INTERVALS = (0.125, 0.25, 0.5, 1.0)  # of Nutch, in units of pages / budget
_CAPS: tuple[Cap, ...] = ("due", "score")


@dataclass(frozen=True)
class Rival:
    """What a policy would have reached, and how it was set."""

    name: str
    run: Run
    setting: str


def window(trace: Trace, copied_at: ArrayLike, begin: float, end: float) -> Trace:
    """The trace from begin to end for pages whose copies are as of ``copied_at`` (−infinity: there is none).

    A copy that is stale at the beginning, or does not exist, is so by a change at ``begin``.

    >>> trace = Trace(0.0, 9.0, offset=[0, 2, 3], changed_at=[1.0, 5.0, 2.0])
    >>> window(trace, [0.5, 2.5], 3.0, 9.0).changed_at.tolist()
    [3.0, 5.0]
    """
    copied = np.asarray(copied_at, np.float64)
    page = np.repeat(np.arange(len(trace)), trace.n_changes)
    at = trace.changed_at
    missed = np.zeros(len(trace), np.bool_)
    missed[page[(at > copied[page]) & (at <= begin)]] = True
    missed |= copied == -np.inf
    later = (at > begin) & (at <= end)
    behind = np.flatnonzero(missed)
    events = Events.of(
        np.concatenate([behind, page[later]]), np.concatenate([np.full(len(behind), begin), at[later]]), len(trace)
    )
    return Trace(
        begin,
        end,
        offset=events.offset,
        changed_at=events.at,
        importance=trace.importance,
        url=trace.url,
        group=trace.group,
        name=trace.name,
        day=trace.day,
    )


def true_freshness(trace: Trace, page: Ids, at: Array, bins: int = 0) -> Run:
    """The exact freshness of copies that were renewed at these times.

    >>> trace = Trace(0.0, 10.0, offset=[0, 1], changed_at=[2.0])
    >>> true_freshness(trace, np.array([0]), np.array([6.0])).freshness
    0.6
    """
    judge = Judge(trace, bins=bins)
    for k in np.argsort(at, kind="stable").tolist():
        judge.crawl(page[k : k + 1], float(at[k]))
    return judge.verdict()


def rivals(trace: Trace, requests: int, bins: int = 0) -> list[Rival]:
    """What uniform crawling and Nutch would have reached from the same copies with as many requests.

    They meet no failure, no delay and no robots.txt. Nutch's own first interval, 30 days, is longer than the demo: it
    gets the one, and the order of what is due, that keep its copies freshest, chosen afterwards.
    """
    budget = requests / (trace.end - trace.start)
    if requests < 1:
        return []
    even = Rival("uniform", simulate(contender("uniform"), trace, budget, bins=bins), "every page in turn")
    return [even, max(_nutches(trace, budget, bins), key=lambda found: found.run.freshness)]


def _nutches(trace: Trace, budget: float, bins: int) -> list[Rival]:
    found = []
    for share in _FIRST_INTERVALS:
        start = share * len(trace) / budget / trace.day
        for cap in _CAPS:
            run = simulate(rival("nutch", cap, day=trace.day, start=start), trace, budget, bins=bins)
            found.append(Rival("nutch", run, f"first interval {24.0 * start:.3g} h, first by {cap}"))
    return found


def as_dict(rival: Rival) -> dict[str, Any]:
    """A rival's figures."""
    return {"policy": rival.name, "setting": rival.setting, "freshness": rival.run.freshness, **rival.run.as_dict()}
