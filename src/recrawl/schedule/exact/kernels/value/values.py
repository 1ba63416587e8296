"""What crawling a page is worth now. Nothing here writes to the state, but `evaluate`, which counts."""

import math

from recrawl._compile.jit import inline, jit_lean
from recrawl.model.kernels.fresh import fresh_value
from recrawl.model.kernels.mixture import SOON
from recrawl.model.kernels.pages import page_slope, page_value
from recrawl.model.kernels.pair import value_and_interval
from recrawl.model.kernels.signals import ALL_TERMS, signal_weight
from recrawl.schedule.exact.kernels.state.mixtures import mixture_growth, mixture_of, mixture_value
from recrawl.schedule.exact.kernels.value.clocks import page_clock
from recrawl.schedule.exact.layout import State

NO_SIGNALS, TRUSTING, SIGNALS, TRUSTING_PLUS = 0, 1, 2, 3
RATES = 3  # objective: crawls at given rates, after those of `model.kinds.OBJECTIVES`
STEEPER = 1.11  # by how much a slope can grow while the clock time grows by the share SOON
OVERDUE = 1e250  # a page waiting longer than its floor allows comes before all others, the longest first


@inline
def optional(s: State, row: int, i: int, default: float) -> float:
    """The number of page i in a row of the optional columns; the default where the row is −1."""
    return s.extra[row, i] if row >= 0 else default


@inline
def believed(s: State, i: int) -> tuple[float, float, float]:
    """(missed rate, signal rate, weight) of page i as the policy believes them."""
    rate = s.rec[i].change_rate
    if s.source.size == 0 or rate <= 0.0:
        return rate, 0.0, 0.0
    source = s.source[i]
    return source.missed, source.signalled, source.weight


@inline
def as_believed(policy: int, change_rate: float, recall: float, false_rate: float) -> tuple[float, float, float]:
    """(missed rate, signal rate, weight) as a policy believes them of a page with these signals."""
    true_rate = recall * change_rate
    if policy == NO_SIGNALS or change_rate <= 0.0:
        return change_rate, 0.0, 0.0
    if policy == TRUSTING:
        false_rate = 0.0
    elif policy == TRUSTING_PLUS:
        if not (true_rate > 0.7 * (true_rate + false_rate) and recall > 0.6):
            return change_rate, 0.0, 0.0
        false_rate = 0.0
    return (1.0 - recall) * change_rate, true_rate + false_rate, signal_weight(true_rate, false_rate)


@inline
def late_time(s: State, elapsed: float) -> float:
    """E[min(t, delay)]: the time for which signals of changes since the fetch were still on their way."""
    late = 0.0
    for j in range(s.head[0].n_delays):
        late += s.delays[j].share * min(elapsed, s.delays[j].at)
    return late


@inline
def silent_exponent(s: State, missed: float, signalled: float, time: float, elapsed: float) -> float:
    """Exponent of the time without signals; signals still on their way count as missed: α·D + λΔ·E[min(t, delay)]."""
    return missed * time if s.head[0].n_delays == 0 else missed * time + signalled * late_time(s, elapsed)


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


@jit_lean
def _signal_worth(s: State, i: int, time: float, elapsed: float) -> tuple[float, float, float]:
    """(value per unit of importance, interval ψ, exponent) of a page with useful signals, for freshness."""
    p = s.rec[i]
    alpha, gamma, kappa = believed(s, i)
    amount, n = heard_signals(s, i, kappa)
    offset = silent_exponent(s, alpha, p.change_rate - alpha, time, elapsed) + amount
    value, interval = value_and_interval(alpha, gamma, kappa, p.change_rate, offset, n, s.head[0].terms)
    return value, interval, offset if n == 0.0 else offset + n * kappa


@jit_lean
def worth_of(s: State, i: int, now: float) -> tuple[float, float]:
    """Crawl value of page i per unit of cost, and with signals its expected interval ψ (negative: not computed).

    Time is that of the page's clock; floors, delays and given crawl rates go by real time. A mixture replaces change
    rate, evidence and signals, but at an importance or a change rate of 0 the value is 0.
    """
    p = s.rec[i]
    elapsed = max(now - p.last, 0.0)
    floor = optional(s, s.head[0].floor_row, i, 0.0)
    if floor > 0.0 and elapsed * floor >= 1.0:
        return float(OVERDUE * elapsed * floor), -1.0
    if p.importance <= 0.0 or p.change_rate <= 0.0:
        return 0.0, -1.0
    objective, d = s.head[0].objective, p.change_rate
    if objective == RATES:
        return float(optional(s, s.head[0].crawl_rate_row, i, 0.0) * elapsed), -1.0
    time = page_clock(s, i, p.last, now)
    mixture = mixture_of(s, i)
    if mixture > 0:
        v = mixture_value(s, mixture, time)
        return float(p.importance * v / optional(s, s.head[0].cost_row, i, 1.0)), -1.0
    alpha, gamma, kappa = believed(s, i)
    interval = -1.0
    if gamma > 0.0 and kappa > 0.0:
        if objective == 0:
            v, interval, _ = _signal_worth(s, i, time, elapsed)
        else:
            v = page_value(objective, d, math.inf, alpha, gamma, kappa, time, heard_signals(s, i, kappa)[1], ALL_TERMS)
    elif objective == 0 and s.head[0].evidence_row < 0:  # the frequent case, without a call
        v = fresh_value(d * time) / d
    else:
        shape = optional(s, s.head[0].evidence_row, i, math.inf)
        v = page_value(objective, d, shape, d, 0.0, 0.0, time, 0.0, ALL_TERMS)
    return float(p.importance * v / optional(s, s.head[0].cost_row, i, 1.0)), interval


@inline
def evaluate(s: State, i: int, now: float) -> tuple[float, float]:
    """The same as `worth_of`, counted among the values that decisions took."""
    s.head[0].evaluated += 1
    return worth_of(s, i, now)


@jit_lean
def value_and_slope(s: State, i: int, now: float) -> tuple[float, float, float]:
    """(crawl value of page i per unit of cost, how fast at most it grows with its clock, for how much clock time).

    That time is negative where growth is not known. While the clock time D grows by a share of itself, the slope grows
    by at most that share (age: twice). With signals it is α·e^{−s}·ψ(s), and ψ grows by at most v/α with s + v.
    """
    p = s.rec[i]
    objective, d = s.head[0].objective, p.change_rate
    if s.head[0].floor_row >= 0 or objective == RATES or p.importance <= 0.0 or d <= 0.0:
        return worth_of(s, i, now)[0], 0.0, -1.0
    time = page_clock(s, i, p.last, now)
    scale = p.importance / optional(s, s.head[0].cost_row, i, 1.0)
    mixture = mixture_of(s, i)
    if mixture > 0:
        value, slope = mixture_growth(s, mixture, time)
        return float(scale * value), float(scale * slope), float(SOON * time)
    alpha, gamma, kappa = believed(s, i)
    if gamma > 0.0 and kappa > 0.0:
        if objective != 0 or s.head[0].n_delays > 0 or s.head[0].terms < ALL_TERMS:
            return worth_of(s, i, now)[0], 0.0, -1.0
        value, interval, total = _signal_worth(s, i, time, max(now - p.last, 0.0))
        slope = alpha * math.exp(-total) * interval if total < 700.0 else 0.0
        return float(scale * value), float(STEEPER * scale * slope), float(SOON * interval)
    shape = optional(s, s.head[0].evidence_row, i, math.inf)
    value = page_value(objective, d, shape, d, 0.0, 0.0, time, 0.0, ALL_TERMS)
    slope = page_slope(objective, d, shape, d, 0.0, 0.0, time, 0.0, ALL_TERMS)
    return float(scale * value), float(STEEPER * scale * slope), float(SOON * time)
