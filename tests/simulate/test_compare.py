"""Comparisons: the same whatever the number of processes, fair, and equal to single runs."""

import numpy as np
import pytest

from recrawl.errors import ParameterError
from recrawl.simulate import contender, simulate
from recrawl.simulate.compare.comparison import compare
from recrawl.simulate.compare.sources import Drawn, rng_of, trace_of
from recrawl.simulate.rivals.registry import rival

SMALL = Drawn("drifting", n_pages=40, days=30.0)


@pytest.mark.slow
def test_same_result_whatever_the_jobs():
    sources = [SMALL, Drawn("poisson", n_pages=30, days=20.0)]
    policies, budgets = ["learned", "poisson", "nutch"], ["0.1/page/day", "5/day"]
    alone, together = (compare(sources, policies, budgets, repetitions=2, seed=3, jobs=jobs) for jobs in (1, 2))
    assert alone == together
    assert len(alone) == 2 * 3 * 2
    other = compare(sources, policies, budgets, repetitions=2, seed=4, jobs=1)
    assert all(a["staleness"] != b["staleness"] for a, b in zip(alone, other, strict=True))


def test_a_world_is_the_same_beside_others():
    alone = compare([SMALL], ["known"], ["4/day"])
    beside = compare([Drawn("poisson", n_pages=30, days=20.0), SMALL], ["uniform", "known"], ["4/day"])
    assert beside[-1] == alone[0]


def test_figures_are_means_of_single_runs():
    [row] = compare([SMALL], ["known"], ["0.2/page/day"], repetitions=3, seed=5)
    runs = [simulate(contender("known"), SMALL.trace(rng_of(SMALL, 5, k, 0)), 8.0) for k in range(3)]
    staleness = np.array([run.staleness for run in runs])
    assert row["staleness"] == pytest.approx(staleness.mean())
    assert row["stderr"]["staleness"] == pytest.approx(staleness.std(ddof=1) / np.sqrt(3))
    assert row["requests"] == np.mean([run.requests for run in runs])
    assert row["per_page_day"] == pytest.approx(0.2)


def test_of_a_rival_the_better_cap_counts():
    [row] = compare([SMALL], ["yacy"], ["0.1/page/day"])
    trace = trace_of(SMALL, 0, 0)
    ways = {cap: simulate(rival("yacy", cap, day=1.0), trace, 4.0).staleness for cap in ("due", "score", "oldest")}
    assert row["staleness"] == min(ways.values())
    assert ways[row["cap"]] == row["staleness"]
    named = compare([SMALL], ["yacy:due", "yacy:score"], ["0.1/page/day"])
    assert [(row["policy"], row["cap"], row["staleness"]) for row in named] == [
        ("yacy", cap, ways[cap]) for cap in ("due", "score")
    ]


def test_own_demand_gives_the_others_as_many_requests():
    rows = compare([SMALL], ["heritrix", "known", "uniform"], None, repetitions=2)
    assert [row["policy"] for row in rows] == ["heritrix", "known", "uniform"]
    assert {row["requests_of"] for row in rows} == {"heritrix"}
    assert max(row["requests"] for row in rows) - min(row["requests"] for row in rows) <= 1
    free = simulate(rival("heritrix", day=1.0), trace_of(SMALL, 0, 0), None)
    assert abs(free.requests - rows[0]["requests"]) < free.requests / 2


def test_progress_is_reported():
    reports = []
    compare([SMALL], ["known", "nutch"], ["1/day"], progress=lambda done, total: reports.append((done, total)))
    assert reports == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("policies", "budgets", "message"),
    [
        (["knwon"], ["1/day"], "did you mean known"),
        ([], ["1/day"], "no policy"),
        (["known"], ["0/day"], "above 0"),
        (["known"], [], "no budget is named"),
        (["known"], None, "demand of its own"),
    ],
)
def test_refused(policies, budgets, message):
    with pytest.raises(ParameterError, match=message):
        compare([SMALL], policies, budgets)


def test_a_rival_that_requests_nothing_is_no_measure():
    with pytest.raises(ParameterError, match="fixed requests nothing in 20 days"):
        compare([Drawn("poisson", n_pages=5, days=20.0)], ["fixed"], None)
