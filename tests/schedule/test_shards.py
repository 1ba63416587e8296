"""Shards: hosts stay together and move little, budgets meet at one threshold, the loss is what it should be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.schedule import equal_slope_split
from profiles import examples

from recrawl import Pages, solve
from recrawl.errors import ParameterError
from recrawl.schedule import rebalance, shard_loss, shard_of, split_budget

HOSTS = np.array([f"host{i}.example.org" for i in range(4000)])


def some_pages(n, n_hosts, seed=0):
    rng = np.random.default_rng(seed)
    host = rng.integers(0, n_hosts, n)
    change = rng.random(n) * rng.lognormal(0.0, 1.0, n_hosts)[host]
    return Pages(change, rng.random(n) * rng.lognormal(0.0, 1.0, n_hosts)[host], host=host)


def test_shards_are_the_same_everywhere():
    assert shard_of(["a.org", "b.org", "c.org", "a.org"], 8).tolist() == [2, 7, 1, 2]
    assert shard_of(np.array([1, 2]), 8).tolist() == shard_of(["1", "2"], 8).tolist()


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_shards_get_equal_parts(n):
    count = np.bincount(shard_of(HOSTS, n), minlength=n)
    assert np.abs(count - 4000 / n).max() <= 5 * np.sqrt(4000 / n) * (n > 1)


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_a_new_shard_takes_its_share_and_moves_nothing_else(n):
    before, after = shard_of(HOSTS, n), shard_of(HOSTS, n + 1)
    moved = before != after
    assert (after[moved] == n).all()
    assert moved.mean() == pytest.approx(1 / (n + 1), abs=5 / np.sqrt(4000 * (n + 1)))


def test_a_shard_taken_out_gives_its_hosts_to_the_others():
    names = ["red", "green", "blue", "grey"]
    before = np.array(names)[shard_of(HOSTS, names)]
    left = ["red", "blue", "grey"]
    after = np.array(left)[shard_of(HOSTS, left)]
    assert (before[before != after] == "green").all()
    assert len(np.unique(after[before == "green"])) == 3


@settings(deadline=None, max_examples=examples(60))
@given(
    curves=st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.3, 4.0)), min_size=1, max_size=8),
    budget=st.floats(0.1, 1000.0),
)
def test_budgets_meet_at_one_threshold(curves, budget):
    share = split_budget([lambda b, a=a, p=p: a * b**-p for a, p in curves], budget, tolerance=1e-9)
    assert share.sum() == pytest.approx(budget)
    assert share == pytest.approx(equal_slope_split(curves, budget), rel=1e-5, abs=2e-9 * budget)


def test_a_shard_that_needs_nothing_hands_its_budget_on():
    curves = [lambda b: 0.0, lambda b: 1 / b, lambda b: max(0.0, 1.0 - b)]
    share = split_budget(curves, 10.0)
    assert share.sum() == pytest.approx(10.0)
    assert share[0] < 1e-5
    assert 1 / share[1] == pytest.approx(1.0 - share[2], rel=1e-4)


def test_a_shard_where_no_crawl_is_worth_enough_gets_next_to_nothing():
    pages = Pages([1.0] * 50 + [0.5] * 50, [1.0] * 50 + [0.1] * 50)
    found = shard_loss(pages, np.repeat([0, 1], 50), 20.0, "threshold")
    assert solve(pages, 20.0).crawl_rate[50:].max() == 0
    assert found.budgets[1] < 1e-7
    assert found.thresholds[1] < found.thresholds[0]
    assert abs(found.loss) < 1e-8


@pytest.mark.parametrize("n_shards", [2, 5, 16])
def test_equal_thresholds_give_the_split_of_the_one_plan(n_shards):
    pages = some_pages(3000, 300)
    shard = shard_of(pages.host, n_shards)
    best = np.bincount(shard, solve(pages, 300.0).crawl_rate)
    even, met = shard_loss(pages, shard, 300.0), shard_loss(pages, shard, 300.0, "threshold")
    assert met.budgets == pytest.approx(best, rel=1e-4)
    assert abs(met.loss) < 1e-9
    assert even.loss > 100 * abs(met.loss)
    assert even.budgets.sum() == pytest.approx(300.0)


def test_one_shard_loses_nothing():
    pages = some_pages(500, 10)
    assert shard_loss(pages, np.zeros(500), 50.0).loss == 0.0


def test_objectives_and_spacings_are_handed_on():
    pages = some_pages(500, 50)
    shard = shard_of(pages.host, 3)
    random = shard_loss(pages, shard, 50.0, spacing="random")
    assert random.one == solve(pages, 50.0, spacing="random").freshness
    assert 0 < random.loss < 0.1


@pytest.mark.parametrize(
    "call",
    [
        lambda: shard_of(["a"], 0),
        lambda: shard_of(["a"], ["x", "x"]),
        lambda: rebalance([1.0, 0.0], [1.0, 1.0]),
        lambda: rebalance([1.0, 1.0], [1.0, -1.0]),
        lambda: rebalance([1.0, 1.0], [1.0, 1.0], 0.5),
        lambda: split_budget([], 1.0),
        lambda: split_budget([lambda b: 1 / b], float("nan")),
        lambda: shard_loss(Pages([1.0, 2.0]), [0], 1.0),
        lambda: shard_loss(Pages([1.0, 2.0]), [0, 1], 1.0, "fair"),
    ],
)
def test_wrong_use(call):
    with pytest.raises(ParameterError):
        call()
