"""The cost form: what crawling costs against what staleness costs, for one page at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]


def refresh_cost(ratio: ArrayLike, change_interval: ArrayLike, crawl_cost: ArrayLike, stale_cost: ArrayLike) -> Array:
    """Cost per time of crawling every ratio·change_interval: C_s(1 − (1 − e^{−r})/r) + C_c/(r·D).

    ``stale_cost`` is per time that the copy is stale, ``crawl_cost`` per crawl. Grimes, eq. 1; ratio ∞ is never.

    >>> float(refresh_cost(np.inf, 24.0, 1.0, 1.0))
    1.0
    """
    r, interval, crawl, stale = _checked(
        ratio=ratio, change_interval=change_interval, crawl_cost=crawl_cost, stale_cost=stale_cost
    )
    with np.errstate(invalid="ignore"):
        fresh = np.where(np.isinf(r), 0.0, -np.expm1(-r) / r)
    return np.asarray(stale * (1.0 - fresh) + crawl / (r * interval))


def refresh_ratio(change_interval: ArrayLike, crawl_cost: ArrayLike, stale_cost: ArrayLike) -> Array:
    """The cheapest crawl interval, in units of the change interval; infinity where no crawl pays.

    e^r = (1 + r)/(1 − z), z = C_c/(C_s·D): r = −1 − W₋₁(−(1 − z)/e). Grimes, eq. 3. It is what
    ``solve(Pages(1/D, importance=C_s), price=C_c)`` finds for many pages at once.

    >>> round(float(refresh_ratio(24.0, 1.0, 1.0)), 3), float(refresh_ratio(1.0, 1.0, 1.0))
    (0.321, inf)
    """
    from recrawl.model.kernels.pages import fill_fresh_inverse

    interval, crawl, stale = _checked(change_interval=change_interval, crawl_cost=crawl_cost, stale_cost=stale_cost)
    share = np.ascontiguousarray(crawl / (stale * interval))
    out = np.empty(share.size)
    fill_fresh_inverse(share.ravel(), out)
    return out.reshape(np.shape(crawl))


def very_stale_share(
    ratio: ArrayLike, change_interval: ArrayLike, stale_time: ArrayLike, evidence: ArrayLike = np.inf
) -> Array:
    """Share of crawls that find a copy stale for ``stale_time`` or longer when crawling every ratio·change_interval.

    1 − e^{−x}, x = max(r − h/D, 0): the first change came more than h before the crawl. For a rate with ``evidence`` a
    (gamma, mean 1/D) it is 1 − (1 + x/a)^{−a}. Grimes, §5.3 and §6.

    >>> float(very_stale_share(1 / 3, 24.0, 8.0)), round(float(very_stale_share(1.0, 24.0, 8.0)), 4)
    (0.0, 0.4866)
    """
    r, interval, hours, shape = _checked(
        ratio=ratio, change_interval=change_interval, stale_time=stale_time, evidence=evidence
    )
    late = np.maximum(r - hours / interval, 0.0)
    known = np.isinf(shape)
    with np.errstate(invalid="ignore"):
        exponent = np.where(known, late, shape * np.log1p(late / shape))
    return np.asarray(-np.expm1(-exponent))


def bounded_ratio(
    bound: ArrayLike, change_interval: ArrayLike, stale_time: ArrayLike, evidence: ArrayLike = np.inf
) -> Array:
    """The largest crawl interval, in units of the change interval, at which at most ``bound`` of crawls find a copy
    stale for ``stale_time`` or longer.

    r = h/D − ln(1 − bound), or h/D + a((1 − bound)^{−1/a} − 1) with ``evidence`` a: the less is known, the wider the
    interval may be for the same mean rate, as the page may be slow. The inverse of ``very_stale_share``.

    >>> ratio = bounded_ratio(0.05, 24.0, 8.0)
    >>> round(float(ratio), 4), round(float(very_stale_share(ratio, 24.0, 8.0)), 12)
    (0.3846, 0.05)
    """
    share, interval, hours, shape = _checked(
        bound=bound, change_interval=change_interval, stale_time=stale_time, evidence=evidence
    )
    if (share >= 1).any():
        raise ParameterError("bound: must lie below 1")
    allowed = -np.log1p(-share)
    with np.errstate(invalid="ignore"):
        late = np.where(np.isinf(shape), allowed, shape * np.expm1(allowed / shape))
    return np.asarray(hours / interval + late)


def _checked(**columns: ArrayLike) -> list[Array]:
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in columns.items()}
    for name, array in arrays.items():
        bad = np.atleast_1d(~(array > 0) | (np.isinf(array) & (name not in ("ratio", "evidence"))))
        if bad.any():
            row = f", row {int(np.argmax(bad))}" if array.ndim else ""
            raise ParameterError(f"{name}{row}: must be above 0 and finite")
    return list(np.broadcast_arrays(*arrays.values()))
