"""The arrays of beliefs, and what kernels read from them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.signals.arrays import SignalArrays

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

UNCHANGED, CHANGES, LOG_INTERVALS = 0, 1, 2  # columns of `seen`
GIVEN_CHANGES, GIVEN_TIME = 0, 1  # columns of `evidence`
HOST, FOLDER = 0, 1  # columns of `table`
ALL = 0  # row of `tables`: all pages
UNIT = 255  # what the shares of a page in its tables add up to


class Belief(NamedTuple):
    """What was observed of each page, the population's tables, and the gammas that follow from both.

    No number in `seen` depends on a prior or a table, so that nothing has to move when a table is fitted again.
    """

    seen: Array  # (pages, 3), fading: time of unchanged intervals, changed intervals, Σ ln of their lengths
    evidence: Array  # (pages, 2), fading: changes and time that a given rate stands for
    share: NDArray[np.uint8]  # (pages, rates): the posterior as it is counted in the tables; 0 before the first crawl
    table: NDArray[np.int32]  # (pages, 2): rows of the page's host and folder in `tables`
    gamma: Array  # (pages, 2): shape and rate of the change rate, as it is believed without signals
    watched: Array  # time between the first copy and the last crawl
    n_crawls: NDArray[np.int32]
    n_changes: NDArray[np.int32]
    fixed_rate: NDArray[np.bool_]  # whether a rate was given for it
    counted: NDArray[np.bool_]  # whether the time since the copy was fetched belongs to the ledger
    rates: Array  # (rates,): the grid
    first: Array  # (rates,): distribution of the rates before anything was observed
    spread: Array  # (2, rates − 1): shares of each table that move to the next rate, and back
    tables: Array  # (tables, rates): how many pages (in units of 1/UNIT) have each rate
    sizes: Array  # (tables,): their sums
    strength: Array  # (2,): a host is held to all pages, a folder to its host, as by so many pages
    prior: Array  # (2,): gamma of a page of which nothing is known
    half_life: Array  # (1,): after how much time observations count half
    ledger: Array  # (2,): importance × time of copies up to the crawl that judged them, and stale of that
    signals: SignalArrays  # what signals are worth
