"""Incomplete gamma functions and sums of them with mpmath: positive terms, stated bounds."""

from __future__ import annotations

import math
from collections.abc import Callable

from mpmath import mp, mpf

GUARD = 30  # digits that must be left after cancellation
FEW = 10  # so many terms are all added: cheaper than to find those that are neither 0 nor 1


def gamma_p(a: int, x: mpf) -> mpf:
    """P(a, x) = ∫₀^x t^{a−1} e^{−t} dt / (a−1)! for a whole a, by sums of positive terms only."""
    if x <= 0:
        return mpf(0)
    with mp.extradps(15 + 2 * len(str(a))):
        # x^a e^{−x} / a!, for a large a by logarithms
        large = a > 1000
        front = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) if large else x**a * mp.exp(-x) / math.factorial(a)
        if a > 10**6:
            return _gamma_p_integral(a, x, front)
        bits = mp.prec + 20
        x_fixed = int(mp.ldexp(x, bits))
        term = total = 1 << bits
        if x < a:  # P = front · Σ_k x^k / ((a+1)…(a+k))
            k = a
            while term:
                k += 1
                term = (term * x_fixed // k) >> bits
                total += term
            return front * mp.ldexp(total, -bits)
        for k in range(a - 1, 0, -1):  # 1 − P = front · (a/x) · Σ_k (a−1)…(a−k) / x^k
            term = (term * k << bits) // x_fixed
            total += term
            if not term:
                break
        return 1 - front * a / x * mp.ldexp(total, -bits)


def _gamma_p_integral(a: int, x: mpf, front: mpf) -> mpf:
    """The same for a large a: F ∫₀¹ e^{xt}(1−t)^{a−1}dt, or 1 − F ∫₀^∞ e^{−xt}(1+t)^{a−1}dt.

    F = x^a e^{−x}/(a−1)!. The integrands fall at least like exp(−a t²/4) from t = 0, so they are cut at
    t = 40/√a (e^{−400} = 1e-174).
    """
    sign = -1 if x < a else 1
    cuts = [k * 5 / mp.sqrt(a) for k in range(9)]
    area = mp.quad(lambda t: mp.exp((a - 1) * mp.log1p(sign * t) - sign * x * t), cuts, method="gauss-legendre")
    return front * a * area if x < a else 1 - front * a * area


def log_bound(a: int, x: mpf) -> mpf:
    """Chernoff: ln P(a, x) for x < a, and ln(1 − P(a, x)) for x > a, is at most a − x + a ln(x/a)."""
    return a - x + a * mp.log(x / a)


def _first(holds: Callable[[int], bool], n: int) -> int:
    """Smallest i in 0 … n with holds(i), which is monotone and taken to hold at n."""
    low, high = 0, n
    while low < high:
        mid = (low + high) // 2
        low, high = (low, mid) if holds(mid) else (mid + 1, high)
    return low


def band(rate: mpf, at: Callable[[int], mpf], n: int) -> tuple[int, int]:
    """The terms lo ≤ i < hi of Σ P(i+1, rate·at(i)) that are neither 1 nor 0 to working precision.

    Terms are decreasing in i. Those below lo miss 1 and those from hi on miss 0 by less than 10^−dps/n each,
    the latter relative to the first term (P(1, x) ≥ min(1, x)/2).
    """
    slack = -(mp.dps + 3) * mp.log(10) - mp.log(n + 1)
    floor = slack + mp.log(min(mpf(1), rate * at(0)) / 2)
    low = _first(lambda i: not (rate * at(i) > i + 1 and log_bound(i + 1, rate * at(i)) < slack), n)
    high = _first(lambda i: rate * at(i) < i + 1 and log_bound(i + 1, rate * at(i)) < floor, n)
    return low, max(low, high)


def graded_sum(rate: mpf, ratio: mpf, at: Callable[[int], mpf], n: int) -> mpf:
    """Σ_{i<n} ratio^i · P(i+1, rate·at(i)) with the run of ones in closed form."""
    low, high = band(rate, at, n) if n > FEW else (0, n)
    ones = mpf(low) if ratio == 1 else (1 - ratio**low) / (1 - ratio)
    return ones + mp.fsum(ratio**i * gamma_p(i + 1, rate * at(i)) for i in range(low, high))


def steady(figure: Callable[[], tuple[mpf, mpf]], digits: int = 60) -> mpf:
    """Evaluate a difference (and the figure it was subtracted from) with digits to spare."""
    while True:
        with mp.workdps(digits):
            value, scale = figure()
            if value == scale == 0 or value > scale * mpf(10) ** (GUARD - digits):
                return +value
        digits *= 2
        if digits > 5000:
            return mpf(0)
