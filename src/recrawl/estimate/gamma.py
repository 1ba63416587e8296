"""GammaPrior: gamma distributions of change rates, prior or posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]


@dataclass(frozen=True, init=False)
class GammaPrior:
    """A gamma distribution of change rates, for all pages or one row per page: shape = evidence, rate = time behind it.

    Density ∝ x^{shape − 1}·e^{−rate·x}; mean = shape/rate. ``rate`` has the unit of the intervals.

    >>> prior = GammaPrior(2.0, 10.0)
    >>> float(prior.mean), float(prior.fresh(10.0))
    (0.2, 0.25)
    """

    shape: Array
    rate: Array

    def __init__(self, shape: ArrayLike, rate: ArrayLike) -> None:
        for name, value in (("shape", shape), ("rate", rate)):
            column = np.asarray(value, dtype=np.float64)
            bad = ~((column > 0) & (column < np.inf))
            if bad.any():
                row = int(np.argmax(bad))
                raise ParameterError(f"{name}, row {row} is {column.flat[row]}: must be finite and above 0")
            object.__setattr__(self, name, column)

    @classmethod
    def from_mean(cls, mean: ArrayLike, evidence: ArrayLike) -> GammaPrior:
        """The gamma with a given mean and shape.

        >>> float(GammaPrior.from_mean(0.5, 4.0).rate)
        8.0
        """
        return cls(evidence, np.asarray(evidence, dtype=np.float64) / np.asarray(mean, dtype=np.float64))

    @classmethod
    def hours(cls, day: float = 86400.0) -> GammaPrior:
        """The default without any data: shape 1 and 57.5 h, as from "changed after 1 h, unchanged after 57 h".

        The pseudo-observations (1 − e^{−λ·1h})·e^{−λ·57h} over ln λ, to first order in λ·1h (Grimes, Ford & Tassone
        §4.4).

        >>> round(float(GammaPrior.hours(day=24.0).mean), 4)
        0.0174
        """
        return cls(1.0, 57.5 * day / 24.0)

    @property
    def mean(self) -> Array:
        """Expected rate, shape/rate."""
        return np.asarray(self.shape / self.rate)

    def rows(self, n: int) -> tuple[Array, Array]:
        """Shape and rate as contiguous columns of n pages."""
        return tuple(np.ascontiguousarray(np.broadcast_to(c, (n,))) for c in (self.shape, self.rate))  # type: ignore[return-value]

    def quantile(self, probability: ArrayLike) -> Array:
        """The rate below which a share of the distribution lies, always finite."""
        from scipy.special import gammaincinv

        with np.errstate(under="ignore"):
            return np.asarray(gammaincinv(self.shape, probability) / self.rate)

    def fresh(self, elapsed: ArrayLike) -> Array:
        """Probability that a copy of this age is still fresh: (1 + elapsed/rate)^{−shape}."""
        return np.asarray(np.exp(-self.shape * np.log1p(np.asarray(elapsed, np.float64) / self.rate)))
