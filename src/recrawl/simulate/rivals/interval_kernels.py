"""Rules that look at little: a fixed interval, tiers, the age of the page, its date in a sitemap."""

import numpy as np

from recrawl._compile.jit import jit
from recrawl.simulate.rivals.rule_kernels import CHANGED, FAILED, FIRST, Array, Rows, grid_after, grid_from

# Places in the settings of each rule.
INTERVAL, RETRY, MAX_ERRORS = range(3)  # fixed
SHARE, NEVER, SELDOM, OFTEN, ALWAYS, LIMIT = range(6)  # infomesh
FACTOR, DAY = range(2)  # yacy
RUN, LEAST = range(2)  # norconex


@jit
def fixed(p: Array, rows: Rows, i: int, now: float, outcome: int) -> float:
    """The same interval always."""
    if outcome != FAILED:
        return float(now + p[INTERVAL])
    return np.inf if rows.errors[i] >= p[MAX_ERRORS] else float(now + p[RETRY])


@jit
def infomesh(p: Array, rows: Rows, i: int, now: float, outcome: int) -> float:
    """One of four intervals, by a smoothed share of crawls that found a change."""
    if outcome == FAILED and rows.errors[i] >= p[LIMIT]:
        return np.inf
    if outcome == FIRST:
        rows.memory[i] = 0.0
    elif outcome != FAILED:
        rows.memory[i] = p[SHARE] * (outcome == CHANGED) + (1.0 - p[SHARE]) * rows.memory[i]
    share = rows.memory[i]
    if share == 0.0:
        return float(now + p[NEVER])
    if share < 0.1:
        return float(now + p[SELDOM])
    return float(now + (p[OFTEN] if share <= 0.5 else p[ALWAYS]))


@jit
def yacy(p: Array, rows: Rows, i: int, now: float, outcome: int, date: Array) -> float:
    """Fresh for a share of the page's age at the load; then due two midnights later."""
    if outcome == FAILED:
        return grid_after(now, p[DAY])
    if date.size > 0:
        rows.changed_at[i] = date[-1]
    elif np.isnan(rows.changed_at[i]):
        rows.changed_at[i] = now
    fresh_until = now + p[FACTOR] * (now - rows.changed_at[i])
    return float(grid_after(fresh_until, p[DAY]) + p[DAY])


@jit
def norconex(p: Array, rows: Rows, i: int, now: float, outcome: int) -> float:
    """The next run; with a date in the sitemap, only once that is later than the last crawl."""
    if outcome == FAILED:
        return grid_after(now, p[RUN])
    if rows.lastmod[i] > -np.inf:
        return grid_after(now, p[RUN]) if rows.lastmod[i] > now else np.inf
    return max(grid_after(now, p[RUN]), grid_from(now + p[LEAST], p[RUN]))


@jit
def norconex_reported(p: Array, rows: Rows, i: int, now: float) -> float:
    """When a page is due whose change a sitemap reports."""
    return grid_from(now, p[RUN]) if rows.lastmod[i] > rows.crawled_at[i] else np.inf
