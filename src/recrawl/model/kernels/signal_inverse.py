"""Inverses with noisy signals: the exponent at which a crawl value or an expected interval is reached."""

import math

from recrawl._compile.jit import jit
from recrawl.model.kernels.fresh import fresh_inverse
from recrawl.model.kernels.pair import value_and_slope
from recrawl.model.kernels.signals import ALL_TERMS, signal_count, signal_interval, signal_slope, signal_value

_CLOSE = 1e-11  # of the exponent


@jit
def signal_inverse(
    alpha: float, gamma: float, kappa: float, change_rate: float, value: float, terms: int, guess: float
) -> float:
    """The smallest exponent at which V reaches `value`; infinity at or beyond the limit. `guess` ≤ 0: none."""
    if value <= 0.0:
        return 0.0
    if change_rate == 0.0:
        return math.inf
    if gamma == 0.0 or kappa == 0.0:
        return fresh_inverse(value * change_rate)
    if alpha == 0.0:
        count = signal_count(gamma, kappa, change_rate, value, terms)
        return count * kappa
    limit = 1.0 / change_rate
    if terms < ALL_TERMS:
        limit = signal_value(alpha, gamma, kappa, change_rate, math.inf, 0.0, terms)
    if value >= limit:
        return math.inf
    low, high = 0.0, math.inf
    s = guess if 0.0 < guess < 1e3 else fresh_inverse(min(value / limit, 0.999))
    near_limit = value > 0.5 * limit
    for _ in range(200):
        reached, slope, doubt = value_and_slope(alpha, gamma, kappa, change_rate, s, terms)
        if reached < value:
            low = s
        else:
            high = s
        if near_limit:
            better = s + math.log((limit - reached) / (limit - value)) * (limit - reached) / slope
        else:
            better = s * math.exp(-math.log(reached / value) * reached / (slope * s))
        if low < better < high:
            step = abs(better - s) / s
            bend = 2.0 + s + s * math.exp(-s) / (alpha * slope)  # at least |V″/V′| and ½, times s: ψ′ is at most 1/α
            if step * max(step * bend, doubt) <= _CLOSE:
                return better
        elif math.isinf(high):
            better = 2.0 * s
        else:
            better = 0.5 * (low + high) if low > 0.25 * high else (math.sqrt(low * high) if low > 0.0 else 0.1 * high)
        if abs(better - s) <= _CLOSE * s or s > 1e4:
            return better
        s = better
    return s


@jit
def signal_offset(
    alpha: float, gamma: float, kappa: float, change_rate: float, value: float, n: float, terms: int, guess: float
) -> float:
    """The offset beside n·κ at which V reaches `value`, for V(0, n) < value < V(∞, n), also where it is tiny."""
    low, high = 0.0, math.inf
    x = guess if guess > 0.0 else 1e-16 * kappa
    for _ in range(200):
        reached = signal_value(alpha, gamma, kappa, change_rate, x, n, terms)
        if abs(reached - value) <= 2e-16 * value:
            break
        if reached < value:
            low = x
        else:
            high = x
        s = x if n == 0.0 else x + n * kappa
        full = math.exp(-s) * signal_interval(alpha, gamma, kappa, x, n)
        slope = full if terms >= ALL_TERMS else signal_slope(alpha, gamma, kappa, s, terms)
        better = x + (value - reached) / slope
        if not (low < better < high):
            better = 4.0 * x if math.isinf(high) else (math.sqrt(low * high) if low > 0.0 else 0.01 * high)
        if abs(better - x) <= 1e-15 * x or x < 1e-300:
            break
        x = better
    return x


@jit
def interval_inverse(alpha: float, gamma: float, kappa: float, interval: float, guess: float) -> float:
    """The smallest exponent whose expected interval reaches `interval`; infinity where none does. `guess` ≤ 0: none."""
    if interval <= 0.0:
        return 0.0
    if gamma == 0.0 or kappa == 0.0:
        return alpha * interval if alpha > 0.0 else math.inf
    if math.isinf(interval):
        return math.inf
    if alpha == 0.0:
        return math.ceil(interval * gamma * (1.0 - 1e-14)) * kappa if not math.isinf(kappa) else math.inf
    if math.isinf(kappa):
        share = interval * gamma
        return -math.log1p(-share) * alpha / gamma if share < 1.0 else math.inf
    drift = alpha + gamma * kappa
    low, high = max(interval * drift - kappa, 0.0), interval * drift  # Wald: u ≤ drift·ψ(u) ≤ u + κ
    off = signal_interval(alpha, gamma, kappa, high, 0.0) - interval
    if off < 0.0:
        return high
    before, before_off = high, off
    t = guess if low < guess < high else high - off * drift
    steps = 0
    while high - low > 2e-16 * high and high >= 1e-300:
        if not low < t < high or steps % 8 == 7:
            t = math.sqrt(low * high) if low > 0.0 and low < 0.25 * high else 0.5 * (low + high)
            if not low < t < high:
                break
        off = signal_interval(alpha, gamma, kappa, t, 0.0) - interval
        if off < 0.0:
            low = t
        else:
            high = t
        if abs(off) <= 2e-16 * interval:
            return t
        slope = (off - before_off) / (t - before) if steps > 0 else 1.0 / drift
        before, before_off = t, off
        t = t - off / slope if slope > 0.0 else low
        steps += 1
    return high
