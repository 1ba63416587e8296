"""Which rule a rival has, when its pages are due, and the compiled loops: at most one crawl a slot, or as it asks."""

from typing import NamedTuple

import numpy as np

from recrawl._compile.jit import jit
from recrawl.schedule.rates.kernels import DUE, IDLE, LEASED, READY, WAITING, WAKE, Book, put, take
from recrawl.simulate.rivals import adaptive_kernels as adaptive
from recrawl.simulate.rivals import feed_kernels as feeds
from recrawl.simulate.rivals import interval_kernels as intervals
from recrawl.simulate.rivals.rule_kernels import CHANGED, FAILED, FIRST, UNCHANGED, Array, Ids, Rows
from recrawl.simulate.tally_kernels import Tally, count_crawl
from recrawl.simulate.trace import Signals

FIXED, NUTCH, STORMCRAWLER, HERITRIX, INFOMESH, YACY, MINIFLUX, COMMAFEED, NEWSBLUR, NORCONEX = range(10)
BY_DUE, BY_SCORE, BY_AGE = 0, 1, 2  # what is first among the due: earliest due, most important, longest not crawled
RULE, ORDER, N_DATES = 0, 1, 2  # places in `kind`


class Agenda(NamedTuple):
    """A rule with its settings, the pages it governs, and the heaps of when they are due."""

    kind: Ids  # which rule, which order, how many dates of changes the rule is shown
    p: Array
    rows: Rows
    book: Book


@jit
def after(a: Agenda, i: int, now: float, outcome: int, date: Array) -> float:
    """When a page is due after a crawl; `date` holds the changes that the crawl shows, the latest last."""
    rule, p, rows = a.kind[RULE], a.p, a.rows
    if rule == NUTCH:
        return adaptive.nutch(p, rows, i, now, outcome)
    if rule == STORMCRAWLER:
        return adaptive.stormcrawler(p, rows, i, now, outcome)
    if rule == HERITRIX:
        return adaptive.heritrix(p, rows, i, now, outcome)
    if rule == INFOMESH:
        return intervals.infomesh(p, rows, i, now, outcome)
    if rule == YACY:
        return intervals.yacy(p, rows, i, now, outcome, date)
    if rule == MINIFLUX:
        return feeds.miniflux(p, rows, i, now, outcome, date)
    if rule == COMMAFEED:
        return feeds.commafeed(p, rows, i, now, outcome, date)
    if rule == NEWSBLUR:
        return feeds.newsblur(p, rows, i, now, outcome, date)
    if rule == NORCONEX:
        return intervals.norconex(p, rows, i, now, outcome)
    return intervals.fixed(p, rows, i, now, outcome)


@jit
def learn(a: Agenda, i: int, now: float, outcome: int, date: Array) -> None:
    """Set when a page is due after a crawl."""
    if outcome == FAILED:
        a.rows.errors[i] += 1
    else:
        a.rows.errors[i] = 0
        if a.rows.crawled_at[i] == -np.inf:
            outcome = FIRST
        a.rows.crawled_at[i] = now
    a.rows.due_at[i] = after(a, i, now, outcome, date)


@jit
def place(a: Agenda, i: int, now: float) -> None:
    """Put a page that is in no heap where its due date says."""
    due = a.rows.due_at[i]
    if due > now:
        put(a.book, i, WAITING, due)
    elif a.kind[ORDER] == BY_SCORE:
        put(a.book, i, READY, -a.rows.importance[i])
    else:
        put(a.book, i, READY, a.rows.crawled_at[i] if a.kind[ORDER] == BY_AGE else due)


@jit
def place_all(a: Agenda, pages: Ids, now: float) -> None:
    """Put pages where their due dates say, unless they are leased."""
    for i in pages:
        if a.book.place[i] != LEASED:
            take(a.book, i)
            place(a, i, now)


@jit
def wake(a: Agenda, now: float) -> int:
    """Move what is due to the ready heap and end the leases that ran out; how many those were."""
    n_ended = 0
    while a.book.size[WAKE] > 0 and a.book.key[a.book.heap[WAKE, 0]] <= now:
        i = a.book.heap[WAKE, 0]
        n_ended += a.book.place[i] == LEASED
        take(a.book, i)
        place(a, i, now)
    return n_ended


@jit
def pick(a: Agenda, until: float, out: Ids) -> int:
    """Lease the first of the due pages."""
    n = min(len(out), int(a.book.size[DUE]))
    for k in range(n):
        out[k] = a.book.heap[DUE, 0]
        take(a.book, out[k])
        put(a.book, out[k], LEASED, until)
    return n


@jit
def record(a: Agenda, seen: Array, n_seen: Ids, ids: Ids, began: Array, outcome: Ids, now: float) -> None:
    """Crawls that ended; the dates shown are those of the crawls that found changes."""
    room = seen.shape[1]
    for k in range(len(ids)):
        i = ids[k]
        if room > 0 and outcome[k] == CHANGED and a.rows.crawled_at[i] > -np.inf:
            seen[i, :-1] = seen[i, 1:].copy()
            seen[i, -1] = began[k]
            n_seen[i] = min(n_seen[i] + 1, room)
        learn(a, i, began[k], outcome[k], seen[i, room - n_seen[i] :])
        take(a.book, i)
        place(a, i, now)


@jit
def release(a: Agenda, ids: Ids, now: float) -> int:
    """Leased crawls that did not happen; how many of the pages were leased."""
    n = 0
    for i in ids:
        if a.book.place[i] == LEASED:
            n += 1
            take(a.book, i)
            place(a, i, now)
    return n


@jit
def drop_all(a: Agenda, ids: Ids) -> None:
    """Take pages out for good."""
    for i in ids:
        take(a.book, i)


@jit
def tell(a: Agenda, i: int, now: float, changed_at: float) -> None:
    """A signal with the date of a change; only the rule that reads sitemaps listens."""
    if a.kind[RULE] != NORCONEX or not changed_at < np.inf:
        return
    a.rows.lastmod[i] = max(a.rows.lastmod[i], changed_at)
    a.rows.due_at[i] = intervals.norconex_reported(a.p, a.rows, i, now)
    if a.book.place[i] != LEASED:
        take(a.book, i)
        place(a, i, now)


@jit
def pass_signals(a: Agenda, signals: Signals, cursor: Ids, clock: float, now: float) -> None:
    """Pass on the signals up to now, at the clock's time if that is later; one for a page not there is dropped."""
    while cursor[0] < signals.at.size and signals.at[cursor[0]] <= now:
        k = cursor[0]
        i = signals.page[k]
        if i < a.book.place.size and a.book.place[i] != IDLE:
            tell(a, i, max(signals.at[k], clock), signals.changed_at[k])
        cursor[0] += 1


@jit
def crawl(a: Agenda, t: Tally, i: int, now: float) -> None:
    """Crawl a page at once; the dates shown are those of its true changes."""
    take(a.book, i)
    changed = count_crawl(t, i, now)
    last = t.next_change[i]
    first = max(t.offset[i], last - a.kind[N_DATES])
    learn(a, i, now, CHANGED if changed else UNCHANGED, t.changed_at[first:last])
    place(a, i, now)


@jit
def run_capped(
    a: Agenda, t: Tally, signals: Signals, cursor: Ids, clock: float, grid: Array, slot: int, last: int, batch: int
) -> None:
    """Slots up to `last`, slot k at grid[0] + k·grid[1]: the first of the due pages, or none."""
    for k in range(slot, last):
        now = grid[0] + k * grid[1]
        pass_signals(a, signals, cursor, clock, now)
        wake(a, now)
        for _ in range(min(batch, a.book.size[DUE])):
            crawl(a, t, a.book.heap[DUE, 0], now)


@jit
def run_demand(a: Agenda, t: Tally, signals: Signals, cursor: Ids, now: float, until: float) -> float:
    """Crawl every page when it is due, up to before `until`; the time of the last event."""
    while True:
        while a.book.size[DUE] > 0:
            crawl(a, t, a.book.heap[DUE, 0], now)
        at = a.book.key[a.book.heap[WAKE, 0]] if a.book.size[WAKE] > 0 else np.inf
        if cursor[0] < signals.at.size:
            at = min(at, signals.at[cursor[0]])
        if not at < until:
            return now
        now = max(now, at)
        pass_signals(a, signals, cursor, now, now)
        wake(a, now)
