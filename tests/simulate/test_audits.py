"""Audits of simulated worlds: the truth they are judged by, and what they say of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from recrawl import ParameterError
from recrawl.estimate.audit import share_interval, verdict
from recrawl.simulate.compare.audits import _Audited, audited
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.worlds import world


def test_the_truth_is_what_crawls_and_changes_make_it():
    """A budget of one crawl per page and day over four pages: copies followed crawl by crawl."""
    trace = world("poisson", 4).draw(30.0, np.random.default_rng(1))
    made = _Audited(trace, np.zeros(4, bool), 4.0, np.random.default_rng(2), {})
    record, crawls = made._runner, []
    crawl = made._judge.crawl

    def noted(ids, now):
        crawls.append((ids.tolist(), now))
        return crawl(ids, now)

    made._judge.crawl = noted
    record.run = lambda anchor, period, slot, last, batch: (
        type(record).__mro__[1].run(record, anchor, period, slot, last, 1)
    )  # the plain loop, which tells of every crawl
    for at in (3.3, 9.7, 20.1):
        made.audit(at, 1, 1, False)
        copied = np.zeros(4)
        for ids, now in crawls:
            copied[ids] = now
        mine = [trace.changed_at[trace.offset[i] : trace.offset[i + 1]] for i in range(4)]
        fresh = [not ((c > copied[i]) & (c <= at)).any() for i, c in enumerate(mine)]
        assert made.fresh(at).tolist() == fresh


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [3, pytest.param(6, marks=pytest.mark.full)])
def test_audits_of_poisson_worlds_hold_the_truth_and_the_forecast(worlds):
    covered, holds = [], []
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        trace = world("poisson", 600).draw(30.0, rng)
        (found,) = audited(trace, 600.0, [29.0], repeats=40, rng=rng)
        assert abs(found.forecast - found.truth) < 0.06
        covered += [a.interval[0] <= found.truth <= a.interval[1] for a in found.audits]
        holds += [a.holds_forecast for a in found.audits]
    assert np.mean(covered) > 0.86, "40 audits a world, at least 90% each"
    assert np.mean(holds) > 0.78, "600 pages vary by themselves by a third of what 100 draws do"


@pytest.mark.slow
def test_only_audits_find_lies():
    rng = np.random.default_rng(5)
    trace = world("poisson", 600).draw(30.0, rng)
    lying = rng.random(600) < 0.4
    found = audited(trace, 600.0, [10.0, 20.0, 29.0], repeats=8, lying=lying, learn=False, rng=rng)
    for moment in found:
        assert moment.forecast > moment.truth + 0.15
        assert abs(np.mean([audit.freshness for audit in moment.audits]) - moment.truth) < 0.08
    assert not verdict([moment.audits[0] for moment in found]).agree


@pytest.mark.slow
def test_an_engine_learns_from_audits():
    rng = np.random.default_rng(6)
    trace = world("poisson", 200).draw(30.0, rng)
    lying = np.ones(200, bool)
    gap = {}
    for learn in (False, True):
        found = audited(
            trace, 100.0, np.arange(1.0, 29.0).tolist(), lying=lying, learn=learn, rng=np.random.default_rng(7)
        )
        gap[learn] = found[-1].forecast - found[-1].truth
    assert gap[True] < 0.7 * gap[False]


def test_pages_that_come_later_are_refused():
    trace = Trace(0.0, 10.0, offset=[0, 0, 1], changed_at=[5.0], created_at=[0.0, 3.0])
    with pytest.raises(ParameterError):
        audited(trace, 1.0, [5.0], rng=np.random.default_rng(1))


RESULTS = Path(__file__).parents[2] / "experiments/audit/results.json"


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text())["worlds"]


def share(rows, name):
    return float(np.mean([row[name] for row in rows]))


def test_the_full_run_holds_the_truth_and_the_forecast(results):
    """10,000 audits of 200 worlds, as committed; the standard error of a share is a third of a percent."""
    rows = results["poisson"]
    assert [row["seed"] for row in rows] == list(range(200))
    ends = np.array([share_interval(k, 100) for k in range(101)])
    for row in rows:
        low, high = ends[row["fresh"]].T
        truth = np.array(row["truth"])
        assert ((low <= truth) & (truth <= high)).tolist() == row["covered"]
    assert 0.86 <= share(rows, "covered") <= 0.94
    assert share(rows, "holds_forecast") >= 0.90
    assert np.mean([row["disagree"]["50"] for row in rows]) <= 0.05


@pytest.mark.parametrize(
    ("kind", "audits", "least"), [("lying", "1", 1.0), ("seasonal", "50", 0.9), ("bursty", "50", 0.7)]
)
def test_the_full_run_tells_the_truth_where_the_model_breaks_and_says_so(results, kind, audits, least):
    rows = results[kind]
    assert 0.86 <= share(rows, "covered") <= 0.96
    assert np.mean([row["disagree"][audits] for row in rows]) >= least
