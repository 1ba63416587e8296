"""Contract suite for estimators of change rates. It tests our estimators and can test yours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate.observations import Observations

Array = NDArray[np.float64]
Estimate = Callable[[Observations], Any]


def check_estimator(
    factory: Callable[[], Estimate], *, order_matters: bool = False, consistent: bool = True
) -> list[str]:
    """Check estimators made by ``factory()``. Returns the names of the checks passed, or raises AssertionError.

    An estimator takes ``Observations`` and returns one rate per page, as an array or as an object with
    ``change_rate``. Rates must be finite and at least 0 for every history. The input must stay unchanged, and equal
    inputs must give equal rates. The rate of a page must not depend on other pages, nor on the order of its crawls
    (unless ``order_matters``). It must not fall when an unchanged interval becomes a changed one, and must not rise
    when an unchanged interval is added. It must approach the true rate in a long history (unless ``consistent`` is
    False). Wrap a stream with ``stream_estimator`` first.

    >>> from functools import partial
    >>> from recrawl.estimate import estimate_change_rate
    >>> len(check_estimator(lambda: partial(estimate_change_rate, method="mle", level=None)))
    8
    """
    checks: list[Callable[[Callable[[], Estimate]], None]] = [
        check_finite,
        check_input_untouched,
        check_repeats,
        check_page_order,
        check_rises_with_changes,
        check_falls_with_quiet_time,
    ]
    checks += [] if order_matters else [check_crawl_order]
    checks += [check_long_history] if consistent else []
    for check in checks:
        check(factory)
    return [check.__name__ for check in checks]


def stream_estimator(make: Callable[[int], Any]) -> Callable[[], Estimate]:
    """A stream (``update`` and ``change_rate``) as an estimator that ``check_estimator`` can call.

    >>> from recrawl.estimate import GammaPrior, RateStream
    >>> factory = stream_estimator(lambda n: RateStream(GammaPrior(1.0, 10.0), n))
    >>> factory()(Observations([0, 0], [], [])).tolist()
    [0.1]
    """

    def estimate(observations: Observations) -> Array:
        stream = make(len(observations))
        stream.update(observations.page, observations.interval, observations.changed)
        return np.array(stream.change_rate)

    return lambda: estimate


def corner_cases() -> Observations:
    """Histories at which estimators fail: no crawl, one crawl, all or none changed, extreme intervals, many crawls."""
    one = [
        (1.0, True),
        (1.0, False),
        (1e-6, True),
        (1e-6, False),
        (1e9, True),
        (1e9, False),
        (0.0, True),
        (0.0, False),
    ]
    pages: list[list[tuple[float, bool]]] = [[], *([case] for case in one)]
    pages += [
        [(3.0, True)] * 30,
        [(3.0, False)] * 30,
        [(1e-6, True), (1e9, False)],
        [(1e9, True), (1e-6, False)],
    ]
    pages += [[(1e-6, True)] * 5 + [(1e9, True)] * 5, [(0.0, True), (2.0, False), (0.0, False), (1.0, True)]]
    pages += [[(1.0, k % 3 == 0) for k in range(10_000)], [(1.0, True)] * 10_000, [(1.0, False)] * 10_000]
    pages += [[(10.0 ** (k - 6), k % 2 == 0) for k in range(16)]]
    return _columns(pages)


def check_finite(factory: Callable[[], Estimate]) -> None:
    """Rates are finite and at least 0 for every corner case, one per page."""
    cases = corner_cases()
    rate = _rates(factory, cases)
    bad = ~(np.isfinite(rate) & (rate >= 0))
    assert not bad.any(), f"page {int(np.argmax(bad))} of corner_cases() gives rate {rate[np.argmax(bad)]}"


def check_input_untouched(factory: Callable[[], Estimate]) -> None:
    """The observations are the same after the call."""
    cases = _ordinary(0)
    before = [column.copy() for column in (cases.offset, cases.interval, cases.changed)]
    _rates(factory, cases)
    after = (cases.offset, cases.interval, cases.changed)
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True)), "the estimator changed its input"


def check_repeats(factory: Callable[[], Estimate]) -> None:
    """The same observations give the same rates."""
    cases = _ordinary(1)
    assert np.array_equal(_rates(factory, cases), _rates(factory, cases)), "two calls on the same input differ"


def check_page_order(factory: Callable[[], Estimate]) -> None:
    """Pages in another order get the same rates."""
    cases = _ordinary(2)
    order = np.random.default_rng(0).permutation(len(cases))
    _close(_rates(factory, cases)[order], _rates(factory, cases[order]), "the order of pages changes their rates")


def check_crawl_order(factory: Callable[[], Estimate]) -> None:
    """A page's crawls in another order give the same rate (10% for streams that approximate)."""
    cases = _ordinary(3)
    back = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(cases.offset, cases.offset[1:], strict=False)])
    turned = Observations(cases.offset, cases.interval[back], cases.changed[back])
    _close(_rates(factory, cases), _rates(factory, turned), "the order of crawls changes the rate", 0.1)


def check_rises_with_changes(factory: Callable[[], Estimate]) -> None:
    """Turning an unchanged interval into a changed one does not lower the rate."""
    cases = _ordinary(4)
    more = cases.changed.copy()
    for a, b in zip(cases.offset, cases.offset[1:], strict=False):
        quiet = np.flatnonzero(~more[a:b])
        if len(quiet) > 1:
            more[a + quiet[0]] = True
    risen = _rates(factory, Observations(cases.offset, cases.interval, more))
    assert (risen >= _rates(factory, cases) * (1 - 1e-9)).all(), "one more change lowers a rate"


def check_falls_with_quiet_time(factory: Callable[[], Estimate]) -> None:
    """One more unchanged interval does not raise the rate."""
    cases = _ordinary(5)
    ends = cases.offset[1:]
    longer = Observations(
        cases.offset + np.arange(len(cases.offset)),
        np.insert(cases.interval, ends, 2.0),
        np.insert(cases.changed, ends, False),
    )
    assert (_rates(factory, longer) <= _rates(factory, cases) * (1 + 1e-9)).all(), "quiet time raises a rate"


def check_long_history(factory: Callable[[], Estimate]) -> None:
    """Within 10% (2.5 standard deviations) of the true rate after 2,000 irregular crawls."""
    rng = np.random.default_rng(6)
    interval = rng.exponential(1.0, (20, 2000))
    changed = rng.random(interval.shape) < -np.expm1(-interval)
    found = _rates(factory, Observations(np.arange(21) * 2000, interval.ravel(), changed.ravel()))
    middle = float(np.median(found))
    assert abs(middle - 1.0) < 0.1, f"the median over 20 pages of true rate 1 is {middle:.3f} after 2,000 crawls"


def _rates(factory: Callable[[], Estimate], observations: Observations) -> Array:
    result = factory()(observations)
    rate = np.asarray(getattr(result, "change_rate", result), dtype=np.float64)
    assert rate.shape == (len(observations),), f"{len(observations)} pages give rates of shape {rate.shape}"
    return rate


def _ordinary(seed: int) -> Observations:
    rng = np.random.default_rng(seed)
    pages = [
        [
            (float(t), bool(u < 1 - np.exp(-0.5 * t)))
            for t, u in zip(rng.exponential(2.0, n), rng.random(n), strict=True)
        ]
        for n in rng.integers(2, 30, 25)
    ]
    return _columns(pages)


def _columns(pages: list[list[tuple[float, bool]]]) -> Observations:
    rows = [row for page in pages for row in page]
    offset = np.concatenate([[0], np.cumsum([len(page) for page in pages])])
    return Observations(offset, [t for t, _ in rows], np.array([z for _, z in rows], dtype=bool))


def _close(x: Array, y: Array, what: str, tolerance: float = 1e-9) -> None:
    assert np.allclose(x, y, rtol=tolerance, atol=0), f"{what}: {x[:3]} and {y[:3]}"
