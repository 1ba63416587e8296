"""Importance of pages, from reader requests, links and the user's weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]


class RequestRates:
    """Reader requests per time, exponentially weighted: 16 bytes per page, O(1) per request.

    rate(now) = ln 2/half_life·Σ 2^{−(now − t)/half_life}/(1 − 2^{−(now − start)/half_life}) over requests at t. The
    divisor corrects for pages that were added recently. Times are in any unit, rates per that unit.

    >>> requests = RequestRates(n_pages=1, half_life=10.0, start=0.0)
    >>> requests.update([0, 0], [10.0, 20.0])
    >>> round(float(requests.rate(20.0)[0]), 4)  # ln 2/10·(1 + 1/2)/(1 − 1/4)
    0.1386
    """

    def __init__(self, n_pages: int, half_life: float, start: ArrayLike = 0.0) -> None:
        if not 0 < half_life < np.inf:
            raise ParameterError(f"half_life is {half_life}: must be finite and above 0")
        self.half_life = float(half_life)
        self._start = np.broadcast_to(np.asarray(start, np.float64), (n_pages,)).copy()
        self._weight = np.zeros(n_pages)
        self._at = self._start.copy()

    def __len__(self) -> int:
        return len(self._weight)

    def update(self, ids: ArrayLike, requested_at: ArrayLike) -> None:
        """Count requests, in any order; an id may occur several times."""
        page = np.atleast_1d(np.asarray(ids, np.int64))
        at = np.broadcast_to(np.asarray(requested_at, np.float64), page.shape)
        if len(page) and (page.min() < 0 or page.max() >= len(self)):
            raise ParameterError("ids: no such page")
        asked = np.unique(page)
        before = self._at[asked]
        np.maximum.at(self._at, page, at)
        self._weight[asked] *= np.exp2(-(self._at[asked] - before) / self.half_life)
        np.add.at(self._weight, page, np.exp2(-(self._at[page] - at) / self.half_life))

    def grow(self, n_pages: int, start: float) -> None:
        """Add pages up to ``n_pages``, observed from ``start`` on."""
        extra = n_pages - len(self)
        if extra <= 0:
            return
        self._weight = np.concatenate([self._weight, np.zeros(extra)])
        self._start = np.concatenate([self._start, np.full(extra, float(start))])
        self._at = np.concatenate([self._at, np.full(extra, float(start))])

    def put(self, ids: ArrayLike, start: ArrayLike, weight: ArrayLike, at: ArrayLike) -> None:
        """Take over saved columns of pages."""
        rows = np.asarray(ids, np.int64)
        self._start[rows], self._weight[rows], self._at[rows] = start, weight, at

    def state(self) -> dict[str, Any]:
        """Everything needed to restore the rates."""
        columns = {"start": self._start, "weight": self._weight, "at": self._at}
        return {"half_life": self.half_life, **{name: column.copy() for name, column in columns.items()}}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> RequestRates:
        """The rates that ``state`` was taken from."""
        rates = cls(len(state["start"]), state["half_life"], state["start"])
        rates._weight, rates._at = np.array(state["weight"]), np.array(state["at"])
        return rates

    def rate(self, now: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """Requests per time at ``now``, for all pages or for ``ids``."""
        rows = slice(None) if ids is None else np.atleast_1d(np.asarray(ids, np.int64))
        age = np.maximum(np.asarray(now, np.float64) - self._start[rows], 0.0)
        seen = -np.expm1(-np.log(2) * age / self.half_life)
        kept = self._weight[rows] * np.exp2(-np.maximum(np.asarray(now) - self._at[rows], 0.0) / self.half_life)
        scale = np.log(2) / self.half_life
        return np.asarray(np.divide(kept * scale, seen, out=kept * scale, where=seen > 0))


def link_importance(source: ArrayLike, target: ArrayLike, n_pages: int, *, damping: float = 0.85) -> Array:
    """Importance from links between pages: PageRank, scaled to mean 1.

    x = (1 − damping) + damping·Σ_{in-links} x/(out-links); pages without out-links link to all pages. Repeated
    links count once.

    >>> link_importance([0, 1], [2, 2], 3).round(3).tolist()  # 0 and 1 link to 2
    [0.638, 0.638, 1.723]
    """
    edges = np.stack([np.asarray(source, np.int64), np.asarray(target, np.int64)], axis=1)
    if len(edges) and (edges.min() < 0 or edges.max() >= n_pages):
        raise ParameterError("source and target must be page numbers below n_pages")
    if not 0 <= damping < 1:
        raise ParameterError(f"damping is {damping}: must lie between 0 and 1")
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    out = np.bincount(edges[:, 0], minlength=n_pages)
    value = np.ones(n_pages)
    for _ in range(200):
        share = value / np.maximum(out, 1)
        given = np.bincount(edges[:, 1], weights=share[edges[:, 0]], minlength=n_pages)
        after = 1 - damping + damping * (given + value[out == 0].sum() / max(n_pages, 1))
        moved = float(np.abs(after - value).max(initial=0.0))
        value = after
        if moved < 1e-12:
            break
    return value


def combine_importance(
    *,
    requests: ArrayLike | None = None,
    links: ArrayLike | None = None,
    weight: ArrayLike = 1.0,
    blend: float = 0.1,
) -> Array:
    """Importance of every page from requests, links and the user's weight; mean 1 before the weight.

    importance = weight·((1 − blend)·requests/mean(requests) + blend·links/mean(links)). A missing part is left out.
    Links give importance to pages without requests.

    >>> combine_importance(requests=[3.0, 1.0], links=[1.0, 1.0], weight=[1.0, 2.0]).round(6).tolist()
    [1.45, 1.1]
    """
    parts = [(np.asarray(p, np.float64), s) for p, s in ((requests, 1 - blend), (links, blend)) if p is not None]
    factor = np.asarray(weight, np.float64)
    for name, column in (("weight", factor), *(("requests or links", p) for p, _ in parts)):
        if not ((column >= 0) & (column < np.inf)).all():
            raise ParameterError(f"{name} must be finite and at least 0")
    if not parts:
        return np.atleast_1d(factor).astype(np.float64)
    total = sum(share for _, share in parts)
    mixed = sum(share / total * (p / p.mean() if p.mean() > 0 else np.ones_like(p)) for p, share in parts)
    return np.asarray(factor * mixed)
