"""Slow, plain twins of the crawl value: mpmath with as many digits as the cancellation needs.

Symbols: Δ change rate, μ importance, λ recall, ν false rate, α = (1−λ)Δ, γ = λΔ + ν, κ = ln(1 + λΔ/ν).
The floats that come in are taken as exact. Every function returns the nearest float to a figure that is good
to 20 digits or better; the bounds are stated where a sum or a series is cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from mpmath import inf, mp, mpc, mpf

from naive.gamma import band, graded_sum, steady

BAND = 60  # longest run of non-trivial terms that is summed one by one (a sixth of it where each is dear);
# beyond it the poles are used
FLAT = 80  # exp(−80)·(80 + 1 + 80) < 1e-32: from this exponent on V is its limit μ/Δ


class Source:
    """One page with one noisy source, in exact arithmetic of the working precision."""

    def __init__(self, change_rate: float, recall: float, false_rate: float) -> None:
        self.change, self.false = mpf(change_rate), mpf(false_rate)
        self.missed = (1 - mpf(recall)) * self.change
        self.signal = mpf(recall) * self.change + self.false
        noise = recall == 0 or change_rate == 0
        self.weight = mpf(0) if noise else inf if false_rate == 0 else mp.log1p(recall * self.change / self.false)

    def at(self, base: mpf, signals: int) -> Callable[[int], mpf]:
        """i ↦ s − iκ with s = base + κ·signals, without cancellation when i = signals."""
        if self.weight == inf:
            return lambda i: base
        return lambda i: base + (signals - i) * self.weight

    def n_terms(self, base: mpf, signals: int, terms: int | None) -> int:
        """How many i ≥ 0 have iκ < s (and i < terms)."""
        cap = math.inf if terms is None else terms
        if self.weight == inf:
            return min(1, cap)
        if self.weight == 0:
            return cap
        return int(min(mp.ceil(signals + base / self.weight), cap))

    def interval(self, base: mpf, signals: int, terms: int | None = None) -> mpf:
        """ψ = Σ (1/γ) P(i+1, γ(s − iκ)/α)."""
        n = self.n_terms(base, signals, terms)
        return graded_sum(self.signal / self.missed, mpf(1), self.at(base, signals), n) / self.signal

    def fresh_time(self, base: mpf, signals: int, terms: int | None = None) -> mpf:
        """w = Σ ν^i/(Δ+ν)^{i+1} P(i+1, (Δ+ν)(s − iκ)/α)."""
        both = self.change + self.false
        n = self.n_terms(base, signals, terms)
        return graded_sum(both / self.missed, self.false / both, self.at(base, signals), n) / both

    def is_long(self, base: mpf, signals: int) -> bool:
        """Whether the sums have too many terms that are neither 0 nor 1 to be added one by one."""
        n = self.n_terms(base, signals, None)
        if n <= BAND // 6:
            return False
        low, high = band(self.signal / self.missed, self.at(base, signals), n)
        return high - low > (BAND if high < 10**5 else BAND // 6)

    def poles(self, s: mpf) -> Iterator[tuple[mpc, mpc]]:
        """The zeros θ of αθ + γ(1 − e^{−κθ}) = Φ(θ) above the real axis, each with e^{θs}/(θΦ′(θ)).

        With z = κθ and r = α/(γκ): 1 + rz = e^{−z}, hence z = W_k(e^{1/r}/r) − 1/r, k = 1, 2, …
        |e^{θs}| = |1 + rz|^{−s/κ}, so the k-th falls about as (1 + (2πkr)²)^{−s/2κ} for small r: fast unless
        r√(s/κ) is below about 1/2, where few terms of the sums are neither 0 nor 1.
        Not for s/κ below 20.
        """
        r = self.missed / (self.signal * self.weight)
        for k in range(1, 1000):
            with mp.extradps(10 + int(abs(mp.log10(r)))):
                z = mp.lambertw(mp.exp(1 / r) / r, k) - 1 / r
            slope = self.missed + self.signal * self.weight * (1 + r * z)
            theta = z / self.weight
            yield theta, mp.exp(theta * s) / (theta * slope)

    def interval_poles(self, s: mpf) -> mpf:
        """ψ(s) = s/m + v/(2m²) + 2 Re Σ_k e^{θ_k s}/(θ_k Φ′(θ_k)), m = α + γκ, v = γκ²; exact.

        Follows from ∫ e^{−θu} ψ(u) du = 1/(θΦ(θ)) by closing the contour on the left.
        """
        mean = self.missed + self.signal * self.weight
        total = s / mean + self.signal * self.weight**2 / (2 * mean**2)
        for _, residue in self.poles(s):
            total += 2 * residue.real
            if abs(residue) < mpf(10) ** -(mp.dps) * total:
                return total
        raise ArithmeticError("too many poles: use the sum")

    def value_poles(self, s: mpf) -> tuple[mpf, mpf]:
        """V = 1/Δ − ∫_s^∞ e^{−u} ψ(u) du with ψ from its poles (μ = 1), and 1/Δ."""
        mean = self.missed + self.signal * self.weight
        rest = (s + 1) / mean + self.signal * self.weight**2 / (2 * mean**2)
        for theta, residue in self.poles(s):
            part = residue / (1 - theta)
            rest += 2 * part.real
            if abs(part) < mpf(10) ** -mp.dps * rest:
                return 1 / self.change - mp.exp(-s) * rest, 1 / self.change
        raise ArithmeticError("too many poles: use the sum")

    def value_sum(self, base: mpf, signals: int, terms: int | None) -> tuple[mpf, mpf]:
        """V = w − e^{−s}ψ (μ = 1), and w."""
        fresh = self.fresh_time(base, signals, terms)
        s = base if self.weight == inf else base + signals * self.weight
        return fresh - mp.exp(-s) * self.interval(base, signals, terms), fresh


def _digits(change_rate: float, false_rate: float) -> int:
    return 60 + 2 * max(0, int(mp.log10(1 + mpf(false_rate) / mpf(change_rate))))


def _unit_value(
    change_rate: float,
    recall: float,
    false_rate: float,
    elapsed: float | mpf,
    signals: int,
    terms: int | None,
) -> tuple[mpf, mpf]:
    """V for μ = 1 at the working precision, and the figure it was subtracted from."""
    page = Source(change_rate, recall, false_rate)
    if page.signal == 0 or (page.weight == 0 and terms is None):  # no signals, or pure noise
        x = page.change * elapsed
        return (1 / page.change,) * 2 if x == inf else ((1 - mp.exp(-x) * (1 + x)) / page.change, 1 / page.change)
    if page.weight == inf and signals:  # proof
        return (1 / page.change,) * 2
    if page.missed == 0:  # the exponent is κ·signals
        if not signals:
            return mpf(0), mpf(0)
        kept = signals if terms is None else min(signals, terms)
        rest = page.false / page.signal
        fresh = (1 - rest**kept) / page.change
        return fresh - rest**signals * kept / page.signal, fresh
    base = page.missed * elapsed
    if base == 0 and not signals:
        return mpf(0), mpf(0)
    return unit_value_at(page, base, signals, terms)


def unit_value_at(page: Source, base: mpf, signals: int, terms: int | None) -> tuple[mpf, mpf]:
    """V for μ = 1 and α > 0 at s = base + κ·signals > 0, and the figure it was subtracted from."""
    if page.weight == 0 and terms is None:
        return (1 - mp.exp(-base) * (1 + base)) / page.change, 1 / page.change
    if base == inf and terms is None and page.weight < inf:
        return (1 / page.change,) * 2
    if base == inf:
        base = mpf(10) ** 400
    if page.weight == inf or terms is not None:
        return page.value_sum(base, signals, terms)
    s = base + page.weight * signals
    # ∫_s^∞ e^{−u}ψ(u) du ≤ e^{−s}(s+1+κ)/m as ψ(u) ≤ (u+κ)/m (Wald), and m = α+γκ ≥ Δ
    if s > FLAT and page.weight < s:
        return (1 / page.change,) * 2
    return page.value_poles(s) if page.is_long(base, signals) else page.value_sum(base, signals, None)


def value_mp(
    change_rate: float,
    importance: float,
    recall: float,
    false_rate: float,
    elapsed: float | mpf,
    signals: int = 0,
    terms: int | None = None,
) -> mpf:
    """`value` before it is rounded to a float."""
    if change_rate == 0 or importance == 0:
        return mpf(0)
    args = (change_rate, recall, false_rate, elapsed, signals, terms)
    unit = steady(lambda: _unit_value(*args), _digits(change_rate, false_rate))
    with mp.workdps(60):
        return importance * unit


def value(
    change_rate: float,
    importance: float,
    recall: float,
    false_rate: float,
    elapsed: float,
    signals: int = 0,
    terms: int | None = None,
) -> float:
    """V = μ ∫₀^s e^{−u} ψ(u) du = μ(w(s) − e^{−s}ψ(s)), s = α·elapsed + κ·signals.

    `terms` keeps the terms i < terms of both sums (without signals there is no sum to cut; with recall 0 and
    false signals there is). Signals of a source with recall 0 say nothing, whatever its false rate.
    """
    return float(value_mp(change_rate, importance, recall, false_rate, elapsed, signals, terms))


def interval(change_rate: float, recall: float, false_rate: float, exponent: float, signals: int = 0) -> float:
    """ψ(s): expected time until the staleness exponent is at least s = exponent + κ·signals."""
    if change_rate == 0:
        return 0.0 if exponent == 0 else math.inf
    with mp.workdps(_digits(change_rate, false_rate)):
        page, base = Source(change_rate, recall, false_rate), mpf(exponent)
        if exponent == 0 and (signals == 0 or page.weight == 0):
            return 0.0
        if page.weight == 0:
            return float(base / page.missed)
        if page.weight == inf:
            if page.missed == 0 or signals or base == inf:
                return float(1 / page.signal)
        elif base == inf:
            return math.inf
        elif page.missed == 0:
            return float((signals + mp.ceil(base / page.weight)) / page.signal)
        elif page.is_long(base, signals):
            return float(page.interval_poles(base + signals * page.weight))
        return float(page.interval(base, signals))


def fresh_time(change_rate: float, recall: float, false_rate: float, exponent: float, signals: int = 0) -> float:
    """w(s): expected time the copy is fresh before the exponent is at least s = exponent + κ·signals."""
    if change_rate == 0:
        return 0.0 if exponent == 0 else math.inf
    with mp.workdps(_digits(change_rate, false_rate)):
        page, base = Source(change_rate, recall, false_rate), mpf(exponent)
        if exponent == 0 and (signals == 0 or page.weight == 0):
            return 0.0
        if base == inf or (page.weight == inf and signals):
            return float(1 / page.change)
        if page.weight == 0:
            return float(-mp.expm1(-base) / page.change)
        if page.missed == 0:
            n = 1 if page.weight == inf else signals + mp.ceil(base / page.weight)
            return float((1 - (page.false / page.signal) ** n) / page.change)
        if page.weight < inf and page.is_long(base, signals):
            s = base + signals * page.weight
            return float(page.value_poles(s)[0] + mp.exp(-s) * page.interval_poles(s))
        return float(page.fresh_time(base, signals))


def inverse_of(reach: Callable[[mpf], mpf], target: float, guess: float = 1.0, limit: float = 1e30) -> float:
    """Smallest t ≥ 0 with reach(t) ≥ target for a non-decreasing function, by bisection; else inf."""
    with mp.workdps(40):
        if reach(mpf(0)) >= target:
            return 0.0
        low, high = mpf(guess) / 2, mpf(guess)
        while reach(high) < target:
            low, high = high, high * 2
            if high > limit * guess:
                return math.inf
        while low > 0 and reach(low) >= target:
            low, high = low / 2, low
        while high - low > mpf(2) ** -57 * high:
            mid = (low + high) / 2
            low, high = (low, mid) if reach(mid) >= target else (mid, high)
        return float(high)


def inverse(
    change_rate: float, importance: float, recall: float, false_rate: float, target: float, signals: int = 0
) -> float:
    """Smallest elapsed with value ≥ target, inf if there is none (target ≥ μ/Δ, or recall 1)."""
    if target <= 0:
        return 0.0
    if change_rate == 0 or importance == 0:
        return math.inf
    with mp.workdps(40):
        best = value_mp(change_rate, importance, recall, false_rate, math.inf, signals)
        sure = signals > 0 and false_rate == 0 and recall > 0
        if target > best or (target == best and recall < 1 and not sure):
            return math.inf
    page = (change_rate, importance, recall, false_rate)
    return inverse_of(lambda elapsed: value_mp(*page, elapsed, signals), target, 1 / change_rate)
