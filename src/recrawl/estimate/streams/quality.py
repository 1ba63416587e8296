"""Signal quality updated crawl by crawl, in a fixed number of bytes per page."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.streams.rates import crawl_columns

Array = NDArray[np.float64]


class QualityStream:
    """Gammas of a page's missed rate and of each source's weight, and its signal counts: 24 + 24·k bytes per page.

    The update after an unchanged interval is exact. After a changed interval, each parameter gets the gamma of the same
    mean and variance as its posterior if the parameters are independent. ``prior`` lists the starting gammas: that of
    the missed rate, then one per source of its weight κ = −ln(1 − precision).

    >>> prior = [GammaPrior(1.0, 2.0), GammaPrior(2.0, 4.0)]
    >>> stream = QualityStream(prior, n_pages=1)
    >>> stream.update([0], [3.0], [False], signals=[[1]])
    >>> stream.missed_rate.tolist(), stream.weight.tolist()  # 1/(2 + 3) and 2/(4 + 1)
    ([0.2], [[0.4]])
    """

    def __init__(self, prior: list[GammaPrior], n_pages: int) -> None:
        if len(prior) < 2:
            raise ParameterError("prior needs a gamma of the missed rate and one per source")
        rows = [np.stack(np.broadcast_arrays(np.atleast_1d(p.shape), p.rate), axis=1) for p in prior]
        if any(len(r) not in (1, n_pages) for r in rows):
            raise ParameterError(f"prior must have 1 row or one per page, {n_pages}")
        n_rows = max(len(r) for r in rows)
        self._prior = np.stack([np.broadcast_to(r, (n_rows, 2)) for r in rows], axis=1)
        self._state = np.broadcast_to(self._prior, (n_pages, len(prior), 2)).copy()
        self._count = np.zeros((n_pages, len(prior) - 1))
        self._time = np.zeros(n_pages)

    @classmethod
    def from_quality(
        cls, precision: ArrayLike, missed_rate: ArrayLike, n_pages: int, *, strength: float = 4.0
    ) -> QualityStream:
        """Start from a precision per source and a missed rate. The precision counts as ``strength`` signals."""
        share = np.atleast_1d(np.asarray(precision, dtype=np.float64))
        missed = GammaPrior.from_mean(missed_rate, np.ones_like(np.asarray(missed_rate, np.float64)))
        return cls([missed, *(GammaPrior.from_mean(-np.log1p(-p), strength * p) for p in share)], n_pages)

    def __len__(self) -> int:
        return len(self._state)

    def update(self, ids: ArrayLike, interval: ArrayLike, changed: ArrayLike, signals: ArrayLike) -> None:
        """Learn from crawls, in the order given. ``signals`` (m, k) counts signals since the page's previous crawl."""
        from recrawl.estimate.streams.kernels import update_quality

        page, time, seen = crawl_columns(ids, interval, changed, len(self))
        count = np.asarray(signals, dtype=np.float64).reshape(len(page), -1)
        if count.shape[1] != self._count.shape[1] or not ((count >= 0) & (count < np.inf)).all():
            raise ParameterError(f"signals must be counts with {self._count.shape[1]} columns")
        update_quality(self._state, page, np.column_stack([time, count]), seen)
        np.add.at(self._time, page, time)
        np.add.at(self._count, page, count)

    @property
    def missed_rate(self) -> Array:
        """Expected changes per time that no source signals."""
        return np.asarray(self._state[:, 0, 0] / self._state[:, 0, 1])

    @property
    def weight(self) -> Array:
        """Expected weight κ of a signal, (n, k)."""
        return np.asarray(self._state[:, 1:, 0] / self._state[:, 1:, 1])

    @property
    def precision(self) -> Array:
        """Expected precision, E(1 − e^{−κ}) = 1 − (1 + 1/rate)^{−shape}, (n, k)."""
        return np.asarray(-np.expm1(-self._state[:, 1:, 0] * np.log1p(1 / self._state[:, 1:, 1])))

    @property
    def signal_rate(self) -> Array:
        """Signals per time, (n, k); 0 before any time has passed."""
        time = self._time[:, None]
        return np.divide(self._count, time, out=np.zeros_like(self._count), where=time > 0)

    @property
    def change_rate(self) -> Array:
        """Missed rate plus the rate of signalled changes."""
        return np.asarray(self.missed_rate + (self.precision * self.signal_rate).sum(axis=1))

    @property
    def recall(self) -> Array:
        """Share of changes that a source signals, (n, k)."""
        true_rate = self.precision * self.signal_rate
        total = self.change_rate[:, None]
        return np.divide(true_rate, total, out=np.zeros_like(true_rate), where=total > 0)

    @property
    def false_rate(self) -> Array:
        """Signals per time with no change behind them, (n, k)."""
        return (1 - self.precision) * self.signal_rate

    def merge(self, other: QualityStream) -> QualityStream:
        """The stream of both streams' crawls, from the same pages and prior: evidence adds, the prior counts once."""
        if self._state.shape != other._state.shape or not np.array_equal(self._prior, other._prior):
            raise ParameterError("merge needs two streams of the same pages, sources and prior")
        both = QualityStream.__new__(QualityStream)
        both._prior = self._prior.copy()
        both._state = self._state + other._state - self._prior
        both._count, both._time = self._count + other._count, self._time + other._time
        return both

    def state(self) -> dict[str, Array]:
        """Everything needed to restore the stream."""
        columns = {"prior": self._prior, "pages": self._state, "signals": self._count, "time": self._time}
        return {name: column.copy() for name, column in columns.items()}

    @classmethod
    def restore(cls, state: dict[str, Array]) -> QualityStream:
        """The stream that ``state`` was taken from."""
        stream = cls.__new__(cls)
        stream._prior, stream._state = state["prior"].copy(), state["pages"].copy()
        stream._count, stream._time = state["signals"].copy(), state["time"].copy()
        return stream
