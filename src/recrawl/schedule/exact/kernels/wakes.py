"""When at the earliest a page can be worth a given level.

`earliest_wake` never answers too late; the scheduler's exactness rests on that alone. Without useful signals it inverts
the value. With signals, whose inverse is expensive, it answers by bounds from what is known now: ψ(s + v) ≤ ψ(s) + v/α,
and ψ(u) ≤ (u + κ)/(α + γκ). `earliest_wake` writes nothing. `wake_time` is the same for the layers: it also keeps with
the page what was found, so that later signals and crawls need not compute it again.
"""

import math

from recrawl._jit import inline, jit_lean
from recrawl.model.kernels.fresh import fresh_inverse, fresh_value, posterior_inverse_below
from recrawl.model.kernels.pages import page_elapsed
from recrawl.model.kernels.signals import ALL_TERMS, signal_interval
from recrawl.schedule.exact.kernels.values import (
    RATES,
    believed,
    heard_signals,
    optional,
    related,
    related_value,
    silent_exponent,
    worth_of,
)
from recrawl.schedule.exact.layout import LEAST_SLACK, State

_FOR_SIBLINGS, _AWHILE = 0.02, 0.48  # how much of the way to a level a page leaves to its group; more of a long one
_PROBES, _TRIES = 4, 16  # values computed to find out how long a page may sleep; at most, while none was short enough
_CLOSE, _NEARLY = 0.85, 0.1  # how near to that is near enough: of the time, of the value
_SHORT = 8.0  # ticks: to sleep for less costs more than to be evaluated at every pick
_EARLY = 1e-11  # how much earlier than computed a page is woken, relative


@inline
def _rounded_down(exponent: float) -> float:
    """A little less, so that rounding to 32 bits does not make it more."""
    if math.isinf(exponent):
        return exponent
    return min(exponent, 3e38) * (1.0 - 2e-7) if exponent > 1e-30 else 0.0


@jit_lean
def earliest_wake(
    s: State, i: int, now: float, level: float, value: float, interval: float
) -> tuple[float, float, float, int]:
    """(wake time, slack, exponent, values computed) of page i and a level.

    The wake time is a time ≥ now before which the value stays below the level; infinity where it always does. The slack
    is by how much the accumulated excess may rise before the answer no longer holds. The exponent is one below
    which the value stays below the far level (0: not known). `value` and `interval` are what `worth_of` says; negative
    where they are not known. Without the value the answer is now where only the value can tell.
    """
    p = s.rec[i]
    slack, exponent, values = math.inf, float(p.least), 0
    if related(s, i):
        if value < 0.0 or interval < 0.0:
            value, interval = worth_of(s, i, now)
            values = 1
        wake, slack, probes = _related_wake(s, i, now, level, value, interval)
        values += probes
    else:
        wake, exponent = _own_wake(s, i, now, level, value, interval)
    floor = optional(s, s.head[0].floor_row, i, 0.0)
    if floor > 0.0:
        wake = min(wake, p.last + 1.0 / floor)
    wake = max(wake - _EARLY * (wake - p.last), now) if wake < math.inf else wake
    return wake, slack, exponent, values


@inline
def wake_time(s: State, i: int, now: float, level: float, value: float, interval: float) -> tuple[float, float]:
    """(wake time, slack) as `earliest_wake` says; keeps with the page what was found."""
    p = s.rec[i]
    wake, slack, p.least, values = earliest_wake(s, i, now, level, value, interval)
    s.head[0].evaluated += values
    if related(s, i):
        s.member[i].wake_after = _rounded_down(max(wake - p.last, 0.0))
    return wake, slack


@inline
def knows_wake(s: State, i: int) -> bool:
    """Whether a sleeping page keeps when it wakes: where groups count, but for corners."""
    return bool(related(s, i) and 0.0 < s.member[i].wake_after < math.inf)


@inline
def _own_wake(s: State, i: int, now: float, level: float, value: float, interval: float) -> tuple[float, float]:
    """(wake time, exponent for the far level) of a page of which only its own rate and signals are known."""
    p = s.rec[i]
    exponent = float(p.least)
    if p.importance <= 0.0 or p.change_rate <= 0.0:
        return math.inf, exponent
    if s.head[0].objective == RATES:
        rate = optional(s, s.head[0].crawl_rate_row, i, 0.0)
        return (float(p.last + level / rate) if rate > 0.0 else math.inf), exponent
    scale = optional(s, s.head[0].cost_row, i, 1.0) / p.importance
    goal = level * scale
    if goal == math.inf:
        return math.inf, exponent
    far = bool(level == s.head[0].far_level)
    source = believed(s, i)
    if source[1] > 0.0 and source[2] > 0.0:
        if s.head[0].objective == 0:
            return _signal_wake(s, i, now, far, goal, source, value * scale, interval)
        never = p.signals < goal * p.change_rate  # harmonic: the value grows with (complete) signals only
        return math.inf if never else now, exponent
    d = p.change_rate
    shape = optional(s, s.head[0].evidence_row, i, math.inf)
    if s.head[0].objective != 0:
        elapsed = page_elapsed(s.head[0].objective, d, shape, d, 0.0, 0.0, goal, 0.0, ALL_TERMS)
        return float(p.last + elapsed), exponent
    x = exponent if far else 0.0
    if x <= d * (now - p.last):
        x = posterior_inverse_below(goal * d, shape)
        if far:
            exponent = _rounded_down(x)
    return float(p.last + x / d), exponent


@jit_lean
def _related_wake(s: State, i: int, now: float, level: float, value: float, total: float) -> tuple[float, float, int]:
    """(wake time, slack, values computed): most of the way to the level may be time, the rest accumulated excess.

    Found by trying: values grow with both.
    """
    p = s.rec[i]
    if p.importance <= 0.0 or p.change_rate <= 0.0 or level == math.inf:
        return math.inf, math.inf, 0
    if value >= level:
        return now, 0.0, 0
    scale = optional(s, s.head[0].cost_row, i, 1.0) / p.importance
    goal = level * scale
    rate = fresh_value(total) / (value * scale) if value > 0.0 else p.change_rate
    room = max(fresh_inverse(min(goal * rate, 1.0 - 1e-9)) - total, 0.0)
    weight = s.member[i].weight
    more, slack = 0.0, math.inf
    if weight > 0.0:
        ahead = room / rate
        more = (_FOR_SIBLINGS + _AWHILE * ahead / (ahead + max(now - p.last, 0.0))) * room
        slack = more / weight
        if slack < LEAST_SLACK:
            return now, slack, 0
    below, values = _time_below(s, i, now, goal, more * 1.00001 + 1e-6, value * scale, (room - more) / rate)
    return now + below, slack, values


@jit_lean
def _time_below(
    s: State, i: int, now: float, goal: float, more: float, value: float, guess: float
) -> tuple[float, int]:
    """(a time for which the value at `more` exponent stays below a goal, and not much shorter; values computed)."""
    low, at_low, high, at_high = 0.0, value, math.inf, math.inf
    step, short = guess, _SHORT * s.head[0].width
    values = 0
    for k in range(_TRIES):
        if step < short or (k >= _PROBES and low > 0.0):
            break
        values += 1
        v = related_value(s, i, now + step, more)[0]
        if v < goal:
            low, at_low = step, v
            step = step * min(max((goal - value) / max(v - value, 1e-9 * goal), 1.2), 4.0)
        else:
            high, at_high = step, v
        if not math.isinf(high):
            if low >= _CLOSE * high:
                break
            share = (goal - at_low) / (at_high - at_low) if at_high > at_low else 0.5
            step = low + min(max(0.97 * share, 0.1), 0.95 if low > 0.0 else 0.5) * (high - low)
        elif goal - v < _NEARLY * (goal - value):
            break
    return low if low >= short else 0.0, values


@jit_lean
def _signal_wake(
    s: State, i: int, now: float, far: bool, goal: float, source: tuple[float, float, float], known: float, psi: float
) -> tuple[float, float]:
    """(wake time, exponent for the far level) of a page with useful signals."""
    p = s.rec[i]
    d, exponent = p.change_rate, float(p.least)
    alpha, gamma, kappa = source
    if goal * d >= 1.0:
        return math.inf, exponent
    amount, n = heard_signals(s, i, kappa)
    heard = amount + (0.0 if n == 0.0 else n * kappa)
    if math.isinf(heard):
        return now, exponent
    offset = silent_exponent(s, alpha, d - alpha, max(now - p.last, 0.0)) + amount
    total = offset + (0.0 if n == 0.0 else n * kappa)
    least = exponent if far else 0.0
    if least <= total:
        if known < 0.0:
            least = _least_exponent(alpha, gamma, kappa, goal)
        elif known < goal:
            psi = psi if psi >= 0.0 else signal_interval(alpha, gamma, kappa, offset, n)
            least = total + _exponent_ahead(alpha, gamma, kappa, total, psi, goal - known)
        if least <= total:
            return now, exponent
        if far:
            exponent = _rounded_down(least)
    return float(p.last + _silent_inverse(s, alpha, d - alpha, least - heard)), exponent


@jit_lean
def _silent_inverse(s: State, missed: float, signalled: float, exponent: float) -> float:
    """The smallest elapsed time whose silent exponent is the given one; delays are sorted."""
    k = s.head[0].n_delays
    if exponent <= 0.0:
        return 0.0
    before, reached = 0.0, 0.0
    waiting = 1.0
    for j in range(k):
        slope = missed + signalled * waiting
        at = s.delays[j].at
        gained = slope * (at - before)
        if reached + gained >= exponent and slope > 0.0:
            return before + (exponent - reached) / slope
        reached += gained
        before = at
        waiting = max(waiting - s.delays[j].share, 0.0)
    return before + (exponent - reached) / missed if missed > 0.0 else math.inf


@inline
def _least_exponent(alpha: float, gamma: float, kappa: float, goal: float) -> float:
    """An exponent below which V < goal: from ψ(u) ≤ u/α and from ψ(u) ≤ (u + κ)/m, m = α + γκ."""
    least = fresh_inverse(min(goal * alpha, 0.999999)) if alpha > 0.0 else 0.0
    if math.isinf(kappa):
        return least
    return max(least, -kappa + math.sqrt(kappa * kappa + 2.0 * (alpha + gamma * kappa) * goal))


@jit_lean
def _exponent_ahead(alpha: float, gamma: float, kappa: float, s: float, psi: float, gap: float) -> float:
    """How far above s, where the interval is ψ, the exponent can rise before V can have grown by the gap.

    V grows by ∫ e^{−s−v} ψ(s + v) dv, and ψ(s + v) ≤ min(ψ + v/α, (s + v + κ)/m), with proof min(ψ + v/α, 1/γ). A step
    bounds e^{−v} by 1 and takes a parabola's root, which is never too far; the next one starts from there.
    """
    room = gap * math.exp(min(s, 700.0))
    slow = 0.0 if math.isinf(kappa) else 1.0 / (alpha + gamma * kappa)
    most = 1.0 / gamma if math.isinf(kappa) else (s + kappa) * slow
    ahead = 0.0
    for _ in range(8):
        slope, height = slow, most + ahead * slow
        if psi * alpha + ahead < height * alpha:
            slope, height = 1.0 / alpha, psi + ahead / alpha
        step = 2.0 * room / (height + math.sqrt(height * height + 2.0 * slope * room))
        ahead += step
        if step <= 1e-4 * ahead or ahead > 700.0:
            break
        decay = math.exp(-step)
        gained = height * (1.0 - decay) + slope * (1.0 - decay * (1.0 + step) if step > 0.01 else 0.5 * step * step)
        room = max(room - gained, 0.0) / decay
    return ahead
