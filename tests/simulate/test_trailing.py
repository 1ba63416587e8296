"""The policies that know past rates, against their twin in plain Python; what a recorded trace's past holds."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recrawl.simulate import Past, contender, read_trace, simulate, write_trace
from recrawl.simulate.run.policies import names
from recrawl.simulate.run.trailing import EVERY, PRIOR, WINDOW
from recrawl.simulate.worlds.events import Events

from .small import small_trace

DAY = 0.02  # of the trace's time: a year is 7.3


def with_past(trace, seed):
    """The trace with a random past of some of its pages."""
    rng = np.random.default_rng(seed)
    early = trace.created_at <= trace.start
    since = np.where(early, trace.start - rng.uniform(0, 12, len(trace)), trace.created_at)
    count = rng.poisson(0.5 * (trace.start - np.minimum(since, trace.start)))
    page = np.repeat(np.arange(len(trace)), count)
    at = rng.uniform(since[page], trace.start)
    return replace(trace, past=Past(Events.of(page, at, len(trace)), since))


class Twin:
    """Trailing, page by page and slot by slot."""

    def __init__(self, trace, crawled):
        self.trace, self.crawled = trace, crawled
        mine = lambda events, i: events.at[events.offset[i] : events.offset[i + 1]].tolist()  # noqa: E731
        self.times = [
            (mine(trace.past.changes, i) if trace.past else []) + mine(trace.changes, i) for i in range(len(trace))
        ]
        self.since = trace.past.since if trace.past else trace.created_at
        self.fetched, self.rate, self.mean = {}, {}, None

    def seen(self, i, now):
        high = self.fetched[i] if self.crawled else now
        low = min(max(now - WINDOW * DAY, self.since[i]), high)
        return sum(low < t <= high for t in self.times[i]), high - low

    def pool(self, pages, now):
        counts = [self.seen(i, now) for i in pages]
        self.mean = (sum(n for n, _ in counts) + PRIOR) / (sum(t for _, t in counts) + WINDOW * DAY)

    def set_rate(self, i, now):
        n, time = self.seen(i, now)
        self.rate[i] = (n + PRIOR) / (time + PRIOR / self.mean)

    def add(self, pages, now):
        empty = not self.fetched
        self.fetched |= dict.fromkeys(pages, now)
        if empty:
            self.pool(pages, now)
        for i in pages:
            self.set_rate(i, now)

    def renew(self, now):
        self.pool(list(self.fetched), now)
        for i in self.fetched:
            self.set_rate(i, now)

    def pick(self, now):
        def value(i):
            x = self.rate[i] * (now - self.fetched[i])
            return self.trace.importance[i] / self.rate[i] * (1 - math.exp(-x) * (1 + x))

        best = max(self.fetched, key=value)
        self.fetched[best] = now
        return best


def twin_crawls(trace, budget, crawled):
    twin, crawls = Twin(trace, crawled), np.zeros(len(trace), np.int64)
    slots = [(trace.start + j / budget, 2, j) for j in range(1, int((trace.end - trace.start) * budget) + 1)]
    came = [(t, 0, i) for i, t in enumerate(trace.created_at)]
    went = [(max(t, trace.created_at[i]), 1, i) for i, t in enumerate(trace.deleted_at) if t < trace.end]
    renew_at = trace.start + EVERY * DAY
    coming = {}
    for t, _, i in came:
        coming.setdefault(t, []).append(i)
    for t, kind, i in sorted([*((t, 0, 0) for t in coming), *went, *slots]):
        while kind == 2 and renew_at <= t:
            twin.renew(renew_at)
            renew_at += EVERY * DAY
        if kind == 0:
            twin.add(coming[t], t)
        elif kind == 1:
            del twin.fetched[i]
        elif twin.fetched:
            crawls[twin.pick(t)] += 1
    return crawls


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["trailing", "trailing:crawled"])
def test_equals_its_twin(name, seed):
    trace = replace(small_trace(seed, n=15, end=12.0, signals=False), day=DAY)
    trace = with_past(trace, seed) if seed % 2 else trace
    budget = [4.3, 9.1][seed // 2]
    result = simulate(contender(name), trace, budget)
    assert result.crawls.tolist() == twin_crawls(trace, budget, name.endswith("crawled")).tolist()


def test_batches():
    trace = replace(small_trace(1, n=15, end=12.0), day=DAY)
    result = simulate(contender("trailing"), trace, 6.0, batch=3)
    assert 0 < result.requests <= 72


def test_names():
    assert {"trailing", "trailing:crawled"} <= set(names())


def test_changes_that_no_crawl_has_found_help():
    trace = small_trace(3, n=300, end=40.0, signals=False)
    trace = replace(trace, pages=None, created_at=trace.start, deleted_at=trace.end, importance=np.ones(1))
    peeking, crawled = (simulate(contender(name), trace, 60.0).staleness for name in ("trailing", "trailing:crawled"))
    assert peeking < crawled


def test_shuffled_takes_the_past_along():
    trace = with_past(small_trace(5), 5)
    other = trace.shuffled(np.random.default_rng(1))

    def rows(each):
        events = each.past.changes
        times = [events.at[events.page == i].tolist() for i in range(len(each))]
        return sorted(zip(each.importance.tolist(), each.past.since.tolist(), times, strict=True))

    assert rows(trace) == rows(other)


def test_a_recorded_window_has_a_past(tmp_path):
    whole = small_trace(2, n=30, end=40.0, signals=False)
    write_trace(tmp_path, whole, unit=86400.0)
    window = read_trace(tmp_path, start=20 * 86400.0, days=20.0)
    assert window.past.since.max() <= window.end
    n_before = window.past.changes.offset[1:] - window.past.changes.offset[:-1]
    for i, url in enumerate(window.url.tolist()):
        row = int(url.rsplit("/", 1)[1])
        mine = whole.changed_at[whole.offset[row] : whole.offset[row + 1]]
        assert n_before[i] == (mine <= 20.0).sum()
        assert n_before[i] + window.n_changes[i] == len(mine)
        assert window.past.since[i] == pytest.approx(whole.created_at[row] * 86400.0)
