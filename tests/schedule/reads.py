"""Every read method of a scheduler, and every byte of its state."""

import numpy as np

from recrawl.schedule.exact.kernels.queries import clock_time, reaches_at
from recrawl.schedule.exact.scheduler import Scheduler


def every_byte(scheduler: Scheduler) -> dict[str, bytes | str]:
    """All arrays of a scheduler, with their addresses, and what is kept beside them."""
    arrays = {name: array.tobytes() for name, array in scheduler._memory.state._asdict().items()}
    beside = {name: repr(value) for name, value in scheduler._columns.saved().items()}
    return {**arrays, **beside, "budget": repr(scheduler.budget)}


def ask_everything(scheduler: Scheduler, now: float, most: int = 20) -> None:
    """Call each read method; those about pages for up to so many of them, now and later."""
    state, header = scheduler._memory.state, scheduler._memory.header
    len(scheduler), scheduler.threshold, scheduler.stats, scheduler.nbytes, scheduler.budget, scheduler.state()
    alive = np.flatnonzero(state.rec["state"][: len(state.rec)] != 0)[:most]
    scheduler.is_paused(alive)
    levels = sorted({scheduler.threshold, 1e-3, 10.0})
    for time in (now, now + 30.0):
        value = scheduler.value(alive, time)
        for i, worth in zip(alive.tolist(), value.tolist(), strict=True):
            for level in levels:
                assert reaches_at(header, i, time, level, worth) >= time
            clock_time(header, i, float(state.rec["last"][i]), time)
    for group in range(min(len(state.groups), most)):
        scheduler.clock(group, now - 30.0, now + 30.0)
