"""What crawling a page is worth now. Nothing here writes to the state, but `evaluate`, which counts."""

import math

from recrawl._jit import inline, jit_lean
from recrawl.model.kernels.fresh import fresh_value, posterior_parts
from recrawl.model.kernels.pages import page_value
from recrawl.model.kernels.pair import value_and_interval
from recrawl.model.kernels.signals import ALL_TERMS, signal_weight
from recrawl.schedule.exact.kernels.groups import excess_since
from recrawl.schedule.exact.layout import State

NO_SIGNALS, TRUSTING, SIGNALS, TRUSTING_PLUS = 0, 1, 2, 3
RATES = 3  # objective: crawls at given rates, after those of `model.kinds.OBJECTIVES`
OVERDUE = 1e250  # a page waiting longer than its floor allows comes before all others, the longest first


@inline
def optional(s: State, row: int, i: int, default: float) -> float:
    """The number of page i in a row of the optional columns; the default where the row is −1."""
    return s.extra[row, i] if row >= 0 else default


@inline
def believed(s: State, i: int) -> tuple[float, float, float]:
    """(missed rate, signal rate, weight) of page i as the policy believes them."""
    p = s.rec[i]
    policy = s.head[0].policy
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
def silent_exponent(s: State, missed: float, signalled: float, elapsed: float) -> float:
    """Exponent of the time without signals; signals still on their way count as missed: α·t + λΔ·E[min(t, delay)]."""
    k = s.head[0].n_delays
    if k == 0:
        return missed * elapsed
    late = 0.0
    for j in range(k):
        late += s.delays[j].share * min(elapsed, s.delays[j].at)
    return missed * elapsed + signalled * late


@inline
def heard_signals(s: State, i: int, kappa: float) -> tuple[float, float]:
    """What the signals since the fetch add to the exponent: an amount, and some times the page's (matched) weight.

    An amount where that weight is infinite (proof) but theirs is not: they may tell of changes before the fetch.
    """
    if s.head[0].exponent_row < 0 or s.head[0].objective != 0:
        return 0.0, float(s.rec[i].signals)
    total = s.extra[s.head[0].exponent_row, i]
    if not math.isinf(kappa):
        return 0.0, (total / kappa if total > 0.0 and kappa > 0.0 else 0.0)
    return (0.0, 1.0) if math.isinf(total) else (total, 0.0)


@inline
def related(s: State, i: int) -> bool:
    """Whether siblings count for a page."""
    return bool(s.member.size > 0 and s.member[i].group >= 0)


@jit_lean
def own_part(s: State, i: int, missed: float, elapsed: float) -> tuple[float, float, float, float]:
    """(exponent that a page's own missed rate explains, the constant rate of the same value at that exponent).

    And how fast at most the one rises and the other falls, for a while.
    """
    if elapsed <= 0.0 or missed <= 0.0:
        return 0.0, missed, 0.0, 0.0
    shape = optional(s, s.head[0].evidence_row, i, math.inf)
    x = missed * elapsed
    if math.isinf(shape) or x < 1e-6 * min(shape, 1.0):
        return x, missed, missed, 0.0
    exponent, even, value = posterior_parts(x, shape)
    rate = missed * (even / value)
    rise = missed * (shape / (shape + x))
    fall = rate * rise * (1.0 - even) / (1.0 + exponent) * max(x / value - exponent / even, 0.0)
    return exponent, rate, rise, fall


@inline
def group_part(s: State, i: int, now: float) -> tuple[float, float]:
    """(exponent that the group's excess changes explain, the rate at which it grows at the baseline)."""
    p = s.member[i]
    if p.group < 0 or p.weight <= 0.0:
        return 0.0, 0.0
    return p.weight * excess_since(s, p.group, s.rec[i].last, now), p.weight * s.head[0].baseline


@jit_lean
def related_value(s: State, i: int, now: float, more: float) -> tuple[float, float, float, float, float]:
    """(value per unit of importance, exponent) of a page whose siblings count, at `more` exponent.

    V = ∫₀^s e^{−u} ψ(u) du with ψ(u) = u/(own rate + baseline rate): siblings are a source of frequent, weak signals.
    Then the largest growth of both for a while without outcomes (infinity: not known), and that rate.
    """
    p = s.rec[i]
    missed, gamma, kappa = believed(s, i)
    own, rate, rise, fall = own_part(s, i, missed, max(now - p.last, 0.0))
    excess, baseline = group_part(s, i, now)
    total, rate, rise = own + excess + more, rate + baseline, rise + baseline
    if rate <= 0.0 and not (gamma > 0.0 and kappa > 0.0):
        return 0.0, total, math.inf, rise, rate
    if gamma > 0.0 and kappa > 0.0:
        amount, n = heard_signals(s, i, kappa)
        offset = total + amount
        found = rate + p.change_rate - missed
        value = value_and_interval(rate, gamma, kappa, found, offset, n, s.head[0].terms)[0]
        return value, total, math.inf, rise, rate
    even = fresh_value(total)
    value = even / rate
    return value, total, (total * (1.0 - even) / (1.0 + total) * rise + value * fall) / rate, rise, rate


@jit_lean
def worth_of(s: State, i: int, now: float) -> tuple[float, float]:
    """Crawl value of page i per unit of cost, and with signals its expected interval ψ (negative: not computed)."""
    p = s.rec[i]
    elapsed = max(now - p.last, 0.0)
    floor = optional(s, s.head[0].floor_row, i, 0.0)
    if floor > 0.0 and elapsed * floor >= 1.0:
        return float(OVERDUE * elapsed * floor), -1.0
    if p.importance <= 0.0 or p.change_rate <= 0.0:
        return 0.0, -1.0
    if s.head[0].objective == RATES:
        return float(optional(s, s.head[0].crawl_rate_row, i, 0.0) * elapsed), -1.0
    if related(s, i):
        v, total, _, _, _ = related_value(s, i, now, 0.0)
        return float(p.importance * v / optional(s, s.head[0].cost_row, i, 1.0)), total
    alpha, gamma, kappa = believed(s, i)
    objective = s.head[0].objective
    interval = -1.0
    if gamma > 0.0 and kappa > 0.0:
        amount, n = heard_signals(s, i, kappa)
        if objective == 0:
            offset = silent_exponent(s, alpha, p.change_rate - alpha, elapsed) + amount
            v, interval = value_and_interval(alpha, gamma, kappa, p.change_rate, offset, n, s.head[0].terms)
        else:
            v = page_value(objective, p.change_rate, math.inf, alpha, gamma, kappa, elapsed, n, ALL_TERMS)
    elif objective == 0 and s.head[0].evidence_row < 0:  # the frequent case, without a call
        v = fresh_value(p.change_rate * elapsed) / p.change_rate
    else:
        shape = optional(s, s.head[0].evidence_row, i, math.inf)
        v = page_value(objective, p.change_rate, shape, p.change_rate, 0.0, 0.0, elapsed, 0.0, ALL_TERMS)
    return float(p.importance * v / optional(s, s.head[0].cost_row, i, 1.0)), interval


@inline
def evaluate(s: State, i: int, now: float) -> tuple[float, float]:
    """The same as `worth_of`, counted among the values that decisions took."""
    s.head[0].evaluated += 1
    return worth_of(s, i, now)


@jit_lean
def value_and_growth(s: State, i: int, now: float) -> tuple[float, float, float, float, float]:
    """Crawl value of page i per unit of cost, and how fast at most it grows, for a while.

    A time to measure that while by: its age, or less if its exponent is younger; 0 where growth is not known. How fast
    the value grows with time, and with the accumulated excess; and the share of the exponent that one excess change is.
    """
    p = s.rec[i]
    floor = optional(s, s.head[0].floor_row, i, 0.0)
    if not related(s, i) or floor > 0.0 or p.importance <= 0.0 or p.change_rate <= 0.0:
        return worth_of(s, i, now)[0], 0.0, math.inf, math.inf, math.inf
    value, total, growth, rise, rate = related_value(s, i, now, 0.0)
    scale = p.importance / optional(s, s.head[0].cost_row, i, 1.0)
    if not (growth < math.inf and rise > 0.0 and total > 0.0):
        return float(value * scale), 0.0, math.inf, math.inf, math.inf
    weight = s.member[i].weight
    span = max(min(now - p.last, total / rise), 0.0)
    return float(value * scale), span, float(growth * scale), scale * weight / (math.e * rate), weight / total
