"""A slow, plain twin of the crawl value of a mixture, by quadrature; it imports nothing from the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from scipy import integrate, special

from naive.float_value import noisy, plain


def mixture(components: Sequence[Sequence[float]], elapsed: float) -> float:
    """Value per importance: the mean over (weight, mean, shape, signal rate, signal weight, heard, repeated)."""
    return math.fsum(c[0] * component(*map(float, c[1:]), float(elapsed)) for c in components if c[0] > 0)


@lru_cache(maxsize=100_000)
def component(
    mean: float, shape: float, gamma: float, kappa: float, heard: float, repeated: float, elapsed: float
) -> float:
    """The gamma belief as the constant rate of the same value without signals, at the exponent −ln E e^{−rate·t}."""
    x = mean * elapsed
    exponent = x if math.isinf(shape) or x == 0 else shape * math.log1p(x / shape)
    alpha = mean if exponent == 0 else special.gammainc(2, exponent) / plain("freshness", mean, shape, elapsed)
    s = exponent + heard
    if gamma == 0 or kappa == 0:
        return float(special.gammainc(2, s)) / alpha
    if repeated:
        return noisy(alpha, gamma, kappa, alpha + gamma * -math.expm1(-kappa), s, 0.0, math.inf)
    return first_signal(alpha, gamma, kappa, s)


def first_signal(alpha: float, gamma: float, kappa: float, s: float) -> float:
    """∫₀^s e^{−u} ψ(u) du; ψ(u): mean time to an exponent u to which only the first signal adds κ."""

    def inside(u: float) -> float:
        early = max(u - kappa, 0.0) / alpha  # a first signal before this time does not end the interval
        return math.exp(-u) * (early - math.exp(-gamma * early) * math.expm1(-gamma * (u / alpha - early)) / gamma)

    end, quick = min(s, 60.0), alpha / gamma  # ψ bends within a few α/γ after 0 and after κ
    points = [k + share * quick for k in (0.0, kappa) for share in (0.0, 1.0, 5.0, 40.0)]
    ends = sorted({0.0, end, *(p for p in points if 0.0 < p < end)})
    return math.fsum(integrate.quad(inside, a, b, epsrel=1e-10, epsabs=0)[0] for a, b in pairwise(ends))
