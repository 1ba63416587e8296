"""Shares of a budget: at no time may all owners together spend more than it, whatever fails; nothing stays unspent."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.cluster.shares.controller import (
    LEAST,
    Round,
    Seen,
    ShardPlan,
    cluster_rate,
    control,
    plan_of,
    split_shares,
)
from recrawl.cluster.shares.shares import GRACE, Owner, Share, publish, reserved
from recrawl.crawl.polite.hours import Hours
from recrawl.engine import Engine
from recrawl.errors import ParameterError

BUDGET = 10.0


@dataclass
class Shard:
    """A shard as its owner sees it: what it spends is what it read last."""

    epoch: int = 1
    idle: float = 0.0
    number: int = 0
    spends: float = 0.0
    acknowledged: int = 0

    def read(self, share):
        self.number, self.spends = share.number, share.rate

    def owner(self):
        return Owner(self.epoch, self.idle, self.acknowledged)


class World:
    """A controller and its shards; each method is an event, after which the promise is checked."""

    def __init__(self, n):
        self.shards = {k: Shard() for k in range(n)}
        self.shares: dict[int, Share] = {}

    def spent(self):
        return math.fsum(shard.spends for shard in self.shards.values() if not shard.idle)

    def step(self, targets):
        owners = {k: shard.owner() for k, shard in self.shards.items()}
        self.shares = publish(self.shares, owners, targets, BUDGET)

    def read(self, k):
        if not self.shards[k].idle:
            self.shards[k].read(self.shares.get(k, Share()))

    def acknowledge(self, k):
        if not self.shards[k].idle:
            self.shards[k].acknowledged = self.shards[k].number

    def die(self, k):
        self.shards[k].idle = self.shards[k].idle or 0.1

    def wait(self, k):
        self.shards[k].idle += GRACE if self.shards[k].idle else 0.0

    def join(self, k):
        """The next owner reads the share when it has the lease; what the last one acknowledged stays in the table."""
        if self.shards[k].idle:
            self.shards[k] = Shard(self.shards[k].epoch + 1, acknowledged=self.shards[k].acknowledged)
            self.read(k)


def targets_of(weights):
    total = sum(weights)
    return {k: BUDGET * w / total for k, w in enumerate(weights)} if total else {}


_EVENTS = st.one_of(
    st.tuples(st.just("step"), st.lists(st.integers(0, 9), min_size=4, max_size=4)),
    st.tuples(st.sampled_from(["read", "acknowledge", "die", "wait", "join"]), st.integers(0, 3)),
)


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(_EVENTS, max_size=60))
def test_owners_never_spend_more_than_the_budget(events):
    world = World(4)
    for name, argument in events:
        getattr(world, name)(targets_of(argument) if name == "step" else argument)
        assert world.spent() <= BUDGET
        assert reserved(world.shares) <= BUDGET
        assert all(share.reserved >= share.rate for share in world.shares.values())


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(_EVENTS, max_size=40), st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_shares_reach_their_targets_once_all_answer(events, weights):
    world = World(4)
    for name, argument in events:
        getattr(world, name)(targets_of(argument) if name == "step" else argument)
    goal = targets_of(weights)
    for _ in range(3):
        for k in world.shards:
            world.join(k)
            world.read(k)
            world.acknowledge(k)
        world.step(goal)
    assert {k: share.rate for k, share in world.shares.items()} == pytest.approx(goal, rel=0.005)


def test_raising_before_lowering_is_caught():
    """The check of the first test can fail: a controller that writes targets at once breaks the promise."""
    world = World(2)
    world.step({0: 9.0, 1: 1.0})
    world.read(0)
    world.read(1)
    world.shares = {k: Share(9, rate, rate) for k, rate in ((0, 1.0), (1, 9.0))}
    world.read(1)
    assert world.spent() > BUDGET


def test_a_silent_shard_keeps_its_share_and_a_dead_one_gives_it_back():
    world = World(3)
    world.step(dict.fromkeys(range(3), 3.0))
    for k in world.shards:
        world.read(k)
        world.acknowledge(k)
    world.step({0: 1.0, 1: 6.0, 2: 3.0})  # 0 is silent: what it has stays reserved
    assert [round(world.shares[k].rate, 6) for k in range(3)] == [1.0, 4.0, 3.0]
    world.die(0)
    world.step({0: 1.0, 1: 6.0, 2: 3.0})  # its lease is over: it spends no more
    assert round(world.shares[1].rate, 6) == 6.0
    world.wait(0)
    world.step({0: 1.0, 1: 6.0, 2: 3.0})
    assert world.shares[0].rate == 0.0


def curve(a, pages=10, budgets=(0.1, 1.0, 10.0, 100.0)):
    return ShardPlan(pages, budgets, tuple(a / b for b in budgets))


def test_shards_meet_at_one_threshold_and_none_gets_nothing():
    plans = {0: curve(6.0), 1: curve(3.0), 2: curve(1e-6), 3: ShardPlan(10), 4: ShardPlan(0)}
    shares = split_shares(plans, 8.0)
    assert sum(shares.values()) == pytest.approx(8.0)
    assert shares[0] == pytest.approx(2 * shares[1], rel=1e-3)
    assert shares[2] == pytest.approx(LEAST * 2.0), "a shard that is worth little goes on learning"
    assert shares[3] == pytest.approx(2.0), "a shard without a plan gets its part by pages"
    assert shares[4] == 0.0


def test_a_shard_gets_no_more_than_it_can_use():
    bound = ShardPlan(10, (0.5, 1.0, 1.5), (9.0, 8.0, 0.0))
    assert split_shares({0: bound, 1: curve(1.0)}, 10.0)[0] == pytest.approx(1.5, rel=0.02)


def test_a_controller_goes_on_where_another_stopped():
    owners = {k: Owner(1) for k in range(3)}
    plans = {0: curve(1.0), 1: curve(2.0), 2: curve(3.0)}
    shares, made = control(Seen(owners, plans, 6.0), 100.0, every=600.0)
    assert [round(shares[k].rate, 3) for k in range(3)] == [1.0, 2.0, 3.0]
    again = Seen(owners, {**plans, 0: curve(9.0)}, 6.0, {k: Share(**s.as_dict()) for k, s in shares.items()}, made)
    assert control(again, 200.0, every=600.0) == (shares, made), "before the next round nothing changes"
    later, made = control(again, 700.0, every=600.0)
    assert later[0].target > 1.0
    assert later[0].rate == shares[0].rate, "the others have not acknowledged what they lose"
    gone = Seen({**owners, 2: Owner(1, idle=GRACE)}, plans, 6.0, shares, Round(700.0, 6.0, (0, 1, 2)))
    found, made = control(gone, 701.0, every=600.0)
    assert made.shards == (0, 1)
    assert sum(found[k].target for k in (0, 1)) == pytest.approx(6.0)


def test_a_shard_with_its_first_pages_does_not_wait_for_the_next_round():
    owners = {0: Owner(1), 1: Owner(1)}
    shares, made = control(Seen(owners, {0: curve(1.0), 1: ShardPlan(0)}, 6.0), 0.0, every=600.0)
    assert shares[1].rate == 0.0
    shares, made = control(Seen(owners, {0: curve(1.0), 1: ShardPlan(10)}, 6.0, shares, made), 1.0, every=600.0)
    assert made.at == 1.0
    assert shares[1].target == pytest.approx(3.0)
    assert control(Seen(owners, {0: curve(1.0), 1: ShardPlan(10)}, 6.0, shares, made), 2.0, every=600.0)[1] == made


def test_budgets_in_words_are_of_all_pages():
    plans = [ShardPlan(600), ShardPlan(400)]
    assert cluster_rate("1/page/day", plans, Hours("0-6")) == pytest.approx((4000 / 86400, 1000 / 86400))


def test_plans_are_checked_and_saved():
    with pytest.raises(ParameterError, match="ascend"):
        ShardPlan(1, (2.0, 1.0), (1.0, 1.0))
    plan = curve(2.0)
    assert ShardPlan.of(plan.as_dict()) == plan


def test_the_plan_of_an_engine_is_that_of_solve_and_knows_pages_without_a_copy():
    rng = np.random.default_rng(0)
    engine = Engine(1.0, min_change_probability=0.0)
    urls = [f"https://a.example/{k}" for k in range(200)]
    engine.add(urls, 0.0, fetched_at=0.0, importance=rng.random(200), change_rate=rng.random(200) / 1e2, evidence=1e6)
    plan = plan_of(engine, 0.0, share=1.0, by_pages=1.0)
    from recrawl import solve

    for budget in (0.3, 1.0, 3.0):
        assert plan.threshold(budget) == pytest.approx(solve(engine.pages(), budget).threshold, rel=0.02)
    engine.add([f"https://a.example/new{k}" for k in range(200)], 0.0, change_rate=0.01, evidence=1e6)
    assert plan_of(engine, 0.0, share=1.0, by_pages=1.0).threshold(1.0) > plan.threshold(1.0)


def test_the_plan_of_many_pages_comes_from_a_sample(monkeypatch):
    from recrawl.engine.views import curve as module

    rng = np.random.default_rng(1)
    engine = Engine(1.0, min_change_probability=0.0)
    urls = [f"https://a.example/{k}" for k in range(2000)]
    columns = {"importance": rng.lognormal(0.0, 1.5, 2000), "change_rate": rng.lognormal(-4.0, 1.0, 2000)}
    engine.add(urls, 0.0, fetched_at=0.0, evidence=1e6, **columns)
    whole = plan_of(engine, 0.0, share=5.0, by_pages=5.0)
    monkeypatch.setattr(module, "MOST_PAGES", 500)
    part = plan_of(engine, 0.0, share=5.0, by_pages=5.0)
    assert part.pages == whole.pages == 2000
    for budget in (1.0, 5.0, 25.0):
        assert part.threshold(budget) == pytest.approx(whole.threshold(budget), rel=0.05)


def test_the_plan_knows_what_bounds_crawls():
    """A host's delay, and a price: more than they allow cannot be used."""
    urls = [f"https://a.example/{k}" for k in range(50)]
    columns = {"fetched_at": 0.0, "change_rate": 1e-2, "evidence": 1e6}
    slow = Engine(1.0, min_change_probability=0.0, host_spacing=10.0)
    slow.add(urls, 0.0, **columns)
    assert plan_of(slow, 0.0, share=1.0, by_pages=1.0).budget(0.0) == pytest.approx(0.1, rel=0.01)
    dear = Engine(1.0, min_change_probability=0.0, price=20.0)
    dear.add(urls, 0.0, **columns)
    plan = plan_of(dear, 0.0, share=1.0, by_pages=1.0)
    assert plan.thresholds[-1] == 0.0
    assert min(value for value in plan.thresholds if value > 0) >= 20.0
