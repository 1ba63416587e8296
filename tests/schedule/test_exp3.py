"""EXP3 and its variants: against plain twins, over ten million steps, and with what cannot be used."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.bandit import NaiveExp3, NaiveLosses
from profiles import examples

from recrawl.errors import ParameterError
from recrawl.schedule import BANDIT_RULES, Exp3, regret_bound


def twin_of(rule, n, share):
    if rule == "exp3":
        return NaiveExp3(n, 0.1)
    return NaiveExp3(n, 0.1, share) if rule == "exp3-s" else NaiveLosses(n, rule == "exp3++")


@pytest.mark.parametrize("rule", BANDIT_RULES)
@settings(deadline=None, max_examples=examples(40))
@given(n=st.integers(2, 6), seed=st.integers(0, 99), best=st.floats(0.0, 1.0))
def test_probabilities_equal_the_twin(rule, n, seed, best):
    rng = np.random.default_rng(seed)
    ours, twin = Exp3(n, rule, share=0.01), twin_of(rule, n, 0.01)
    for _ in range(120):
        q = ours.probability()
        assert q == pytest.approx(twin.probability(), rel=1e-9)
        assert q.sum() == pytest.approx(1.0, abs=1e-12)
        arm, drawn = ours.draw(rng)
        assert drawn == q[arm]
        reward = min(1.0, best) if arm == 0 else float(rng.random())
        ours.learn(arm, reward, drawn)
        twin.learn(arm, reward)


def test_gaps_end_exploration_in_the_long_run():
    """With a gap of 1, EXP3++ explores less than the square root alone would have it."""
    ours = Exp3(2, "exp3++")
    ours.play(np.array([[1.0, 0.0]]), np.random.default_rng(1), n_steps=400_000)
    root = 0.5 * math.sqrt(math.log(2) / (2 * 400_000))
    assert 0 < ours.probability()[1] < root


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", [500_000, pytest.param(10_000_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("rule", BANDIT_RULES)
def test_many_steps_without_overflow(rule, n_steps):
    bandit = Exp3(5, rule)
    reward = np.tile([1.0, 0.0, 0.9, 0.5, 0.0], (1000, 1))
    bandit.play(reward, np.random.default_rng(2), n_steps=n_steps)
    assert bandit.step == n_steps
    for column in (bandit.log_weight, bandit.gain, bandit.state()["score"]):
        assert np.isfinite(column).all()
    q = bandit.probability()
    assert np.isfinite(q).all()
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    assert q.argmax() == 0
    bandit.learn(1, 1.0)
    assert np.isfinite(bandit.probability()).all()


@pytest.mark.parametrize("rule", BANDIT_RULES)
def test_play_equals_step_by_step(rule):
    reward = np.random.default_rng(4).random((300, 3))
    one, two = Exp3(3, rule), Exp3(3, rule)
    chosen = one.play(reward, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    for t, arm in enumerate(chosen.tolist()):
        drawn, q = two.draw(rng)
        assert drawn == arm
        two.learn(arm, reward[t, arm], q)
    assert two.probability() == pytest.approx(one.probability(), rel=1e-12)


@pytest.mark.parametrize("rule", BANDIT_RULES)
def test_regret_stays_below_its_bound(rule):
    rng = np.random.default_rng(6)
    lost = []
    for _ in range(20):
        reward = (rng.random((3000, 4)) < [0.6, 0.5, 0.4, 0.3]).astype(float)
        chosen = Exp3(4, rule).play(reward, rng)
        lost.append(reward.sum(0).max() - reward[np.arange(3000), chosen].sum())
    assert np.mean(lost) < regret_bound(rule, 4, 3000)


@pytest.mark.parametrize("rule", BANDIT_RULES)
def test_a_single_arm(rule):
    bandit = Exp3(1, rule)
    for reward in (0.0, 1.0, 0.5):
        assert bandit.draw(np.random.default_rng(0)) == (0, 1.0)
        bandit.learn(0, reward)
    assert bandit.probability().tolist() == [1.0]


@pytest.mark.parametrize("rule", BANDIT_RULES)
def test_arms_that_cannot_be_used_get_nothing(rule):
    bandit = Exp3(3, rule)
    bandit.learn(0, 1.0)
    q = bandit.probability([True, False, True])
    assert q[1] == 0
    assert q.sum() == pytest.approx(1.0)
    assert {bandit.draw(np.random.default_rng(seed), [False, True, False])[0] for seed in range(9)} == {1}


@pytest.mark.parametrize("rule", BANDIT_RULES)
@pytest.mark.parametrize("reward", [-0.001, 1.001, math.nan, math.inf, "much", None])
def test_rewards_outside_0_to_1_are_rejected(rule, reward):
    bandit = Exp3(2, rule)
    bandit.learn(0, 1.0)
    before = bandit.state()
    with pytest.raises(ParameterError, match=r"^reward is .*: (must be in \[0, 1\]|a number is needed)"):
        bandit.learn(1, reward)
    assert all(np.array_equal(before[name], value) for name, value in bandit.state().items())
    with pytest.raises(ParameterError, match=r"^reward"):
        Exp3(2, rule).play([[0.5, 0.5], [0.5, 1.5]], np.random.default_rng(0))


@pytest.mark.parametrize("rule", BANDIT_RULES)
def test_a_saved_state_goes_on(rule):
    bandit = Exp3(3, rule, exploration=0.2, share=0.05)
    for arm in (0, 1, 2, 0):
        bandit.learn(arm, 0.25 * arm)
    again = Exp3.restore(bandit.state())
    assert again.probability().tolist() == bandit.probability().tolist()
    again.learn(2, 1.0)
    bandit.learn(2, 1.0)
    assert again.probability().tolist() == bandit.probability().tolist()


def test_sharing_comes_back_sooner_after_a_shift():
    reward = np.repeat([[0.9, 0.1], [0.1, 0.9]], 4000, axis=0)
    back = {}
    for rule in ("exp3", "exp3-s"):
        late = [Exp3(2, rule).play(reward, np.random.default_rng(seed))[4000:] for seed in range(8)]
        back[rule] = np.mean([np.mean(chosen[:2000] == 1) for chosen in late])
    assert back["exp3-s"] > 0.75 > back["exp3"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Exp3(0), "n_arms is 0"),
        (lambda: Exp3(2, "exp4"), "rule 'exp4' is not one of"),
        (lambda: Exp3(2, exploration=1.5), "exploration is 1.5"),
        (lambda: Exp3(2, exploration=0.0), "exploration is 0"),
        (lambda: Exp3(2).learn(2, 0.5), "arm is 2: there are 2"),
        (lambda: Exp3(2).learn(0, 0.5, probability=0.0), "probability is 0"),
        (lambda: Exp3(2).probability([False, False]), "usable"),
        (lambda: Exp3(2).play([[0.5]], np.random.default_rng(0)), "reward: a table with 2 columns"),
        (lambda: regret_bound("luck", 2, 10), "rule 'luck'"),
    ],
)
def test_wrong_use(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
