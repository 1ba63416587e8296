"""An engine that learns, and is given some of what is true: gates, precisions, change rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.engine.core import own_belief
from recrawl.engine.signals.arrays import OPEN, OPENED, PRECISIONS, SHUT, SHUT_AT
from recrawl.model import Pages

QUALITIES = ("gate", "class")  # whether the signals of a host count, and its precision


class InformedEngine(Engine):
    """The learning engine; ``given`` is what it knows: ``gate``, ``class`` (of precision), ``rates``.

    ``row_of`` gives the row of a URL in ``pages``; ``honest`` is by host, ``h00`` and so on. There is no recall that
    could be given: what signals miss is a rate of each page (`recrawl.engine.signals.posterior`), which it learns.
    """

    def __init__(
        self,
        budget: float,
        start: float,
        *,
        pages: Pages,
        row_of: Mapping[str, int],
        honest: NDArray[np.bool_],
        given: Sequence[str] = (),
    ) -> None:
        super().__init__(budget, start=start, min_change_probability=0.0, host_spacing=0.0, host_concurrency=1)
        self._true, self._row_of, self._honest, self._known = pages, row_of, honest, given

    def _append(self, urls: Any, weight: Any, fetched: Any, now: float, own: Any) -> Any:
        if "rates" in self._known:
            rows = np.array([self._row_of[url] for url in urls.packed.texts()])
            own = own_belief(self._true.change_rate[rows], 1e4, len(rows), np.arange(len(rows)), self.beliefs.prior)
        return super()._append(urls, weight, fetched, now, own)

    def reserve_signals(self, rows: Any) -> None:
        """Write the truth about hosts that are new."""
        super().reserve_signals(rows)
        self._inform()

    def fit_signals(self, until: float) -> None:
        """Write the truth again after a refit."""
        super().fit_signals(until)
        self._inform()

    def _inform(self) -> None:
        b = self.beliefs.belief.signals
        for number, host in enumerate(self.beliefs.signals.hosts):
            honest = bool(self._honest[int(host[1:3])])
            if "gate" in self._known:
                b.host_gate[number, :, OPEN], b.host_gate[number, :, SHUT_AT] = OPENED if honest else SHUT, np.inf
            if "class" in self._known:
                b.host_prior[number], b.host_share[number] = 1e6, 0.0
                b.host_share[number, :, len(PRECISIONS) - 1 if honest else 0] = 1e12
