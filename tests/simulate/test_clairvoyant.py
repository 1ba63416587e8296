"""The policy that sees the future against its twin in plain Python, and against policies that do not."""

import numpy as np
import pytest

from recrawl.simulate import Trace, contender, simulate

from .small import small_trace


def naive_clairvoyant(trace, budget, batch=1):
    """(when, page) of its crawls: every page is looked at in every slot."""
    spans = zip(trace.offset[:-1], trace.offset[1:], strict=True)
    changes = [trace.changed_at[a:b].tolist() for a, b in spans]
    fetched = trace.created_at.tolist()
    crawls = []
    for j in range(1, int((trace.end - trace.start) * budget / batch) + 1):
        now = trace.start + j * batch / budget
        for _ in range(batch):
            best, worth = None, -1.0
            for i, times in enumerate(changes):
                gone = trace.deleted_at[i] <= now and trace.deleted_at[i] < trace.end
                stale = any(fetched[i] < t <= now for t in times)
                if gone or not stale:
                    continue
                until = min([t for t in times if t > now], default=trace.deleted_at[i])
                value = trace.importance[i] * max(until - now, 0.0)
                if value > worth:
                    best, worth = i, value
            if best is not None:
                fetched[best] = now
                crawls.append((now, best))
    return crawls


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_equals_its_twin(seed, batch):
    trace = small_trace(seed, n=25)
    budget = [0.5, 2.0, 7.3][seed % 3]
    result = simulate(contender("clairvoyant"), trace, budget, batch=batch)
    crawls = naive_clairvoyant(trace, budget, batch)
    assert result.crawls.tolist() == np.bincount([i for _, i in crawls], minlength=len(trace)).tolist()
    assert result.changes_found == result.requests == len(crawls)


def test_crawls_only_what_is_stale():
    trace = Trace(0.0, 10.0, offset=[0, 2, 3], changed_at=[1.5, 4.2, 2.5], importance=[1.0, 3.0])
    result = simulate(contender("clairvoyant"), trace, budget=1.0)
    assert result.crawls.tolist() == [2, 1]
    assert result.staleness_unweighted == pytest.approx((0.5 + 0.8 + 0.5) / 20)


@pytest.mark.parametrize("seed", range(5))
def test_more_sight_is_fresher(seed):
    trace = small_trace(seed, n=200, signals=False)
    seen, known, blind = (simulate(contender(n), trace, 20.0).staleness for n in ("clairvoyant", "known", "uniform"))
    assert seen < known < blind


def test_known_listens_where_the_quality_of_signals_is_known():
    trace = small_trace(1, n=60)
    listening = simulate(contender("signals"), trace, 5.0)
    assert simulate(contender("known"), trace, 5.0).crawls.tolist() == listening.crawls.tolist()
    silent = small_trace(1, n=60, signals=False)
    plain = simulate(contender("no-signals"), silent, 5.0)
    assert simulate(contender("known"), silent, 5.0).crawls.tolist() == plain.crawls.tolist()
