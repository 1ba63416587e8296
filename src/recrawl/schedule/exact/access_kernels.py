"""The scheduler's memory for kernels of other packages: fields of a page and formulas, without its layout.

Kernels of the engine and the simulator import from here (formulas and fields) and from `access` (actions such as
``pick`` and ``record``). They never name an offset or a field of the memory themselves.
"""

import math

from recrawl._jit import inline
from recrawl.schedule.exact.kernels.groups import add_outcome as add_outcome
from recrawl.schedule.exact.kernels.groups import excess_since as excess_since
from recrawl.schedule.exact.kernels.page_clock import burst_ahead as burst_ahead
from recrawl.schedule.exact.kernels.page_clock import own_elapsed as own_elapsed
from recrawl.schedule.exact.kernels.page_clock import season_between as season_between
from recrawl.schedule.exact.kernels.page_clock import season_elapsed as season_elapsed
from recrawl.schedule.exact.kernels.pages import forget_bounds
from recrawl.schedule.exact.kernels.view import Header as Header
from recrawl.schedule.exact.kernels.view import opened as opened
from recrawl.schedule.exact.layout import HOURS as HOURS
from recrawl.schedule.exact.layout import PAUSED
from recrawl.schedule.exact.layout import State as State

__all__ = [
    "HOURS",
    "Header",
    "State",
    "add_outcome",
    "burst_ahead",
    "excess_since",
    "opened",
    "own_elapsed",
    "season_between",
    "season_elapsed",
]


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
def signals_since(s: State, i: int) -> float:
    """Signals since the copy of a page was fetched."""
    return float(s.rec[i].signals)


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
def write_belief(s: State, i: int, change_rate: float, recall: float, false_rate: float, evidence: float) -> None:
    """Write the parameters of a page; the caller places it again. The evidence column must exist."""
    s.rec[i].change_rate = change_rate
    s.rec[i].recall = recall
    s.rec[i].false_rate = false_rate
    forget_bounds(s, i)
    s.extra[s.head[0].evidence_row, i] = evidence


# --- groups and bursts ---------------------------------------------------------------------------------------------


@inline
def has_effects(s: State) -> bool:
    """Whether groups, bursts or seasons are in use: pages have a group and a last change then."""
    return bool(s.member.size > 0)


@inline
def group_of(s: State, i: int) -> int:
    """The group of a page, −1: none."""
    return int(s.member[i].group) if s.member.size > 0 else -1


@inline
def group_weight(s: State, i: int) -> float:
    """How many changes of a page one excess change of its group stands for."""
    return float(s.member[i].weight)


@inline
def set_group_weight(s: State, i: int, weight: float) -> None:
    """Write that weight, where groups are in use; the caller places the page again."""
    if s.member.size > 0:
        s.member[i].weight = weight


@inline
def changed_at(s: State, i: int) -> float:
    """When a page was last seen to have changed; −infinity: never."""
    return float(s.member[i].changed_at) if s.member.size > 0 else -math.inf


@inline
def set_changed_at(s: State, i: int, time: float) -> None:
    """A page was seen to have changed at a time."""
    if s.member.size > 0:
        s.member[i].changed_at = max(s.member[i].changed_at, time)
