"""Slow, plain twin of the crawl value for several signal sources: enumeration of all count vectors."""

from __future__ import annotations

from collections.abc import Iterator

from mpmath import inf, mp, mpf

from naive.gamma import gamma_p, log_bound, steady


def _counts(sources: list[tuple[mpf, mpf]], room: mpf, most: int) -> Iterator[tuple[list[int], mpf]]:
    """All count vectors i with κ·i < room and |i| ≤ most, and κ·i."""
    if not sources:
        yield [], mpf(0)
        return
    (_, weight), rest = sources[0], sources[1:]
    count = 0
    while count <= most and (count == 0 or count * weight < room):
        used = count * weight if count else mpf(0)
        for tail, more in _counts(rest, room - used, most - count):
            yield [count, *tail], used + more
        count += 1


def value_sources(
    change_rate: float,
    importance: float,
    rates: list[tuple[float, float]],
    missed_rate: float,
    exponent: float,
) -> float:
    """V = μ ∫₀^s e^{−u}ψ(u)du for several sources (γ_k, κ_k), exponent s = ατ + Σκ_k n_k, by enumeration.

    ψ(u) = Σ_i multinomial(|i|; i) ∏(γ_k/γ)^{i_k} (1/γ) P(|i|+1, γ(u − κ·i)/α) over κ·i < u, integrated term
    by term. κ_k = inf (proof) counts in γ only, κ_k = 0 (noise) not at all. Counts n = |i| are cut where
    P(n+1, γs/α), which bounds their share of γψ, is below 10^−dps and at least halves from n to n + 1.
    """
    if change_rate == 0 or importance == 0 or exponent == 0:
        return 0.0

    def figure() -> tuple[mpf, mpf]:
        missed, s = mpf(missed_rate), mpf(exponent)
        live = [(mpf(rate), mpf(weight)) for rate, weight in rates if weight > 0 and rate > 0]
        total = mp.fsum(rate for rate, _ in live)
        if total == 0:
            return (1 - mp.exp(-s) * (1 + s)) / missed, 1 / missed
        both, finite = total + missed, [pair for pair in live if pair[1] < inf]
        most = 10**9
        if missed > 0:
            x = total * s / missed
            most = 2 * int(x) + 10
            while log_bound(most + 1, x) > -mp.dps * mp.log(10) + mp.log(min(mpf(1), x)):
                most += 10
        fresh, time = mpf(0), mpf(0)
        for count, used in _counts(finite, s, most):
            n = sum(count)
            share = mp.factorial(n)
            for (rate, _), c in zip(finite, count, strict=True):
                share *= (rate / total) ** c / mp.factorial(c)
            if missed == 0:
                fresh += share * mp.exp(-used) / total
                time += share / total
            else:
                discount = share * mp.exp(-used) * total**n / both ** (n + 1)
                fresh += discount * gamma_p(n + 1, both * (s - used) / missed)
                time += share / total * gamma_p(n + 1, total * (s - used) / missed)
        return fresh - mp.exp(-s) * time, fresh

    return float(mpf(importance) * steady(figure))
