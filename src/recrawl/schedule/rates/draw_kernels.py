"""Kernels that draw pages in proportion to their rates, from a tree of sums over the pages that are not leased."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit
from recrawl.schedule.rates.kernels import LEASED, WAKE, Book, put, take


@jit
def set_leaf(tree: NDArray[np.float64], page: int, weight: float) -> None:
    """Give a page a weight in the tree of sums; sums are built from their parts, so they do not drift."""
    at = (len(tree) >> 1) + page
    tree[at] = weight
    while at > 1:
        at >>= 1
        tree[at] = tree[2 * at] + tree[2 * at + 1]


@jit
def pick_drawn(
    book: Book, tree: NDArray[np.float64], chance: NDArray[np.float64], until: float, out: NDArray[np.int64]
) -> int:
    """Lease pages drawn without repetition, in proportion to their weights."""
    leaves = len(tree) >> 1
    n = 0
    while n < len(out) and tree[1] > 0.0:
        rest = chance[n] * tree[1]
        at = 1
        while at < leaves:
            at *= 2
            if rest >= tree[at] and tree[at + 1] > 0.0:
                rest -= tree[at]
                at += 1
            elif tree[at] <= 0.0:
                at += 1
        page = at - leaves
        set_leaf(tree, page, 0.0)
        put(book, page, LEASED, until)
        out[n] = page
        n += 1
    return n


@jit
def end_leases(book: Book, tree: NDArray[np.float64], horizon: float) -> int:
    """Give pages whose lease ran out their weight back; how many those were."""
    n = 0
    while book.size[WAKE] > 0 and book.key[book.heap[WAKE, 0]] <= horizon:
        page = book.heap[WAKE, 0]
        take(book, page)
        set_leaf(tree, page, book.rate[page])
        n += 1
    return n


@jit
def give_back(book: Book, tree: NDArray[np.float64], pages: NDArray[np.int64]) -> int:
    """Give leased pages their weight back; how many of the pages were leased."""
    n = 0
    for page in pages:
        if book.place[page] == LEASED:
            n += 1
            take(book, page)
            set_leaf(tree, page, book.rate[page])
    return n
