"""The scheduler's state as a schema: one structured dtype per kind of row, one table of all arrays (`State`).

A page takes 52 bytes in its record and 5 in the wheel; everything else is small. Columns that only some users need
(cost, evidence, floor, the exponent of several signal sources, mixtures, host, group) take memory only when used.

The dtypes, the addresses that kernels use (`kernels/view.py`) and the saved form all follow from `State`. A change of
any field needs a new `VERSION`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from recrawl.model.kernels.mixture import FIELDS

VERSION = 7  # of the saved form; 1 was recrawl 0.1: numbered columns, without a version

# --- sizes ---------------------------------------------------------------------------------------------------------

BLOCK = 63  # members in one block of a list; then the block before; when each member wakes; their places in the wheel
TICKS = BLOCK + 1
WHEEL_PLACES = TICKS + BLOCK
BLOCK_WIDTH = 3 * BLOCK + 1
BANDS = 12
NEAR_ROOM, LEAST_NEAR = 4, 4096  # room for near pages: for each that is picked at a time; what is not given back
FAR = 255  # band of a page below all bands
HORIZON = 36  # the wheels together reach over 2^36 ticks
CHUNK = 16  # numbers in one chunk of a wheel slot: the last place in the chunk before, the slot, members
FIRST = 2  # where the members of a chunk begin: 14 of them, in one cache line with the rest
MOST_IDS = 1_800_000_000  # their places in the wheel are 32-bit numbers
MOST_DELAYS = 16
BINS = 64  # of a clock
BUCKETS = 30  # of a group; one more holds the members that are being reinserted
LEAST_SLACK = 2.0**-16  # of a bin
COMPONENTS = 6  # of a mixture, at most; a weight of 0: none

# --- what numbers stand for ----------------------------------------------------------------------------------------

GONE, ASLEEP, NEAR, LEASED, PAUSED, PARKED = 0, 1, 2, 3, 4, 5  # `state` of a page
DONE, GROW_NEAR, FIT_NEAR, GROW_BLOCKS, FIT_LOG, GROW_LEASES = (
    0,
    1,
    2,
    3,
    4,
    5,
)  # what must grow before a kernel goes on
UNKNOWN_ID, REMOVED_ID = 6, 7  # what a kernel answers to a wrong id
EXAMINE = 8  # what a pick answers when the page taken last is to be examined before the next of its cohort
OPTIONAL = (
    "cost",
    "evidence",
    "floor",
    "exponent",
    "crawl_rate",
    "mixture",
)  # columns in `State.extra`, made on first use

# --- rows ----------------------------------------------------------------------------------------------------------

PAGE = np.dtype(
    [
        ("change_rate", "f8"),
        ("importance", "f8"),
        ("last", "f8"),  # when the copy was fetched
        ("pos", "i4"),  # place in the one container that `state` and `band` name:
        # NEAR: row of near_id · ASLEEP below all bands: place in the wheel, −1: none · ASLEEP in a band, PARKED: place
        # in the blocks (a band's block also keeps the place in the wheel) · LEASED: row of leases · else unused
        ("least", "f4"),  # an exponent below which the value is below the far level; 0: not known
        ("signals", "u2"),  # since the copy was fetched
        ("state", "u1"),
        ("band", "u1"),
    ]
)
SOURCE = np.dtype([("missed", "f8"), ("signalled", "f8"), ("weight", "f8")])  # a page's signals as the policy sees them
BAND = np.dtype([("head", "i8"), ("top", "i8"), ("size", "i8"), ("level", "f8")])  # a block list; sleeps below a level
HOST = np.dtype(
    [
        ("until", "f8"),  # not crawled before
        ("spacing", "f8"),  # least time between two picks
        ("limit", "f8"),  # most pages leased at once
        ("running", "i8"),  # pages leased
        ("head", "i8"),  # parked pages: the newest block, −1: none
        ("top", "i8"),  # members in it
        ("size", "i8"),  # parked pages
    ]
)
SIGNAL = np.dtype([("time", "f8"), ("id", "i4"), ("next", "i4")])  # the complement of the id once a copy has seen it
LEASE = np.dtype([("until", "f8"), ("id", "i4"), ("next", "i4"), ("prev", "i4"), ("pad", "i4")])
DELAY = np.dtype([("at", "f8"), ("share", "f8")])  # of the delay distribution of signals
BOUND = np.dtype(  # of a near page where clocks are in use
    [
        ("at", "f8"),  # when it was last evaluated; −∞: its clock was published since, or it was signalled
        ("most", "f8"),  # at most its value at the time
        ("since", "f8"),  # from which on
        ("lift", "f8"),  # it grows at most so much with its clock
        ("pace", "f8"),  # which runs at most so fast
        ("room", "f8"),  # as long as the clock has not gone on by more; negative: not known
    ]
)
MEMBER = np.dtype(  # a page where clocks are in use
    [
        ("group", "i4"),  # whose clock it follows; −1: real time
        ("next", "i4"),  # in a bucket of the group
        ("prev", "i4"),  # −1 at the head
        ("bucket", "i4"),  # −1: in none
        ("key", "f8"),  # the level of `risen` at which it must be examined
        ("limit", "f8"),  # while asleep: the clock time since its fetch at which it can reach its level
        ("wake_at", "f8"),  # while asleep: when it wakes
    ]
)
GROUP = np.dtype(  # a clock
    [
        ("updated_at", "f8"),  # when it was last published
        ("risen", "f8"),  # by how much the clock time of a member can have risen in all
        ("reinserted", "f8"),  # up to which `risen` its members have been examined
        ("newest", "f8"),  # number of the newest bin; −∞: never published
        ("tail", "f8"),  # pace before the oldest bin
        ("ahead", "f8"),  # pace just after `updated_at`
    ]
)
BIN = np.dtype(
    [
        ("after", "f8"),  # clock time from the end of the bin to `updated_at`
        ("pace", "f4"),
    ]
)

_HEAD = [  # one row for the whole scheduler; every field has 8 bytes
    ("n_pages", "i8"),  # ids ever given
    ("n_alive", "i8"),  # pages not removed
    ("n_near", "i8"),
    ("n_asleep", "i8"),
    ("n_leased", "i8"),
    ("n_parked", "i8"),
    ("n_bands", "i8"),  # bands in use
    ("clock", "i8"),  # tick of the wheel
    ("wheel_bits", "i8"),  # a wheel has 2^bits slots
    ("n_wheels", "i8"),
    ("free_chunk", "i8"),  # the first free chunk of the wheel
    ("n_blocks", "i8"),  # blocks ever used
    ("free_block", "i8"),  # the first free one
    ("n_free_blocks", "i8"),
    ("n_log", "i8"),  # entries of the signal log
    ("log_first", "i8"),  # the oldest one
    ("log_room", "i8"),  # entries to have room for
    ("n_leases", "i8"),  # lease slots ever used
    ("free_lease", "i8"),  # the first free one
    ("first_lease", "i8"),  # the lease that ends first
    ("last_lease", "i8"),
    ("policy", "i8"),  # how signals are believed
    ("objective", "i8"),
    ("terms", "i8"),  # of the value that are summed
    ("n_delays", "i8"),  # rows of `delays` in use
    ("cost_row", "i8"),  # rows of `extra`; −1: unused
    ("evidence_row", "i8"),
    ("floor_row", "i8"),
    ("exponent_row", "i8"),
    ("crawl_rate_row", "i8"),
    ("mixture_row", "i8"),  # a page's number in `mixtures`, from 1 on; 0: it has none
    ("n_mixtures", "i8"),  # ever used
    ("free_mixture", "i8"),  # the first free one, from 1 on; 0: none
    ("n_free_mixtures", "i8"),
    ("scan_at", "i8"),  # where a scan goes on; −1: none
    ("cover", "i8"),  # pages that the bands should hold
    ("wanted", "i8"),  # what should grow when there is time
    ("evaluated", "i8"),  # values computed for decisions
    ("decisions", "i8"),  # pages picked
    ("scans", "i8"),  # of all sleeping pages
    ("last_scan", "i8"),  # decisions made before the last one
    ("wakes", "i8"),  # pages that woke
    ("late", "i8"),  # records older than the copy
    ("backwards", "i8"),  # times that went back
    ("expired", "i8"),  # leases that ended by time
    ("now", "f8"),  # the largest time seen
    ("origin", "f8"),  # time of tick 0
    ("width", "f8"),  # of a tick
    ("near_level", "f8"),
    ("far_level", "f8"),
    ("threshold", "f8"),  # smallest value of the last pick
    ("lease_time", "f8"),
    ("window", "f8"),  # signals within it after a crawl do not count
    ("span", "f8"),  # clocks: width of a bin; 0: clocks are not in use
    ("memory", "f8"),  # clocks: time in which a pace returns to 1
]


class Of(NamedTuple):
    """What an array of `State` holds, and in how many dimensions."""

    dtype: np.dtype[Any]
    ndim: int = 1


_I4, _I8, _F8 = np.dtype("i4"), np.dtype("i8"), np.dtype("f8")
Header = NDArray[np.int64]  # `State.head` as 8-byte numbers: one pointer for kernels


class State(NamedTuple):
    """All arrays of a scheduler. The schema: dtypes, addresses and the saved form follow from it."""

    head: NDArray[Any]  # HEAD: one row
    rec: Annotated[NDArray[Any], Of(PAGE)]  # per id ever given
    source: Annotated[NDArray[Any], Of(SOURCE)]  # per id, or empty while no page has signals
    near_id: Annotated[NDArray[np.int32], Of(_I4)]
    near_val: Annotated[NDArray[np.float64], Of(_F8)]
    near_bound: Annotated[NDArray[Any], Of(BOUND)]  # or empty
    bands: Annotated[NDArray[Any], Of(BAND)]
    band_order: Annotated[NDArray[np.int64], Of(_I8)]  # rows of `bands` in use, the highest level first
    blocks: Annotated[NDArray[np.int32], Of(_I4, 2)]  # (n, BLOCK_WIDTH)
    slots: Annotated[NDArray[np.int32], Of(_I4)]  # of each wheel: where the last member lies
    wheel: Annotated[NDArray[np.int32], Of(_I4)]  # chunks of members
    extra: Annotated[NDArray[np.float64], Of(_F8, 2)]  # (optional columns, ids)
    host: Annotated[NDArray[np.int32], Of(_I4)]  # per id, or empty while no page has one
    hosts: Annotated[NDArray[Any], Of(HOST)]
    log: Annotated[NDArray[Any], Of(SIGNAL)]  # a ring in the order of arrival
    log_heads: Annotated[NDArray[np.int32], Of(_I4)]  # the newest entry in each bucket of ids
    log_weight: Annotated[NDArray[np.float64], Of(_F8)]  # of each entry, or empty while all of a page weigh the same
    leases: Annotated[NDArray[Any], Of(LEASE)]
    delays: Annotated[NDArray[Any], Of(DELAY)]
    member: Annotated[NDArray[Any], Of(MEMBER)]  # per id, or empty
    groups: Annotated[NDArray[Any], Of(GROUP)]
    bins: Annotated[NDArray[Any], Of(BIN, 2)]  # (groups, BINS): rings
    buckets: Annotated[NDArray[np.int32], Of(_I4, 2)]  # (groups, BUCKETS + 1): the first member of each
    mixtures: Annotated[NDArray[np.float64], Of(_F8, 2)]  # (COMPONENTS · mixtures, FIELDS): components of pages


HEAD = np.dtype(
    [
        *_HEAD,
        ("places", "i8", (len(State._fields), 3)),  # of the arrays of `State`: address, rows, columns
    ],
    align=True,
)


def _schema() -> dict[str, Of]:
    hints = get_type_hints(State, include_extras=True)
    return {name: next(iter(getattr(hints[name], "__metadata__", ())), Of(HEAD)) for name in State._fields}


SCHEMA = _schema()  # what each array of `State` holds
assert HEAD.fields is not None
_PLACES = HEAD.fields["places"][1] // 8


def place_of(name: str) -> int:
    """Which 8-byte number of the header is the address of an array; its shape follows."""
    return int(_PLACES + 3 * State._fields.index(name))


def empty_state() -> State:
    """All arrays of a scheduler without pages."""
    shapes: dict[str, Any] = dict.fromkeys(State._fields, 0)
    shapes |= {"head": 1, "near_id": LEAST_NEAR, "near_val": LEAST_NEAR, "bands": BANDS, "band_order": BANDS}
    shapes |= {"blocks": (64, BLOCK_WIDTH), "extra": (0, 0), "log": 64, "log_heads": 64, "leases": 64}
    shapes |= {"delays": MOST_DELAYS, "bins": (0, BINS), "buckets": (0, BUCKETS + 1), "mixtures": (0, FIELDS)}
    state = State(**{name: np.zeros(shapes[name], SCHEMA[name].dtype) for name in State._fields})
    state.log_heads[:] = -1
    state.bands["head"] = -1
    for name in ("free_block", "free_chunk", "free_lease", "first_lease", "last_lease", "scan_at"):
        state.head[name] = -1
    for name in OPTIONAL:
        state.head[f"{name}_row"] = -1
    return state
