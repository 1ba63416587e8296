"""Intervals that shrink by a factor when a page changed and grow by a factor when it did not."""

import numpy as np

from recrawl._compile.jit import jit
from recrawl.simulate.rivals.rule_kernels import CHANGED, FAILED, FIRST, Array, Rows, clip

# Places in the settings of each rule; `memory` is 1 where the rule lost what it would compare the next copy with.
GROW, SHRINK, LOW, HIGH, START = range(5)
SYNC, LONGEST, RETRY, MAX_ERRORS = range(5, 9)  # nutch
MINUTE, ERROR_WAIT, ERROR_LIMIT = range(5, 8)  # stormcrawler
UNKNOWN_WAIT = 5  # heritrix


@jit
def nutch(p: Array, rows: Rows, i: int, now: float, outcome: int) -> float:
    """Nutch's adaptive schedule; a date further ahead than the longest interval counts as due now."""
    if outcome == FAILED:
        return _nutch_failed(p, rows, i, now)
    interval = p[START] if np.isnan(rows.interval[i]) else rows.interval[i]
    known = outcome != FIRST and rows.memory[i] == 0.0
    rows.memory[i] = 0.0
    if known:
        interval *= p[SHRINK] if outcome == CHANGED else p[GROW]
    if np.isnan(rows.changed_at[i]) or (known and outcome == CHANGED):
        rows.changed_at[i] = now
    back = 0.0
    if p[SYNC] > 0.0:
        elapsed = now - rows.changed_at[i]
        interval = max(interval, elapsed)
        back = p[SYNC] * elapsed
        if back > p[HIGH]:
            back = 0.0
    interval = clip(interval, p[LOW], p[HIGH])
    due = now - back + interval
    if interval > p[LONGEST]:  # to be fetched again, whatever it is
        interval = 0.9 * p[LONGEST]
        rows.memory[i], rows.changed_at[i] = 1.0, np.nan
    rows.interval[i] = interval
    return float(now if due - now > p[LONGEST] else due)


@jit
def _nutch_failed(p: Array, rows: Rows, i: int, now: float) -> float:
    if rows.errors[i] < p[MAX_ERRORS]:
        return float(now + p[RETRY])
    interval = p[START] if np.isnan(rows.interval[i]) else rows.interval[i]
    rows.interval[i] = 1.5 * interval if interval < p[LONGEST] else 0.9 * p[LONGEST]
    return float(now + rows.interval[i])


@jit
def stormcrawler(p: Array, rows: Rows, i: int, now: float, outcome: int) -> float:
    """StormCrawler's adaptive schedule in whole minutes; a failure erases what was learned."""
    if outcome == FAILED:
        rows.memory[i] = 1.0
        return np.inf if rows.errors[i] >= p[ERROR_LIMIT] else float(now + p[ERROR_WAIT])
    if outcome == FIRST or rows.memory[i] > 0.0:
        rows.interval[i], rows.memory[i] = p[START], 0.0
    elif outcome == CHANGED:
        rows.interval[i] = np.floor(p[SHRINK] * rows.interval[i] + (1.0 - p[SHRINK]) * p[LOW])
    else:
        rows.interval[i] = min(np.floor(p[GROW] * rows.interval[i]), p[HIGH])
    return float(now + rows.interval[i] * p[MINUTE])


@jit
def heritrix(p: Array, rows: Rows, i: int, now: float, outcome: int) -> float:
    """Heritrix 1's wait evaluator."""
    if outcome == FAILED:
        return float(now + p[UNKNOWN_WAIT])
    if outcome == FIRST:
        rows.interval[i] = p[START]
    else:
        factor = p[SHRINK] if outcome == CHANGED else p[GROW]
        rows.interval[i] = clip(factor * rows.interval[i], p[LOW], p[HIGH])
    return float(now + rows.interval[i])
