"""Rate policies: the deadline schedule against brute force, draws against their rates, and life with changes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from naive.schedule import deadline_schedule
from profiles import examples

from recrawl import Pages, solve
from recrawl.errors import ParameterError
from recrawl.schedule import Policy, RatePolicy

EPOCH = 1.7e9
RULES = ["uniform", "change-weighted", "click-weighted", "lambda"]


def make(rates="uniform", n=6, execution="deadline", seed=1, **options):
    rng = np.random.default_rng(seed)
    pages = Pages(rng.uniform(0.05, 0.95, n), rng.uniform(0.1, 1.0, n))
    return RatePolicy(pages, rates=rates, execution=execution, rng=rng, **{"budget": 2.0, **options})


def crawl(policy, times):
    """Pick one page at each time and record it at once; the pages, or None where nothing was picked."""
    order = []
    for now in times:
        ids = policy.pick(now, 1)
        policy.record(ids, now)
        order.append(int(ids[0]) if len(ids) else None)
    return order


@settings(deadline=None, max_examples=examples(60))
@given(
    parts=st.lists(st.integers(0, 12), min_size=1, max_size=9).filter(any),
    spare=st.integers(0, 6),
    start=st.sampled_from([0.0, 1024.0]),
)
def test_deadlines_equal_brute_force(parts, spare, start):
    slots_per_time = sum(parts) + spare
    policy = RatePolicy(Pages(np.ones(len(parts))), rates=np.array(parts, float), start=start)
    order = crawl(policy, [start + j / slots_per_time for j in range(3 * slots_per_time)])
    assert order == deadline_schedule(
        [Fraction(part) for part in parts], [Fraction(j, slots_per_time) for j in range(3 * slots_per_time)]
    )


@settings(deadline=None, max_examples=examples(60))
@given(
    weight=st.lists(st.floats(0.001, 1.0), min_size=1, max_size=40),
    load=st.sampled_from([1.0, 0.97, 0.5]),
    start=st.sampled_from([0.0, EPOCH]),
)
def test_with_zero_phases_every_count_stays_within_one_of_its_rate(weight, load, start):
    budget = 8.0
    rate = np.array(weight) / sum(weight) * budget * load
    policy = RatePolicy(Pages(np.ones(len(rate))), rates=rate, start=start)
    count = np.zeros(len(rate))
    for j in range(400):
        now = start + j / budget
        ids = policy.pick(now, 1)
        policy.record(ids, now)
        before = np.abs(count - rate * (j / budget)).max()
        count[ids] += 1
        after = np.abs(count - rate * ((j + 1) / budget)).max()
        assert max(before, after) <= 1 + (1e-9 if start == 0 else 1e-5)
    policy._run._check()


def test_random_phases_spread_the_first_crawls():
    policy = make(n=400, budget=4.0, phases="random")
    times = np.arange(0.0, 200.0, 0.25)
    order = np.array([page for page in crawl(policy, times) if page is not None])
    count = np.bincount(order, minlength=400)
    assert np.abs(count - 2.0).max() <= 2.0
    first = [int(np.argmax(order == page)) for page in range(400)]
    assert np.corrcoef(first, np.arange(400))[0, 1] < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("rates", RULES)
def test_draws_follow_the_rates(rates):
    n, policy = examples(20_000, usual=6_000), make(rates, n=50, execution="poisson", budget=20.0)
    order = crawl(policy, np.arange(n) / 20.0)
    expected = policy.crawl_rate * n / 20.0
    count = np.bincount(order, minlength=50)
    assert count.sum() == n
    assert np.abs(count - expected).max() <= 5.0 * np.sqrt(expected.max())
    assert (count[expected == 0] == 0).all()


def test_draws_leave_out_what_the_ceilings_leave():
    policy = make(n=10, execution="poisson", budget=20.0, ceiling=1.0)
    order = crawl(policy, np.arange(4000) / 20.0)
    assert 1800 <= sum(page is not None for page in order) <= 2200


@pytest.mark.parametrize("execution", ["deadline", "poisson"])
@pytest.mark.parametrize("rates", RULES)
def test_a_rule_runs_and_is_a_policy(rates, execution):
    policy = make(rates, execution=execution)
    assert isinstance(policy, Policy)
    assert policy.crawl_rate.sum() == pytest.approx(2.0)
    assert len(policy.pick(0.0, 100)) == np.count_nonzero(policy.crawl_rate)


def test_a_plan_is_executed_as_it_is():
    pages = Pages([0.5, 1.0, 2.0])
    plan = solve(pages, budget=3.0)
    policy = RatePolicy(pages, rates=plan)
    assert policy.crawl_rate.tolist() == plan.crawl_rate.tolist()
    added = policy.add(Pages([1.0, 1.0]), 0.0, crawl_rate=[5.0, 0.0])
    assert policy.crawl_rate[added].tolist() == [5.0, 0.0]
    policy.update(added, crawl_rate=2.0)
    assert policy.crawl_rate[added].tolist() == [2.0, 2.0]
    late = policy.add(Pages([1.0]), 0.0)
    assert policy.crawl_rate[late] == pytest.approx([7.0 / 5.0])


def test_impressions_come_with_the_pages():
    policy = RatePolicy(Pages([0.5, 0.5]), budget=4.0, rates="impression-weighted", impression=[1.0, 3.0])
    assert policy.crawl_rate.tolist() == [1.0, 3.0]
    policy.update([0], impression=[3.0])
    assert policy.crawl_rate.tolist() == [2.0, 2.0]
    with pytest.raises(ParameterError, match="impression"):
        policy.add(Pages([0.5]), 0.0)


def test_rates_follow_pages_and_budget_lazily():
    policy = make("change-weighted", n=3)
    policy.update([0, 1, 2], change_rate=[0.1, 0.2, 0.5])
    assert policy.crawl_rate == pytest.approx([0.25, 0.5, 1.25])
    policy.remove([2])
    policy.budget = 3.0
    assert policy.crawl_rate == pytest.approx([1.0, 2.0, 0.0])
    solves = policy.stats["solves"]
    crawl(policy, [0.0, 1.0, 2.0])
    assert policy.stats["solves"] == solves


def test_a_rate_change_keeps_the_share_earned():
    policy = RatePolicy(Pages([1.0]), rates=[1.0])
    assert crawl(policy, [0.0]) == [0]
    policy.pick(0.5, 0)
    policy.update([0], crawl_rate=2.0)
    assert policy.next_at(0.5) == 0.75


@pytest.mark.parametrize("execution", ["deadline", "poisson"])
def test_lease_release_failure_and_late_records(execution):
    policy = RatePolicy(
        Pages([1.0]), rates=[1.0], lease=10.0, execution=execution, rng=np.random.default_rng(0), budget=1.0
    )
    assert policy.pick(0.0, 1).tolist() == [0]
    assert policy.next_at(1.0) == 10.0
    assert policy.pick(9.9, 1).tolist() == []
    assert policy.pick(10.0, 1).tolist() == [0]
    policy.release([0], 10.0)
    assert policy.pick(10.0, 1).tolist() == [0]
    policy.record([0], 10.5, failed=[True])
    policy.record([0], 10.5, as_of=[10.2])
    policy.record([0], 10.5, as_of=[10.1])
    expected = {"leases_ended": 1, "released": 1, "failed": 1, "outdated": 1, "recorded": 2, "picked": 3}
    assert policy.stats.items() >= expected.items()


def test_a_failed_crawl_is_the_crawl_of_its_turn():
    policy = RatePolicy(Pages([1.0]), rates=[0.5])
    policy.record(policy.pick(0.0, 1), 0.0, failed=True)
    assert policy.next_at(0.0) == 2.0


def test_a_crawl_out_of_turn_counts():
    policy = RatePolicy(Pages([1.0]), rates=[0.5])
    policy.record([0], 0.0)
    assert policy.next_at(0.0) == 2.0


def test_after_a_stall_the_schedule_is_put_off_and_new_pages_do_not_wait_for_it():
    times = np.arange(0.0, 20.0, 0.25)
    policies = [RatePolicy(Pages(np.ones(8)), rates=np.full(8, 0.5), catch_up=1.0) for _ in range(2)]
    assert crawl(policies[0], times[:8]) == crawl(policies[1], times[:8])
    stalled = crawl(policies[0], times[8:] + 1000.0)
    steady = crawl(policies[1], times[8:])
    assert np.bincount(stalled).tolist() == np.bincount(steady).tolist()
    added = policies[0].add(Pages([1.0]), 1020.0, crawl_rate=0.5)
    assert added[0] in crawl(policies[0], 1020.0 + np.arange(12) / 4)


def test_records_of_one_page_in_one_batch_are_taken_in_turn():
    policy = RatePolicy(Pages([1.0, 1.0]), rates=[1.0, 1.0])
    policy.record([0, 0, 1, 0], 5.0, as_of=[3.0, 2.0, 2.0, 4.0])
    assert policy.stats["recorded"] == 3
    assert policy.stats["outdated"] == 1
    assert policy.state()["pages"]["crawled_at"].tolist() == [4.0, 2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": None}, "budget"),
        ({"budget": 0.0}, "budget"),
        ({"rates": "fixed"}, "rates"),
        ({"rates": "fair"}, "rates"),
        ({"rates": [-1.0]}, "rates"),
        ({"rates": [1.0, 2.0]}, "crawl_rate"),
        ({"execution": "never"}, "execution"),
        ({"phases": "some"}, "phases"),
        ({"phases": "random"}, "rng"),
        ({"execution": "poisson"}, "rng"),
        ({"lease": 0.0}, "lease"),
        ({"catch_up": -1.0}, "catch_up"),
        ({"ceiling": float("nan")}, "ceiling"),
        ({"start": float("inf")}, "now"),
        ({"rates": "lambda", "ceiling": 0.1}, "change_rate"),
    ],
)
def test_wrong_settings(options, message):
    with pytest.raises(ParameterError, match=message):
        RatePolicy(Pages([0.5]), **{"budget": 1.0, **options})


class Life(RuleBasedStateMachine):
    """Any sequence of calls keeps the books in order, and a restored policy goes on in the same way."""

    def __init__(self):
        super().__init__()
        self.policy = make(n=4, execution=self.execution, lease=3.0)
        self.now = 0.0
        self.alive, self.leased, self.n = set(range(4)), {}, 4

    @rule(step=st.sampled_from([0.0, 0.1, 1.0, 3.0, -1.0]), n=st.integers(0, 4))
    def pick(self, step, n):
        self.now = max(self.now, self.now + step)
        self.leased = {page: until for page, until in self.leased.items() if until > self.now}
        ids = self.policy.pick(self.now, n).tolist()
        assert len(set(ids)) == len(ids) <= n
        assert set(ids) <= self.alive - set(self.leased)
        self.leased |= dict.fromkeys(ids, self.now + 3.0)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), failed=st.booleans(), gone=st.booleans())
    def record(self, data, failed, gone):
        page = data.draw(st.sampled_from(sorted(self.alive)))
        self.policy.record([page], self.now, failed=failed, gone=gone)
        self.leased.pop(page, None)
        if gone:
            self.alive.discard(page)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def release(self, data):
        page = data.draw(st.sampled_from(sorted(self.alive)))
        self.policy.release([page], self.now)
        self.leased.pop(page, None)

    @rule(n=st.integers(1, 5))
    def add(self, n):
        ids = self.policy.add(Pages(np.full(n, 0.5)), self.now).tolist()
        assert ids == list(range(self.n, self.n + n))
        self.n += n
        self.alive |= set(ids)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def remove(self, data):
        page = data.draw(st.sampled_from(sorted(self.alive)))
        self.policy.remove([page])
        self.alive.discard(page)
        self.leased.pop(page, None)

    @rule(budget=st.sampled_from([0.5, 2.0, 10.0]))
    def budget(self, budget):
        self.policy.budget = budget

    @rule()
    def restore(self):
        self.policy = RatePolicy.restore(self.policy.state())

    @invariant()
    def books_are_in_order(self):
        self.policy._run._check()
        due = self.policy.next_at(self.now)
        assert due >= self.now
        assert set(np.flatnonzero(self.policy.crawl_rate)) == self.alive


class DeadlineLife(Life):
    execution = "deadline"


class PoissonLife(Life):
    execution = "poisson"


TestDeadlineLife = DeadlineLife.TestCase
TestPoissonLife = PoissonLife.TestCase
TestDeadlineLife.settings = TestPoissonLife.settings = settings(
    deadline=None, max_examples=examples(40), stateful_step_count=30
)
