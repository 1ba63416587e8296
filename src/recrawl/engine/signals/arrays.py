"""The arrays from which the worth of signals is computed. Per page only what was observed; no prior enters them."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline
from recrawl.engine.signals.delays import first_delays, grid
from recrawl.model.kernels.mixture import FIELDS

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

PRECISIONS = np.array([0.0, 0.08, 0.2, 0.4, 0.6, 0.8, 0.94, 0.993])  # classes of P(a change is behind a signal)
N_CLASSES = len(PRECISIONS)
N_BINS = 20  # tables by octaves of a page's signal rate, from the lowest rate of the grid on
MOST_SIGNALS = 16.0  # signals since the copy that count at most
UNCHANGED, UNCHANGED_REPEATS, CHANGED, LOG_TIME, CHANGED_REPEATS, FIRSTS, EXPOSURE = range(7)
BOTH_FIRSTS, BOTH_REPEATS, COUNTED, COUNTED_TIME, N_STATISTICS = 7, 8, 9, 10, 11
BOTH, BOTH_LOG_TIME = 0, 1
BEGAN, TOOK, EXPECTED, FOUND, N_ENDED = 0, 1, 2, 3, 4
CLOCK, CHANGES, LOG_CLOCK, GIVEN_CHANGES, GIVEN_TIME = range(5)  # a page's totals, with or without signals
OPEN, SCORE, ALONE, NEEDED, SHUT_AT, N_GATE = 0, 1, 2, 3, 4, 5
MOST_MOVED = 256  # gates that can move between two looks at `moved`
ROOM = 6  # rows of scratch
SQUARES, N_EVIDENCE = 2, 3  # of evidence, after ln evidence without repetitions and with them
NO_ROW = -1  # in `row_of`; a row that is reserved until the first signal comes is its complement − 1
FOLLOWS, OPENED, SHUT = 0.0, 1.0, -1.0
WEIGHT, MEAN, SHAPE, KAPPA = range(4)


class SignalArrays(NamedTuple):
    """One row per page that has had a signal (`rows`), per source k; a host is a row of `host_*`."""

    row_of: NDArray[np.int32]  # (pages,): row of a page, see `row_of`
    page: Ids  # (rows,)
    rates: Array  # grid of missed and change rates, ascending, one ratio
    log_rates: Array  # their logarithms
    kappas: Array  # −ln(1 − precision) of each class
    groups: Ids  # component that each class belongs to
    delays: Array  # mean delays of signals that are candidates
    statistics: Array  # (rows, sources, N_STATISTICS): fading sums; CHANGED_REPEATS are Σ ln signals
    both: Array  # (rows, 2): changed intervals with signals of several sources, Σ ln interval
    ended: Array  # (rows, N_ENDED): the last interval if it had no signal: copy before, clock time, exponent, change
    heard: Array  # (rows, sources): signals since the copy
    first: Array  # (rows, sources): clock time from the copy to the first of them
    last: Array  # (rows, sources): to the last of them that counts
    age: Array  # (rows, sources): real time from the copy to it; infinity: its change is known to be later
    credit: Array  # (rows, sources): what its precision is multiplied by, for its age
    share: Floats  # (rows, sources, classes): posterior of the class when the page was last learned from
    bins: NDArray[np.int8]  # (rows, sources): bin of the signal rate then; −1: not counted with the host
    components: Floats  # (rows, components, 4): weight, missed rate, shape, weight of a signal of the main source
    mean_kappa: Floats  # (rows, sources): at the mean precision
    rate: Floats  # (rows, sources): signals per clock time
    main: NDArray[np.int8]  # (rows,): the source whose classes the components tell apart
    host: Ids  # (rows,)
    heard_at: Array  # (rows,): when the first signal since the copy came; infinity: none did
    log_table: Array  # (2, sources, N_BINS, rates, classes): ln prior; repetitions count nothing, or in full
    bin_classes: Array  # (2, sources, N_BINS, classes): the same, summed over the missed rate
    classes: Array  # (2, sources, classes): share of each class
    log_missed: Array  # (2, sources, rates): ln share of each missed rate, over all signal rates
    log_base: Array  # (rates,): ln prior of the change rate
    repeats: Array  # (sources,): 1 where repetitions count in full, else 0
    mean_rate: Array  # (sources,): signals per clock time of a page
    host_share: Array  # (hosts, sources, classes): Σ posterior of the class
    host_prior: Array  # (hosts, sources, classes): Σ prior of the class
    host_pages: Ids  # (hosts,): how many rows it has
    delay: Array  # (sources, N_DELAY, delays): what is learned of delays
    host_delay: Array  # (hosts, sources, N_DELAY, delays)
    gate: Array  # (sources, 5)
    host_gate: Array  # (hosts, sources, 5)
    n_moved: Ids  # (1,): gates that have opened or shut and whose pages are not valued accordingly yet
    moved: Ids  # (MOST_MOVED, 3): host (−1: the source's own gate), source, whether it has shut
    work: Array  # (sources + 1, rates, classes): scratch
    messages: Array  # (rates, sources): scratch
    totals: Array  # (5,): scratch
    written: Array  # (components, FIELDS): scratch
    room: Array  # (ROOM, rates): scratch
    out: Array  # (sources, rates, classes): the posterior that was computed last


def empty(rates: Array, n_sources: int, n_rows: int, n_hosts: int, groups: Ids) -> SignalArrays:
    """Arrays before anything was learned."""
    n_classes, n_rates = len(PRECISIONS), len(rates)
    m = int(groups.max()) + 1
    gate = np.zeros((n_hosts + 1, n_sources, N_GATE))
    gate[..., NEEDED], gate[..., SHUT_AT] = 5.0, -math.inf
    delays = grid(rates)
    delay = np.tile(first_delays(len(delays)), (n_hosts + 1, n_sources, 1, 1))
    return SignalArrays(
        row_of=np.zeros(0, np.int32),
        page=np.zeros(n_rows, np.int64),
        rates=rates,
        log_rates=np.log(rates),
        kappas=-np.log1p(-PRECISIONS),
        groups=groups,
        delays=delays,
        statistics=np.zeros((n_rows, n_sources, N_STATISTICS)),
        both=np.zeros((n_rows, 2)),
        ended=np.full((n_rows, N_ENDED), math.inf),
        heard=np.zeros((n_rows, n_sources)),
        first=np.zeros((n_rows, n_sources)),
        last=np.zeros((n_rows, n_sources)),
        age=np.full((n_rows, n_sources), math.inf),
        credit=np.ones((n_rows, n_sources)),
        share=np.zeros((n_rows, n_sources, n_classes), np.float32),
        bins=np.full((n_rows, n_sources), -1, np.int8),
        components=np.zeros((n_rows, m, 4), np.float32),
        mean_kappa=np.zeros((n_rows, n_sources), np.float32),
        rate=np.zeros((n_rows, n_sources), np.float32),
        main=np.zeros(n_rows, np.int8),
        host=np.zeros(n_rows, np.int64),
        heard_at=np.full(n_rows, math.inf),
        log_table=np.zeros((2, n_sources, N_BINS, n_rates, n_classes)),
        bin_classes=np.zeros((2, n_sources, N_BINS, n_classes)),
        classes=np.tile(first_classes(), (2, n_sources, 1)),
        log_missed=np.zeros((2, n_sources, n_rates)),
        log_base=np.zeros(n_rates),
        repeats=np.zeros(n_sources),
        mean_rate=np.full(n_sources, rates[n_rates // 2]),
        host_share=np.zeros((n_hosts, n_sources, n_classes)),
        host_prior=np.zeros((n_hosts, n_sources, n_classes)),
        host_pages=np.zeros(n_hosts, np.int64),
        delay=delay[0],
        host_delay=delay[1:],
        gate=gate[0],
        host_gate=gate[1:],
        n_moved=np.zeros(1, np.int64),
        moved=np.zeros((MOST_MOVED, 3), np.int64),
        work=np.zeros((n_sources + 1, n_rates, n_classes)),
        messages=np.zeros((n_rates, n_sources)),
        totals=np.zeros(5),
        written=np.zeros((m, FIELDS)),
        room=np.zeros((ROOM, n_rates)),
        out=np.zeros((n_sources, n_rates, n_classes)),
    )


def first_classes() -> Array:
    """Shares of the classes before anything is known: half the sources are useless."""
    shares = np.full(len(PRECISIONS), 0.5 / (len(PRECISIONS) - 1))
    shares[0] = 0.5
    return shares


@inline
def row_of(b: SignalArrays, i: int) -> int:
    """The row of a page that has had a signal, else a negative number."""
    return int(b.row_of[i]) if b.row_of.size > 0 else NO_ROW


@inline
def reserved(row: int) -> int:
    """The row that is reserved for a page, from its entry in `row_of`, and the other way round."""
    return -2 - row


@inline
def any_open(b: SignalArrays, row: int) -> bool:
    """Whether a source whose signals count on the page's host has signalled the page."""
    found = False
    for k in range(b.rate.shape[1]):
        found = found or (b.rate[row, k] > 0.0 and is_open(b, b.host[row], k))
    return found


@inline
def rate_bin(b: SignalArrays, rate: float) -> int:
    """The table of a signal rate."""
    return int(min(max(math.log2(rate / b.rates[0]) + 1.0, 0.0), N_BINS - 1.0))


@inline
def is_open(b: SignalArrays, host: int, k: int) -> bool:
    """Whether the signals of source k count on a host."""
    state = b.host_gate[host, k, OPEN]
    return bool(state > 0.0 or (state == 0.0 and b.gate[k, OPEN] > 0.0))


@inline
def counted(b: SignalArrays, k: int, heard: float) -> float:
    """How many signals those since the copy count as."""
    if heard <= 0.0:
        return 0.0
    return float(1.0 + b.repeats[k] * (min(heard, MOST_SIGNALS) - 1.0))
