"""Change rates against their naive twins, and in the corners."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import estimate as naive
from profiles import examples

from recrawl.errors import ParameterError
from recrawl.estimate import GammaPrior, Observations, estimate_change_rate
from recrawl.estimate.contract import corner_cases

METHODS = ["naive", "regular", "mle", "smoothed", "prior-hours", "posterior", "complete"]
crawl = st.tuples(st.floats(-6, 9).map(lambda x: 10.0**x), st.booleans())
histories = st.lists(st.lists(crawl, max_size=40), min_size=1, max_size=6)


def observations(pages):
    rows = [row for page in pages for row in page]
    offset = np.concatenate([[0], np.cumsum([len(page) for page in pages])])
    return Observations(offset, [t for t, _ in rows], np.array([z for _, z in rows], bool))


@settings(deadline=None, max_examples=examples(60))
@given(histories)
def test_mle_equals_root_finding(pages):
    found = estimate_change_rate(observations(pages), "mle", level=None).change_rate
    wanted = [naive.mle([t for t, _ in page], [z for _, z in page]) for page in pages]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=9, max_size=60), min_size=1, max_size=5)
)
def test_counted_whole_days_equal_root_finding(pages):
    pages = [[(86400.0 * k, z) for k, z in page] for page in pages]
    found = estimate_change_rate(observations(pages), "mle", level=None).change_rate
    wanted = [naive.mle([t for t, _ in page], [z for _, z in page]) for page in pages]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


@pytest.mark.parametrize(
    ("method", "pseudo"), [("smoothed", [(0.5, 1), (0.5, 0)]), ("prior-hours", [(1 / 24, 1), (57 / 24, 0)])]
)
def test_pseudo_observations_equal_root_finding(method, pseudo):
    rng = np.random.default_rng(1)
    pages = [[(float(t), bool(rng.random() < 0.4)) for t in rng.exponential(2.0, n)] for n in range(30)]
    found = estimate_change_rate(observations(pages), method, day=1.0, level=None).change_rate
    wanted = [naive.mle([t for t, _ in page], [z for _, z in page], pseudo) for page in pages]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    own = estimate_change_rate(observations(pages), "pseudo", pseudo=[(t, bool(z)) for t, z in pseudo], level=None)
    np.testing.assert_allclose(own.change_rate, found, rtol=1e-12)


def test_pseudo_weight_counts_like_repetition():
    seen = observations([[(1.0, True), (2.0, False)]])
    twice = estimate_change_rate(seen, "pseudo", pseudo=[(3.0, True), (3.0, True), (1.0, False)]).change_rate
    weighed = estimate_change_rate(seen, "pseudo", pseudo=[(3.0, True, 2.0), (1.0, False)]).change_rate
    np.testing.assert_allclose(weighed, twice, rtol=1e-12)


def test_likelihood_interval_equals_root_finding():
    rng = np.random.default_rng(2)
    interval = rng.exponential(1.0, 40)
    changed = rng.random(40) < 0.5
    found = estimate_change_rate(Observations([0, 40], interval, changed), "mle", level=0.9)
    low, high = naive.likelihood_ends(interval, changed, found.change_rate[0], 1.6448536269514722**2 / 2)
    np.testing.assert_allclose([found.low[0], found.high[0]], [low, high], rtol=1e-9)


def test_by_hand():
    seen = observations([[(2.0, True), (2.0, False), (2.0, False), (2.0, False)]])
    by = {m: estimate_change_rate(seen, m, day=1.0, prior=GammaPrior(1.0, 1.0)).change_rate[0] for m in METHODS}
    assert by["naive"] == 1 / 8
    assert by["regular"] == pytest.approx(-math.log(3.5 / 4.5) / 2)
    assert by["mle"] == pytest.approx(-math.log(3 / 4) / 2)
    assert by["complete"] == pytest.approx(1.5 / 8.5)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_corners_are_finite_and_ordered(method):
    found = estimate_change_rate(corner_cases(), method, day=1.0)
    for column in (found.change_rate, found.low, found.high, found.evidence):
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert (found.low <= found.change_rate).all()
    assert (found.change_rate <= found.high).all()


@settings(deadline=None, max_examples=examples(40))
@given(histories, st.sampled_from(METHODS))
def test_anything_goes_in_and_finite_numbers_come_out(pages, method):
    found = estimate_change_rate(observations(pages), method, prior=GammaPrior(0.5, 1e4))
    for column in (found.change_rate, found.low, found.high, found.evidence):
        assert np.isfinite(column).all()
    assert (found.low <= found.high).all()


def test_unit_of_time_does_not_matter():
    cases = corner_cases()[np.arange(1, 20) != 8]
    scaled = Observations(cases.offset, cases.interval * 60.0, cases.changed)
    for method in METHODS:
        days = estimate_change_rate(cases, method, day=1.0, prior=GammaPrior(1.0, 2.0))
        minutes = estimate_change_rate(scaled, method, day=60.0, prior=GammaPrior(1.0, 120.0))
        np.testing.assert_allclose(minutes.change_rate * 60, days.change_rate, rtol=1e-8, err_msg=method)


def test_bad_arguments_are_named():
    seen = observations([[(1.0, True)]])
    for call, words in [
        (lambda: estimate_change_rate(seen, "magic"), "method is 'magic'"),
        (lambda: estimate_change_rate(seen, "mle", level=1.5), "level is 1.5"),
        (lambda: estimate_change_rate(seen, "mle", day=0.0), "day is 0.0"),
        (lambda: estimate_change_rate(seen, "pseudo"), "pseudo is empty"),
        (lambda: estimate_change_rate(seen, "pseudo", pseudo=[(0.0, True)]), "pseudo, row 0"),
        (lambda: Observations([0, 1], [-1.0], [True]), "interval, row 0 is -1.0"),
        (lambda: Observations([0, 1], [1.0], [2]), "changed, row 0 is 2"),
        (lambda: Observations([0, 2], [1.0], [True]), "offset must"),
        (lambda: Observations([0, 1], [1.0], [True], signals=[-1.0]), "signals, row 0, source 0 is -1.0"),
        (lambda: GammaPrior(0.0, 1.0), "shape, row 0 is 0.0"),
    ]:
        with pytest.raises(ParameterError, match=words.replace("(", r"\(")):
            call()


def test_choosing_pages_keeps_their_rows():
    cases = corner_cases()
    some = cases[[10, 3, 10]]
    assert some.n_crawls.tolist() == [30, 1, 30]
    assert some.interval[30] == cases.interval[cases.offset[3]]


def test_ten_thousand_crawls_equal_root_finding():
    rng = np.random.default_rng(8)
    interval = 10.0 ** rng.uniform(-6, 9, 10_000)
    changed = rng.random(10_000) < -np.expm1(-1e-3 * interval)
    whole = rng.integers(1, 9, 10_000) * 3600.0
    often = rng.random(10_000) < -np.expm1(-1e-4 * whole)
    seen = Observations([0, 10_000, 20_000], np.concatenate([interval, whole]), np.concatenate([changed, often]))
    wanted = [naive.mle(interval, changed), naive.mle(whole, often)]
    np.testing.assert_allclose(estimate_change_rate(seen, "mle", level=None).change_rate, wanted, rtol=1e-8)
    alone = estimate_change_rate(seen[[1]], "mle", level=None).change_rate
    np.testing.assert_allclose(alone, wanted[1:], rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_no_pages_give_no_rates(method):
    found = estimate_change_rate(Observations([0], [], np.zeros(0, bool)), method)
    assert len(found) == 0
    assert len(found.low) == 0


def test_equal_intervals_that_are_no_common_unit():
    rng = np.random.default_rng(9)
    lengths = 10.0 ** rng.uniform(-6, 9, 300)
    changed = rng.random((300, 40)) < rng.random((300, 1))
    seen = Observations(np.arange(301) * 40, np.repeat(lengths, 40), changed.ravel())
    found = estimate_change_rate(seen, "mle", level=None).change_rate
    wanted = [naive.mle(np.full(40, t), z) for t, z in zip(lengths, changed, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
