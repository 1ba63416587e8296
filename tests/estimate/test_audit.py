"""The statistics of audits: intervals by their definition, coverage exactly, surprise against every outcome."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm

from recrawl import ParameterError
from recrawl.crawl.views.audit_report import verdict_text
from recrawl.estimate.audit import (
    Audit,
    Judged,
    allocate,
    audit_of,
    draw_pages,
    share_interval,
    stratified,
    surprise,
    verdict,
)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (10, 10), (77, 100), (199, 200)])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_ends_of_an_interval_are_where_the_tails_are(hits, n, level):
    low, high = share_interval(hits, n, level)
    tail = (1 - level) / 2
    assert low == 0.0 if hits == 0 else binom.sf(hits - 1, n, low) == pytest.approx(tail, rel=1e-6)
    assert high == 1.0 if hits == n else binom.cdf(hits, n, high) == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("n", [20, 100, 400])
def test_an_interval_holds_every_freshness_at_least_as_often_as_it_says(n):
    ends = np.array([share_interval(k, n) for k in range(n + 1)])
    truth = np.linspace(0.01, 0.99, 393)
    held = (ends[:, 0] <= truth[:, None]) & (truth[:, None] <= ends[:, 1])
    coverage = (binom.pmf(np.arange(n + 1), n, truth[:, None]) * held).sum(axis=1)
    assert coverage.min() >= 0.9 - 1e-9
    middle = coverage[(truth > 0.5) & (truth < 0.9)].mean()
    assert middle < (0.96 if n == 20 else 0.935), "and not much more often"


@pytest.mark.parametrize("bad", [{"level": 0.0}, {"level": 1.0}, {"hits": 11}, {"hits": -1}])
def test_what_makes_no_interval_is_refused(bad):
    with pytest.raises(ParameterError):
        share_interval(**{"hits": 5, "n": 10, **bad})


def test_pages_are_drawn_by_importance():
    importance = np.array([0.0, 1.0, 3.0, 0.0, 6.0])
    drawn = draw_pages(importance, 100_000, np.random.default_rng(1))
    share = np.bincount(drawn, minlength=5) / 100_000
    assert np.abs(share - importance / 10).max() < 5 * np.sqrt(0.25 / 100_000)
    assert share[0] == share[3] == 0
    for nothing in ([], [0.0, 0.0], [np.inf]):
        with pytest.raises(ParameterError):
            draw_pages(nothing, 1, np.random.default_rng(1))


def test_surprise_is_that_of_all_outcomes_enumerated():
    rng = np.random.default_rng(2)
    believed, draws = rng.random(8), rng.integers(1, 4, 8)
    for _ in range(20):
        fresh = rng.random(8) < 0.5
        found = (draws * fresh).sum()
        below = 0.0
        for outcome in product([False, True], repeat=8):
            chance = np.prod(np.where(outcome, believed, 1 - believed))
            total = (draws * outcome).sum()
            below += chance * (total < found) + 0.5 * chance * (total == found)
        assert surprise(fresh, believed, draws) == pytest.approx(np.clip(norm.ppf(below), -8, 8), abs=1e-9)


def test_what_is_certain_does_not_surprise_and_what_cannot_be_does():
    assert surprise([True, False], [1.0, 0.0]) == 0.0
    assert surprise([False], [1.0]) == -8.0
    assert surprise([], []) == 0.0


def test_surprises_of_right_forecasts_are_standard_normal():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(2000):
        believed = rng.random(60)
        found.append(surprise(rng.random(60) < believed, believed))
    assert abs(np.mean(found)) < 4 / np.sqrt(2000)
    assert abs(np.std(found) - 1) < 0.07


def an_audit(z=0.0, **fields):
    given = {"began_at": 0.0, "ended_at": 1.0, "draws": 100, "fresh": 80, "unknown": 0, "requests": 100}
    return Audit(**{**given, "forecast": 0.8, "believed": 0.8, "surprise": z, **fields})


def test_an_audit_counts_draws_and_survives_json():
    judged = [Judged(2, True, 0.9), Judged(1, False, 0.5)]
    made = audit_of(judged, began_at=1.0, ended_at=2.0, forecast=0.7, unknown=1, requests=2)
    assert (made.draws, made.fresh, made.freshness) == (3, 2, 2 / 3)
    assert made.believed == pytest.approx((1.8 + 0.5) / 3)
    assert Audit.from_dict(made.as_dict()) == made
    assert made.holds_forecast
    assert not audit_of(judged, began_at=1.0, ended_at=2.0, forecast=0.01).holds_forecast
    with pytest.raises(ParameterError):
        audit_of([], began_at=1.0, ended_at=2.0, forecast=0.7)


def test_verdicts():
    assert verdict([]) is None
    assert verdict([an_audit()]).agree
    assert verdict([an_audit(-1.7)]).agree, "outside the interval, as one in ten is"
    said = verdict([an_audit(-4.0)])
    assert (said.agree, said.direction, said.audits) == (False, "staler", 1)
    said = verdict([an_audit(1.3)] * 10)
    assert (said.agree, said.direction, said.audits) == (False, "fresher", 10)
    said = verdict([an_audit(2.5 * (-1) ** k) for k in range(10)])
    assert (said.agree, said.direction) == (False, "now staler, now fresher")


def test_right_forecasts_are_seldom_called_wrong():
    rng = np.random.default_rng(4)
    wrong = [not verdict([an_audit(float(z)) for z in rng.normal(size=60)]).agree for _ in range(2000)]
    assert 0.0 < np.mean(wrong) < 0.015, "at most 1% by Bonferroni, and the check can fail"


def test_agree_is_said_only_where_the_interval_holds_the_forecast():
    assert verdict_text([an_audit()]) == "agree"
    beside = verdict_text([an_audit(-1.7, forecast=0.95)])
    assert not beside.startswith("agree")
    assert "outside the last interval" in beside
    assert verdict_text([an_audit(-5.0, forecast=0.95)]).startswith("DISAGREE")


WEIGHTS = np.array([5.0, 0.3, 2.0, 0.0, 2.7])


def test_draws_are_divided_in_proportion_to_importance():
    rng = np.random.default_rng(1)
    found = np.array([allocate(WEIGHTS, 37, rng) for _ in range(2000)])
    assert (found.sum(axis=1) == 37).all()
    exact = 37 * WEIGHTS / WEIGHTS.sum()
    assert ((found >= np.floor(exact)) & (found <= np.ceil(exact))).all()
    assert found.mean(axis=0) == pytest.approx(exact, abs=0.05)
    with pytest.raises(ParameterError):
        allocate([0.0, 0.0], 10, rng)


@pytest.mark.parametrize("lost", [0.0, 0.4])
@pytest.mark.parametrize("n", [30, 200])
def test_an_audit_of_strata_finds_the_truth(n, lost):
    """Strata of different freshness; of one, some pages cannot be judged."""
    rng, truth = np.random.default_rng(2), np.array([0.95, 0.1, 0.4, 0.5, 0.8])
    whole = float(np.average(truth, weights=WEIGHTS))
    found, pooled, held = [], [], 0
    for _ in range(600):
        given = allocate(WEIGHTS, n, rng)
        judged = given - rng.binomial(given, [0.0, 0.0, lost, 0.0, 0.0])
        fresh = rng.binomial(judged, truth)
        parts = [
            Audit(0.0, 1.0, j, f, g - j, g, 0.8, 0.8, 0.0) for g, j, f in zip(given, judged, fresh, strict=True) if j
        ]
        one = stratified(parts)
        low, high = one.interval
        assert low <= one.freshness <= high
        assert one.effective <= one.draws + 1e-9
        found.append(one.freshness)
        pooled.append(fresh.sum() / judged.sum())
        held += low <= whole <= high
    assert held >= 0.9 * 600
    assert np.mean(found) == pytest.approx(whole, abs=4 * np.std(found) / np.sqrt(600))
    if not lost:
        assert found == pytest.approx(pooled), "each draw counts as much as another"
    elif n == 200:
        assert abs(np.mean(pooled) - whole) > 2 * abs(np.mean(found) - whole), "weights matter"


def test_an_audit_of_strata_is_kept_with_its_weights():
    parts = [Audit(0.0, 5.0, 40, 30, 0, 40, 0.8, 0.7, 1.0), Audit(1.0, 9.0, 5, 5, 5, 6, 0.6, 0.9, -1.0)]
    one = stratified(parts)
    assert Audit.from_dict(one.as_dict()) == one
    assert (one.began_at, one.ended_at, one.draws, one.unknown, one.requests) == (0.0, 9.0, 45, 5, 46)
    assert one.forecast == pytest.approx((40 * 0.8 + 10 * 0.6) / 50)
    assert "estimate" not in parts[0].as_dict()
    with pytest.raises(ParameterError):
        stratified([])
