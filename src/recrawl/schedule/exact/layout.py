"""How a scheduler's state lies in memory: 52 bytes in one place per page, 5 in the wheel, a few small arrays.

Kernels take `ints`, which knows where the other arrays lie (`_view_kernels.py`). Columns that only some users need
(cost, evidence, floor, the exponent of several signal sources, host) take memory only when used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PAGE = np.dtype(
    [
        ("change_rate", "f8"),
        ("importance", "f8"),
        ("recall", "f8"),
        ("false_rate", "f8"),
        ("last", "f8"),  # when the copy was fetched
        ("pos", "i4"),  # place in the near set, a band, the wheel (−1: none), the leases, a host's parked pages
        ("least", "f4"),  # an exponent below which the value is below the far level; 0 while none is known
        ("signals", "u2"),  # signals since the copy was fetched
        ("state", "u1"),
        ("band", "u1"),
    ]
)
SIGNAL = np.dtype([("time", "f8"), ("id", "i4"), ("next", "i4")])  # the complement of the id once a copy has seen it
KIN = np.dtype(  # only while pages have siblings or bursts count
    [
        ("group", "i4"),  # −1: none
        ("next", "i4"),  # in a bucket of the group
        ("prev", "i4"),  # −1 at the head
        ("bucket", "i4"),  # −1: in none
        ("weight", "f8"),  # how many changes of this page one of its group's excess changes stands for
        ("changed_at", "f8"),  # when it was last seen to have changed
        ("key", "f8"),  # how far its group may rise before it must be looked at
        ("limit", "f8"),  # how far the mass itself may, beyond that of calm times, before it must be placed anew
        ("wake_after", "f4"),  # how long after its fetch a sleeping page wakes; 0 while that is not known
    ]
)
BOUND = np.dtype(  # of a near page where siblings or bursts count
    [
        ("at", "f8"),  # when it was last looked at; −∞: its group has had news since
        ("most", "f8"),  # what it was worth then, and what news can have added
        ("since", "f8"),  # from then on
        ("until", "f8"),  # as long as that
        ("growth", "f8"),  # its value grows at most so much per time
        ("lift", "f8"),  # and at most so much with its group's mass
        ("hurry", "f8"),  # by which share of its exponent that grows with the mass
    ]
)
LEASE = np.dtype([("until", "f8"), ("id", "i4"), ("next", "i4"), ("prev", "i4"), ("pad", "i4")])

GONE, ASLEEP, NEAR, LEASED, PAUSED, PARKED = 0, 1, 2, 3, 4, 5

BLOCK = 63  # members in one block of a band's list; then the block before; when each of them wakes; their wheel places
TICKS = BLOCK + 1
WHEEL_PLACES = TICKS + BLOCK
BLOCK_WIDTH = 3 * BLOCK + 1
BANDS = 12
NEAR_ROOM, LEAST_NEAR = 4, 4096  # room for near pages: for each that is picked at a time; what is not given back
FAR = 255  # band of a page below all bands
HORIZON = 36  # the wheels together reach over 2^36 ticks
CHUNK = 16  # numbers in one chunk of a wheel slot: the last place in the chunk before, the slot, members
FIRST = 2  # where the members begin: 14 of them, in one cache line with the rest
MOST_IDS = 1_800_000_000  # their places in the wheel are 32-bit numbers

# ints
CLOCK, N_NEAR, N_BANDS, N_ASLEEP, N_BLOCKS, FREE_BLOCK, N_LOG, LOG_FIRST = 0, 1, 2, 3, 4, 5, 6, 7
FIRST_LEASE, LAST_LEASE, N_LEASED, POLICY, OBJECTIVE, TERMS, ALIVE, N_PAGES, COVER = 8, 9, 10, 11, 12, 13, 14, 15, 16
COST, EVIDENCE, FLOOR, EXPONENT, N_DELAYS = 17, 18, 19, 20, 21  # rows of `extra` (−1: unused), number of delays
N_LEASES, FREE_LEASE, SCAN_AT = 22, 23, 32  # lease slots ever used, the first free one; where a scan goes on (−1: none)
N_PARKED, WANTED, LOG_ROOM = 33, 34, 35  # parked pages; what should grow when there is time; signals to have room for
FREE_CHUNK, WHEEL_BITS, N_WHEELS, N_FREE_BLOCKS = 36, 37, 38, 39  # the first free chunk; a wheel has 2^bits slots
EVALUATED, DECISIONS, SCANS, WAKES, LATE, BACKWARDS, EXPIRED, LAST_SCAN = 24, 25, 26, 27, 28, 29, 30, 31
ORDER, HEAD, TOP, SIZE = 40, 56, 72, 88  # arrays: bands from the top; head blocks; members in the head; members
PLACES = 104  # of the arrays of `State`: address, rows, columns
N_INTS = 164

# flts
ORIGIN, WIDTH, NOW, NEAR_LEVEL, FAR_LEVEL, LEASE_TIME, WINDOW, THRESHOLD = 0, 1, 2, 3, 4, 5, 6, 7
LEVEL = 8  # per band: the level its pages sleep below
DELAY_AT, DELAY_SHARE = 24, 40  # the delay distribution of signals
CALM, SPAN, SHRINK = 56, 57, 58  # of groups: pace while nothing is known; width of a bin; crawls that count half
BOOST, FADE = 59, 60  # bursts: times the rate just after a change; time in which that fades
HOUR = 62  # seasons: length of an hour; 0: none
SEASON, HOURS = 64, 168  # time by the pages' own clock at each full hour of a week
STEEPEST = SEASON + HOURS + 1  # how fast that clock runs at most
N_FLTS = STEEPEST + 1

# groups: columns; then bins (`paces`: four columns of BINS); then buckets
G_AT, G_RISEN, G_STIRRED, G_NEWEST, G_TAIL, G_DRAINED = 0, 1, 2, 3, 4, 5
N_GROUP = 6
BINS = 32
EXCESS, EXPOSED, PACE, AFTER = 0, BINS, 2 * BINS, 3 * BINS
BUCKETS = 30  # the next is for members that are just looked at
LEAST_SLACK = 2.0**-20

# hosts: columns
H_UNTIL, H_SPACING, H_RUNNING, H_LIMIT, H_HEAD, H_TOP, H_SIZE = 0, 1, 2, 3, 4, 5, 6
N_HOST = 7

# what a kernel answers when a small array must grow before it can go on
DONE, GROW_NEAR, FIT_NEAR, GROW_BLOCKS, FIT_LOG, GROW_LEASES = 0, 1, 2, 3, 4, 5
UNKNOWN_ID, REMOVED_ID = 6, 7  # what a kernel answers to a wrong id


class State(NamedTuple):
    """All arrays of a scheduler."""

    rec: NDArray[Any]  # PAGE, one per id ever given
    near_id: NDArray[np.int32]
    near_val: NDArray[np.float64]
    near_bound: NDArray[Any]  # BOUND, or empty
    blocks: NDArray[np.int32]  # (n, BLOCK_WIDTH)
    heads: NDArray[np.int32]  # of each slot of each wheel: where the last member lies
    wheel: NDArray[np.int32]  # chunks of members
    ints: NDArray[np.int64]
    flts: NDArray[np.float64]
    extra: NDArray[np.float64]  # (optional columns, ids)
    host: NDArray[np.int32]  # per id, or empty while no page has one
    hosts: NDArray[np.float64]  # (hosts, N_HOST)
    log: NDArray[Any]  # SIGNAL, a ring in the order of arrival
    log_heads: NDArray[np.int32]  # the newest entry in each bucket of ids
    log_weight: NDArray[np.float64]  # of each logged signal, or empty while all of a page weigh the same
    leases: NDArray[Any]  # LEASE, in the order in which they end
    kin: NDArray[Any]  # KIN, per id, or empty
    groups: NDArray[np.float64]  # (groups, N_GROUP)
    paces: NDArray[np.float32]  # (groups, 4 · BINS)
    buckets: NDArray[np.int32]  # (groups, BUCKETS + 1): the first member of each


_I4, _I8, _F4, _F8 = np.dtype("i4"), np.dtype("i8"), np.dtype("f4"), np.dtype("f8")
DTYPES = (  # of the arrays of `State`, and how many dimensions they have
    (PAGE, 1),
    (_I4, 1),
    (_F8, 1),
    (BOUND, 1),
    (_I4, 2),
    (_I4, 1),
    (_I4, 1),
    (_I8, 1),
    (_F8, 1),
    (_F8, 2),
    (_I4, 1),
    (_F8, 2),
    (SIGNAL, 1),
    (_I4, 1),
    (_F8, 1),
    (LEASE, 1),
    (KIN, 1),
    (_F8, 2),
    (_F4, 2),
    (_I4, 2),
)
