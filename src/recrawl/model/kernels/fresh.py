"""Scalar kernels without signals: what a crawl is worth after an elapsed time, per objective, and the inverses.

Everything is written in x = change_rate · elapsed. A page's instantaneous cost c(x) grows with x, and the value of
crawling it now is ∫₀ˣ u c′(u) du (times importance / change_rate, or importance / change_rate² for age):
    freshness   c = 1 − e^{−x}            value  1 − e^{−x}(1 + x)
    harmonic    c = E[1 + 1/2 + … + 1/N]  value  x − 1 + e^{−x}
    age         c = x − 1 + e^{−x}        value  x²/2 − 1 + e^{−x}(1 + x)
Each cancels for small x; below 0.5 the power series is summed instead.
"""

import math

import numpy as np

from recrawl._compile.jit import inline, jit

_SMALL = 0.5
_TABLE = 1024
_RECIPROCAL = np.array([0.0, *(1.0 / k for k in range(1, _TABLE))])  # a product takes a third of a division's time


@inline
def reciprocal(k: int) -> float:
    """1/k, k ≥ 1."""
    return float(_RECIPROCAL[k]) if k < _TABLE else 1.0 / k


@inline
def harmonic_value(x: float) -> float:
    """x − 1 + e^{−x}, by its series x²/2 − x³/6 + … where that would cancel."""
    if x >= _SMALL:
        return x + math.expm1(-x)
    total = 0.0
    for k in range(17, 1, -1):
        total = (1.0 - total * x) / k
    return x * x * total


# 1/(k + 2)!, k = 0 … 13
_INVERSE_FACTORIALS = (
    0.5,
    1 / 6,
    1 / 24,
    1 / 120,
    1 / 720,
    1 / 5040,
    1 / 40320,
    1 / 362880,
    1 / 3628800,
    1 / 39916800,
    1 / 479001600,
    1 / 6227020800,
    1 / 87178291200,
    1 / 1307674368000,
)


@inline
def _polynomial(coefficients: tuple[float, ...], t: float) -> float:
    total = 0.0
    for k in range(len(coefficients) - 1, -1, -1):
        total = total * t + coefficients[k]
    return total


@inline
def fresh_value(x: float) -> float:
    """1 − e^{−x}(1 + x), for small x as e^{−x} Σ_{k≥2} x^k / k!: the regularised incomplete gamma P(2, x)."""
    decay = math.exp(-x)
    if x < _SMALL:
        return decay * x * x * _polynomial(_INVERSE_FACTORIALS, x)
    return 1.0 - decay * (1.0 + x) if x < 745.0 else 1.0


@inline
def age_value(x: float) -> float:
    """x²/2 − 1 + e^{−x}(1 + x), by its series x³/3 − x⁴/8 + … where that would cancel."""
    if x >= _SMALL:
        return 0.5 * x * x - fresh_value(x)
    total = 0.0
    term = x * x * x / 6.0
    for k in range(3, 20):
        total += (k - 1) * term
        term *= -x / (k + 1)
    return total


@inline
def third_order(x: float) -> float:
    """x²/2 − x + 1 − e^{−x} = x³/6 − x⁴/24 + …"""
    if x >= _SMALL:
        return 0.5 * x * x - (x + math.expm1(-x))
    total = 0.0
    for k in range(18, 2, -1):
        total = (1.0 - total * x) * reciprocal(k)
    return 0.5 * x * x * x * total


# x/t as a polynomial in t = √(2(x − log(1 + x))): exact to 1e-16 below 0.5, else to 2e-9, squared by a Newton step.
_START_0 = (
    1.0,
    0.333333333333365,
    0.027777777775681408,
    -0.0037037036496820838,
    0.00023148077186438285,
    5.879432929522373e-05,
    -2.5561488341770974e-05,
    4.972117079105689e-06,
    -3.747578381578149e-07,
    -4.584594700187674e-08,
)
_START_1 = (
    1.4535038630954698,
    0.38759104370862013,
    0.01654316111138168,
    -0.00227694651654603,
    0.0002633512380501928,
    -1.89451468826051e-05,
    -1.6721772700650278e-06,
    9.609399943424304e-07,
)
_START_2 = (
    2.2802344882740058,
    0.43332827683505887,
    0.007692702784838683,
    -0.0008943378174498118,
    0.00010015326931074248,
    -1.038630593587862e-05,
    9.261665804987807e-07,
    -5.449655465135907e-08,
)
_START_3 = (
    3.8637106907097225,
    0.4659419047592987,
    0.0027336651772603693,
    -0.00022815161503371502,
    1.9163880351217217e-05,
    -1.5994247855087762e-06,
    1.3921071231481242e-07,
    -1.0957054807214601e-08,
)


@jit
def fresh_inverse(y: float) -> float:
    """The x with 1 − e^{−x}(1 + x) = y; infinity from y = 1 on. In closed form −1 − W₋₁(−(1 − y)/e)."""
    if y >= 1.0:
        return math.inf
    if y <= 0.0:
        return 0.0
    level = -math.log1p(-y)  # = x − log(1 + x)
    t = math.sqrt(2.0 * level)
    if t < 0.5:
        return t * _polynomial(_START_0, t)
    if t < 2.0:
        x = t * _polynomial(_START_1, t - 1.25)
    elif t < 4.5:
        x = t * _polynomial(_START_2, t - 3.25)
    else:
        x = t * _polynomial(_START_3, t - 6.75)
    return x - (x - math.log1p(x) - level) * (1.0 + x) / x


@jit
def harmonic_inverse(y: float) -> float:
    """The x with x − 1 + e^{−x} = y."""
    if y <= 0.0:
        return 0.0
    x = y + 1.0 if y > 4.0 else math.sqrt(2.0 * y) + y / 3.0
    for _ in range(60):
        step = (harmonic_value(x) - y) / -math.expm1(-x)
        x -= step
        if abs(step) <= 1e-15 * x:
            break
    return x


@jit
def age_inverse(y: float) -> float:
    """The x with x²/2 − 1 + e^{−x}(1 + x) = y."""
    if y <= 0.0:
        return 0.0
    x = math.sqrt(2.0 * (y + 1.0))
    if y <= 1.0:
        x = (3.0 * y) ** (1 / 3)
        x *= 1.0 + x / 8.0
    for _ in range(60):
        step = (age_value(x) - y) / (x * -math.expm1(-x))
        x -= step
        if abs(step) <= 1e-15 * x:
            break
    return x


@inline
def even_freshness(x: float) -> float:
    """Share of time a page is fresh when crawled every x / change_rate: (1 − e^{−x}) / x."""
    return 1.0 if x < 1e-300 else -math.expm1(-x) / x


# A rate known only through a gamma posterior (mean change_rate, shape a): P(fresh) = (1 + x/a)^{−a}.


@jit
def posterior_value(x: float, shape: float) -> float:
    """∫₀ˣ u (1 + u/a)^{−a−1} du, which is fresh_value(x) for a = ∞ and grows without bound for a ≤ 1.

    With l = log(1 + x/a) it is a² ∫₀^l (e^v − 1) e^{−av} dv = (1 − (1 + x) e^{−al}) · a/(a − 1); each of the forms is
    used where it loses hardly a digit.
    """
    return fresh_value(x) if math.isinf(shape) else _posterior_value(x, shape, math.log1p(x / shape))


@inline
def _posterior_value(x: float, shape: float, length: float) -> float:
    if length == math.inf:
        return shape / (shape - 1.0) if shape > 1.0 else math.inf
    if length <= 0.5 and shape * length <= 0.5:
        return _posterior_powers(length, shape)
    if shape < 2.0:
        return shape * shape * (_decay_integral(shape - 1.0, length) - _decay_integral(shape, length))
    return -math.expm1(math.log1p(x) - shape * length) * shape / (shape - 1.0)


@inline
def posterior_parts(x: float, shape: float) -> tuple[float, float, float]:
    """(a·l, fresh_value(a·l), posterior_value(x)), a finite: where nothing cancels, by one logarithm and one power."""
    length = math.log1p(x / shape)
    exponent = shape * length
    if not 0.1 <= x < 1e300 or abs(shape - 1.0) < 0.05:
        return exponent, fresh_value(exponent), _posterior_value(x, shape, length)
    decay = math.exp(-exponent)
    return exponent, 1.0 - decay * (1.0 + exponent), (1.0 - decay * (1.0 + x)) * shape / (shape - 1.0)


@inline
def _decay_integral(rate: float, length: float) -> float:
    """∫₀^length e^{−rate·v} dv."""
    product = rate * length
    return length * (1.0 - 0.5 * product) if abs(product) < 1e-9 else -math.expm1(-product) / rate


@inline
def _posterior_powers(length: float, shape: float) -> float:
    """The same by powers of l: a² Σ_{k≥1} d_k l^{k+1}/(k+1)!, d_k = (1 − a)^k − (−a)^k = (1 − a)^{k−1} − a·d_{k−1}."""
    total, d, power, part = 0.0, 1.0, 1.0 - shape, 0.5 * length * length
    for k in range(3, 40):
        total += d * part
        if (abs(d) + abs(power)) * part <= 1e-18 * abs(total):  # d alone may be 0 on the way
            break
        d, power = power - shape * d, power * (1.0 - shape)
        part *= length / k
    return shape * shape * total


@jit
def lower_gamma(a: int, x: float) -> float:
    """Regularised lower incomplete gamma P(a, x), integer a ≥ 1: the chance of a or more Poisson(x) events."""
    if x <= 0.0:
        return 0.0
    if x > a + 9.0 * math.sqrt(a) + 40.0:
        return 1.0
    if x > a + 1.0:  # one minus the shorter sum below a
        term = math.exp(-x)
        if term > 1e-290:
            below = term
            for j in range(1, a):
                term *= x * reciprocal(j)
                below += term
            return 1.0 - below
    term = math.exp(a * math.log(x) - x - math.lgamma(a + 1.0))
    total = term
    j = a
    while True:
        j += 1
        term *= x * reciprocal(j)
        total += term
        if not (j <= x or term * x > 1e-17 * total * (j + 1.0 - x)):  # so that not-a-number ends it
            return min(total, 1.0)


@jit
def posterior_slope(x: float, shape: float) -> float:
    """Derivative of posterior_value: x (1 + x/a)^{−a−1}; x e^{−x} for a = ∞."""
    if math.isinf(shape):
        return x * math.exp(-x)
    return x * math.exp(-(shape + 1.0) * math.log1p(x / shape))


@jit
def posterior_inverse(y: float, shape: float) -> float:
    """The x with posterior_value(x, a) = y; infinity at and beyond the bound a / (a − 1)."""
    if math.isinf(shape):
        return fresh_inverse(y)
    if y <= 0.0:
        return 0.0
    if y == math.inf or (shape > 1.0 and y >= shape / (shape - 1.0)):
        return math.inf
    low, high = 0.0, math.inf
    x = math.sqrt(2.0 * y)
    for _ in range(200):
        value = posterior_value(x, shape)
        if value < y:
            low = x
        else:
            high = x
        slope = posterior_slope(x, shape)
        # Newton on log value against log x, which is near a straight line at both ends
        step = math.log(value / y) * value / (slope * x) if slope * x > 0.0 else math.inf
        guess = x * math.exp(-step) if abs(step) < 50.0 else math.nan
        if not (low < guess < high):
            guess = 4.0 * x if math.isinf(high) else (math.sqrt(low * high) if low > 0.0 else 0.25 * x)
        if abs(guess - x) <= 1e-15 * x:  # Newton: the error is far smaller by then
            return guess
        x = guess
        if x > 1e300:
            return math.inf
    return x


@jit
def posterior_inverse_below(y: float, shape: float) -> float:
    """A little less than the x with posterior_value(x, a) = y, by about a millionth: never more, and sooner found."""
    return posterior_inverse_from(y, shape, 0.0)


@jit
def posterior_inverse_from(y: float, shape: float, start: float) -> float:
    """The same where it is known that the value at `start` is below y; 0 where it is not.

    Log value against log x is concave, so that Newton's steps from √(2y), which is too small, stay on that side. The
    last of them is taken unseen, a little shorter, unless the value hardly grows there and rounding could spoil it.
    """
    if math.isinf(shape):
        return fresh_inverse(y)
    if y <= 0.0:
        return 0.0
    if y == math.inf or (shape > 1.0 and y >= shape / (shape - 1.0)):
        return math.inf
    low, x = 0.0, max(math.sqrt(2.0 * y) * (1.0 - 1e-12), start)
    for _ in range(60):
        length = math.log1p(x / shape)
        value = _posterior_value(x, shape, length)
        if value >= y:
            break
        low = x
        slope = x * math.exp(-(shape + 1.0) * length) * x
        if not (slope > 0.0 and x < 1e300):
            break
        step = math.log(y / value) * value / slope
        if step < 1e-3:
            return max(low, x * (1.0 + step) * (1.0 - 1e-7)) if value < 1e5 * slope else low
        x *= math.exp(min(step, 50.0))
    return low


@jit
def posterior_freshness(x: float, shape: float) -> float:
    """Share of time fresh when crawled every x / change_rate: (1/x) ∫₀ˣ (1 + u/a)^{−a} du."""
    if math.isinf(shape):
        return even_freshness(x)
    if x < 1e-300:
        return 1.0
    return shape * _decay_integral(shape - 1.0, math.log1p(x / shape)) / x
