"""The scheduler's memory for kernels of other packages: fields of a page and formulas, without its layout.

Kernels of the engine and the simulator import from here (formulas and fields) and from `access` (actions such as
``pick`` and ``record``). They never name an offset or a field of the memory themselves.
"""

from recrawl._jit import inline
from recrawl.schedule.exact.kernels.groups import add_outcome as add_outcome
from recrawl.schedule.exact.kernels.groups import excess_since as excess_since
from recrawl.schedule.exact.kernels.pages import forget_bounds
from recrawl.schedule.exact.kernels.view import Header as Header
from recrawl.schedule.exact.kernels.view import opened as opened
from recrawl.schedule.exact.layout import PAUSED
from recrawl.schedule.exact.layout import State as State

__all__ = ["Header", "State", "add_outcome", "excess_since", "opened"]


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


# --- groups --------------------------------------------------------------------------------------------------------


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
def set_changed_at(s: State, i: int, time: float) -> None:
    """A page was seen to have changed at a time."""
    if s.member.size > 0:
        s.member[i].changed_at = max(s.member[i].changed_at, time)
