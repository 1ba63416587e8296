"""The scheduler's memory for kernels of other packages: fields of a page and formulas, without its layout.

Kernels of the engine and the simulator import from here (formulas and fields) and from `access` (actions such as
``pick`` and ``record``). They never name an offset or a field of the memory themselves.
"""

from recrawl._compile.jit import inline
from recrawl.schedule.exact.kernels.places.publish import drop_published as drop_published
from recrawl.schedule.exact.kernels.places.publish import publish_clock as publish_clock
from recrawl.schedule.exact.kernels.places.publish import publish_of_many as publish_of_many
from recrawl.schedule.exact.kernels.state.mixtures import mixture_doubt, mixture_of
from recrawl.schedule.exact.kernels.state.mixtures import write_components as write_components
from recrawl.schedule.exact.kernels.state.pages import fetch_page as fetch_page
from recrawl.schedule.exact.kernels.state.pages import forget_bounds
from recrawl.schedule.exact.kernels.state.pages import whole as whole
from recrawl.schedule.exact.kernels.state.signal_log import signals_after as signals_after
from recrawl.schedule.exact.kernels.state.view import Header as Header
from recrawl.schedule.exact.kernels.state.view import opened as opened
from recrawl.schedule.exact.kernels.state.view import prefetch as prefetch
from recrawl.schedule.exact.kernels.value.buckets import fetch_buckets as fetch_buckets
from recrawl.schedule.exact.kernels.value.buckets import fetch_due as fetch_due
from recrawl.schedule.exact.kernels.value.clocks import clock_between as group_clock_between
from recrawl.schedule.exact.kernels.value.clocks import page_clock
from recrawl.schedule.exact.kernels.value.clocks import page_clock_from as page_clock_from
from recrawl.schedule.exact.kernels.value.clocks import page_reading as page_reading
from recrawl.schedule.exact.layout import BINS as BINS
from recrawl.schedule.exact.layout import GONE, LEASED, PAUSED
from recrawl.schedule.exact.layout import State as State

__all__ = [
    "BINS",
    "Header",
    "State",
    "drop_published",
    "fetch_buckets",
    "fetch_due",
    "fetch_page",
    "group_clock_between",
    "opened",
    "page_clock_from",
    "page_reading",
    "prefetch",
    "publish_clock",
    "publish_of_many",
    "signals_after",
    "whole",
    "write_components",
]


_BINS_OF_LINE = 5  # of a cache line


# --- one page ------------------------------------------------------------------------------------------------------


@inline
def time_now(s: State) -> float:
    """The largest time that the scheduler knows."""
    return float(s.head[0].now)


@inline
def fetched_at(s: State, i: int) -> float:
    """When the copy of a page was fetched."""
    return float(s.rec[i].last)


@inline
def is_known(s: State, i: int) -> bool:
    """Whether there is a page of this number that was not removed."""
    return bool(i < s.head[0].n_pages and s.rec[i].state != GONE)


@inline
def is_leased(s: State, i: int) -> bool:
    """Whether there is a page of this number that is being crawled."""
    return bool(0 <= i < s.head[0].n_pages and s.rec[i].state == LEASED)


@inline
def has_components(s: State, i: int) -> bool:
    """Whether a page is valued by components."""
    return mixture_of(s, i) > 0


@inline
def components_doubt(s: State, i: int, time: float, heard: bool) -> float:
    """−ln P(fresh) of a page with components at a clock time since its fetch, with or without signals since then."""
    return mixture_doubt(s, mixture_of(s, i), time, heard)


@inline
def importance_of(s: State, i: int) -> float:
    """The importance of a page."""
    return float(s.rec[i].importance)


@inline
def is_paused(s: State, i: int) -> bool:
    """Whether a page is withdrawn until it is resumed or placed."""
    return bool(s.rec[i].state == PAUSED)


@inline
def wanted(s: State) -> int:
    """What should grow when there is time, or DONE."""
    return int(s.head[0].wanted)


@inline
def write_belief(s: State, i: int, change_rate: float, evidence: float) -> None:
    """Write the rate of a page and its evidence; the caller places it again. The evidence column must exist."""
    s.rec[i].change_rate = change_rate
    forget_bounds(s, i)
    s.extra[s.head[0].evidence_row, i] = evidence


# --- clocks --------------------------------------------------------------------------------------------------------


@inline
def group_of(s: State, i: int) -> int:
    """The group whose clock a page follows, −1: real time."""
    return int(s.member[i].group) if s.member.size > 0 else -1


@inline
def clock_between(s: State, i: int, begin: float, end: float) -> float:
    """The time of an interval by a page's clock."""
    return float(page_clock(s, i, begin, end))


@inline
def fetch_clock(s: State, g: int) -> None:
    """Load the bins of a clock into the cache."""
    for k in range(0, BINS, _BINS_OF_LINE):
        prefetch(s.bins[g], k)


@inline
def bin_width(s: State) -> float:
    """The width of the bins of clocks; 0: clocks are not in use."""
    return float(s.head[0].span)
