"""Every read method of a scheduler, and every byte of its state."""

from collections.abc import Callable, Iterable

import numpy as np

from recrawl.schedule.exact.kernels.queries import clock_time, reaches_at
from recrawl.schedule.exact.scheduler import Scheduler

MOST = 20  # pages and groups that are asked about


def every_byte(scheduler: Scheduler) -> dict[str, bytes | str]:
    """All arrays of a scheduler, with their addresses, and what is kept beside them."""
    arrays = {name: array.tobytes() for name, array in scheduler._memory.state._asdict().items()}
    beside = {name: repr(value) for name, value in scheduler._columns.saved().items()}
    return {**arrays, **beside, "budget": repr(scheduler.budget)}


def _alive(scheduler: Scheduler) -> np.ndarray:
    return np.flatnonzero(scheduler._memory.state.rec["state"] != 0)[:MOST]


def _reaches(scheduler: Scheduler, now: float) -> None:
    header, alive = scheduler._memory.header, _alive(scheduler)
    for time in (now, now + 30.0):
        for i, worth in zip(alive.tolist(), scheduler.value(alive, time).tolist(), strict=True):
            for level in sorted({scheduler.threshold, 1e-3, 10.0}):
                assert reaches_at(header, i, time, level, worth) >= time


def _clock_times(scheduler: Scheduler, now: float) -> None:
    state, header = scheduler._memory.state, scheduler._memory.header
    for i in _alive(scheduler).tolist():
        clock_time(header, i, float(state.rec["last"][i]), now + 30.0)


def _clocks(scheduler: Scheduler, now: float) -> None:
    for group in range(min(len(scheduler._memory.state.groups), MOST)):
        scheduler.clock(group, now - 30.0, now + 30.0)


READS: dict[str, Callable[[Scheduler, float], object]] = {
    "value": lambda scheduler, now: (
        scheduler.value(_alive(scheduler), now),
        scheduler.value(_alive(scheduler), now + 30.0),
    ),
    "reaches_at": _reaches,
    "clock_time": _clock_times,
    "clock": _clocks,
    "is_paused": lambda scheduler, now: scheduler.is_paused(_alive(scheduler)),
    "threshold": lambda scheduler, now: scheduler.threshold,
    "stats": lambda scheduler, now: scheduler.stats,
    "state": lambda scheduler, now: scheduler.state(),
    "len, nbytes, budget": lambda scheduler, now: (len(scheduler), scheduler.nbytes, scheduler.budget),
}


def assert_reading_changes_nothing(scheduler: Scheduler, now: float, names: Iterable[str] = tuple(READS)) -> None:
    """Call methods that read, one after another; every byte must be as it was after each of them."""
    before = every_byte(scheduler)
    for name in names:
        READS[name](scheduler, now)
        assert every_byte(scheduler) == before, f"{name} changed the scheduler"
