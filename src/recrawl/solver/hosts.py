"""Limits per host as part of the optimum: on a host at its limit, a crawl costs a surcharge over the common price.

Where all crawls of a host cost the same, its pages behave as if the price were max(common price, the host's own), and
the host's own price does not depend on the common one: it is found once. Otherwise it is found again for every common
price asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.solver.curves import Curves
from recrawl.solver.multiplier import PriceSearch, enclose

Array = NDArray[np.float64]


@dataclass
class Settled:
    """A host's pages at a common price: the surcharge its limit adds (0: it does not bind) and the rates."""

    surcharge: float
    rate: Array
    spent: float


@dataclass
class Host:
    """One limited host and its pages."""

    name: Any
    limit: float  # crawls per time
    rows: NDArray[np.intp]
    curves: Curves
    known: Settled | None = None  # at common price 0, where one answer serves all common prices

    def settle(self, common: float) -> Settled:
        """What its pages do at a common price."""
        if self.known is not None:
            surcharge = self.known.surcharge - common * self.curves.cost[0]
            if surcharge > 0:
                return Settled(surcharge, self.known.rate, self.known.spent)
        spent, crawls = self.curves.totals(common) if common > 0 else (np.inf, np.inf)
        if crawls <= self.limit:
            return Settled(0.0, self.curves.rates(common), spent)
        return self._at_limit(common)

    def _at_limit(self, common: float) -> Settled:
        least = np.broadcast_to(self.curves.low, len(self.curves))
        cost = np.broadcast_to(self.curves.cost, len(self.curves))
        if least.sum() >= self.limit:
            return Settled(np.inf, least.copy(), float(cost @ least))
        start = self.curves.typical_price(self.limit)
        search = PriceSearch(lambda extra: self.curves.totals(common, extra)[1], self.limit).run(start)
        search.narrow()
        mix = enclose(search, lambda extra: self.curves.rates(common, extra), lambda rate: float(rate.sum()))
        rate = mix.above + mix.share * (mix.below - mix.above)
        return Settled(mix.high, rate, float(cost @ rate))

    def most(self) -> float:
        """Crawls per time its pages could use if nothing were scarce."""
        return float(np.where(self.curves.useful, self.curves.high, self.curves.low).sum())


def limited_hosts(pages: Pages, curves: Curves, limits: Mapping[Any, float] | None) -> list[Host]:
    """The hosts whose limit can bind."""
    if limits is None:
        return []
    if not isinstance(limits, Mapping):
        raise ParameterError(f"host_limit is {limits!r}: must map hosts to crawls per time")
    if not limits:
        return []
    if pages.host is None:
        raise ParameterError("host is missing: host_limit needs the host of every page")
    names, code = np.unique(pages.host, return_inverse=True)
    order = np.argsort(code, kind="stable")
    first = np.searchsorted(code[order], np.arange(len(names) + 1))
    place = {name: k for k, name in enumerate(names.tolist())}
    hosts = []
    for name, limit in limits.items():
        if not (limit >= 0 and np.isfinite(limit)):
            raise ParameterError(f"host_limit of {name!r} is {limit}: must be finite and at least 0")
        if name not in place:
            raise ParameterError(f"host_limit names {name!r}, which is the host of no page")
        k = place[name]
        rows = order[first[k] : first[k + 1]]
        host = Host(name, float(limit), rows, curves.rows(rows))
        _check_floor(host)
        if host.most() > host.limit:
            if (host.curves.cost == host.curves.cost[0]).all():
                host.known = host._at_limit(0.0)
            hosts.append(host)
    return hosts


def _check_floor(host: Host) -> None:
    least = float(np.broadcast_to(host.curves.low, len(host.rows)).sum())
    if least > host.limit:
        raise ParameterError(
            f"floor: host {host.name!r} would need {least:.6g} crawls per time, above its limit of {host.limit:.6g}"
        )
