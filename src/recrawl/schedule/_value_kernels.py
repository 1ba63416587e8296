"""What crawling a page is worth now, and when at the earliest it can be worth a given level.

`wake_time` never answers too late; that is all the scheduler's exactness rests on. Without useful signals it inverts
the value. With signals, whose inverse is dear, it answers by bounds from what is known now: ψ(s + v) ≤ ψ(s) + v/α, and
ψ(u) ≤ (u + κ)/(α + γκ). The exponent found for the far level is kept with the page (`least`): it holds whatever is
signalled or crawled, so that neither costs a value, and it gets better each time the page wakes too early.
"""

import math

from recrawl._jit import inline, jit_lean
from recrawl.model._kernels import fresh_inverse, fresh_value
from recrawl.model._page_kernels import page_elapsed, page_value
from recrawl.model._pair_kernels import value_and_interval
from recrawl.model._signal_kernels import ALL_TERMS, signal_interval, signal_weight
from recrawl.schedule.layout import (
    COST,
    DELAY_AT,
    DELAY_SHARE,
    EVALUATED,
    EVIDENCE,
    EXPONENT,
    FAR_LEVEL,
    FLOOR,
    N_DELAYS,
    OBJECTIVE,
    POLICY,
    TERMS,
    State,
)

NO_SIGNALS, TRUSTING, SIGNALS, TRUSTING_PLUS = 0, 1, 2, 3
OVERDUE = 1e250  # a page waiting longer than its floor allows comes before all others, the longest first
_EARLY = 1e-11  # how much earlier than computed a page is woken, relative


@inline
def _optional(s: State, row: int, i: int, default: float) -> float:
    r = s.ints[row]
    return s.extra[r, i] if r >= 0 else default


@inline
def _short(exponent: float) -> float:
    """A little less, which is not more once it is rounded to a short float."""
    return exponent * (1.0 - 2e-7) if exponent > 1e-30 else 0.0


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
def wake_time(s: State, i: int, now: float, level: float, value: float, interval: float) -> float:
    """A time ≥ now before which the value of page i stays below the level; infinity where it always does.

    `value` and `interval` are what `worth_of` says; negative where that is not known. Without the value the answer is
    now where only the value can tell.
    """
    p = s.rec[i]
    wake = _value_wake(s, i, now, level, value, interval)
    floor = _optional(s, FLOOR, i, 0.0)
    if floor > 0.0:
        wake = min(wake, p.last + 1.0 / floor)
    return max(wake - _EARLY * (wake - p.last), now) if wake < math.inf else wake


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
    if s.ints[OBJECTIVE] == 0 and s.ints[EVIDENCE] < 0:
        x = float(p.least) if far else 0.0
        if x <= d * (now - p.last):
            x = fresh_inverse(goal * d)
            if far:
                p.least = _short(x)
        return float(p.last + x / d)
    shape = _optional(s, EVIDENCE, i, math.inf)
    return float(p.last + page_elapsed(s.ints[OBJECTIVE], d, shape, d, 0.0, 0.0, goal, 0.0, ALL_TERMS))


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
