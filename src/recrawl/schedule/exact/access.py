"""The only way from the engine, the simulator and the crawler into a scheduler's memory.

Only this package knows how the memory is laid out; other packages call these functions. Kernels import actions
(``pick``, ``record`` …) from here, and fields and formulas from `access_kernels`. A function that is named after what
it returns (``last_fetched``, ``status`` …) writes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.schedule.exact import access_kernels as ask
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.kernels import events, queries
from recrawl.schedule.exact.kernels.among import bring_back, take_in_order
from recrawl.schedule.exact.kernels.events import put_back as put_back
from recrawl.schedule.exact.kernels.events import record as record
from recrawl.schedule.exact.kernels.events import renew_copy as renew_copy
from recrawl.schedule.exact.kernels.events import return_pages as return_pages
from recrawl.schedule.exact.kernels.events import signal as signal
from recrawl.schedule.exact.kernels.picking import pick as pick
from recrawl.schedule.exact.kernels.picking import pick_promoting as pick_promoting
from recrawl.schedule.exact.kernels.places import cohorts
from recrawl.schedule.exact.kernels.places.cohorts import CohortLists as CohortLists
from recrawl.schedule.exact.kernels.places.cohorts import next_of as next_of
from recrawl.schedule.exact.kernels.places.cohorts import promote_next as promote_next
from recrawl.schedule.exact.kernels.places.cohorts import sink as sink
from recrawl.schedule.exact.kernels.places.cohorts import step_out as step_out
from recrawl.schedule.exact.kernels.places.cohorts import waits as waits
from recrawl.schedule.exact.kernels.places.layers import LEAST
from recrawl.schedule.exact.kernels.value.values import OVERDUE as OVERDUE
from recrawl.schedule.exact.layout import DONE as DONE
from recrawl.schedule.exact.layout import EXAMINE as EXAMINE
from recrawl.schedule.exact.layout import FIT_LOG, GROW_LEASES, GROW_NEAR

if TYPE_CHECKING:
    from recrawl.model.pages import Pages
    from recrawl.schedule.exact.scheduler import Scheduler

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

reinsert_members = events.reinsert
leave_cohort = cohorts.leave
FIRST_GROWTH, LAST_GROWTH = GROW_NEAR, GROW_LEASES  # what a kernel answers when an array must grow lies between these
assert FIRST_GROWTH <= FIT_LOG <= LAST_GROWTH
REMOVED, LEASED, PAUSED, PARKED = at.GONE, at.LEASED, at.PAUSED, at.PARKED  # what `status` says of a page


# --- memory and its growth -----------------------------------------------------------------------------------------


def header(scheduler: Scheduler) -> ask.Header:
    """What kernels take to find the memory; it must be asked for again after anything has grown."""
    return scheduler._memory.header


def grow(scheduler: Scheduler, status: int) -> None:
    """Make larger what a kernel asked for."""
    scheduler._memory.grow(status)


def repeat(scheduler: Scheduler, step: Callable[[ask.Header], int]) -> None:
    """Run a kernel until it is done, growing what it asks for."""
    while (status := step(scheduler._memory.header)) != DONE:
        scheduler._memory.grow(status)


def in_batches(scheduler: Scheduler, step: Callable[[ask.Header, int], tuple[int, int]]) -> None:
    """Run a kernel over ids until all are done, growing what it asks for; ``step`` gets how many are done."""
    done = 0
    while True:
        status, more = step(scheduler._memory.header, done)
        done += more
        if status == DONE:
            return
        scheduler._memory.grow(status)


# --- pages ---------------------------------------------------------------------------------------------------------


def check_ids(scheduler: Scheduler, ids: ArrayLike, *, distinct: bool = False) -> Ids:
    """Ids as an array, or ParameterError for one that does not exist (any more)."""
    return scheduler._columns.check(ids, distinct=distinct)


def whole_ids(scheduler: Scheduler, ids: ArrayLike) -> Ids:
    """Ids as an array; that they exist is left to be checked."""
    return scheduler._columns.whole(ids)


def now(scheduler: Scheduler) -> float:
    """The largest time that the scheduler knows."""
    return scheduler._memory.now


def id_count(scheduler: Scheduler) -> int:
    """How many ids were ever given."""
    return int(scheduler._memory.state.head[0]["n_pages"])


def present_ids(scheduler: Scheduler) -> Ids:
    """All ids that were not removed."""
    return np.flatnonzero(scheduler._memory.state.rec["state"][: id_count(scheduler)] != at.GONE)


def last_fetched(scheduler: Scheduler, rows: Ids) -> Array:
    """When the copies of pages were fetched."""
    return np.asarray(scheduler._memory.state.rec["last"][rows])


def importance(scheduler: Scheduler, rows: Ids) -> Array:
    """The importance of pages."""
    return np.asarray(scheduler._memory.state.rec["importance"][rows])


def importance_column(scheduler: Scheduler) -> Array:
    """The importance of all pages, as it changes, with room for more."""
    return np.asarray(scheduler._memory.state.rec["importance"])


def cost(scheduler: Scheduler, rows: Ids) -> Array:
    """The cost of a crawl of pages."""
    row = int(scheduler._memory.state.head[0]["cost_row"])
    return np.asarray(scheduler._memory.state.extra[row][rows]) if row >= 0 else np.ones(len(rows))


def cost_column(scheduler: Scheduler, rows: Ids) -> dict[str, Array]:
    """The column of costs for `Pages`; nothing if every crawl costs 1."""
    found = cost(scheduler, rows)
    return {"cost": found} if (found != 1.0).any() else {}


def log_signals(scheduler: Scheduler, rows: Ids, now: float, source: int) -> None:
    """Signals of a source, for pages whose components were written accordingly: their values have grown.

    They are remembered, so that the record of a fetch under way can tell those after it (`signals_after`).
    """
    scheduler._in_parts(events.signal, rows, now, np.array([np.inf]), np.array([float(source)]))


def status(scheduler: Scheduler, rows: Ids) -> NDArray[np.uint8]:
    """REMOVED, LEASED, PAUSED, PARKED, or a number for a page that waits to be picked."""
    return np.asarray(scheduler._memory.state.rec["state"][rows])


def is_paused(scheduler: Scheduler, rows: Ids) -> NDArray[np.bool_]:
    """Which pages are withdrawn until they are resumed or placed."""
    return np.asarray(status(scheduler, rows) == at.PAUSED)


def parameters(scheduler: Scheduler, rows: Ids) -> Pages:
    """The parameters by which the scheduler decides."""
    return scheduler._columns.read(rows)


def deciding(scheduler: Scheduler, rows: Ids) -> tuple[Array, Array, Array, Array]:
    """Change rate, importance, cost and evidence of pages."""
    state = scheduler._memory.state
    row = int(state.head[0]["evidence_row"])
    evidence = np.asarray(state.extra[row][rows]) if row >= 0 else np.full(len(rows), np.inf)
    return state.rec["change_rate"][rows], importance(scheduler, rows), cost(scheduler, rows), evidence


def tie_columns(scheduler: Scheduler, rows: Ids) -> list[NDArray[Any]]:
    """Columns that are equal for pages whose values differ by their importance alone.

    With the objective "rates" that is one of them: a value is a crawl rate × time then.
    """
    state = scheduler._memory.state
    by_rates = ("importance",) if scheduler.objective == "rates" else ()
    names = ("last", "change_rate", "signals", *by_rates)
    rec = state.rec[rows]
    optional = [np.asarray(state.extra[row, rows]) for row in scheduler._memory.optional_rows()]
    source = [state.source[name][rows] for name in at.SOURCE.fields or ()] if len(state.source) else []
    return [*(rec[name] for name in names), *source, *optional, *([state.host[rows]] if len(state.host) else [])]


def signal_weights(scheduler: Scheduler, rows: Ids, source: int) -> Array:
    """What a signal of a source weighs on each page."""
    return scheduler._columns.weights(rows, source)


def set_threshold(scheduler: Scheduler, threshold: float) -> None:
    """Take over the crawl value at the margin of an earlier run."""
    scheduler._memory.state.head[0]["threshold"] = threshold


def floors(scheduler: Scheduler, rows: Ids) -> Array:
    """Least crawl rates of pages; 0 where none is given."""
    state = scheduler._memory.state
    row = int(state.head[0]["floor_row"])
    return np.asarray(state.extra[row, rows]) if row >= 0 else np.zeros(len(rows))


def crawl_rates(scheduler: Scheduler, rows: Ids) -> Array:
    """Crawl rates of pages as the objective "rates" uses them; 0 where none is given."""
    state = scheduler._memory.state
    row = int(state.head[0]["crawl_rate_row"])
    return np.asarray(state.extra[row, rows]) if row >= 0 else np.zeros(len(rows))


def set_crawl_rates(scheduler: Scheduler, rows: Ids, crawl_rate: ArrayLike) -> None:
    """Crawl rates of pages; they are to be placed afterwards."""
    scheduler._columns.set_crawl_rate(rows, crawl_rate)


def reserve_components(scheduler: Scheduler, n: int) -> None:
    """Room for so many more pages with components, for kernels that write them; the header must be asked for again."""
    scheduler._memory.add_mixtures(n)


def components_of(scheduler: Scheduler, rows: Ids) -> Array:
    """The components of pages: (pages, components, fields); all 0 where a page has none."""
    state = scheduler._memory.state
    row = int(state.head[0]["mixture_row"])
    out = np.zeros((len(rows), at.COMPONENTS, state.mixtures.shape[1]))
    mixture = state.extra[row, rows].astype(np.int64) if row >= 0 else np.zeros(len(rows), np.int64)
    out[mixture > 0] = state.mixtures.reshape(-1, *out.shape[1:])[mixture[mixture > 0] - 1]
    return out


def return_picked(scheduler: Scheduler, rows: Ids, threshold: float, *, withdraw: bool) -> None:
    """Undo the pick of pages: no lease, no delay of their hosts, no count; and the threshold as it is given.

    The pages are withdrawn until they are resumed, or may be picked again at once.
    """
    time = now(scheduler)
    if withdraw:
        events.withdraw(scheduler._memory.header, rows, at.PAUSED)
    elif len(rows):
        scheduler.release(rows, time)
    mine = np.unique(host_numbers(scheduler, rows))
    mine = mine[mine >= 0]
    state = scheduler._memory.state
    state.hosts["until"][mine] = np.minimum(state.hosts["until"][mine], time)
    head = state.head[0]
    head["decisions"] -= len(rows)
    head["threshold"] = threshold


def waiting_of(scheduler: Scheduler, rows: Ids, time: float) -> NDArray[np.bool_]:
    """Which pages wait to be picked at a time; up to then, leases end and hosts become free."""
    repeat(scheduler, lambda header: bring_back(header, time))
    return np.isin(status(scheduler, rows), (REMOVED, LEASED, PAUSED, PARKED), invert=True)


def take(scheduler: Scheduler, rows: Ids, n: int) -> Ids:
    """Lease the first n of some pages, which wait or are paused, as far as the rules of their hosts allow it now."""
    out = np.empty(min(n, len(rows)), np.int64)
    outcome, taken = take_in_order(scheduler._memory.header, rows, len(out), out)
    while outcome != DONE:
        scheduler._memory.grow(outcome)
        outcome, taken = take_in_order(scheduler._memory.header, rows, len(out), out)
    return out[:taken]


# --- hosts ---------------------------------------------------------------------------------------------------------


def host_numbers(scheduler: Scheduler, rows: Ids) -> NDArray[np.int32]:
    """The number of each page's host, −1: none."""
    hosts = scheduler._memory.state.host
    return np.asarray(hosts[rows]) if len(hosts) else np.full(len(rows), -1, np.int32)


def add_hosts(scheduler: Scheduler, hosts: Iterable[Any]) -> None:
    """Give numbers to hosts, in this order."""
    scheduler._columns._host_indices(list(hosts))


def host_rules(scheduler: Scheduler, host: Any) -> tuple[float, float, float] | None:
    """(spacing, most pages leased at once, held until) of a host; None: the scheduler does not know it."""
    number = scheduler._columns._hosts.get(host)
    if number is None:
        return None
    row = scheduler._memory.state.hosts[number]
    return float(row["spacing"]), float(row["limit"]), float(row["until"])


def set_host_rules(scheduler: Scheduler, rules: Mapping[str, tuple[float, float, float]]) -> None:
    """Rules of many hosts, as `host_rules` gives them."""
    if rules:
        rows = scheduler._columns._host_indices(list(rules))
        hosts, columns = scheduler._memory.state.hosts, np.array(list(rules.values()), np.float64)
        hosts["spacing"][rows], hosts["limit"][rows], hosts["until"][rows] = columns.T


def host_spacings(scheduler: Scheduler) -> Array:
    """The least time between two crawls of each host, by its number."""
    return np.array(scheduler._memory.state.hosts["spacing"])


def host_until(scheduler: Scheduler, page: int) -> float:
    """Before when no page of this page's host is picked; −infinity: nothing holds it."""
    number = int(host_numbers(scheduler, np.array([page]))[0])
    return float(scheduler._memory.state.hosts[number]["until"]) if number >= 0 else -math.inf


def append(scheduler: Scheduler, pages: Pages, fetched_at: Array) -> Ids:
    """New pages that are not picked until they are placed; their ids."""
    ids = scheduler._columns.append(pages, fetched_at)
    scheduler._memory.set_tick(scheduler.budget, pages.change_rate)
    return ids


def write(scheduler: Scheduler, rows: Ids, pages: Pages) -> None:
    """New parameters of pages that are withdrawn; their hosts stay."""
    scheduler._columns.write(rows, pages)


def renew(scheduler: Scheduler, rows: Ids, fetched_at: Array) -> None:
    """Pages start again, as if they were removed and appended; they keep their ids and parameters."""
    scheduler.remove(rows)
    state = scheduler._memory.state
    state.rec["band"][rows], state.rec["state"][rows], state.rec["last"][rows] = at.FAR, at.PAUSED, fetched_at
    state.head[0]["n_alive"] += len(rows)


# --- placement -----------------------------------------------------------------------------------------------------


def lower_levels(scheduler: Scheduler) -> None:
    """Where nothing is asleep, let pages of any value be near from now on: the first pick need not look for a level."""
    head = scheduler._memory.state.head[0]
    if head["n_asleep"] == 0 and head["n_bands"] == 0:
        head["near_level"] = head["far_level"] = LEAST


def place(scheduler: Scheduler, rows: Ids, time: float) -> None:
    """Place pages again after a change of their parameters; paused ones too."""
    scheduler._place(rows, time)


def place_waiting(scheduler: Scheduler, rows: Ids) -> None:
    """Place pages again after a change of their parameters, except paused and parked ones."""
    found = status(scheduler, rows)
    scheduler._place(rows[(found != at.PAUSED) & (found != at.PARKED)], now(scheduler))


def place_all(scheduler: Scheduler) -> None:
    """Place all waiting pages again, after the parameters of all of them have changed."""
    scheduler._place_all()


# --- clocks --------------------------------------------------------------------------------------------------------


def bin_width(scheduler: Scheduler) -> float:
    """The width of the bins of clocks; 0: clocks are not in use."""
    return float(scheduler._memory.state.head[0]["span"])


def set_clock_bins(scheduler: Scheduler, span: float, memory: float) -> None:
    """Width of bins and time constant of the pace ahead; the caller places all pages again."""
    scheduler._memory.relate(span, memory)


def join_clocks(scheduler: Scheduler, rows: Ids, groups: NDArray[np.int32], most: int) -> None:
    """Let pages follow clocks (−1: real time), of which there are at most so many; the caller places them again."""
    scheduler._memory.add_groups(most)
    events.join(scheduler._memory.header, rows, groups)


def group_numbers(scheduler: Scheduler, rows: Ids) -> NDArray[np.int32]:
    """The group whose clock each page follows, −1: real time."""
    member = scheduler._memory.state.member
    return np.asarray(member["group"][rows]) if len(member) else np.full(len(rows), -1, np.int32)


def publish(scheduler: Scheduler, group: int, paces: Array, ahead: float, time: float) -> None:
    """Write the paces of a clock's newest bins, the last of which contains `time`, and reinsert its members."""
    scheduler.publish(group, paces, ahead, time)


def set_tails(scheduler: Scheduler, tails: Array) -> None:
    """The paces of the first clocks before their oldest bins; the caller places all pages again."""
    scheduler._memory.state.groups["tail"][: len(tails)] = tails


def paces(scheduler: Scheduler, group: int) -> tuple[float, Array]:
    """(begin of the oldest bin, paces of all bins in order) of a clock; no paces where it was never published."""
    state = scheduler._memory.state
    newest, span = float(state.groups[group]["newest"]), float(state.head[0]["span"])
    if math.isinf(newest):
        return now(scheduler), np.zeros(0)
    numbers = np.arange(int(newest) - at.BINS + 1, int(newest) + 1)
    return float(numbers[0] * span), state.bins["pace"][group][numbers % at.BINS].astype(np.float64)


def clock_between(scheduler: Scheduler, page: int, begin: float, end: float) -> float:
    """The time of an interval by a page's clock."""
    return float(queries.clock_time(scheduler._memory.header, page, begin, end))


# --- questions about one page --------------------------------------------------------------------------------------


def wake_time(scheduler: Scheduler, page: int, time: float, level: float, value: float) -> float:
    """The time before which the value of a page, now `value`, stays below a level; nothing is written."""
    return float(queries.reaches_at(scheduler._memory.header, page, time, level, value))


def reached_at(scheduler: Scheduler, rows: Ids, time: float, level: float, longest: float) -> Array:
    """The earliest time from ``time`` on at which pages are worth a level; infinity: not within the longest time."""
    out = np.empty(len(rows))
    queries.fill_reached(scheduler._memory.header, rows, time, level, longest, out)
    return out
