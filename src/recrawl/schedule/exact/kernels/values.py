"""What crawling a page is worth now, and when at the earliest it can be worth a given level.

`wake_time` never answers too late; that is all the scheduler's exactness rests on. Without useful signals it inverts
the value. With signals, whose inverse is dear, it answers by bounds from what is known now: ψ(s + v) ≤ ψ(s) + v/α, and
ψ(u) ≤ (u + κ)/(α + γκ). The exponent found for the far level is kept with the page (`least`): it holds whatever is
signalled or crawled, so that neither costs a value, and it gets better each time the page wakes too early.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit_lean
from recrawl.model.kernels.fresh import fresh_inverse, fresh_value, posterior_inverse_below, posterior_parts
from recrawl.model.kernels.pages import page_elapsed, page_value
from recrawl.model.kernels.pair import value_and_interval
from recrawl.model.kernels.signals import ALL_TERMS, signal_interval, signal_weight
from recrawl.schedule.exact.kernels.groups import mass_since
from recrawl.schedule.exact.layout import (
    BOOST,
    CALM,
    COST,
    DELAY_AT,
    DELAY_SHARE,
    EVALUATED,
    EVIDENCE,
    EXPONENT,
    FADE,
    FAR_LEVEL,
    FLOOR,
    HOUR,
    HOURS,
    LEAST_SLACK,
    N_DELAYS,
    OBJECTIVE,
    POLICY,
    SEASON,
    SLACK,
    STEEPEST,
    TERMS,
    WIDTH,
    State,
)

NO_SIGNALS, TRUSTING, SIGNALS, TRUSTING_PLUS = 0, 1, 2, 3
OVERDUE = 1e250  # a page waiting longer than its floor allows comes before all others, the longest first
_FOR_SIBLINGS, _AWHILE = 0.02, 0.48  # how much of the way to a level a page leaves to its group; more of a long one
_PROBES, _TRIES = 4, 16  # values computed to find out how long a page may sleep; at most, while none was short enough
_CLOSE, _NEARLY = 0.85, 0.1  # how near to that is near enough: of the time, of the value
_SHORT = 8.0  # ticks: to sleep for less is dearer than to be looked at all the time
_EARLY = 1e-11  # how much earlier than computed a page is woken, relative


@inline
def _optional(s: State, row: int, i: int, default: float) -> float:
    r = s.ints[row]
    return s.extra[r, i] if r >= 0 else default


@inline
def _short(exponent: float) -> float:
    """A little less, which is not more once it is rounded to a short float."""
    if math.isinf(exponent):
        return exponent
    return min(exponent, 3e38) * (1.0 - 2e-7) if exponent > 1e-30 else 0.0


@inline
def believed(s: State, i: int) -> tuple[float, float, float]:
    """(missed rate, signal rate, weight) of page i as the policy believes them."""
    p = s.rec[i]
    policy = s.ints[POLICY]
    recall, false_rate = p.recall, p.false_rate
    if policy == NO_SIGNALS or p.change_rate <= 0.0:
        return p.change_rate, 0.0, 0.0
    true_rate = recall * p.change_rate
    if policy == TRUSTING:
        false_rate = 0.0
    elif policy == TRUSTING_PLUS:
        if not (true_rate > 0.7 * (true_rate + false_rate) and recall > 0.6):
            return p.change_rate, 0.0, 0.0
        false_rate = 0.0
    return (1.0 - recall) * p.change_rate, true_rate + false_rate, signal_weight(true_rate, false_rate)


@inline
def _silent(s: State, missed: float, signalled: float, elapsed: float) -> float:
    """Exponent of the time without signals; signals still on their way count as missed: α·t + λΔ·E[min(t, delay)]."""
    k = s.ints[N_DELAYS]
    if k == 0:
        return missed * elapsed
    late = 0.0
    for j in range(k):
        late += s.flts[DELAY_SHARE + j] * min(elapsed, s.flts[DELAY_AT + j])
    return missed * elapsed + signalled * late


@jit_lean
def _silent_inverse(s: State, missed: float, signalled: float, exponent: float) -> float:
    """The smallest elapsed time whose silent exponent is the given one; delays are sorted."""
    k = s.ints[N_DELAYS]
    if exponent <= 0.0:
        return 0.0
    before, reached = 0.0, 0.0
    waiting = 1.0
    for j in range(k):
        slope = missed + signalled * waiting
        at = s.flts[DELAY_AT + j]
        gained = slope * (at - before)
        if reached + gained >= exponent and slope > 0.0:
            return before + (exponent - reached) / slope
        reached += gained
        before = at
        waiting = max(waiting - s.flts[DELAY_SHARE + j], 0.0)
    return before + (exponent - reached) / missed if missed > 0.0 else math.inf


@inline
def heard_signals(s: State, i: int, kappa: float) -> tuple[float, float]:
    """What the signals since the fetch add to the exponent: an amount, and some times the page's (matched) weight.

    An amount where that weight is infinite (proof) but theirs is not: they may tell of changes before the fetch.
    """
    if s.ints[EXPONENT] < 0 or s.ints[OBJECTIVE] != 0:
        return 0.0, float(s.rec[i].signals)
    total = s.extra[s.ints[EXPONENT], i]
    if not math.isinf(kappa):
        return 0.0, (total / kappa if total > 0.0 and kappa > 0.0 else 0.0)
    return (0.0, 1.0) if math.isinf(total) else (total, 0.0)


@inline
def related(s: State, i: int) -> bool:
    """Whether siblings, bursts or seasons count for a page."""
    return bool(s.kin.size > 0 and (s.kin[i].group >= 0 or s.flts[BOOST] > 0.0 or s.flts[HOUR] > 0.0))


@inline
def hurried(boost: float, fade: float, age: float, elapsed: float) -> float:
    """By how much a page's own time runs ahead over an interval that begins at an age."""
    return -boost * fade * math.exp(-max(age, 0.0) / fade) * math.expm1(-elapsed / fade)


@inline
def season_time(table: NDArray[np.float64], hour: float, begin: float, end: float) -> float:
    """The time between two instants by a clock that runs as the hours of the week in `table` say."""
    total = 0.0
    for k in range(2):
        x = (end if k == 0 else begin) / hour
        week = np.floor(x / HOURS)
        x -= week * HOURS
        j = min(int(x), HOURS - 1)
        at = week * HOURS + table[j] + (x - j) * (table[j + 1] - table[j])
        total += at if k == 0 else -at
    return total * hour


@inline
def by_season(s: State, begin: float, elapsed: float) -> float:
    """Time since the fetch by the hours of the week in which pages change."""
    if s.flts[HOUR] <= 0.0:
        return elapsed
    return season_time(s.flts[SEASON : SEASON + HOURS + 1], s.flts[HOUR], begin, begin + elapsed)


@inline
def burst_time(s: State, i: int, begin: float, elapsed: float) -> float:
    """By how much a page's own time runs ahead where a change was seen not long before the fetch."""
    if s.flts[BOOST] <= 0.0:
        return 0.0
    return hurried(s.flts[BOOST], s.flts[FADE], begin - s.kin[i].changed_at, elapsed)


@inline
def paced(s: State, i: int, begin: float, elapsed: float) -> float:
    """The time since the fetch at the page's own pace: by the season, and more where a change was seen not long before.

    σ + B·T·(e^{−a/T} − e^{−(a+σ)/T}), σ being the time by the season, a the copy's age when it was fetched: since the
    last change seen.
    """
    season = by_season(s, begin, elapsed)
    return season + burst_time(s, i, begin, season)


@jit_lean
def own_part(s: State, i: int, missed: float, elapsed: float) -> tuple[float, float, float, float]:
    """(exponent that a page's own missed rate explains, the constant rate of the same value at that exponent).

    And how fast at most the one rises and the other falls, for a while. Own time runs ahead less and less after a
    burst, so that its slope is at most that from the fetch, and its pace falls by at most (1 − 1/pace)/σ.
    """
    if elapsed <= 0.0 or missed <= 0.0:
        return 0.0, missed, 0.0, 0.0
    season = by_season(s, s.rec[i].last, elapsed)
    time = season + burst_time(s, i, s.rec[i].last, season)
    pace = time / season
    steepest = s.flts[STEEPEST] if s.flts[HOUR] > 0.0 else 1.0
    rate, rise = missed * pace, missed * pace * steepest
    fall = rate * steepest * (1.0 - 1.0 / pace) / season if pace > 1.0 else 0.0
    shape = _optional(s, EVIDENCE, i, math.inf)
    x = missed * time
    if math.isinf(shape) or x < 1e-6 * min(shape, 1.0):
        return x, rate, rise, fall
    exponent, even, value = posterior_parts(x, shape)
    rate *= even / value
    rise *= shape / (shape + x)
    fall = fall * even / value + rate * rise * (1.0 - even) / (1.0 + exponent) * max(x / value - exponent / even, 0.0)
    return exponent, rate, rise, fall


@inline
def sibling_part(s: State, i: int, now: float) -> tuple[float, float]:
    """(exponent that the group's excess changes explain, at what rate it grows in calm times)."""
    p = s.kin[i]
    if p.group < 0 or p.weight <= 0.0:
        return 0.0, 0.0
    return p.weight * mass_since(s, p.group, s.rec[i].last, now), p.weight * s.flts[CALM]


@jit_lean
def _related_value(s: State, i: int, now: float, more: float) -> tuple[float, float, float, float, float]:
    """(value per unit of importance, exponent) of a page whose siblings or bursts count, at `more` exponent.

    V = ∫₀^s e^{−u} ψ(u) du with ψ(u) = u/(own rate + calm rate): siblings are a source of frequent, weak signals.
    And how fast at most both grow while there are no news, for a while (infinity: not known); and that rate.
    """
    p = s.rec[i]
    missed, gamma, kappa = believed(s, i)
    own, rate, rise, fall = own_part(s, i, missed, max(now - p.last, 0.0))
    kin, calm = sibling_part(s, i, now)
    total, rate, rise = own + kin + more, rate + calm, rise + calm
    if rate <= 0.0 and not (gamma > 0.0 and kappa > 0.0):
        return 0.0, total, math.inf, rise, rate
    if gamma > 0.0 and kappa > 0.0:
        amount, n = heard_signals(s, i, kappa)
        offset = total + amount
        found = rate + p.change_rate - missed
        value = value_and_interval(rate, gamma, kappa, found, offset, n, s.ints[TERMS])[0]
        return value, total, math.inf, rise, rate
    even = fresh_value(total)
    value = even / rate
    return value, total, (total * (1.0 - even) / (1.0 + total) * rise + value * fall) / rate, rise, rate


@inline
def value_of(s: State, i: int, now: float) -> float:
    """Crawl value of page i per unit of cost."""
    return worth_of(s, i, now)[0]


@jit_lean
def worth_of(s: State, i: int, now: float) -> tuple[float, float]:
    """Crawl value of page i per unit of cost, and with signals its expected interval ψ (negative: not computed)."""
    s.ints[EVALUATED] += 1
    p = s.rec[i]
    elapsed = max(now - p.last, 0.0)
    floor = _optional(s, FLOOR, i, 0.0)
    if floor > 0.0 and elapsed * floor >= 1.0:
        return float(OVERDUE * elapsed * floor), -1.0
    if p.importance <= 0.0 or p.change_rate <= 0.0:
        return 0.0, -1.0
    if related(s, i):
        v, total, _, _, _ = _related_value(s, i, now, 0.0)
        return float(p.importance * v / _optional(s, COST, i, 1.0)), total
    alpha, gamma, kappa = believed(s, i)
    objective = s.ints[OBJECTIVE]
    interval = -1.0
    if gamma > 0.0 and kappa > 0.0:
        amount, n = heard_signals(s, i, kappa)
        if objective == 0:
            offset = _silent(s, alpha, p.change_rate - alpha, elapsed) + amount
            v, interval = value_and_interval(alpha, gamma, kappa, p.change_rate, offset, n, s.ints[TERMS])
        else:
            v = page_value(objective, p.change_rate, math.inf, alpha, gamma, kappa, elapsed, n, ALL_TERMS)
    elif objective == 0 and s.ints[EVIDENCE] < 0:  # the frequent case, without a call
        v = fresh_value(p.change_rate * elapsed) / p.change_rate
    else:
        shape = _optional(s, EVIDENCE, i, math.inf)
        v = page_value(objective, p.change_rate, shape, p.change_rate, 0.0, 0.0, elapsed, 0.0, ALL_TERMS)
    return float(p.importance * v / _optional(s, COST, i, 1.0)), interval


@jit_lean
def value_and_growth(s: State, i: int, now: float) -> tuple[float, float, float, float, float]:
    """Crawl value of page i per unit of cost, and how fast at most it grows, for a while.

    A time to measure that while by: its age, or less if its exponent is younger; 0 where growth is not known. How fast
    the value grows with time, and with the group's mass; and what share of the exponent one of that mass is.
    """
    p = s.rec[i]
    if not related(s, i) or _optional(s, FLOOR, i, 0.0) > 0.0 or p.importance <= 0.0 or p.change_rate <= 0.0:
        return worth_of(s, i, now)[0], 0.0, math.inf, math.inf, math.inf
    s.ints[EVALUATED] += 1
    value, total, growth, rise, rate = _related_value(s, i, now, 0.0)
    scale = p.importance / _optional(s, COST, i, 1.0)
    if not (growth < math.inf and rise > 0.0 and total > 0.0):
        return float(value * scale), 0.0, math.inf, math.inf, math.inf
    weight = s.kin[i].weight if s.kin[i].group >= 0 else 0.0
    span = max(min(now - p.last, total / rise), 0.0)
    return float(value * scale), span, float(growth * scale), scale * weight / (math.e * rate), weight / total


@jit_lean
def wake_time(s: State, i: int, now: float, level: float, value: float, interval: float) -> float:
    """A time ≥ now before which the value of page i stays below the level; infinity where it always does.

    `value` and `interval` are what `worth_of` says; negative where that is not known. Without the value the answer is
    now where only the value can tell.
    """
    p = s.rec[i]
    s.flts[SLACK] = math.inf
    kin = related(s, i)
    if kin:
        if value < 0.0 or interval < 0.0:
            value, interval = worth_of(s, i, now)
        wake = _related_wake(s, i, now, level, value, interval)
    else:
        wake = _value_wake(s, i, now, level, value, interval)
    floor = _optional(s, FLOOR, i, 0.0)
    if floor > 0.0:
        wake = min(wake, p.last + 1.0 / floor)
    wake = max(wake - _EARLY * (wake - p.last), now) if wake < math.inf else wake
    if kin:
        p.least = _short(max(wake - p.last, 0.0))
    return wake


@inline
def knows_wake(s: State, i: int) -> bool:
    """Whether a sleeping page keeps when it wakes, `least` after its fetch: where relatives count, but for corners."""
    return bool(related(s, i) and 0.0 < s.rec[i].least < math.inf)


@inline
def _value_wake(s: State, i: int, now: float, level: float, value: float, interval: float) -> float:
    p = s.rec[i]
    if p.importance <= 0.0 or p.change_rate <= 0.0:
        return math.inf
    scale = _optional(s, COST, i, 1.0) / p.importance
    goal = level * scale
    far = bool(level == s.flts[FAR_LEVEL])
    source = believed(s, i)
    if source[1] > 0.0 and source[2] > 0.0:
        if s.ints[OBJECTIVE] == 0:
            return _signal_wake(s, i, now, far, goal, source, value * scale, interval)
        return now if p.signals >= goal * p.change_rate else math.inf  # harmonic: it grows with (complete) signals only
    d = p.change_rate
    shape = _optional(s, EVIDENCE, i, math.inf)
    if s.ints[OBJECTIVE] != 0:
        return float(p.last + page_elapsed(s.ints[OBJECTIVE], d, shape, d, 0.0, 0.0, goal, 0.0, ALL_TERMS))
    x = float(p.least) if far else 0.0
    if x <= d * (now - p.last):
        x = posterior_inverse_below(goal * d, shape)
        if far:
            p.least = _short(x)
    return float(p.last + x / d)


@jit_lean
def _related_wake(s: State, i: int, now: float, level: float, value: float, total: float) -> float:
    """Most of the way to the level may be time, the rest the group's mass: found by trying; values grow with both."""
    p = s.rec[i]
    if p.importance <= 0.0 or p.change_rate <= 0.0 or level == math.inf:
        return math.inf
    if value >= level:
        s.flts[SLACK] = 0.0
        return now
    scale = _optional(s, COST, i, 1.0) / p.importance
    goal = level * scale
    rate = fresh_value(total) / (value * scale) if value > 0.0 else p.change_rate
    room = max(fresh_inverse(min(goal * rate, 1.0 - 1e-9)) - total, 0.0)
    weight = s.kin[i].weight if s.kin[i].group >= 0 else 0.0
    more = 0.0
    if weight > 0.0:
        ahead = room / rate
        more = (_FOR_SIBLINGS + _AWHILE * ahead / (ahead + max(now - p.last, 0.0))) * room
    if weight > 0.0:
        s.flts[SLACK] = more / weight
        if s.flts[SLACK] < LEAST_SLACK:
            return now
    return now + _time_below(s, i, now, goal, more * 1.00001 + 1e-6, value * scale, (room - more) / rate)


@jit_lean
def _time_below(s: State, i: int, now: float, goal: float, more: float, value: float, guess: float) -> float:
    """A time, not much shorter than need be, for which the value at `more` exponent stays below a goal."""
    low, at_low, high, at_high = 0.0, value, math.inf, math.inf
    step, short = guess, _SHORT * s.flts[WIDTH]
    for k in range(_TRIES):
        if step < short or (k >= _PROBES and low > 0.0):
            break
        s.ints[EVALUATED] += 1
        v = _related_value(s, i, now + step, more)[0]
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
    return low if low >= short else 0.0


@jit_lean
def _signal_wake(
    s: State, i: int, now: float, far: bool, goal: float, source: tuple[float, float, float], known: float, psi: float
) -> float:
    p = s.rec[i]
    d = p.change_rate
    alpha, gamma, kappa = source
    if goal * d >= 1.0:
        return math.inf
    amount, n = heard_signals(s, i, kappa)
    heard = amount + (0.0 if n == 0.0 else n * kappa)
    if math.isinf(heard):
        return now
    offset = _silent(s, alpha, d - alpha, max(now - p.last, 0.0)) + amount
    total = offset + (0.0 if n == 0.0 else n * kappa)
    least = float(p.least) if far else 0.0
    if least <= total:
        if known < 0.0:
            least = _least_exponent(alpha, gamma, kappa, goal)
        elif known < goal:
            psi = psi if psi >= 0.0 else signal_interval(alpha, gamma, kappa, offset, n)
            least = total + _exponent_ahead(alpha, gamma, kappa, total, psi, goal - known)
        if least <= total:
            return now
        if far:
            p.least = _short(least)
    return float(p.last + _silent_inverse(s, alpha, d - alpha, least - heard))


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
