"""The judge against its naive twin and closed forms, and the compiled runners against the plain one."""

import numpy as np
import pytest
from naive.simulate import naive_judge, threshold_crawls
from profiles import examples, few, few_tuples

from recrawl.model import Pages, crawl_interval, page_freshness, signal_weight
from recrawl.schedule.exact.columns import POLICIES
from recrawl.simulate import World, contender, simulate
from recrawl.simulate.run import run
from recrawl.simulate.run.policies import planned
from recrawl.simulate.run.runners import PlainRunner
from recrawl.simulate.tally import Judge

from .small import as_lists, small_trace

pytestmark = pytest.mark.slow


def random_crawls(trace, rng, n=60):
    """(when, page) in order, within the lives of the pages, some at the instant of a change or a request."""
    when = np.concatenate([rng.uniform(trace.start, trace.end, n), rng.choice(trace.changed_at, 5)])
    when = np.unique(np.concatenate([when, rng.choice(trace.requested_at, 3), [trace.end]]))
    crawls = []
    for at in when.tolist():
        there = np.flatnonzero((trace.created_at < at) & ((trace.deleted_at > at) | (trace.deleted_at == trace.end)))
        crawls += [(at, int(rng.choice(there)))] if len(there) else []
    return crawls


@pytest.mark.parametrize("seed", range(60))
def test_judge_equals_its_twin(seed):
    rng = np.random.default_rng(1000 + seed)
    trace = small_trace(seed)
    crawls = random_crawls(trace, rng)
    count_from, bins = (None, 0) if seed % 3 == 0 else (float(rng.uniform(0, 30)), int(rng.integers(0, 9)))
    judge = Judge(trace, count_from=count_from, bins=bins)
    for at, page in crawls:
        judge.crawl(np.array([page]), at)
    got = judge.verdict()
    expected = naive_judge(as_lists(trace), crawls, trace.start, trace.end, count_from=count_from, bins=bins)
    for name in ("staleness", "staleness_unweighted", "page_staleness", "window_freshness"):
        np.testing.assert_allclose(getattr(got, name), expected[name], atol=1e-12, err_msg=name)
    assert got.crawls.tolist() == expected["crawls"]
    assert got.found.tolist() == expected["found"]
    assert got.requests == sum(expected["crawls"])
    assert got.changes_found == sum(expected["found"])
    assert got.request_freshness == pytest.approx(expected["request_freshness"])


def within(staleness, expected, sigmas=5.0):
    """Whether the mean of independent pages is what it should be, up to sampling error."""
    error = staleness.std(ddof=1) / np.sqrt(len(staleness))
    return abs(staleness.mean() - expected) <= sigmas * error + 1e-12


DRAWS = [tuple(10.0 ** np.random.default_rng(seed).uniform(-1.0, 1.0, 2)) for seed in range(12)]


@pytest.mark.parametrize(("change_rate", "crawl_rate"), few_tuples(DRAWS, 6))
def test_evenly_spaced_crawls(change_rate, crawl_rate):
    pages = Pages(np.full(400, change_rate))
    trace = World("alike", pages, requests=1.0).draw(50 / crawl_rate, np.random.default_rng(7))
    judge = Judge(trace)
    for j in range(1, 51):
        judge.crawl(np.arange(400), j / crawl_rate)
    result = judge.verdict()
    expected = page_freshness(pages[:1], crawl_rate)[0]
    assert within(1 - result.page_staleness, expected)
    asked = len(trace.requested_at)
    assert abs(result.request_freshness - result.freshness) <= 5 * np.sqrt(0.25 / asked)


@pytest.mark.parametrize(("change_rate", "crawl_rate"), few_tuples(DRAWS, 6))
def test_random_crawls(change_rate, crawl_rate):
    n, rng = 400, np.random.default_rng(8)
    pages = Pages(np.full(n, change_rate))
    warm = 30 / (crawl_rate + change_rate)
    trace = World("alike", pages).draw(warm + 50 / crawl_rate, rng)
    judge = Judge(trace, count_from=warm)
    for at in np.sort(rng.uniform(0, trace.end, rng.poisson(n * crawl_rate * trace.end))).tolist():
        judge.crawl(rng.integers(0, n, 1), at)
    expected = page_freshness(pages[:1], crawl_rate, spacing="random")[0]
    assert within(1 - judge.verdict().page_staleness, expected)


@pytest.mark.parametrize("seed", few(range(10), 5))
def test_crawls_at_a_staleness_exponent(seed):
    rng = np.random.default_rng(seed)
    recall, false_rate, level = rng.uniform(0.1, 0.95), rng.uniform(0.1, 2.0), rng.uniform(0.2, 3.0)
    n, end = 300, 200.0
    pages = Pages(np.ones(n), recall=recall, false_rate=false_rate)
    trace = World("alike", pages).draw(end, rng)
    crawls = []
    for page in range(n):
        heard = trace.signals.at[trace.signals.page == page].tolist()
        weight, missed = float(signal_weight(pages)[0]), float(pages.missed_rate[0])
        crawls += [(at, page) for at in threshold_crawls(missed, weight, heard, level, end)]
    judge = Judge(trace, count_from=end / 4)
    for at, page in sorted(crawls):
        judge.crawl(np.array([page]), at)
    interval = crawl_interval(pages[:1], level)[0]
    assert len(crawls) / (n * end) == pytest.approx(1 / interval, rel=0.02)
    assert within(1 - judge.verdict().page_staleness, page_freshness(pages[:1], 1 / interval)[0])


COMPILED = [*POLICIES, "uniform", "change-weighted", "click-weighted", "lambda", "deadline"]


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_runners_make_the_same_crawls(name, sources, monkeypatch):
    for seed in range(examples(4, usual=2)):
        trace = small_trace(seed, n=60, sources=sources)
        compiled = simulate(contender(name), trace, 3.7, bins=4, count_from=3.0)
        with monkeypatch.context() as patch:
            patch.setattr(run, "runner_of", PlainRunner)
            plain = simulate(contender(name), trace, 3.7, bins=4, count_from=3.0)
        assert compiled.crawls.tolist() == plain.crawls.tolist()
        assert compiled.found.tolist() == plain.found.tolist()
        assert compiled.staleness == plain.staleness
        assert compiled.window_freshness.tolist() == plain.window_freshness.tolist()


def test_compiled_draws_have_the_same_distribution(monkeypatch):
    trace = small_trace(3, n=60)
    one = contender("poisson")
    compiled = [simulate(one, trace, 4.0, rng=np.random.default_rng(k)) for k in range(30)]
    monkeypatch.setattr(run, "runner_of", PlainRunner)
    plain = [simulate(one, trace, 4.0, rng=np.random.default_rng(100 + k)) for k in range(30)]
    first, second = (np.array([r.staleness for r in runs]) for runs in (compiled, plain))
    assert abs(first.mean() - second.mean()) <= 5 * np.hypot(first.std(), second.std()) / np.sqrt(30)
    counts = [np.sum([r.crawls for r in runs], axis=0) for runs in (compiled, plain)]
    assert (np.abs(counts[0] - counts[1]) <= 5 * np.sqrt(counts[0] + counts[1] + 1.0)).all()


def test_same_seed_same_result():
    world = World("one", Pages(np.linspace(0.1, 1, 50), recall=0.5, false_rate=0.2), requests=1.0)
    for name in ("signals", "poisson"):
        runs = [
            simulate(contender(name), world.draw(50.0, np.random.default_rng(5)), 10.0, rng=np.random.default_rng(6))
            for _ in range(2)
        ]
        assert runs[0].as_dict() == runs[1].as_dict()


@pytest.mark.parametrize("execution", ["deadline", "poisson"])
def test_planned_rates_reach_the_planned_freshness(execution):
    from recrawl.simulate import Contender
    from recrawl.solver import solve

    rng = np.random.default_rng(4)
    pages = Pages(rng.uniform(0.1, 1, 500), rng.uniform(0.1, 1, 500))
    trace = World("known", pages).draw(150.0, rng)
    plan = solve(pages, 150.0, spacing="even" if execution == "deadline" else "random")
    result = simulate(Contender("planned", planned(execution)), trace, 150.0, rng=rng, count_from=30.0)
    assert result.freshness == pytest.approx(plan.freshness, abs=0.01)
