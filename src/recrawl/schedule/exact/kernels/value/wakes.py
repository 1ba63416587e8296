"""When at the earliest a page can be worth a given level.

`earliest_wake` never answers too late; the scheduler's exactness rests on that alone. Without useful signals it inverts
the value. With signals, whose inverse is expensive, it answers by bounds from what is known now: ψ(s + v) ≤ ψ(s) + v/α,
and ψ(u) ≤ (u + κ)/(α + γκ). For a mixture it tries some times and answers with one at which the value is below the
level. `earliest_wake` writes nothing. `wake_time` is the same for the layers: it also keeps with the page what was
found, so that later signals and crawls need not compute it again.
"""

import math

from recrawl._compile.jit import inline, jit_lean
from recrawl.model.kernels.fresh import fresh_inverse, posterior_inverse_from
from recrawl.model.kernels.pages import page_elapsed
from recrawl.model.kernels.signals import ALL_TERMS, signal_interval
from recrawl.schedule.exact.kernels.state.mixtures import mixture_elapsed, mixture_of
from recrawl.schedule.exact.kernels.value.buckets import least_slack
from recrawl.schedule.exact.kernels.value.clocks import clock_between, has_clock, page_clock, time_ahead
from recrawl.schedule.exact.kernels.value.values import (
    RATES,
    believed,
    heard_signals,
    late_time,
    optional,
    silent_exponent,
)
from recrawl.schedule.exact.layout import State

_FOR_RISES, _AWHILE = 0.02, 0.48  # how much of the way to a level a page leaves to publications; more of a long one
_TIMES = 6  # times ahead that are tried where signals are late
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
) -> tuple[float, float, float]:
    """(wake time, limit, exponent) of page i and a level.

    The wake time is a time ≥ now before which the value stays below the level; infinity where it always does. The limit
    is the clock time since the fetch up to which the answer holds; a page with a clock leaves some of it to later
    publications. The exponent is one below which the value stays below the far level (0: not known). `value` and
    `interval` are what `worth_of` says; negative where they are not known. Without the value the answer is now where
    only the value can tell.
    """
    p = s.rec[i]
    wake, limit, exponent = math.inf, math.inf, float(p.least)
    if p.importance > 0.0 and p.change_rate > 0.0:
        if s.head[0].objective == RATES:
            rate = optional(s, s.head[0].crawl_rate_row, i, 0.0)
            wake = p.last + level / rate if rate > 0.0 else math.inf
        else:
            wake, limit, exponent = _clock_wake(s, i, now, level, value, interval)
    floor = optional(s, s.head[0].floor_row, i, 0.0)
    if floor > 0.0:
        wake = min(wake, p.last + 1.0 / floor)
    wake = max(wake - _EARLY * (wake - p.last), now) if wake < math.inf else wake
    return wake, limit, exponent


@inline
def wake_time(s: State, i: int, now: float, level: float, value: float, interval: float) -> tuple[float, float]:
    """(wake time, limit) as `earliest_wake` says; keeps with the page the exponent that was found."""
    wake, limit, s.rec[i].least = earliest_wake(s, i, now, level, value, interval)
    return wake, limit


@jit_lean
def _clock_wake(
    s: State, i: int, now: float, level: float, value: float, interval: float
) -> tuple[float, float, float]:
    """The same for a page of importance and change rate above 0 whose value goes by its clock."""
    p = s.rec[i]
    exponent = float(p.least)
    scale = optional(s, s.head[0].cost_row, i, 1.0) / p.importance
    goal = level * scale
    if goal == math.inf:
        return math.inf, math.inf, exponent
    mixture, time = mixture_of(s, i), page_clock(s, i, p.last, now)
    if mixture > 0:
        limit = mixture_elapsed(s, mixture, time, value * scale, goal)
        return (_when(s, i, now, time, limit) if limit > time else now), limit, 0.0  # a fetch may lie after now
    far = bool(level == s.head[0].far_level)
    source = believed(s, i)
    if source[1] > 0.0 and source[2] > 0.0:
        if s.head[0].objective != 0:  # harmonic: the value grows with (complete) signals only
            return (math.inf if p.signals < goal * p.change_rate else now), math.inf, exponent
        needed, exponent = _silent_needed(s, i, now, far, goal, source, value * scale, interval)
        wake, limit = _silent_wake(s, i, now, source[0], p.change_rate - source[0], needed)
        return wake, limit, exponent
    limit, exponent = _rate_limit(s, i, time, far, goal)
    return _when(s, i, now, time, limit), limit, exponent


@inline
def _rate_limit(s: State, i: int, time: float, far: bool, goal: float) -> tuple[float, float]:
    """(clock time since the fetch at which a page without signals reaches a goal, exponent for the far level).

    `time` is the clock time since the fetch now; where the goal is reached already, any time before now will do.
    """
    p = s.rec[i]
    d, exponent = p.change_rate, float(p.least)
    shape = optional(s, s.head[0].evidence_row, i, math.inf)
    if s.head[0].objective != 0:
        return page_elapsed(s.head[0].objective, d, shape, d, 0.0, 0.0, goal, 0.0, ALL_TERMS), exponent
    x = exponent if far else 0.0
    if x <= d * time:
        x = posterior_inverse_from(goal * d, shape, d * time)
        if far:
            exponent = _rounded_down(x)
    return x / d, exponent


@inline
def _when(s: State, i: int, now: float, time: float, limit: float) -> float:
    """When a page's clock can reach a limit since the fetch; earlier where publications may bring that forward.

    `time` is the clock time since the fetch now.
    """
    last = s.rec[i].last
    if not has_clock(s, i) or math.isinf(limit):
        return float(last + limit)
    g, start = s.member[i].group, now
    if s.groups[g].updated_at > now:
        start = s.groups[g].updated_at
        time = clock_between(s, g, last, start)
    left = limit - time
    slack = slack_of(s, left, limit)
    return float(start + time_ahead(s, g, start, left - slack) if slack < left else now)


@inline
def slack_of(s: State, left: float, limit: float) -> float:
    """How much of the clock time that is left up to a limit a page leaves to publications."""
    return max((_FOR_RISES + _AWHILE * left / limit) * left, 2.0 * least_slack(s)) if left > 0.0 else 0.0


@jit_lean
def _silent_needed(
    s: State, i: int, now: float, far: bool, goal: float, source: tuple[float, float, float], known: float, psi: float
) -> tuple[float, float]:
    """(exponent of silent time at which a page with useful signals can reach a goal, exponent for the far level)."""
    p = s.rec[i]
    d, exponent = p.change_rate, float(p.least)
    alpha, gamma, kappa = source
    if goal * d >= 1.0:
        return math.inf, exponent
    amount, n = heard_signals(s, i, kappa)
    heard = amount + (0.0 if n == 0.0 else n * kappa)
    if math.isinf(heard):
        return 0.0, exponent
    silent = silent_exponent(s, alpha, d - alpha, page_clock(s, i, p.last, now), max(now - p.last, 0.0))
    offset, total = silent + amount, silent + heard
    least = exponent if far else 0.0
    if least <= total:
        if known < 0.0:
            least = _least_exponent(alpha, gamma, kappa, goal)
        elif known < goal:
            psi = psi if psi >= 0.0 else signal_interval(alpha, gamma, kappa, offset, n)
            least = total + _exponent_ahead(alpha, gamma, kappa, total, psi, goal - known)
        if least <= total:
            return 0.0, exponent
        if far:
            exponent = _rounded_down(least)
    return least - heard, exponent


@jit_lean
def _silent_wake(s: State, i: int, now: float, missed: float, signalled: float, needed: float) -> tuple[float, float]:
    """(wake time, limit) where the exponent of silent time must reach what is needed.

    With a clock and delays: up to a time ahead the late part is at most what it is then; the best of several times.
    """
    if math.isinf(needed) or needed <= 0.0:
        return (needed if needed > 0.0 else now), math.inf
    last, delays = s.rec[i].last, s.head[0].n_delays
    if delays == 0:
        limit = needed / missed if missed > 0.0 else math.inf
        return _when(s, i, now, page_clock(s, i, last, now), limit), limit
    if not has_clock(s, i):
        limit = _silent_inverse(s, missed, signalled, needed)
        return last + limit, limit
    wake, limit, ahead = now, math.inf, 2.0 * s.delays[delays - 1].at
    for k in range(_TIMES + 1):
        until = now + ahead if k > 0 else math.inf
        left = needed - signalled * late_time(s, until - last)
        most = left / missed if missed > 0.0 else math.inf
        when = min(_when(s, i, now, page_clock(s, i, last, now), most), until) if left > 0.0 else now
        if when > wake:
            wake, limit = when, most
        ahead *= 0.5
    return wake, limit


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
