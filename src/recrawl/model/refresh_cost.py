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
    from recrawl.model._page_kernels import fill_fresh_inverse

    interval, crawl, stale = _checked(change_interval=change_interval, crawl_cost=crawl_cost, stale_cost=stale_cost)
    share = np.ascontiguousarray(crawl / (stale * interval))
    out = np.empty(share.size)
    fill_fresh_inverse(share.ravel(), out)
    return out.reshape(np.shape(crawl))


def _checked(**columns: ArrayLike) -> list[Array]:
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in columns.items()}
    for name, array in arrays.items():
        bad = np.atleast_1d(~(array > 0) | (np.isinf(array) & (name != "ratio")))
        if bad.any():
            row = f", row {int(np.argmax(bad))}" if array.ndim else ""
            raise ParameterError(f"{name}{row}: must be above 0 and finite")
    return list(np.broadcast_arrays(*arrays.values()))
