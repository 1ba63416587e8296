"""Stated delays: how long after a change its signals come, by host and source, where signals say when it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MOST = 500.0  # signals of a host and source that count; of more, older ones count less


class StatedDelays:
    """Mean delays; also of signals that came after the crawl that found their change.

    >>> delays = StatedDelays(2)
    >>> delays.learn("a.example", 1, np.array([20.0, 40.0]))
    >>> delays.of(["a.example", "new.example"])[:, 1].tolist()
    [30.0, 30.0]
    """

    def __init__(self, n_sources: int) -> None:
        self._n_sources = n_sources
        self._hosts: dict[str, Array] = {}  # (sources, 2) each: signals, and the sum of their delays

    def learn(self, host: str, source: int, delay: Array) -> None:
        """Count the delays of signals of a source about pages of a host."""
        sums = self._hosts.setdefault(host, np.zeros((self._n_sources, 2)))[source]
        sums += len(delay), delay.sum()
        if sums[0] > _MOST:
            sums *= _MOST / sums[0]

    def of(self, hosts: Iterable[str]) -> Array:
        """(hosts, sources): expected delays; what is known of the source elsewhere counts as one signal."""
        everywhere = sum(self._hosts.values(), np.zeros((self._n_sources, 2)))
        mean = _ratio(everywhere[:, 1], everywhere[:, 0])
        none = np.zeros((self._n_sources, 2))
        found = np.array([self._hosts.get(host, none) for host in hosts])
        return np.asarray((found[..., 1] + mean) / (found[..., 0] + 1.0))

    def saved(self) -> dict[str, Any]:
        """All that was learned, as plain numbers."""
        return {host: sums.tolist() for host, sums in self._hosts.items()}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Continue from what was saved, perhaps of fewer sources or of more."""
        self._hosts = {}
        for host, numbers in saved.items():
            sums, part = np.zeros((self._n_sources, 2)), np.array(numbers).reshape(-1, 2)[: self._n_sources]
            sums[: len(part)] = part
            self._hosts[host] = sums


def _ratio(total: Array, n: Array) -> Array:
    return np.divide(total, n, out=np.zeros(len(n)), where=n > 0.0)
