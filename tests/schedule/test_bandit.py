"""Bandits as policies: the contract, rewards by hand, arms that fail, pages under way, classes."""

import copy

import numpy as np
import pytest

from recrawl import Engine, Pages, Scheduler
from recrawl.errors import ParameterError, PolicyError
from recrawl.schedule import CHECKS, Bandit, ContextualBandit, RatePolicy, check_policy, kab

pytestmark = pytest.mark.slow


def mixed(pages, start, **options):
    """Two rate policies, of either execution, and the greedy scheduler."""
    arms = {
        "uniform": RatePolicy(budget=40.0, start=start, lease=300.0),
        "change": RatePolicy(
            budget=40.0, start=start, lease=300.0, rates="change-weighted", execution="poisson",
            rng=np.random.default_rng(1),
        ),
        "greedy": Scheduler(start=start, lease=300.0),
    }  # fmt: skip
    bandit = Bandit(arms, step=0.5, start=start, lease=300.0, rng=np.random.default_rng(2), **options)
    bandit.add(pages, start)
    return bandit


def by_class(pages, start):
    def make(label):
        arms = {"uniform": RatePolicy(budget=40.0, start=start), "greedy": Scheduler(start=start)}
        return Bandit(arms, step=0.5, start=start, rng=np.random.default_rng(len(label)))

    policy = ContextualBandit(make)
    policy.add(pages, start, label=["odd" if i % 2 else "even" for i in range(len(pages))])
    return policy


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_a_bandit_keeps_the_contract(name, start):
    check_policy(mixed, names=[name], start=start)


@pytest.mark.parametrize("rule", ["exp3-s", "exp3-ix", "exp3++"])
def test_so_it_does_with_other_rules(rule):
    check_policy(lambda pages, start: mixed(pages, start, rule=rule))


@pytest.mark.parametrize("name", CHECKS)
def test_a_bandit_of_classes_keeps_the_contract(name):
    check_policy(by_class, names=[name])


def test_presets_and_lists_of_arms_keep_the_contract():
    for arms in ("kab2", "kab3", ["lambda"], ["uniform", "lambda"]):

        def make(pages, start, arms=arms):
            bandit = kab(arms, budget=40.0, step=1.0, start=start, rng=np.random.default_rng(3))
            bandit.add(pages, start)
            return bandit

        check_policy(make)


def single(policy, **options):
    return Bandit({"only": policy}, step=1.0, **options)


def test_rewards_are_the_importance_of_changed_crawls():
    bandit = single(RatePolicy(budget=4.0))
    bandit.add(Pages([0.5] * 4, [1.0, 2.0, 3.0, 4.0]), 0.0)
    ids = bandit.pick(0.0, 4)
    bandit.record(ids, 0.1, changed=ids == 3)
    assert bandit.rows()["plays"].tolist() == [0]  # the step is not over
    bandit.pick(1.0, 1)
    assert bandit.rows()["plays"].tolist() == [1]
    assert bandit.rows()["mean_reward"] == pytest.approx([0.4])


def test_rewards_beside_the_most_that_could_be_gained():
    bandit = single(RatePolicy(budget=4.0, rates=[4.0, 4.0, 0.0, 0.0]), reward="gained")
    bandit.add(Pages([0.5] * 4, [1.0, 2.0, 3.0, 4.0]), 0.0, crawl_rate=[4.0, 4.0, 0.0, 0.0])
    ids = bandit.pick(0.0, 2)
    bandit.record(ids, 0.1, changed=ids == 1)
    bandit.pick(1.0, 1)
    assert bandit.rows()["mean_reward"] == pytest.approx([2 / 7])


def test_a_reward_waits_for_crawls_under_way():
    bandit = single(RatePolicy(budget=4.0), lease=5.0)
    bandit.add(Pages([0.5] * 3), 0.0)
    ids = bandit.pick(0.0, 3)
    bandit.record(ids[:1], 0.1, changed=[True])
    for now in (1.0, 2.0):
        bandit.release(bandit.pick(now, 1), now)  # did not happen: nothing is learned
    bandit.record(ids[1:2], 2.1, changed=[False])
    assert bandit.stats["rewards"] == 0
    bandit.pick(5.5, 1)  # the third crawl's lease has ended: it counts for nothing
    assert bandit.rows()["plays"].tolist() == [1]
    assert bandit.rows()["mean_reward"] == pytest.approx([0.5])


def test_an_arm_that_has_nothing_to_give_earns_0():
    bandit = single(RatePolicy(budget=4.0, rates="change-weighted"))
    bandit.add(Pages([0.0, 0.0]), 0.0)
    assert len(bandit.pick(0.0, 2)) == 0
    bandit.pick(1.0, 2)
    assert bandit.rows()["mean_reward"].tolist() == [0.0]


def test_failed_crawls_and_those_not_judged_count_for_nothing():
    bandit = single(RatePolicy(budget=4.0))
    bandit.add(Pages([0.5] * 3), 0.0)
    ids = bandit.pick(0.0, 3)
    bandit.record(ids[:1], 0.1, failed=[True], changed=[True])
    bandit.record(ids[1:], 0.1)
    bandit.pick(1.0, 1)
    assert bandit.stats["rewards"] == 0


def test_the_arm_whose_crawls_find_changes_is_preferred():
    arms = {
        "good": RatePolicy(budget=9.0, rates="change-weighted", execution="poisson", rng=np.random.default_rng(1)),
        "poor": RatePolicy(budget=9.0, rates="click-weighted", execution="poisson", rng=np.random.default_rng(2)),
    }
    bandit = Bandit(arms, step=1.0, rng=np.random.default_rng(0))
    bandit.add(Pages([1.0] * 50 + [0.01] * 50, [0.01] * 50 + [1.0] * 50), 0.0)
    for now in range(300):
        ids = bandit.pick(float(now), 5)
        bandit.record(ids, float(now), changed=ids < 50)
    rows = bandit.rows()
    assert rows["probability"][0] > 0.9
    assert rows["mean_reward"][0] > rows["mean_reward"][1]


class Failing(RatePolicy):
    """Fails to pick while `broken`, to record while `deaf`."""

    broken = True
    deaf = False

    def pick(self, now, n):
        if self.broken:
            raise RuntimeError("out of order")
        return super().pick(now, n)

    def record(self, ids, now, **columns):
        if self.deaf:
            raise RuntimeError("not heard")
        return super().record(ids, now, **columns)


def with_failing(**options):
    bandit = Bandit(
        {"sound": RatePolicy(budget=9.0), "failing": Failing(budget=9.0)}, step=1.0, rng=np.random.default_rng(5)
    )
    bandit.add(Pages([0.5] * 6), 0.0)
    return bandit


def test_an_arm_that_fails_is_skipped_and_reported():
    bandit = with_failing()
    for now in range(40):
        ids = bandit.pick(float(now), 2)
        assert len(ids) == 2
        bandit.record(ids, float(now), changed=ids == 0)
    rows = bandit.rows()
    assert rows["failures"][1] >= 3
    assert rows["failures"][1] < 8  # it rests longer each time
    assert rows["plays"].tolist()[1] == 0
    assert rows["probability"].tolist() == [1.0, 0.0]
    assert "failing: drawn with 0.000" in str(bandit.explain())
    assert "RuntimeError: out of order" in str(bandit.explain())
    assert bandit.stats["arm_failures"] == rows["failures"][1]


def test_an_arm_that_works_again_is_tried_again():
    bandit = with_failing()
    for now in range(20):
        bandit.record(bandit.pick(float(now), 1), float(now), changed=True)
    bandit._arms.all[1].policy.broken = False
    for now in range(20, 200):
        bandit.record(bandit.pick(float(now), 1), float(now), changed=True)
    assert bandit.rows()["plays"][1] > 10
    assert bandit.rows()["usable"].all()


def test_an_arm_that_missed_something_is_left_out_for_good():
    bandit = with_failing()
    failing = bandit._arms.all[1].policy
    failing.broken, failing.deaf = False, True
    bandit.record(bandit.pick(0.0, 1), 0.0, changed=True)
    failing.deaf = False
    for now in range(1, 150):
        bandit.record(bandit.pick(float(now), 1), float(now), changed=True)
    assert bandit.rows()["probability"].tolist() == [1.0, 0.0]
    assert bandit.rows()["error"][1] == "RuntimeError: not heard"


def test_when_every_arm_fails_the_error_says_why():
    bandit = single(Failing(budget=9.0))
    bandit.add(Pages([0.5]), 0.0)
    with pytest.raises(PolicyError, match="every arm failed: only: RuntimeError: out of order"):
        bandit.pick(0.0, 1)
    bandit._arms.all[0].policy.broken = False
    assert len(bandit.pick(1.0, 1)) == 1  # and it can go on


def test_an_arm_that_picks_what_is_not_there_fails():
    class Wild(RatePolicy):
        def pick(self, now, n):
            return np.array([99])

    bandit = Bandit({"wild": Wild(budget=9.0), "sound": RatePolicy(budget=9.0)}, step=1.0)
    bandit.add(Pages([0.5] * 3), 0.0)
    for now in range(20):
        ids = bandit.pick(float(now), 1)
        assert len(ids) == 1
        bandit.record(ids, float(now))
    assert "was never given out" in bandit.rows()["error"][0]


def test_no_page_is_under_way_twice():
    """Arms change while crawls last long: a page leased by one is not picked by another."""
    bandit = mixed(Pages(np.linspace(0.1, 0.9, 12)), 0.0)
    under_way, rng = set(), np.random.default_rng(7)
    for k in range(600):
        now = 0.1 * k
        ids = set(bandit.pick(now, 3).tolist())
        assert not ids & under_way
        under_way |= ids
        for page in rng.permutation(sorted(under_way))[: rng.integers(0, 4)].tolist():
            bandit.record([page], now, changed=[rng.random() < 0.5])
            under_way.discard(page)
    assert bandit.stats["rewards"] > 50


def test_probabilities_and_rewards_are_saved_with_the_state():
    bandit = mixed(Pages(np.linspace(0.1, 0.9, 12)), 0.0)
    for k in range(60):
        ids = bandit.pick(0.25 * k, 2)
        bandit.record(ids, 0.25 * k, changed=ids > 5)
    again = Bandit.restore(copy.deepcopy(bandit.state()))
    for name, column in bandit.rows().items():
        assert np.array_equal(again.rows()[name], column, equal_nan=name == "mean_reward"), name
    assert str(again.explain()) == str(bandit.explain())


def test_arms_of_other_kinds_are_restored_when_named():
    state = with_failing().state()
    with pytest.raises(ParameterError, match="arm 'failing' is a Failing; give its class in kinds"):
        Bandit.restore(state)
    assert Bandit.restore(state, kinds={"Failing": Failing}).rows()["name"] == ["sound", "failing"]


def test_a_bandit_can_be_an_arm():
    inner = kab("kab5", budget=9.0, step=0.5)
    bandit = Bandit({"kab5": inner, "greedy": Scheduler()}, step=1.0)
    bandit.add(Pages([0.5] * 6), 0.0, impression=np.arange(6.0))
    for now in range(30):
        ids = bandit.pick(float(now), 2)
        bandit.record(ids, float(now), changed=ids == 0)
    bandit.update([0], impression=[3.0])
    again = Bandit.restore(bandit.state())
    assert again.pick(31.0, 2).tolist() == bandit.pick(31.0, 2).tolist()


def test_what_one_arm_refuses_is_refused_before_any_is_told():
    bandit = kab(
        "kab3", budget=9.0, step=1.0, more={"greedy": Scheduler(), "lambda": RatePolicy(budget=9.0, rates="lambda")}
    )
    with pytest.raises(ParameterError, match="change_rate, row 1: at most 1 per step"):
        bandit.add(Pages([0.5, 3.0]), 0.0)
    assert bandit.add(Pages([0.5, 0.6]), 0.0).tolist() == [0, 1]
    with pytest.raises(ParameterError, match="change_rate, row 0: at most 1 per step"):
        bandit.update([1], change_rate=3.0)
    assert bandit.rows()["usable"].all()


def test_a_signal_that_an_arm_cannot_take_is_missed_by_it_alone():
    bandit = Bandit({"greedy": Scheduler(), "deaf": DeafToSignals(budget=9.0)}, step=1.0)
    bandit.add(Pages([0.5, 0.6]), 0.0)
    bandit.signal([0], 0.5)
    assert bandit.rows()["failures"].tolist() == [0, 1]
    for now in range(1, 30):
        bandit.record(bandit.pick(float(now), 1), float(now), changed=True)
    assert bandit.rows()["usable"].all()


class DeafToSignals(RatePolicy):
    def signal(self, ids, now, **given):
        raise RuntimeError("not heard")


def test_engines_can_be_arms():
    engines = {name: Engine(20.0, objective=name, day=1.0, lease=1e-3) for name in ("freshness", "harmonic")}
    bandit = Bandit(engines, step=1.0, lease=1e-3)
    bandit.add([f"https://example.org/{k}" for k in range(5)], 0.0, importance=np.arange(1.0, 6.0))
    for k in range(200):
        ids = bandit.pick(0.05 * k, 1)
        bandit.record(ids, 0.05 * k, changed=ids == 0)
    assert bandit.stats["rewards"] > 5
    again = Bandit.restore(bandit.state(), kinds={"Engine": Engine})
    assert again.pick(10.1, 1).tolist() == bandit.pick(10.1, 1).tolist()


def test_the_budget_reaches_all_arms():
    bandit = kab("kab3", budget=9.0, step=1.0)
    bandit.budget = 4.0
    assert [arm.policy.budget for arm in bandit._arms.all] == [4.0] * 3
    assert bandit.budget == 4.0


def test_classes_get_their_shares_and_their_own_probabilities():
    rng = np.random.default_rng(8)

    def make(label):
        return kab(["change-weighted", "click-weighted"], budget=4.0, step=1.0, rng=np.random.default_rng(len(label)))

    policy = ContextualBandit(make, split={"a": 3.0, "bb": 1.0}, budget=4.0)
    n = 80
    pages = Pages(np.tile([0.9, 0.01], n // 2), np.tile([0.01, 0.9], n // 2))
    ids = policy.add(pages, 0.0, label=np.repeat(["a", "bb"], n // 2))
    count = {"a": 0, "bb": 0}
    for now in range(400):
        got = policy.pick(float(now), 4)
        assert len(got) == 4
        first = got < n // 2
        count["a"] += int(first.sum())
        count["bb"] += int((~first).sum())
        often = got % 2 == 0
        policy.record(got, float(now), changed=np.where(first, often, ~often) & (rng.random(len(got)) < 0.9))
    assert len(ids) == n
    assert count["a"] / 1600 == pytest.approx(0.75, abs=0.01)
    view = policy.explain()
    assert view["a"].arms[0].probability > 0.8  # change-weighted
    assert view["bb"].arms[1].probability > 0.8  # click-weighted


def test_what_a_class_cannot_use_goes_to_the_others():
    policy = ContextualBandit(lambda label: Bandit({"greedy": Scheduler()}, step=1.0))
    policy.add(Pages([0.5] * 10), 0.0, label=["few"] * 2 + ["many"] * 8)
    assert len(policy.pick(1.0, 10)) == 10
    policy = ContextualBandit(lambda label: Bandit({"greedy": Scheduler()}, step=1.0), split={"few": 9.0, "many": 1.0})
    policy.add(Pages([0.5] * 10), 0.0, label=["few"] * 2 + ["many"] * 8)
    assert len(policy.pick(1.0, 6)) == 6


def test_a_class_that_refuses_leaves_the_others_as_they_were():
    def make(label):
        rates = "lambda" if label == "strict" else "uniform"
        return Bandit({"only": RatePolicy(budget=4.0, rates=rates)}, step=1.0)

    policy = ContextualBandit(make)
    with pytest.raises(ParameterError, match="change_rate, row 0: at most 1 per step"):
        policy.add(Pages([0.5, 3.0]), 0.0, label=["free", "strict"])
    assert policy.add(Pages([0.5, 0.5]), 0.0, label=["free", "strict"]).tolist() == [0, 1]
    assert sorted(policy.pick(1.0, 5).tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bandit({}, step=1.0), "arms: at least one policy"),
        (lambda: single(RatePolicy(budget=1.0), rule="luck"), "rule 'luck'"),
        (lambda: single(RatePolicy(budget=1.0), reward="luck"), "reward 'luck' is not one of"),
        (lambda: Bandit({"a": RatePolicy(budget=1.0)}, step=0.0), "step is 0.0"),
        (lambda: single(RatePolicy(Pages([0.5]), budget=1.0)).add(Pages([0.5]), 0.0), "held pages before"),
        (lambda: ContextualBandit(None, split="luck"), "split 'luck'"),
        (lambda: ContextualBandit(None).add(Pages([0.5]), 0.0), "takes no new classes"),
    ],
)
def test_wrong_use(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
