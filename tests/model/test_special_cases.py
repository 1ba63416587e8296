"""Every special case is an exact limit of one function: met exactly at the limit, approached without a jump."""

import math

import pytest
from draws import ROUNDING, Page, log_uniform
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.model import Pages, crawl_interval, crawl_value, crawl_value_slope, elapsed_at_value, value_limit

STEPS = [1e-4, 1e-8, 1e-12, 1e-16]
STATES = [(0.01, 0), (0.7, 0), (0.7, 1), (3.0, 2), (20.0, 0), (3.0, 7)]


def value(page: Page, elapsed: float, signals: float = 0) -> float:
    return float(crawl_value(page.pages(), elapsed, signals)[0])


@pytest.mark.parametrize(("elapsed", "signals"), STATES)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("inside", "limit"),
    [
        (lambda e: Page(1.0, 1.0, 0.6, e), Page(1.0, 1.0, 0.6, 0.0)),  # signals become proof
        (lambda e: Page(1.0, 1.0, 1 - e, 0.0), Page(1.0, 1.0, 1.0, 0.0)),  # proof becomes complete
        (lambda e: Page(1.0, 1.0, 1 - e, 0.5), Page(1.0, 1.0, 1.0, 0.5)),  # every change becomes signalled
        (lambda e: Page(1.0, 1.0, e, 0.5), Page(1.0, 1.0, 0.0, 0.5)),  # signals become noise
        (lambda e: Page(1.0, 1.0, 0.6, 0.6 / e), None),  # so many false signals that each weighs nothing
        (lambda e: Page(e, 1.0, 0.6, 0.5), Page(0.0, 1.0, 0.6, 0.5)),  # the page stops changing
        (lambda e: Page(1.0, e, 0.6, 0.5), Page(1.0, 0.0, 0.6, 0.5)),  # the page stops to matter
    ],
)
def test_no_jump(inside, limit, step, elapsed, signals):
    near = value(inside(step), elapsed, signals)
    if limit is None:  # signals that weigh nothing each, but whose number tells: the exponent grows at the rate Δ
        far = value(inside(step / 100), elapsed, signals)
        assert abs(near - far) <= 20 * step + ROUNDING
        return
    at = value(limit, elapsed, signals)
    # V has kinks with a slope of up to the number of signals, and at n ≥ 1 the weight of a proof is infinite
    assert abs(near - at) <= 60 * step * max(1.0, elapsed) * (1 - math.log(step)) + ROUNDING


@given(log_uniform(1e-6, 1e6), log_uniform(1e-12, 1e6), log_uniform(1e-12, 1e12), st.integers(0, 1000))
@settings(max_examples=examples(300))
def test_pure_noise_is_no_signal_at_all(change_rate, x, noise, signals):
    plain, noisy = Pages([change_rate]), Pages([change_rate], false_rate=noise * change_rate)
    elapsed = x / change_rate
    assert crawl_value(noisy, elapsed, signals) == crawl_value(plain, elapsed)
    assert crawl_value_slope(noisy, elapsed, signals) == crawl_value_slope(plain, elapsed)
    goal = 0.5 * value_limit(plain)
    assert elapsed_at_value(noisy, goal, signals) == elapsed_at_value(plain, goal)
    assert crawl_interval(noisy, 2.0) == crawl_interval(plain, 2.0)


@given(log_uniform(1e-3, 1e3), st.floats(0, 0.999), log_uniform(1e-9, 1e3), st.integers(1, 50))
def test_a_proof_is_worth_the_limit(change_rate, recall, elapsed, signals):
    pages = Pages([change_rate], 2.0, recall=max(recall, 1e-12))
    assert crawl_value(pages, elapsed, signals) == value_limit(pages)
    assert elapsed_at_value(pages, value_limit(pages), signals)[0] == 0
    assert crawl_value_slope(pages, elapsed, signals)[0] == 0


@given(log_uniform(1e-3, 1e3), log_uniform(1e-3, 1e3), log_uniform(1e-9, 1e3), st.integers(0, 40))
def test_when_every_change_is_signalled_time_says_nothing(change_rate, false_rate, elapsed, signals):
    pages = Pages([change_rate], recall=1.0, false_rate=false_rate)
    assert crawl_value(pages, elapsed, signals) == crawl_value(pages, 0.0, signals)
    assert crawl_value(pages, math.inf, signals) == crawl_value(pages, 0.0, signals)
    assert crawl_value_slope(pages, elapsed, signals)[0] == 0
    assert signals > 0 or crawl_value(pages, elapsed, 0)[0] == 0


def test_nothing_is_worth_nothing():
    still = Pages([0.0, 1.0, 0.0], importance=[1.0, 0.0, 0.0], recall=0.5, false_rate=1.0)
    for elapsed in (0.0, 1.0, math.inf):
        assert crawl_value(still, elapsed, 3).tolist() == [0.0, 0.0, 0.0]
    assert value_limit(still).tolist() == [0.0, 0.0, 0.0]
    assert crawl_value(Pages([1.0], recall=0.5, false_rate=0.5), 0.0).tolist() == [0.0]


@pytest.mark.parametrize("recall", [0.0, 0.5, 1 - 1e-16])
@pytest.mark.parametrize("false_rate", [0.0, 1e-9, 1.0, 1e9])
def test_the_limit_is_reached(recall, false_rate):
    pages = Pages([4.0], 3.0, recall, false_rate)
    assert crawl_value(pages, math.inf).tolist() == [0.75]
    assert crawl_value(pages, 1e300).tolist() == [0.75]


@pytest.mark.parametrize("objective", ["freshness", "harmonic", "age"])
@pytest.mark.parametrize("seam", [0.5, 745.0])
def test_series_and_closed_form_meet(objective, seam):
    pages = Pages([1.0])
    below, above = crawl_value(pages, [math.nextafter(seam, 0), seam], objective=objective)
    assert abs(above - below) <= 4 * ROUNDING * above


@given(st.floats(-16, -1), st.integers(1, 30))
@settings(max_examples=examples(100))
def test_evidence_tends_to_certainty(power, tenth):
    x = tenth / 3
    sure, nearly = Pages([1.0]), Pages([1.0], evidence=10.0**-power)
    a, b = crawl_value(sure, x)[0], crawl_value(nearly, x)[0]
    assert abs(a - b) <= 2 * x * x * 10.0**power * a + 4 * ROUNDING
