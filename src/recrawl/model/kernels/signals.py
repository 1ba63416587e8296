"""Scalar kernels with noisy change signals: crawl value and expected interval as functions of the staleness exponent.

A page's copy is fresh with probability e^{−s}, s = α·elapsed + κ·signals (missed rate α, signals at rate γ, each
weighing κ). ψ(s) is the expected time until the exponent reaches s, and the crawl value per importance is
V(s) = ∫₀^s e^{−u} ψ(u) du. With the signals counted, ψ = (1/γ) Σ_i P(i+1, x_i) and V = (1/γ) Σ_i e^{−iκ} G_i, where
x_i = γ(s − iκ)/α and G_i, the chance that an exponential(α) time comes within (s − iκ)/α but after i+1 signals, is a
sum of positive terms. Three facts keep this exact and short over the whole parameter space:
  1. a term with x_i far above i + 1 is elementary ("settled"), and a run of those has a closed sum;
  2. beyond some s, ψ is linear up to an error that decays like e^{−d(r)·s/κ}, r = α/(γκ): V is then elementary too;
  3. what lies between is a band of some tens of terms, however large s/κ is.
The exponent is passed as (offset, n), s = offset + n·κ, so that a tiny offset is not lost beside n·κ.
"""

import math

from recrawl._compile.jit import inline, jit
from recrawl.model.kernels.fresh import fresh_value, lower_gamma, reciprocal, third_order

ALL_TERMS = 1 << 62  # "all terms": the exact value; a smaller count gives the j-term approximation
_SATURATED = 45.0  # beyond this exponent, V equals its limit to the last digit
_RARE = 1e100  # a page that changes unseen this many times per signal has no signals: dropping them changes no digit
_MOST = 1e15  # more terms than are ever summed
_LARGE_SHAPE = 10_000  # from here on the incomplete gamma comes from its uniform expansion


@inline
def signal_weight(true_rate: float, false_rate: float) -> float:
    """κ = log(1 + true_rate / false_rate): infinity for a proof, 0 for pure noise and for no signals at all."""
    if true_rate <= 0.0:
        return 0.0
    return math.inf if false_rate <= 0.0 else math.log1p(true_rate / false_rate)


@inline
def _argument(i: float, offset_x: float, n: float, per_signal: float) -> float:
    """x_i = γ(s − iκ)/α; `n == i` is kept apart from 0·∞."""
    return offset_x if i == n else offset_x + (n - i) * per_signal


@inline
def _settled(i: float, x: float) -> bool:
    """Whether P(i+1, x) is 1 to the last digit."""
    a = i + 1.0
    return x > a + 9.0 * math.sqrt(a) + 40.0


@jit
def _count_settled(offset_x: float, n: float, per_signal: float, last: float) -> float:
    """How many of the terms 0, 1, … last are settled (they come first)."""
    if not _settled(0.0, _argument(0.0, offset_x, n, per_signal)):
        return 0.0
    low, high = 0.0, last + 1.0  # low is settled, high is not (or past the end)
    while high - low > 1.0:
        middle = math.floor(0.5 * (low + high))
        if _settled(middle, _argument(middle, offset_x, n, per_signal)):
            low = middle
        else:
            high = middle
    return high


@inline
def _linear_from_here(count: float, ratio: float) -> bool:
    """Whether ψ has become linear at s = count·κ; the decay rate d(r) is at least 2π²r²/(1 + 2.7r)².

    And u ≤ (α + γκ)·ψ(u) ≤ u + κ anywhere (Wald), so beyond 1e13 counts nothing else is left in a float.
    """
    return count > 1e13 or count * 19.739 * ratio * ratio > 36.0 * (1.0 + 2.7 * ratio) ** 2


@inline
def _whole_signals(offset: float, n: float, kappa: float) -> float:
    """How many signals lift the exponent from 0 to offset + n·κ when nothing else does."""
    if offset == 0.0 and n == math.floor(n):
        return n
    if math.isinf(kappa):
        return 1.0 if offset > 0.0 or n > 0.0 else 0.0
    return math.inf if math.isinf(offset) else math.ceil((n + offset / kappa) * (1.0 - 1e-14))


@inline
def linear_interval(alpha: float, gamma: float, kappa: float, s: float) -> float:
    """ψ(s) where it has become linear."""
    drift = alpha + gamma * kappa
    return (s + 0.5 * kappa * (gamma * kappa / drift)) / drift


@jit
def signal_interval(alpha: float, gamma: float, kappa: float, offset: float, n: float) -> float:
    """ψ: expected time until the exponent reaches offset + n·κ (time units of 1/γ and 1/α)."""
    if gamma == 0.0 or kappa == 0.0:
        return offset / alpha if alpha > 0.0 else (math.inf if offset > 0.0 else 0.0)
    if alpha == 0.0:
        return _whole_signals(offset, n, kappa) / gamma
    if math.isinf(kappa):
        if n > 0.0 or math.isinf(offset):
            return 1.0 / gamma
        x = gamma * (offset / alpha)
        return offset / alpha if x * _RARE < 1.0 else -math.expm1(-x) / gamma
    if math.isinf(offset):
        return math.inf
    if alpha > _RARE * gamma:
        return (offset + n * kappa) / alpha
    count = n + offset / kappa
    ratio = alpha / (gamma * kappa)
    if _linear_from_here(count, ratio):
        return linear_interval(alpha, gamma, kappa, offset + n * kappa)
    offset_x = gamma * (offset / alpha)
    per_signal = 1.0 / ratio
    i = _count_settled(offset_x, n, per_signal, math.floor(min(count, _MOST)))
    total = i
    while i <= count:
        part = _lower_gamma_any(i + 1.0, _argument(i, offset_x, n, per_signal))
        total += part
        if part <= 1e-17 * total:
            break
        i += 1.0
    return total / gamma


@jit
def signal_value(
    alpha: float, gamma: float, kappa: float, change_rate: float, offset: float, n: float, terms: int
) -> float:
    """V per unit of importance at the exponent offset + n·κ, from its first `terms` terms (`ALL_TERMS`: exact)."""
    if change_rate == 0.0:
        return 0.0
    if gamma == 0.0 or kappa == 0.0:
        return fresh_value(offset) / change_rate
    if math.isinf(kappa) and n > 0.0:  # a proof: only the first term is left, and it is the limit
        return 1.0 / change_rate
    s = offset + (0.0 if n == 0.0 else n * kappa)
    if s <= 0.0:
        return 0.0
    if math.isinf(s) and terms < ALL_TERMS:  # Σ_{i<terms} e^{−iκ} (γ/(α + γ))^{i+1} / γ
        per_term = kappa + math.log1p(alpha / gamma)
        return math.expm1(-terms * per_term) / math.expm1(-per_term) / (alpha + gamma)
    if alpha > _RARE * gamma:
        return fresh_value(s) / change_rate
    if terms >= ALL_TERMS:
        if s > _SATURATED:
            return 1.0 / change_rate
        if alpha > 0.0 and kappa < math.inf and _linear_from_here(n + offset / kappa, alpha / (gamma * kappa)):
            return _linear_value(alpha, gamma, kappa, change_rate, s)
    return min(_summed_value(alpha, gamma, kappa, offset, n, s, terms), 1.0 / change_rate)  # its limit, also rounded


@inline
def _linear_value(alpha: float, gamma: float, kappa: float, change_rate: float, s: float) -> float:
    """1/Δ − ∫_s^∞ e^{−u} ψ(u) du with ψ(u) = u/m + γκ²/(2m²), m = α + γκ, arranged so that nothing cancels."""
    drift = alpha + gamma * kappa
    third = third_order(kappa)  # κ²/2 − κ + 1 − e^{−κ}
    half_square = 0.5 * kappa * kappa
    second = half_square - third  # κ − 1 + e^{−κ}
    constant = (gamma * half_square * second - drift * third) / (drift * change_rate)
    return (fresh_value(s) + gamma * (constant + half_square * -math.expm1(-s) / drift)) / drift


@jit
def _summed_value(alpha: float, gamma: float, kappa: float, offset: float, n: float, s: float, terms: int) -> float:
    count = n if math.isinf(kappa) else min(n + offset / kappa, _MOST)
    if alpha == 0.0:
        count = _whole_signals(offset, n, kappa)
    offset_x = gamma * (offset / alpha) if alpha > 0.0 else 0.0
    per_signal = gamma * kappa / alpha if alpha > 0.0 else math.inf
    log_share = math.log1p(alpha / gamma)  # −log(γ/(α + γ))
    i = count if alpha == 0.0 else _count_settled(offset_x, n, per_signal, math.floor(count))
    if i >= terms:
        return _settled_sum(s, kappa, log_share, float(terms)) / gamma
    total = _settled_sum(s, kappa, log_share, i)
    while i <= count and i < terms and alpha > 0.0:
        x = _argument(i, offset_x, n, per_signal)
        decay = 1.0 if i == 0.0 else math.exp(-i * kappa)
        part = decay * _before_and_within(i + 1.0, x, alpha / gamma, log_share)
        total += part
        if part <= 1e-17 * total:
            break
        i += 1.0
    return total / gamma


@jit
def _settled_sum(s: float, kappa: float, log_share: float, m: float) -> float:
    """Σ_{i<m} (e^{−iκ − (i+1)l} − e^{−s}), l = log_share, each term being e^{−s} expm1(s − l − i(κ + l))."""
    if m == 0.0:
        return 0.0
    top = s - log_share
    if m == 1.0:
        return -math.exp(-log_share) * math.expm1(-top)
    gap = kappa + log_share
    if m <= 16.0:
        total = 0.0
        for i in range(int(m)):
            total -= math.exp(-(log_share + i * gap)) * math.expm1(i * gap - top)
        return total
    if top > 0.5:
        geometric = math.expm1(-m * gap) / math.expm1(-gap) if gap > 0.0 else m
        return math.exp(-log_share) * geometric - (m * math.exp(-s) if s < 700.0 else 0.0)
    # Euler–Maclaurin over y = top − i·gap; the step is at most 0.5/16
    bottom = top - (m - 1.0) * gap
    integral = (_exp_tail(top) - _exp_tail(bottom)) / gap
    ends = 0.5 * (math.expm1(top) + math.expm1(bottom))
    rise = math.exp(bottom) * math.expm1(top - bottom)
    return math.exp(-s) * (integral + ends + rise * gap * (1 / 12 - gap * gap * (1 / 720 - gap * gap / 30240)))


@inline
def _exp_tail(y: float) -> float:
    """e^y − 1 − y for |y| ≤ 0.5."""
    total = 0.0
    for k in range(17, 1, -1):
        total = (1.0 + total * y) / k
    return y * y * total


@jit
def _before_and_within(a: float, x: float, ratio: float, log_share: float) -> float:
    """G = P(gamma(a) time at rate γ < exponential(α) time < x/γ), ratio = α/γ: no cancellation anywhere.

    With y = x(1 + α/γ) and g = γ/(α + γ): G = g^a Σ_{m≥1} Poisson(a + m; y) (1 − g^m).
    """
    if x <= 0.0:
        return 0.0
    if math.isinf(x):
        return math.exp(-a * log_share)
    if _settled(a - 1.0, x):
        return -math.exp(-a * log_share) * math.expm1(a * log_share - x * ratio)
    if a >= _LARGE_SHAPE:
        return _before_and_within_large(a, x, ratio, log_share)
    y = x * (1.0 + ratio)
    share = ratio / (1.0 + ratio)  # 1 − g
    keep = 1.0 / (1.0 + ratio)
    j = int(a) + 1
    log_term = j * math.log(y) - y - math.lgamma(j + 1.0)
    if log_term < -650.0 and y > j:  # far below the bulk of the Poisson law, and there g^m is 0
        return math.exp(-a * log_share)
    term = math.exp(log_term)
    lost = share
    total = term * lost
    while True:
        j += 1
        term *= y * reciprocal(j)
        lost = lost * keep + share
        total += term * lost
        if j > y and term * y <= 1e-17 * total * (j + 1.0 - y):
            break
    return total * math.exp(-a * log_share)


@jit
def _before_and_within_large(a: float, x: float, ratio: float, log_share: float) -> float:
    within = x * ratio  # α·(x/γ)
    if within > 1e-5:
        upper = math.exp(-a * log_share) * _lower_gamma_any(a, x * (1.0 + ratio))
        return max(upper - math.exp(-within) * _lower_gamma_any(a, x), 0.0)
    # first order in α: ∫₀^x P(a, u) du = (x − a) P(a, x) + x · pmf(a − 1 → a)
    density = math.exp(-x * _relative_entropy(a / x)) * math.sqrt(a / (2.0 * math.pi)) * (1.0 - 1.0 / (12.0 * a))
    return max(ratio * math.exp(-within) * ((x - a) * _lower_gamma_any(a, x) + density), 0.0)


@inline
def _relative_entropy(t: float) -> float:
    """t log t − t + 1, by series near 1."""
    d = t - 1.0
    if abs(d) > 0.1:
        return t * math.log(t) - d
    total = 0.0
    power = d
    for k in range(2, 18):
        power *= d
        total += power / (k * (k - 1)) if k % 2 == 0 else -power / (k * (k - 1))
    return total


@jit
def _lower_gamma_any(a: float, x: float) -> float:
    """P(a, x) for whole a of any size: sums below 10,000, Temme's uniform expansion above."""
    if a < _LARGE_SHAPE:
        return lower_gamma(int(a), x)
    if x <= 0.0:
        return 0.0
    d = (x - a) / a
    if d > 0.3:
        return 1.0
    if d < -0.3:
        return 0.0
    entropy = _minus_log1p(d)  # η²/2
    eta = math.copysign(math.sqrt(2.0 * entropy), d)
    c0 = -1 / 3 + eta * (1 / 12 + eta * (-2 / 135 + eta * (1 / 864 + eta * (1 / 2835 - eta * 139 / 777600))))
    c1 = -1 / 540 + eta * (-1 / 288 + eta / 378)
    remainder = math.exp(-a * entropy) / math.sqrt(2.0 * math.pi * a) * (c0 + c1 / a)
    return 0.5 * math.erfc(-eta * math.sqrt(0.5 * a)) - remainder


@inline
def _minus_log1p(d: float) -> float:
    """d − log(1 + d), by series near 0."""
    if abs(d) > 0.1:
        return d - math.log1p(d)
    total = 0.0
    power = d
    for k in range(2, 20):
        power *= d
        total += power / k if k % 2 == 0 else -power / k
    return total


@jit
def signal_count(gamma: float, kappa: float, change_rate: float, value: float, terms: int) -> float:
    """α = 0: the smallest number of signals at which V reaches `value` (infinity: never)."""
    if value <= 0.0:
        return 0.0
    if math.isinf(kappa):
        return 1.0 if value <= signal_value(0.0, gamma, kappa, change_rate, 0.0, 1.0, terms) else math.inf
    if kappa == 0.0 or gamma == 0.0:
        return math.inf
    high = 1.0
    while signal_value(0.0, gamma, kappa, change_rate, 0.0, high, terms) < value:
        high *= 2.0
        if high * kappa > 1500.0:
            return math.inf
    low = math.floor(0.5 * high)
    while high - low > 1.0:
        middle = math.floor(0.5 * (low + high))
        if signal_value(0.0, gamma, kappa, change_rate, 0.0, middle, terms) < value:
            low = middle
        else:
            high = middle
    return high


@jit
def signal_slope(alpha: float, gamma: float, kappa: float, s: float, terms: int) -> float:
    """dV/ds per unit of importance: e^{−s} ψ(s), ψ from the first `terms` terms."""
    if terms >= ALL_TERMS:
        return math.exp(-s) * signal_interval(alpha, gamma, kappa, s, 0.0)
    count = s / kappa
    total = 0.0
    i = 0.0
    while i <= count and i < terms:
        total += _lower_gamma_any(i + 1.0, gamma * ((s - i * kappa) / alpha))
        i += 1.0
    return math.exp(-s) * total / gamma
