"""Signal quality against its naive twin, its optimality conditions, its corners, and Appendix E in small."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import estimate as naive
from profiles import examples

from recrawl.errors import ParameterError
from recrawl.estimate import (
    GammaPrior,
    Observations,
    QualityPrior,
    QualityStream,
    RateStream,
    estimate_change_rate,
    estimate_signal_quality,
    fit_quality_prior,
)


def signalled_world(n, k, seed, *, precision=0.6, recall=0.7, rate=0.5, sources=1):
    rng = np.random.default_rng(seed)
    interval = rng.exponential(2.0, n * k)
    own = rate * recall / sources
    hits = rng.poisson(own * interval[:, None], (n * k, sources))
    false = rng.poisson((own * (1 - precision) / precision) * interval[:, None], (n * k, sources))
    missed = rng.poisson(rate * (1 - recall) * interval)
    return Observations(np.arange(n + 1) * k, interval, missed + hits.sum(axis=1) > 0, hits + false)


@pytest.mark.parametrize("sources", [1, 2, 3])
def test_mle_equals_minimisation(sources):
    seen = signalled_world(6, 60, seed=sources, sources=sources)
    found = estimate_signal_quality(seen, "mle")
    amount = np.column_stack([seen.interval, seen.signals])
    for page in range(len(seen)):
        rows = slice(seen.offset[page], seen.offset[page + 1])
        wanted = naive.quality(amount[rows], seen.changed[rows])
        got = np.concatenate([[found.missed_rate[page]], found.weight[page]])
        open_end = np.array([False, *(wanted[1:] > 25)])  # every signalled interval changed: no finite optimum
        np.testing.assert_allclose(got[~open_end], wanted[~open_end], rtol=1e-8, atol=1e-9)
        assert (got[open_end] > 25).all()


def test_shrunk_equals_minimisation_with_pseudo_observations():
    seen = signalled_world(5, 8, seed=9)
    prior = QualityPrior(precision=[0.3], strength=4.0, missed_rate=0.2, missed_strength=1.0)
    found = estimate_signal_quality(seen, prior=prior)
    length = np.log(2) / 0.2
    pseudo = [([length, 0], True, 0.5), ([length, 0], False, 0.5), ([0, 1], True, 1.2), ([0, 1], False, 2.8)]
    amount = np.column_stack([seen.interval, seen.signals])
    for page in range(5):
        rows = slice(seen.offset[page], seen.offset[page + 1])
        wanted = naive.quality(amount[rows], seen.changed[rows], pseudo)
        got = [found.missed_rate[page], found.weight[page, 0]]
        np.testing.assert_allclose(got, wanted, rtol=1e-8)


row = st.tuples(st.floats(-6, 9).map(lambda x: 10.0**x), st.integers(0, 4), st.integers(0, 4), st.booleans())


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(row, max_size=40))
def test_any_history_gives_finite_quality(rows):
    table = np.array(rows, dtype=float).reshape(-1, 4)
    seen = Observations([0, len(rows)], table[:, 0], table[:, 3].astype(bool), table[:, 1:3])
    for method in ("mle", "shrunk", "naive"):
        found = estimate_signal_quality(seen, method)
        columns = [
            getattr(found, name) for name in ("missed_rate", "weight", "signal_rate", "false_rate", "change_rate")
        ]
        ends = [end for pair in found.ends.values() for end in pair]
        for column in (*columns, *ends):
            assert np.isfinite(column).all()
            assert (column >= 0).all()
        for name in ("precision", "recall"):
            low, high = found.ends[name]
            assert (low <= high + 1e-12).all()
            assert ((getattr(found, name) >= 0) & (getattr(found, name) <= 1 + 1e-12)).all()


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(
        st.tuples(st.floats(0.1, 10.0), st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=40
    )
)
def test_shrunk_meets_the_optimality_conditions(rows):
    table = np.array(rows, dtype=float)
    seen = Observations([0, len(rows)], table[:, 0], table[:, 3].astype(bool), table[:, 1:3])
    prior = QualityPrior([0.4, 0.6], 2.0, 0.3)
    found = estimate_signal_quality(seen, prior=prior)
    p = np.concatenate([found.missed_rate, found.weight[0]])
    unit = np.eye(3) * prior.pseudo[0, :, 0]
    pseudo = [(unit[j], z, prior.pseudo[0, j, 1 + (not z)]) for j in range(3) for z in (True, False)]
    slope = naive.quality_slope(table[:, :3], seen.changed, p, pseudo)
    assert np.all(np.abs(slope * p) < 1e-6 * len(rows))


def test_what_cannot_be_told_apart_still_reaches_the_top():
    """Every changed interval had the same length and one signal: the Hessian is singular, the optimum is not."""
    seen = Observations([0, 6], [1.0] * 6, [True, False, True, True, False, False], signals=[1, 0, 1, 1, 1, 0])
    found = estimate_signal_quality(seen, "mle")
    assert found.missed_rate[0] == 0.0
    assert found.precision[0, 0] == pytest.approx(0.75, rel=1e-9)


@settings(deadline=None, max_examples=examples(80))
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=1, max_size=30)
)
def test_mle_is_a_maximum_within_its_bounds(rows):
    table = np.array(rows, dtype=float)
    seen = Observations([0, len(rows)], table[:, 0], table[:, 3].astype(bool), table[:, 1:3])
    found = estimate_signal_quality(seen, "mle")
    p = np.concatenate([found.missed_rate, found.weight[0]])
    slope = naive.quality_slope(table[:, :3], seen.changed, p) if seen.changed.any() else -table[:, :3].sum(axis=0)
    below_cap = p < 36 / table[:, :3].max(axis=0, initial=1e-9) * 0.99
    assert np.all(slope[below_cap] < 1e-6 * len(rows))
    assert np.all(np.abs(slope * p)[below_cap & (p > 0)] < 1e-6 * len(rows))


def test_without_signals_the_missed_rate_is_the_change_rate():
    seen = signalled_world(20, 40, seed=4)
    silent = Observations(seen.offset, seen.interval, seen.changed, np.zeros((len(seen.interval), 1)))
    found = estimate_signal_quality(silent, "mle")
    np.testing.assert_allclose(found.missed_rate, estimate_change_rate(seen, "mle").change_rate, rtol=1e-8)
    assert (found.precision == 0).all()


def test_appendix_e_in_small():
    seen = signalled_world(60, 2000, seed=5)
    fitted, shares = (estimate_signal_quality(seen, method) for method in ("mle", "naive"))
    assert fitted.precision.mean() == pytest.approx(0.6, abs=0.01)
    assert fitted.recall.mean() == pytest.approx(0.7, abs=0.01)
    assert shares.precision.mean() > 0.7
    assert shares.recall.mean() > 0.75
    for name, value in (("precision", 0.6), ("recall", 0.7)):
        low, high = fitted.ends[name]
        assert np.mean((low <= value) & (value <= high)) >= 0.75


def test_short_histories_are_drawn_to_their_host():
    good, bad = signalled_world(40, 8, seed=6, precision=0.9), signalled_world(40, 8, seed=7, precision=0.2)
    both = Observations(
        np.concatenate([good.offset, good.offset[-1] + bad.offset[1:]]),
        np.concatenate([good.interval, bad.interval]),
        np.concatenate([good.changed, bad.changed]),
        np.concatenate([good.signals, bad.signals]),
    )
    host = np.repeat(["good.example", "bad.example"], 40)
    prior = fit_quality_prior(both, host)
    assert prior.precision[0, 0] > prior.precision[50, 0] + 0.3
    true = np.repeat([0.9, 0.2], 40)
    error = {
        m: np.mean((estimate_signal_quality(both, m, host=h).precision[:, 0] - true) ** 2)
        for m, h in (("mle", None), ("shrunk", host))
    }
    assert error["shrunk"] < 0.5 * error["mle"]


def test_credit_for_a_change_equals_double_quadrature():
    gammas, amounts = [(1.5, 3.0), (2.0, 4.0)], (1.2, 2.0)
    stream = QualityStream([GammaPrior(a, b) for a, b in gammas], 1)
    stream.update([0], [amounts[0]], [True], [[amounts[1]]])
    means, variances = naive.credit(gammas, amounts)
    np.testing.assert_allclose([stream.missed_rate[0], stream.weight[0, 0]], means, rtol=1e-7)
    shape, rate = stream.state()["pages"][0].T
    np.testing.assert_allclose(shape / rate**2, variances, rtol=1e-6)


def test_stream_without_signals_is_the_rate_stream():
    prior = GammaPrior(0.7, 1.5)
    stream = QualityStream([prior, GammaPrior(1.0, 1.0)], 1)
    plain = RateStream(prior, 1)
    for interval, changed in [(1.0, True), (2.0, False), (0.5, True)]:
        stream.update([0], [interval], [changed], [[0]])
        plain.update([0], [interval], [changed])
    np.testing.assert_allclose(stream.missed_rate, plain.change_rate, rtol=1e-12)


def test_stream_follows_the_batch_fit():
    seen = signalled_world(200, 500, seed=8)
    stream = QualityStream.from_quality([0.5], 0.3, 200)
    stream.update(seen.page, seen.interval, seen.changed, seen.signals)
    batch = estimate_signal_quality(seen, "mle")
    assert abs(np.mean(stream.precision) - np.mean(batch.precision)) < 0.05
    assert abs(np.mean(stream.recall) - np.mean(batch.recall)) < 0.05
    np.testing.assert_allclose(stream.signal_rate, batch.signal_rate, rtol=1e-9)
    again = QualityStream.restore(stream.state())
    assert np.array_equal(again.weight, stream.weight)
    empty = QualityStream.from_quality([0.5], 0.3, 200)
    np.testing.assert_allclose(stream.merge(empty).weight, stream.weight, rtol=1e-12)


def test_bad_input_is_named():
    seen = signalled_world(2, 3, seed=0)
    for call, words in [
        (lambda: estimate_signal_quality(Observations([0, 1], [1.0], [True])), "signals is missing"),
        (lambda: estimate_signal_quality(seen, "magic"), "method is 'magic'"),
        (lambda: estimate_signal_quality(seen, prior=QualityPrior([0.5, 0.5])), "prior is for 2 sources"),
        (lambda: QualityPrior([1.0]), "precision, row 0 is 1.0"),
        (lambda: fit_quality_prior(seen, ["a"]), "host has 1 rows"),
    ]:
        with pytest.raises(ParameterError, match=words):
            call()
