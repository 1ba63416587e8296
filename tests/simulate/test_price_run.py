"""Runs on a shop's days, beside a plain twin that goes through them hour by hour."""

import numpy as np
import pytest

from recrawl import Scheduler
from recrawl.schedule import Exp3, kab
from recrawl.simulate.shop import price_kernels as kernels
from recrawl.simulate.shop.price_days import STEPS, Plans, from_history, from_truth, record_days
from recrawl.simulate.shop.price_run import ByBandit, ByPolicy, ByStrategy, run_prices
from recrawl.simulate.shop.shop import Shop


@pytest.fixture(scope="module")
def days():
    return record_days(Shop(400, seed=3), 40, 70, {"history": from_history, "truth": from_truth})


class Noted(ByStrategy):
    """Keeps what was crawled when."""

    def pick(self, now, copies):
        ids = super().pick(now, copies)
        self.crawls = [*getattr(self, "crawls", []), (now, ids.tolist())]
        return ids


def naive_run(days, crawls, *, copied):
    """Every price at every instant from the list of all changes; nothing is carried on but the copies."""
    changes = {}
    for day in days:
        for i in range(day.n):
            changes.setdefault(i, [(float(day.day), int(day.source.price[i]))])
        for i, at, price in zip(*day.source.changes, strict=True):
            changes[int(i)].append((float(at), int(price)))

    def live(offer, now):
        return max((entry for entry in changes[offer] if entry[0] <= now), key=lambda entry: entry[0])[1]

    copy = {i: live(i, days[0].day) for i in range(days[0].n)} if copied else {}
    plan = dict(crawls)
    seen, right = [], []
    for day in days:
        right.append(np.mean([copy.get(i) == live(i, day.day) for i in range(day.n)]))
        good = total = 0
        for hour in range(24):
            if hour % 2 == 0:
                now = day.day + (hour // 2) / STEPS
                for i in plan[now]:
                    copy[i] = live(i, now)
            for i, h, n in zip(*day.source.clicks, strict=True):
                if h == hour:
                    total += int(n)
                    good += int(n) * (copy.get(int(i)) == live(int(i), day.day + (hour + 0.5) / 24))
        seen.append(good / total if total else np.nan)
    return np.array(seen), np.array(right)


@pytest.mark.parametrize("copied", [True, False])
def test_a_run_equals_its_twin(days, copied):
    decider = Noted(Plans(days, 0.4, "truth"), "impression-weighted", np.random.default_rng(1))
    run = run_prices(days, decider, copied=copied)
    seen, right = naive_run(days, decider.crawls, copied=copied)
    assert run.clicks_right == pytest.approx(seen, nan_ok=True)
    assert run.offers_right == pytest.approx(right)
    assert run.crawls.sum() == sum(len(ids) for _, ids in decider.crawls)


@pytest.mark.parametrize("source", ["history", "truth"])
def test_all_spend_the_same_budget(days, source):
    plans = Plans(days, 0.3, source)
    expected = sum(0.3 * day.n for day in days)
    rng = np.random.default_rng(2)
    deciders = {
        "uniform": ByStrategy(plans, "uniform", rng),
        "kab3": ByBandit(plans, ("click-weighted", "uniform"), Exp3(2), rng),
        "greedy": ByPolicy(Scheduler(start=40.0, lease=1e-3), plans),
    }
    for name, decider in deciders.items():
        if source == "truth" or name == "uniform":  # by history, some offers are never crawled
            assert run_prices(days, decider).crawls.sum() == pytest.approx(expected, rel=0.01), name


def test_samples_keep_to_probabilities_and_counts():
    rng = np.random.default_rng(3)
    probability = np.array([0.0, 1.0, 0.25, 0.5, 0.0, 0.75, 1.0])
    count = np.zeros(7)
    for _ in range(4000):
        out = np.empty(9, np.int64)
        n = kernels.sample(probability, rng.random(), out)
        assert n in (3, 4)
        assert len(set(out[:n].tolist())) == n
        count[out[:n]] += 1
    assert count / 4000 == pytest.approx(probability, abs=0.03)
    assert count[[0, 4]].tolist() == [0, 0]


def test_expected_rewards_are_those_of_many_draws():
    rng = np.random.default_rng(4)
    probability, click = rng.random(300), rng.random(300)
    live, local = np.zeros(300, np.int32), (rng.random(300) < 0.4).astype(np.int32)
    found = []
    for _ in range(3000):
        out = np.empty(400, np.int64)
        ids = out[: kernels.sample(probability, rng.random(), out)]
        found.append(click[ids[local[ids] != 0]].sum() / click[ids].sum())
    assert kernels.expected_reward(probability, click, live, local) == pytest.approx(np.mean(found), rel=0.02)


@pytest.mark.slow
def test_a_bandit_as_a_policy_does_as_the_one_in_the_run(days):
    """The same arms, once drawn offer by offer by the run, once as policies behind the bandit of ``schedule``."""
    plans, fresh = Plans(days, 0.5, "truth"), {"run": [], "policy": []}
    arms = ("click-weighted", "change-weighted", "uniform")
    for seed in range(4):
        inside = ByBandit(plans, arms, Exp3(3), np.random.default_rng(seed))
        bandit = kab(
            list(arms), budget=0.5 * days[0].n, step=1 / STEPS, start=40.0, lease=1e-3, rng=np.random.default_rng(seed)
        )
        for name, decider in (("run", inside), ("policy", ByPolicy(bandit, plans))):
            run = run_prices(days, decider, copied=True)
            fresh[name].append([np.nanmean(run.clicks_right[5:]), run.offers_right[5:].mean()])
    a, b = np.mean(fresh["run"], 0), np.mean(fresh["policy"], 0)
    assert a == pytest.approx(b, abs=0.02)


def test_one_arm_is_its_strategy(days):
    plans = Plans(days, 0.3, "truth")
    alone = run_prices(days, ByStrategy(plans, "lambda", np.random.default_rng(5)))
    rng = np.random.default_rng(5)
    bandit = ByBandit(plans, ("lambda",), Exp3(1), rng)
    bandit.exp3.draw = lambda rng, usable=None: (0, 1.0)
    one = run_prices(days, bandit)
    assert one.offers_right.tolist() == alone.offers_right.tolist()


def test_bandits_by_name_run_on_traces():
    from recrawl.simulate import contender, simulate
    from recrawl.simulate.trace import Trace

    rng = np.random.default_rng(6)
    times = np.sort(rng.uniform(0, 20, (20, 8)), axis=1)
    trace = Trace(0.0, 20.0, offset=np.arange(0, 161, 8), changed_at=times.ravel(), day=1.0)
    for name in ("kab2", "kab3"):
        run = simulate(contender(name), trace, 20.0, rng=np.random.default_rng(7))
        assert run.requests == pytest.approx(400, abs=2)
        assert 0.3 < run.freshness < 1.0
