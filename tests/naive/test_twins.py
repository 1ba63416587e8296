"""The naive twins against Monte Carlo and against each other."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import integrate, optimize, special

import naive
from naive.crawl_value import Source

pytestmark = pytest.mark.slow

N_RUNS = 40_000


def simulate(missed, sources, exponent, n_runs, seed):
    """Times until ατ + Σκ_k n_k ≥ exponent when source k signals at rate γ_k, one run after the other."""
    rng = np.random.default_rng(seed)
    rates = np.array([rate for rate, _ in sources])
    weights = np.array([weight for _, weight in sources])
    total = rates.sum()
    time, level = np.zeros(n_runs), np.zeros(n_runs)
    live = np.ones(n_runs, bool)
    while live.any():
        n = live.sum()
        gap = rng.exponential(1 / total, n)
        left = (exponent - level[live]) / missed if missed else np.full(n, np.inf)
        time[live] += np.minimum(gap, left)
        jump = weights[rng.choice(len(rates), n, p=rates / total)]
        level[live] = np.where(gap < left, level[live] + missed * gap + jump, np.inf)
        live = level < exponent * (1 - 1e-12)
    return time


def assert_mean(sample, expected):
    assert abs(sample.mean() - expected) < 4 * sample.std() / math.sqrt(len(sample))


NOISY = [(1.0, 0.5, 0.3, 1.7), (0.4, 0.9, 2.0, 0.8), (2.0, 0.2, 0.05, 4.0), (1.0, 1.0, 0.5, 2.5)]


@pytest.mark.parametrize(("change_rate", "recall", "false_rate", "exponent"), NOISY)
def test_interval_is_the_mean_time_to_the_threshold(change_rate, recall, false_rate, exponent):
    weight = math.log1p(recall * change_rate / false_rate)
    source = (recall * change_rate + false_rate, weight)
    sample = simulate((1 - recall) * change_rate, [source], exponent, N_RUNS, 1)
    assert_mean(sample, naive.interval(change_rate, recall, false_rate, exponent))


@pytest.mark.parametrize(("change_rate", "recall", "false_rate", "exponent"), NOISY)
def test_fresh_time_is_the_mean_time_before_change_and_threshold(change_rate, recall, false_rate, exponent):
    # before the first change only false signals arrive
    rng = np.random.default_rng(2)
    weight = math.log1p(recall * change_rate / false_rate)
    time = simulate((1 - recall) * change_rate, [(false_rate, weight)], exponent, N_RUNS, 3)
    sample = np.minimum(time, rng.exponential(1 / change_rate, N_RUNS))
    assert_mean(sample, naive.fresh_time(change_rate, recall, false_rate, exponent))


@pytest.mark.parametrize("missed", [0.3, 0.0])
@pytest.mark.parametrize("sources", [[(0.7, 0.9), (1.3, 0.35)], [(0.7, 0.9), (1.3, 0.35), (0.2, math.inf)]])
def test_several_sources_match_monte_carlo(sources, missed):
    # V = ∫₀^s e^{−u} ψ(u) du = E ∫₀^s e^{−u} T(u) du; u drawn from the density e^{−u}/(1 − e^{−s})
    s, rng = 2.2, np.random.default_rng(4)
    levels = -np.log1p(-rng.random(400) * -math.expm1(-s))
    means = np.array([simulate(missed, sources, u, 400, seed).mean() for seed, u in enumerate(levels)])
    change = missed + sum(rate * -math.expm1(-weight) for rate, weight in sources)
    assert_mean(means * -math.expm1(-s), naive.value_sources(change, 1.0, sources, missed, s))


def test_several_sources_reduce_to_one():
    change, recall, false = 1.3, 0.6, 0.9
    signal, weight = recall * change + false, math.log1p(recall * change / false)
    s = (1 - recall) * change * 1.7 + 2 * weight
    expected = naive.value(change, 2.0, recall, false, 1.7, 2)
    for rates in ([(signal, weight)], [(signal / 3, weight), (signal * 2 / 3, weight), (5.0, 0.0)]):
        assert naive.value_sources(change, 2.0, rates, (1 - recall) * change, s) == pytest.approx(expected, rel=1e-14)
    noise = naive.value_sources(change, 2.0, [(1.0, 0.0)], change, change * 1.7)
    assert noise == pytest.approx(naive.value(change, 2.0, 0.0, 1.0, 1.7), rel=1e-14)


@pytest.mark.parametrize(
    ("change_rate", "recall", "false_rate", "elapsed", "signals"),
    [
        (1.0, 0.5, 0.3, 2.0, 1),
        (1.0, 0.9, 3.0, 1e-3, 0),
        (0.2, 0.3, 0.0, 5.0, 0),
        (1.0, 1 - 1e-9, 0.4, 2.0, 3),
    ],
)
def test_value_is_the_integral_of_the_interval(change_rate, recall, false_rate, elapsed, signals):
    with mp.workdps(40):
        page = Source(change_rate, recall, false_rate)
        base = page.missed * elapsed
        s = base + (signals * page.weight if signals else 0)
        kinks = [] if page.weight == mp.inf else [i * page.weight for i in range(int(s / page.weight) + 1)]
        cuts = sorted({mpf(0), *kinks, s})
        fast = page.missed / page.signal  # ψ bends on this scale behind every kink
        cuts = sorted({*cuts, *(c + k * fast for c in cuts for k in (1, 4, 16, 64) if c + k * fast < s)})
        area = mp.quad(lambda u: mp.exp(-u) * page.interval(u, 0), cuts)
        got = naive.value(change_rate, 3.0, recall, false_rate, elapsed, signals)
        assert got == pytest.approx(float(3 * area), rel=1e-14)


@pytest.mark.parametrize(
    ("recall", "false_rate", "elapsed", "signals"),
    [(0.5, 200.0, 0.5, 60), (0.01, 80.0, 1.5, 0), (0.97, 7e5, 0.04, 21000), (1 - 1e-3, 3e4, 1.0, 60000)],
)
def test_poles_equal_the_sum(recall, false_rate, elapsed, signals):
    with mp.workdps(60):
        page = Source(1.0, recall, false_rate)
        base = page.missed * elapsed
        s = base + page.weight * signals
        by_sum, by_poles = page.value_sum(base, signals, None)[0], page.value_poles(s)[0]
        assert abs(by_sum / by_poles - 1) < mpf(10) ** -40
        assert abs(page.interval(base, signals) / page.interval_poles(s) - 1) < mpf(10) ** -40


def test_gamma_p():
    for a, x in [(1, 1e-9), (3, 2.5), (50, 40.0), (50, 70.0), (3000, 3100.0)]:
        with mp.workdps(30):
            expected = mp.gammainc(a, 0, mpf(x), regularized=True)
            assert abs(naive.gamma_p(a, mpf(x)) / expected - 1) < 1e-25
    for x in (1999000.5, 2000100.5):
        got = float(naive.gamma_p(2_000_000, mpf(x)))
        assert got == pytest.approx(special.gammainc(2_000_000, x), rel=1e-12)


def test_special_cases_are_limits():
    cases = [
        ((1.0, 1.0, 0.0, 0.3, 2.0), (1.0, 1.0, 1e-20, 0.3, 2.0)),  # pure noise
        ((1.0, 1.0, 0.0, 0.0, 2.0), (1.0, 1.0, 0.0, 0.3, 2.0)),
        ((1.0, 1.0, 0.5, 0.0, 2.0), (1.0, 1.0, 0.5, 1e-300, 2.0)),  # proof
        ((1.0, 1.0, 0.5, 0.0, 2.0, 1), (1.0, 1.0, 0.5, 1e-300, 2.0, 1)),
        ((1.0, 1.0, 1.0, 0.3, 2.0, 4), (1.0, 1.0, 1 - 2.0**-53, 0.3, 2.0, 4)),  # complete
        ((1.0, 1.0, 1.0, 1e12, 3.0, 10**12), (1.0, 1.0, 1 - 2.0**-53, 1e12, 3.0, 10**12)),
    ]
    for one, other in cases:
        assert naive.value(*one) == pytest.approx(naive.value(*other), rel=1e-15)
    assert naive.value(0.0, 1.0, 0.5, 0.3, 2.0) == naive.value(1.0, 0.0, 0.5, 0.3, 2.0) == 0.0
    assert naive.value(1.0, 1.0, 1.0, 0.3, 2.0) == naive.value(1.0, 1.0, 1.0, 0.0, 2.0) == 0.0


def test_terms_reach_the_value():
    page = (1.0, 1.0, 0.5, 2.0, 3.0, 2)
    kept = [naive.value(*page, terms=j) for j in (1, 2, 3, 200)]
    assert kept == sorted(kept)
    assert kept[-1] == naive.value(*page)


@pytest.mark.parametrize("page", [(1.0, 2.0, 0.5, 0.3), (0.1, 1.0, 0.0, 0.0), (3.0, 1.0, 1 - 1e-12, 1.0)])
@pytest.mark.parametrize("signals", [0, 2])
def test_inverse_round_trip(page, signals):
    target = naive.value(*page, 0.7, signals)
    elapsed = naive.inverse(*page, target, signals)
    if signals == 0 or page[2] < 0.99:  # at recall ≈ 1 elapsed hardly moves V after a signal
        assert elapsed == pytest.approx(0.7, rel=1e-12)
    assert naive.value(*page, elapsed, signals) == pytest.approx(target, rel=1e-15)
    assert naive.inverse(*page, page[1] / page[0] * (1 + 1e-15), signals) == math.inf


def test_costs_match_monte_carlo():
    rng = np.random.default_rng(5)
    change, rate = 1.4, 0.8
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, 200))])
    for spacing, age in [
        ("even", rng.random(N_RUNS) / rate),
        ("random", rng.exponential(1 / rate, N_RUNS)),
    ]:
        first = rng.exponential(1 / change, N_RUNS)
        assert_mean((first > age) * 1.0, naive.freshness(change, rate, spacing))
        assert_mean(harmonic[rng.poisson(change * age)], naive.harmonic_cost(change, rate, spacing))
        assert_mean(np.maximum(age - first, 0.0), naive.age_cost(change, rate, spacing))
    age = rng.geometric(0.3, N_RUNS) - 1
    assert_mean(0.8**age, naive.freshness(0.2, 0.3, "steps"))


@pytest.mark.parametrize("ratio", [1e-6, 0.5, 3.0, 1e5])
def test_costs_match_their_closed_forms(ratio):
    change, rate = 2.0 * ratio, 2.0
    assert naive.harmonic_cost(change, rate, "random") == pytest.approx(math.log1p(ratio), rel=1e-14)
    slope = -change / (rate * (rate + change))
    assert naive.harmonic_cost_slope(change, rate, "random") == pytest.approx(slope, rel=1e-14)
    assert naive.age_cost(change, rate, "random") == pytest.approx(change / (rate * (rate + change)), rel=1e-14)
    # −∂J/∂ρ = V(1/ρ) for even spacing, whatever the cost
    for cost_slope, index in [
        (naive.harmonic_cost_slope, naive.value_harmonic),
        (naive.age_cost_slope, naive.value_age),
    ]:
        assert -cost_slope(change, rate, "even") == pytest.approx(index(change, 1.0, 1 / rate), rel=1e-14)
    index = naive.value(change, 1.0, 0.0, 0.0, 1 / rate)
    assert naive.freshness_slope(change, rate, "even") == pytest.approx(index, rel=1e-14)


@pytest.mark.parametrize("elapsed", [1e-6, 0.3, 7.0])
def test_indices_match_their_definitions(elapsed):
    change = 1.7
    # V(τ) = τ c(τ) − ∫₀^τ c(u) du with c summed term by term
    area = integrate.quad(lambda u: naive.expected_harmonic(change, u), 0, elapsed, epsrel=1e-12, limit=20)[0]
    expected = elapsed * naive.expected_harmonic(change, elapsed) - area
    assert naive.value_harmonic(change, 1.0, elapsed) == pytest.approx(expected, rel=1e-9)
    known = naive.value_posterior(change, 1.0, math.inf, elapsed)
    assert known == pytest.approx(naive.value(change, 1.0, 0.0, 0.0, elapsed), rel=1e-14)
    assert naive.value_posterior(change, 1.0, 1e15, elapsed) == pytest.approx(known, rel=1e-13)


def test_refresh_ratio_minimises_the_cost():
    crawl, stale, change = 1.0, 1.0, 1 / 24
    found = optimize.minimize_scalar(
        lambda r: stale * (1 + math.expm1(-r) / r) + crawl * change / r,
        bounds=(0.01, 5),
        options={"xatol": 1e-9},
    )
    assert naive.refresh_ratio(crawl, stale, change) == pytest.approx(found.x, rel=1e-6)
    assert naive.refresh_ratio(2.0, 1.0, 0.5) == math.inf
