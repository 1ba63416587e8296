"""Kernels of the rate policies: heaps that know where each page is, and deadlines.

A page is idle (never crawled), waiting for its next crawl to be released, ready, or leased. Waiting and leased pages
lie in one heap by when they wake, ready pages in another by deadline. Position, key and state are columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit

IDLE, WAITING, READY, LEASED = 0, 1, 2, 3
WAKE, DUE = 0, 1  # rows of heap: by when a page wakes, by deadline


class Book(NamedTuple):
    """Columns with one row per page, and the heaps over them."""

    rate: NDArray[np.float64]
    since: NDArray[np.float64]  # when work was measured
    work: NDArray[np.float64]  # crawls planned up to then
    done: NDArray[np.int64]  # crawls handed out, on the scale of work
    key: NDArray[np.float64]  # when it wakes, or its deadline
    place: NDArray[np.uint8]
    slot: NDArray[np.int64]  # position in its heap
    heap: NDArray[np.int64]
    size: NDArray[np.int64]


@inline
def _before(key: NDArray[np.float64], a: int, b: int) -> bool:
    return key[a] < key[b] or (key[a] == key[b] and a < b)


@jit
def _up(heap: NDArray[np.int64], key: NDArray[np.float64], slot: NDArray[np.int64], at: int) -> None:
    page = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(key, page, heap[parent]):
            break
        heap[at] = heap[parent]
        slot[heap[at]] = at
        at = parent
    heap[at] = page
    slot[page] = at


@jit
def _down(heap: NDArray[np.int64], n: int, key: NDArray[np.float64], slot: NDArray[np.int64], at: int) -> None:
    page = heap[at]
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and _before(key, heap[child + 1], heap[child]):
            child += 1
        if not _before(key, heap[child], page):
            break
        heap[at] = heap[child]
        slot[heap[at]] = at
        at = child
    heap[at] = page
    slot[page] = at


@jit
def put(book: Book, page: int, place: int, key: float) -> None:
    """Put a page that is in no heap into the one of its new place."""
    book.place[page] = place
    book.key[page] = key
    if place == IDLE:
        return
    which = DUE if place == READY else WAKE
    n = book.size[which]
    book.heap[which, n] = page
    book.size[which] = n + 1
    _up(book.heap[which], book.key, book.slot, n)


@jit
def take(book: Book, page: int) -> None:
    """Take a page out of its heap."""
    if book.place[page] == IDLE:
        return
    which = DUE if book.place[page] == READY else WAKE
    heap = book.heap[which]
    n = book.size[which] - 1
    book.size[which] = n
    at = book.slot[page]
    last = heap[n]
    if last != page:
        heap[at] = last
        book.slot[last] = at
        _up(heap, book.key, book.slot, at)
        _down(heap, n, book.key, book.slot, book.slot[last])
    book.place[page] = IDLE


@jit
def schedule(book: Book, page: int, horizon: float) -> None:
    """Put a page that is in no heap where its next crawl says: released when work reaches done, due one later."""
    rate = book.rate[page]
    if not rate > 0.0:
        put(book, page, IDLE, np.inf)
        return
    ahead = book.done[page] - book.work[page]
    released = book.since[page] + ahead / rate
    if released <= horizon:
        put(book, page, READY, book.since[page] + (ahead + 1.0) / rate)
    else:
        put(book, page, WAITING, released)


@jit
def schedule_all(book: Book, pages: NDArray[np.int64], horizon: float) -> None:
    """Put pages that are in no heap where their next crawls say."""
    for page in pages:
        schedule(book, page, horizon)


@jit
def put_leased(book: Book, ends: NDArray[np.float64]) -> None:
    """Lease the pages whose lease has an end (NaN: none)."""
    for page in range(len(ends)):
        if not np.isnan(ends[page]):
            put(book, page, LEASED, ends[page])


@jit
def drop(book: Book, pages: NDArray[np.int64]) -> None:
    """Take pages out for good."""
    for page in pages:
        take(book, page)
        book.rate[page] = 0.0


@jit
def wake(book: Book, horizon: float) -> int:
    """Move what is released to the ready heap and end the leases that ran out; how many those were."""
    n_ended = 0
    while book.size[WAKE] > 0 and book.key[book.heap[WAKE, 0]] <= horizon:
        page = book.heap[WAKE, 0]
        if book.place[page] == LEASED:
            book.done[page] -= 1
            n_ended += 1
        take(book, page)
        schedule(book, page, horizon)
    return n_ended


@jit
def pick_due(book: Book, until: float, out: NDArray[np.int64]) -> int:
    """Lease the ready pages with the earliest deadlines."""
    n = 0
    while n < len(out) and book.size[DUE] > 0:
        page = book.heap[DUE, 0]
        take(book, page)
        book.done[page] += 1
        put(book, page, LEASED, until)
        out[n] = page
        n += 1
    return n


@jit
def crawled(book: Book, pages: NDArray[np.int64], horizon: float) -> None:
    """Crawls that ended; one that was not handed out, or whose lease ran out, counts as the page's next."""
    for page in pages:
        if book.place[page] != LEASED:
            book.done[page] += 1
        take(book, page)
        schedule(book, page, horizon)


@jit
def released(book: Book, pages: NDArray[np.int64], horizon: float) -> int:
    """Leased crawls that did not happen; how many of the pages were leased."""
    n = 0
    for page in pages:
        if book.place[page] == LEASED:
            n += 1
            book.done[page] -= 1
            take(book, page)
            schedule(book, page, horizon)
    return n


@jit
def change_rates(book: Book, rate: NDArray[np.float64], now: float, horizon: float) -> None:
    """New rates from now on: work done so far is kept, and counted again from the last whole crawl."""
    for page in range(len(rate)):
        if rate[page] == book.rate[page]:
            continue
        work = book.work[page] + book.rate[page] * max(now - book.since[page], 0.0)
        whole = np.floor(work)
        book.work[page] = work - whole
        book.done[page] -= np.int64(whole)
        book.since[page] = now
        book.rate[page] = rate[page]
        if book.place[page] != LEASED:
            take(book, page)
            schedule(book, page, horizon)


@jit
def postpone(book: Book, n: int, by: float, horizon: float) -> None:
    """Put off what is planned for the first n pages; leases stay as they are."""
    for page in range(n):
        book.since[page] += by
        if book.place[page] == WAITING or book.place[page] == READY:
            take(book, page)
            schedule(book, page, horizon)


@jit
def accept(
    crawled_at: NDArray[np.float64], pages: NDArray[np.int64], began: NDArray[np.float64], failed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which records are not older than their page's last crawl, one after the other; those that did not fail are it."""
    valid = np.empty(len(pages), np.bool_)
    for i, page in enumerate(pages):
        valid[i] = began[i] >= crawled_at[page]
        if valid[i] and not failed[i]:
            crawled_at[page] = began[i]
    return valid
