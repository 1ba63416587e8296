"""The judgement: exact, and the same for rivals as for the live crawl."""

from itertools import chain, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.demo.judge import rivals, true_freshness, window
from recrawl.demo.world import draw_world
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.events import offsets

instants = st.lists(st.floats(0.0, 10.0), max_size=6)


def naive_share_fresh(changes, copied_at, requests, begin, end):
    """A page's fresh time, instant by instant."""
    marks = sorted({begin, end, *(t for t in [*changes, *requests] if begin < t < end)})
    fresh = 0.0
    for low, high in pairwise(marks):
        copy = max([t for t in [copied_at, *requests] if t <= low], default=-np.inf)
        fresh += (high - low) * (copy > -np.inf and not any(copy < t <= low for t in changes))
    return fresh / (end - begin)


@given(
    st.lists(st.tuples(instants, instants, st.one_of(st.just(-np.inf), st.floats(0.0, 4.0))), min_size=1, max_size=4)
)
def test_freshness_is_what_happened(pages):
    changes = [sorted(set(each[0])) for each in pages]
    requests = [sorted({t for t in each[1] if 4.0 < t < 9.0}) for each in pages]
    copied = [each[2] for each in pages]
    weight = np.arange(1.0, len(pages) + 1)
    trace = Trace(0.0, 10.0, offsets([len(c) for c in changes]), np.array([*chain(*changes)]), importance=weight)
    page = np.repeat(np.arange(len(pages)), [len(v) for v in requests])
    run = true_freshness(window(trace, copied, 4.0, 9.0), page, np.array([*chain(*requests)]))
    fresh = [naive_share_fresh(c, t, v, 4.0, 9.0) for c, t, v in zip(changes, copied, requests, strict=True)]
    assert np.isclose(run.freshness, np.average(fresh, weights=weight), atol=1e-12)
    assert run.requests == len(page)


def test_rivals_get_the_same_requests_and_none_keeps_to_them_worse_than_doing_nothing():
    world = draw_world(5, 60.0)
    trace = window(world.trace, np.full(500, 5.0), 6.0, 36.0)
    nothing = true_freshness(trace, np.zeros(0, np.int64), np.zeros(0))
    found = {each.name: each for each in rivals(trace, 450)}
    assert set(found) == {"uniform", "nutch"}
    assert found["uniform"].run.requests == 450
    assert found["nutch"].run.requests <= 450
    assert all(each.run.freshness > nothing.freshness + 0.05 for each in found.values())
    assert rivals(trace, 0) == []
