"""The Poisson control of a trace: the same pages and mean rates, independent changes at constant rates."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recrawl.simulate import Past, Trace, contender, poisson_control, simulate
from recrawl.simulate.worlds.events import Events

from .small import small_trace


def test_same_pages():
    trace = small_trace(1, n=40)
    control = poisson_control(trace, np.random.default_rng(1))
    for name in ("importance", "created_at", "deleted_at", "requested_at"):
        assert getattr(control, name).tolist() == getattr(trace, name).tolist()
    assert control.signals is None
    page = control.changes.page
    assert ((control.changed_at >= control.created_at[page]) & (control.changed_at <= control.deleted_at[page])).all()
    assert (np.diff(control.changed_at)[np.diff(page) == 0] >= 0).all()
    assert (control.n_changes[trace.n_changes == 0] == 0).all()
    assert control.true_pages.change_rate.tolist() == control.change_rate.tolist()


def test_mean_rates_and_independence():
    # all changes of a page come at once: in the control they are spread evenly over its life
    n, per_page = 2000, 5
    trace = Trace(0.0, 10.0, offset=np.arange(n + 1) * per_page, changed_at=np.tile(np.linspace(4.0, 4.1, per_page), n))
    control = poisson_control(trace, np.random.default_rng(2))
    assert control.n_changes.mean() == pytest.approx(per_page, abs=4 * np.sqrt(per_page / n))
    assert control.n_changes.var() == pytest.approx(per_page, rel=0.15)
    assert np.histogram(control.changed_at, 10, (0, 10))[0] == pytest.approx(n * per_page / 10, rel=0.2)
    assert len(np.unique(control.changed_at)) == len(control.changed_at)


def test_past_is_drawn_with_the_same_rates():
    n = 1000
    trace = Trace(0.0, 10.0, offset=np.arange(n + 1) * 4, changed_at=np.tile([1.0, 2.0, 3.0, 4.0], n))
    since = np.where(np.arange(n) % 2, -5.0, 0.0)
    trace = replace(trace, past=Past(Events(np.zeros(n + 1, np.int64), np.zeros(0)), since))
    past = poisson_control(trace, np.random.default_rng(3)).past
    count = np.diff(past.changes.offset)
    assert (count[::2] == 0).all()
    assert count[1::2].mean() == pytest.approx(2.0, abs=0.25)
    assert ((past.changes.at > -5.0) & (past.changes.at < 0.0)).all()


def test_policies_run_on_it():
    trace = replace(small_trace(6, n=60, signals=False), pages=None)
    control = poisson_control(trace, np.random.default_rng(4))
    known, learned = (simulate(contender(name), control, 6.0).staleness for name in ("known", "learned"))
    assert 0 < known < learned


def test_exact_bayes():
    # experiments/learner/bayes.py: the belief after two crawls, and its value, by the definitions
    script = Path(__file__).parents[2] / "experiments/learner/bayes.py"
    if not script.exists():
        pytest.skip("experiments are not there")
    spec = importlib.util.spec_from_file_location("learner_bayes", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    trace = Trace(0.0, 10.0, offset=[0, 0, 1, 4], changed_at=[1.0, 1.0, 2.0, 3.0], importance=[1.0, 1.0, 2.0])
    policy = module.Bayes(trace)
    policy.add(np.arange(3), 0.0)
    for now, changed in ((3.0, [False, True, True]), (7.5, [False, False, True])):
        policy.record(np.arange(3), now, changed=np.array(changed))
    rate = module.LEAST * module.RATIO ** np.arange(module.SIZE)
    share = policy._prior
    assert share.sum() == pytest.approx(2 / 3)
    for i, outcomes in enumerate([(0, 0), (1, 0), (1, 1)]):
        stay = [np.exp(-rate * interval) for interval in (3.0, 4.5)]
        likelihood = np.prod([1 - s if o else s for o, s in zip(outcomes, stay, strict=True)], axis=0)
        whole = (share * likelihood).sum() + (1 / 3 if outcomes == (0, 0) else 0.0)
        assert policy._belief[i] == pytest.approx(share * likelihood / whole)
    age, out = np.array([0.5, 2.0, 30.0]), np.empty(3)
    module.values.py_func(policy._belief, rate, age, trace.importance, out)
    x = np.outer(age, rate)
    terms = policy._belief / rate * (1 - np.exp(-x) * (1 + x))
    assert out == pytest.approx(trace.importance * terms.sum(axis=1), rel=1e-5)
