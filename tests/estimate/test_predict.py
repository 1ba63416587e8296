"""Predictors: the loss's derivatives, rates found again from intervals of any length, calibration, priors."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import ParameterError
from recrawl.estimate import Columns, Observations, Predictor, posterior_moments, train_predictor
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.predict.encode import Outcomes, cross_fitted, value_rates
from recrawl.estimate.predict.loss import censored_loss
from recrawl.estimate.predict.prior import Strength, fit_strength
from recrawl.estimate.predict.scores import auc, calibration, reliability, score
from recrawl.estimate.predict.trees import TreeSettings
from recrawl.estimate.predict.urls import url_columns

pytestmark = pytest.mark.slow

TREES = TreeSettings(threads=1, n_trees=80, least_rows=40)


@given(st.floats(-18, 3.5), st.floats(1e-3, 30.0), st.booleans())
def test_derivatives_are_those_of_the_loss(log_rate, interval, changed):
    step = 1e-4
    at = np.array([log_rate - step, log_rate, log_rate + step])
    low, here, high = (censored_loss(f, interval, changed) for f in at)
    for value, derivative in (("value", "gradient"), ("gradient", "hessian")):
        difference = (getattr(high, value) - getattr(low, value)) / (2 * step)
        assert float(getattr(here, derivative)) == pytest.approx(float(difference), rel=1e-4, abs=1e-9)
    assert here.hessian >= 0


def test_the_loss_is_that_of_the_chance():
    m = math.exp(-0.3) * 2.5
    assert float(censored_loss(-0.3, 2.5, True).value) == pytest.approx(-math.log(1 - math.exp(-m)))
    assert float(censored_loss(-0.3, 2.5, False).value) == pytest.approx(m)


@pytest.mark.parametrize("f", [-1000.0, -50.0, 50.0, 1000.0])
def test_the_loss_is_finite_at_the_ends(f):
    for changed in (True, False):
        assert all(np.isfinite(part) for part in censored_loss(f, 1.0, changed))


def world(rng, n_pages=3000, n_groups=60, own=0.4, crawls=(3, 9)):
    """Pages whose rates follow a group, a number and their own luck, crawled at intervals of any length."""
    group = rng.integers(0, n_groups, n_pages)
    number = rng.normal(size=n_pages)
    effect = rng.normal(0.0, 1.0, n_groups)
    expected = -2.0 + effect[group] + 0.8 * number
    rate = np.exp(expected + own * rng.normal(size=n_pages) - own**2 / 2)
    page = np.repeat(np.arange(n_pages), rng.integers(*crawls, n_pages))
    interval = rng.exponential(4.0, len(page)) + 0.05
    changed = rng.random(len(page)) < -np.expm1(-rate[page] * interval)
    table = {"group": group[page], "number": number[page], "noise": rng.normal(size=len(page))}
    return table, interval, changed, page, np.exp(expected), rate


COLUMNS = Columns(numbers=("number", "noise"), categories=("group",))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    table, interval, changed, page, expected, rate = world(rng)
    at = rng.uniform(0, 100, len(page))
    model = train_predictor(table, interval, changed, COLUMNS, page=page, at=at, settings=TREES)
    return model, table, interval, changed, page, at, expected, rate


def test_rates_are_found_again(fitted):
    model, table, _, _, page, _, expected, _ = fitted
    assert np.corrcoef(np.log(expected[page]), model.log_rate(table))[0, 1] > 0.95
    error = model.log_rate(table) - np.log(expected[page])
    assert abs(error.mean()) < 0.1


def test_a_short_interval_says_less_than_a_long_one():
    """The same share of changes within 1 and within 10 is not the same rate; exposure tells them apart."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, 20_000)
    interval = np.where(kind == 1, 10.0, 1.0)
    changed = rng.random(20_000) < 0.3
    model = train_predictor({"kind": kind}, interval, changed, Columns(categories=("kind",)), settings=TREES)
    rate = model.rate({"kind": np.array([0, 1])})
    assert rate[0] == pytest.approx(-math.log(0.7), rel=0.08)
    assert rate[1] == pytest.approx(-math.log(0.7) / 10, rel=0.08)
    assert model.chance({"kind": np.array([0, 1])}, [1.0, 10.0]) == pytest.approx([0.3, 0.3], abs=0.02)


def test_scores_are_by_date_and_calibrated(fitted):
    model, _, _, _, _, at, _, _ = fitted
    scores = model.about["scores"]
    assert scores["test"]["rows"] == pytest.approx(0.2 * len(at), rel=0.02)
    assert scores["test"]["auc"] > 0.75
    assert scores["test"]["loss"] < scores["test"]["loss_of_one_rate"]
    assert scores["test"]["calibration_slope"] == pytest.approx(1.0, abs=0.12)
    assert len(scores["test"]["reliability"]) == 10
    for row in scores["test"]["reliability"]:
        slack = 4 * math.sqrt(row["predicted"] * (1 - row["predicted"]) / row["rows"])
        assert row["observed"] == pytest.approx(row["predicted"], abs=slack + 0.03)
    assert scores["test_new_pages"]["auc"] > 0.7
    assert model.about["dates"] == [at.min(), at.max()]


def test_training_does_not_see_what_comes_after_its_dates():
    """Labels of the last dates, turned around, change the test's scores but not the model."""
    rng = np.random.default_rng(5)
    table, interval, changed, page, _, _ = world(rng, 600)
    at = rng.uniform(0, 100, len(page))
    late = at > np.quantile(at, 0.8)
    args = (COLUMNS,)
    one = train_predictor(table, interval, changed, *args, page=page, at=at, settings=TREES)
    other = train_predictor(table, interval, np.where(late, ~changed, changed), *args, page=page, at=at, settings=TREES)
    np.testing.assert_array_equal(one.log_rate(table), other.log_rate(table))
    assert one.about["scores"]["test"]["auc"] > other.about["scores"]["test"]["auc"]


@pytest.mark.slow
def test_noise_promises_nothing():
    """With hundreds of values that say nothing, cross-fitting keeps the model near one rate for all."""
    rng = np.random.default_rng(2)
    n = 50_000
    table = {"group": rng.integers(0, 3000, n)}
    changed = rng.random(n) < 0.1
    model = train_predictor(table, 1.0, changed, Columns(categories=("group",)), settings=TREES)
    test = model.about["scores"]["test"]
    assert abs(test["auc"] - 0.5) < 0.04  # four standard errors
    assert test["loss"] < test["loss_of_one_rate"] + 0.003


def test_cross_fitting_uses_other_pages_only():
    seen = Outcomes(np.ones(6), np.array([1, 1, 0, 0, 0, 0], bool), np.arange(6))
    feature = cross_fitted(np.arange(6), 6, seen, 0.3)
    assert feature == pytest.approx(np.log(0.3))  # alone in its value: nothing is known of it
    own = value_rates(np.arange(6), 6, seen, 0.3)
    assert own[0] > math.log(0.3) > own[5]


def test_crossed_categories_see_what_neither_sees():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 5, (2, 20_000))
    changed = rng.random(20_000) < np.where((a + b) % 5 == 0, 0.5, 0.05)
    columns = Columns(categories=("a", "b"), crosses=(("a", "b"),))
    model = train_predictor({"a": a, "b": b}, 1.0, changed, columns, settings=TREES)
    assert model.chance({"a": np.array([1, 1]), "b": np.array([4, 3])}) == pytest.approx([0.5, 0.05], abs=0.06)


def test_values_never_seen_and_empty_cells_are_scored(fitted):
    model = fitted[0]
    rate = model.rate({"group": np.array([999, 3]), "number": [0.0, np.nan], "noise": [np.nan, 0.0]})
    assert np.isfinite(rate).all()
    assert (rate > 0).all()


def test_auc_and_reliability_by_hand():
    assert auc([3, 1, 2], [True, False, False]) == 1.0
    assert auc([1, 1], [True, False]) == 0.5
    assert math.isnan(auc([1, 2], [True, True]))
    rows = reliability([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1], n_bins=2)
    assert [row["observed"] for row in rows] == [0.0, 1.0]
    assert [row["predicted"] for row in rows] == pytest.approx([0.3, 0.7])
    assert score(np.zeros(0), np.zeros(0), np.zeros(0, bool)) == {"rows": 0}


def test_the_slope_tells_bold_from_shy():
    rng = np.random.default_rng(6)
    f = rng.normal(-1.0, 1.0, 40_000)
    interval = np.ones(40_000)
    changed = rng.random(40_000) < -np.expm1(-np.exp(f))
    assert calibration(f, interval, changed) == pytest.approx((0.0, 1.0), abs=0.03)
    assert calibration(2 * f, interval, changed)[1] == pytest.approx(0.5, abs=0.03)
    assert calibration(f + 1, interval, changed)[0] == pytest.approx(-1.0, abs=0.05)


# --- the prior, and a page's own history -----------------------------------------------------------------------------


def crawl_history(rng, rate, crawls, interval=3.0):
    hit = rng.random((len(rate), crawls)) < -np.expm1(-rate[:, None] * interval)
    return Observations(np.arange(len(rate) + 1) * crawls, np.full(hit.size, interval), hit.ravel())


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.7, 4.0])
def test_strength_is_found_again(shape):
    rng = np.random.default_rng(8)
    predicted = np.exp(rng.normal(-2.0, 1.0, 3000))
    rate = predicted * 1.3 * rng.gamma(shape, 1 / shape, 3000)
    found = fit_strength(crawl_history(rng, rate, 12), np.log(predicted))
    assert found.evidence == pytest.approx(shape, rel=0.15)
    assert found.scale == pytest.approx(1.3, rel=0.08)
    assert found.power == pytest.approx(1.0, abs=0.06)
    bold = fit_strength(crawl_history(rng, rate, 12), 2 * np.log(predicted))
    assert bold.power == pytest.approx(0.5, abs=0.04)
    np.testing.assert_allclose(
        np.log(bold.prior(2 * np.log(predicted)).mean), np.log(found.prior(np.log(predicted)).mean), atol=0.2
    )


def test_too_few_pages_teach_no_strength():
    assert fit_strength(Observations([0, 1], [1.0], [True]), [0.5]) == Strength(1.0, 1.0, 1.0, 0.5)


def test_own_history_takes_over():
    """With crawls the error falls from the prediction's towards 0; it beats both prediction and own history alone."""
    rng = np.random.default_rng(9)
    predicted = np.exp(rng.normal(-2.0, 1.0, 2500))
    rate = predicted * rng.gamma(3.0, 1 / 3.0, 2500)
    blind = GammaPrior.hours(1.0)
    errors, alone = [], []
    for crawls in (0, 2, 8, 32, 128):
        seen = crawl_history(rng, rate, crawls)
        for prior, kept in ((GammaPrior.from_mean(predicted, 3.0), errors), (blind, alone)):
            mean = posterior_moments(seen, prior).mean
            kept.append(float(np.mean((np.log(mean) - np.log(rate)) ** 2)))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.35 * errors[0]
    assert errors[0] < 0.5 * alone[0]
    assert errors[2] < alone[2]
    assert errors[-1] == pytest.approx(alone[-1], rel=0.25)  # by then the prior hardly matters


def test_an_engine_starts_from_the_prediction_and_learns(fitted):
    """A prediction counts as evidence beside what is known of rates in general: the more, the stronger it is."""
    from recrawl.engine import Engine

    model = fitted[0]
    table = {"group": np.array([0, 1]), "number": np.array([0.0, 1.0]), "noise": np.zeros(2)}
    prior = model.prior(table)
    urls = ["https://a.example/1", "https://a.example/2"]
    off = []
    for strength in (1.0, 10.0, 1000.0):
        engine = Engine(1.0, day=1.0, sources=0)
        known = {"change_rate": prior.mean, "evidence": strength * prior.shape}
        ids = engine.add(urls, 0.0, fetched_at=0.0, **known)
        off.append(np.abs(np.log(engine.pages(ids).change_rate / prior.mean)).max())
    assert off[0] < 0.5
    assert off[2] < 0.01 < off[1] < off[0]
    engine = Engine(1.0, day=1.0, sources=0)
    ids = engine.add(urls, 0.0, fetched_at=0.0, change_rate=prior.mean, evidence=prior.shape)
    for k in range(1, 40):
        engine.record(ids, 0.5 * k, changed=[True, False])
    after = engine.pages(ids).change_rate
    assert after[0] > 1.0
    shape, rate = prior.rows(2)
    assert 0.2 < after[1] / (shape[1] / (rate[1] + 19.5)) < 1.0  # most pages are slow: other pages say so too


# --- URLs ------------------------------------------------------------------------------------------------------------


def test_urls_become_columns():
    urls = ["https://A.example/News/2024/x-7.html?q=1#top", "https://a.example", "a.example/p/", "", "x" * 5000]
    columns, words = url_columns(urls)
    assert columns["url_host"].tolist()[:4] == ["a.example", "a.example", "a.example", ""]
    assert columns["url_folder"].tolist()[:3] == ["a.example/news/2024", "a.example", "a.example/p"]
    assert columns["url_extension"].tolist() == ["html", "", "", "", ""]
    assert columns["url_depth"].tolist() == [3, 0, 2, 0, 0]
    assert columns["url_query"].tolist()[0] == 3
    assert np.diff(words.offset).tolist() == [4, 0, 1, 0, 0]


def test_numbers_in_urls_are_alike_but_years_are_not():
    _, words = url_columns(["https://a/x-17", "https://a/x-9", "https://a/x-2024", "https://a/x-2023"])
    rows = np.split(words.bucket, words.offset[1:-1])
    assert rows[0].tolist() == rows[1].tolist() != rows[2].tolist() != rows[3].tolist()


def test_url_features_find_fast_sections():
    rng = np.random.default_rng(11)
    n = 6000
    news, number = rng.random(n) < 0.3, rng.integers(0, 40, n)
    url = np.array(
        [f"https://h{k % 9}.example/{'news' if f else 'help'}/item-{k}" for f, k in zip(news, number, strict=True)]
    )
    changed = rng.random(n) < np.where(news, 0.6, 0.05)
    model = train_predictor({"url": url}, 1.0, changed, Columns(url=True), page=np.arange(n), settings=TREES)
    new = {"url": np.array(["https://other.example/news/thing", "https://other.example/help/thing"])}
    chance = model.chance(new)
    assert chance[0] > 0.4
    assert chance[1] < 0.15


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.rate({"group": [1], "number": [0.0]}), "lacks noise; the model reads number, noise, group"),
        (lambda m: m.rate({"group": [1], "number": ["x"], "noise": [0.0]}), "number is not a column of numbers"),
        (lambda m: m.rate({"group": [1], "number": [0.0], "noise": [0.0, 1.0]}), "columns differ in length"),
        (lambda m: m.rate({"group": [1], "number": [np.inf], "noise": [0.0]}), "number, row 0 is infinite"),
        (lambda m: Columns(), "needs input columns"),
        (lambda m: Columns(("a",), ("a",)), "named twice"),
        (lambda m: Columns(categories=("a",), crosses=(("a", "b"),)), "b is crossed"),
        (lambda m: train_predictor({"a": [1, 2]}, 0.0, [True, False], Columns(("a",))), "interval"),
        (lambda m: train_predictor({"a": [1, 2]}, 1.0, [False, False], Columns(("a",))), "rows with a change"),
        (lambda m: train_predictor({"b": [1, 2]}, 1.0, [True, False], Columns(("a",)), page=[0, 0]), "lacks a"),
        (lambda m: train_predictor({"a": [1, 2]}, 1.0, [True, False], Columns(("a",)), at=[1.0]), "at has 1 rows"),
        (lambda m: fit_strength(Observations([0, 1], [1.0], [True]), [1.0, 2.0]), "log_rate has 2 rows"),
    ],
)
def test_what_cannot_be_is_refused(fitted, call, message):
    with pytest.raises(ParameterError, match=message):
        call(fitted[0])


def test_the_family_must_be_one_of_two():
    table, interval, changed, page, _, _ = world(np.random.default_rng(1), 100)
    with pytest.raises(ParameterError, match="forest"):
        train_predictor(table, interval, changed, COLUMNS, page=page, family="forest")


def test_a_saved_predictor_is_the_same(fitted, tmp_path):
    model, table = fitted[:2]
    model.save(tmp_path / "m.json")
    again = Predictor.load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.log_rate(table), model.log_rate(table))
    assert (again.strength, again.about, again.inputs) == (model.strength, model.about, model.inputs)


def test_too_few_rows_are_one_line():
    url = np.array([f"https://shop.example/{k % 3}" for k in range(12)])
    changed = np.arange(12) % 2 == 0
    with pytest.raises(ParameterError, match="no trees can be grown from"):
        train_predictor({"url": url}, np.ones(12), changed, Columns(url=True), settings=TreeSettings(threads=1))
