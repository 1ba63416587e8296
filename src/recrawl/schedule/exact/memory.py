"""Memory: the arrays of a scheduler, how they start, grow, are saved, and check themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.kernels.signal_log import refill_log
from recrawl.schedule.exact.layout import State

_MOST_DELAYS = 16
_PAGES_PER_SLOT = 128  # at least, in one wheel if all were in it


class Memory:
    """Holds the current `State` and replaces its arrays when they must grow."""

    def __init__(self, start: float, lease: float) -> None:
        if not (lease > 0):
            raise ParameterError(f"lease is {lease}: must be above 0")
        ints = np.zeros(at.N_INTS, dtype=np.int64)
        flts = np.zeros(at.N_FLTS)
        for place in (at.FREE_BLOCK, at.FREE_CHUNK, at.FREE_LEASE, at.FIRST_LEASE, at.LAST_LEASE, at.SCAN_AT):
            ints[place] = -1
        for place in (at.COST, at.EVIDENCE, at.FLOOR, at.EXPONENT):
            ints[place] = -1
        ints[at.HEAD : at.HEAD + at.BANDS] = -1
        flts[at.ORIGIN] = flts[at.NOW] = start
        flts[at.WIDTH] = 1.0
        flts[at.LEASE_TIME] = lease
        flts[at.NEAR_LEVEL] = flts[at.FAR_LEVEL] = math.inf
        self.state = State(
            rec=np.zeros(0, dtype=at.PAGE),
            near_id=np.zeros(at.LEAST_NEAR, dtype=np.int32),
            near_val=np.zeros(at.LEAST_NEAR),
            near_bound=np.zeros(0, dtype=at.BOUND),
            blocks=np.zeros((64, at.BLOCK_WIDTH), dtype=np.int32),
            heads=np.zeros(0, dtype=np.int32),
            wheel=np.zeros(0, dtype=np.int32),
            ints=ints,
            flts=flts,
            extra=np.zeros((0, 0)),
            host=np.zeros(0, dtype=np.int32),
            hosts=np.zeros((0, at.N_HOST)),
            log=np.zeros(64, dtype=at.SIGNAL),
            log_heads=np.full(64, -1, dtype=np.int32),
            log_weight=np.zeros(0),
            leases=np.zeros(64, dtype=at.LEASE),
            kin=np.zeros(0, dtype=at.KIN),
            groups=np.zeros((0, at.N_GROUP)),
            paces=np.zeros((0, 4 * at.BINS), dtype=np.float32),
            buckets=np.zeros((0, at.BUCKETS + 1), dtype=np.int32),
        )
        self._new_wheel(0)

    @property
    def state(self) -> State:
        """All arrays."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        self.header = state.ints
        for k, array in enumerate(state):
            place = at.PLACES + 3 * k
            self.header[place : place + 1 + array.ndim] = array.ctypes.data, *array.shape

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.state)

    def set_pace(self, budget: float | None, change_rate: NDArray[np.float64]) -> None:
        """Choose the width of a tick: half the time between two crawls. Only while nothing is asleep."""
        state = self.state
        if state.ints[at.N_ASLEEP]:
            return
        n = max(int(state.ints[at.ALIVE]), 1)
        active = change_rate[change_rate > 0]
        cycle = n / budget if budget else (1.0 / float(np.median(active)) if len(active) else 1.0)
        state.flts[at.WIDTH] = cycle / (2 * n)
        state.flts[at.ORIGIN] = state.flts[at.NOW]
        state.ints[at.CLOCK] = 0
        self._new_wheel(len(state.rec))

    def append(self, n: int) -> NDArray[np.int64]:
        """Room for n more pages; their ids."""
        state = self.state
        first = int(state.ints[at.N_PAGES])
        if first + n > at.MOST_IDS:
            raise ParameterError(f"{first + n} pages: a scheduler holds at most {at.MOST_IDS} ids")
        if first + n > len(state.rec):
            size = max(first + n, 2 * first if n < first else 0)
            rec = np.zeros(size, dtype=at.PAGE)
            rec[:first] = state.rec[:first]
            extra = state.extra
            if any(state.ints[p] >= 0 for p in (at.COST, at.EVIDENCE, at.FLOOR, at.EXPONENT)):
                extra = np.zeros((len(extra), size))
                extra[:, :first] = state.extra[:, :first]
            host = state.host
            if len(host):
                host = np.full(size, -1, dtype=np.int32)
                host[:first] = state.host[:first]
            kin = _unrelated(size, state.kin[:first]) if state.flts[at.SPAN] > 0 else state.kin
            self.state = state._replace(rec=rec, extra=extra, host=host, kin=kin)
            self._widen_wheel(size)
        self.state.ints[at.N_PAGES] = first + n
        self.state.ints[at.ALIVE] += n
        return np.arange(first, first + n, dtype=np.int64)

    def _new_wheel(self, room: int) -> None:
        """An empty wheel whose slots, which each may leave a chunk part empty, are few beside the pages."""
        bits = next((bits for bits in (12, 9) if room >= _PAGES_PER_SLOT << bits), 6)
        wheels = at.HORIZON // bits
        heads = np.full(wheels << bits, -1, dtype=np.int32)
        self.state = self.state._replace(heads=heads, wheel=np.zeros(0, dtype=np.int32))
        for place, value in ((at.WHEEL_BITS, bits), (at.N_WHEELS, wheels), (at.FREE_CHUNK, -1)):
            self.state.ints[place] = value
        self._widen_wheel(room)

    def _widen_wheel(self, room: int) -> None:
        """As many chunks as so many pages can ever fill: all of a slot are full but the last."""
        state = self.state
        before = len(state.wheel)
        wheel = _larger(state.wheel, at.CHUNK * (room // (at.CHUNK - at.FIRST) + len(state.heads)))
        if len(wheel) == before:
            return
        wheel[before :: at.CHUNK] = np.arange(before + at.CHUNK, len(wheel) + at.CHUNK, at.CHUNK)
        wheel[-at.CHUNK] = state.ints[at.FREE_CHUNK]
        state.ints[at.FREE_CHUNK] = before
        self.state = state._replace(wheel=wheel)

    def optional(self, place: int, default: float) -> NDArray[np.float64]:
        """The row of an optional column, made on first use."""
        state = self.state
        row = int(state.ints[place])
        if row < 0:
            n = len(state.rec)
            used = sum(int(state.ints[p]) >= 0 for p in (at.COST, at.EVIDENCE, at.FLOOR, at.EXPONENT))
            extra = np.zeros((used + 1, n))
            if used:
                extra[:used] = state.extra[:used]
            extra[used] = default
            self.state = state._replace(extra=extra)
            self.state.ints[place] = row = used
        column: NDArray[np.float64] = self.state.extra[row]
        return column

    def grow(self, what: int) -> None:
        """Make the array larger (or smaller) that a kernel asked for."""
        state = self.state
        state.ints[at.WANTED] = at.DONE
        if what == at.GROW_NEAR:
            room = 2 * len(state.near_id)
            self._resize_near(room)
        elif what == at.FIT_NEAR:
            room = max(len(state.near_id) * 2 // 3, int(state.ints[at.N_NEAR]) + 1)  # more may be near since
            self._resize_near(room)
        elif what == at.GROW_BLOCKS:
            need = int(state.ints[at.N_NEAR]) // at.BLOCK + len(state.hosts) + 2 * at.BANDS
            used = int(state.ints[at.N_BLOCKS] - state.ints[at.N_FREE_BLOCKS])
            room = max(len(state.blocks) * 5 // 4 + 1, used + need)
            self.state = state._replace(blocks=_larger(state.blocks, room))
        elif what == at.FIT_LOG:
            self._fit_log()
        else:
            self.state = state._replace(leases=_larger(state.leases, 2 * len(state.leases)))

    def _resize_near(self, room: int) -> None:
        state, n = self.state, int(self.state.ints[at.N_NEAR])
        bounded = room if len(state.kin) or state.flts[at.SPAN] else 0
        self.state = state._replace(
            near_id=_larger(state.near_id[:n], room),
            near_val=_larger(state.near_val[:n], room),
            near_bound=_larger(state.near_bound[:n], bounded),
        )

    def _fit_log(self) -> None:
        """A log with room for the signals that are to come, and an eighth more."""
        old = self.state
        room = max(int(old.ints[at.LOG_ROOM]) * 9 // 8, 64)
        self.state = old._replace(
            log=np.zeros(room, dtype=at.SIGNAL),
            log_heads=np.full(room, -1, dtype=np.int32),
            log_weight=np.zeros(room if old.ints[at.EXPONENT] >= 0 else 0),
        )
        refill_log(self.header, old.log, old.log_weight)

    def add_hosts(self, n: int) -> None:
        """Room for more hosts, each without limits."""
        hosts = np.zeros((n, at.N_HOST))
        hosts[:, at.H_UNTIL] = -math.inf
        hosts[:, at.H_LIMIT] = math.inf
        hosts[:, at.H_HEAD] = -1
        self.state = self.state._replace(hosts=np.concatenate([self.state.hosts, hosts]))

    def set_hosts(self, rows: NDArray[np.int64], hosts: NDArray[np.int32]) -> None:
        """Say which host pages are on."""
        if len(self.state.host) == 0:
            self.state = self.state._replace(host=np.full(len(self.state.rec), -1, dtype=np.int32))
        running = self.state.hosts[:, at.H_RUNNING]
        leased = self.state.rec["state"][rows] == at.LEASED
        before = self.state.host[rows][leased]
        np.subtract.at(running, before[before >= 0], 1)
        np.add.at(running, hosts[leased & (hosts >= 0)], 1)
        self.state.host[rows] = hosts

    def relate(self, span: float) -> None:
        """Let pages have siblings and bursts from now on, groups with bins of a width."""
        if not 0 < span < math.inf:
            raise ParameterError(f"span is {span}: must be finite and above 0")
        if self.state.flts[at.SPAN] == 0:
            self.state = self.state._replace(kin=_unrelated(len(self.state.rec), self.state.kin))
        if self.state.flts[at.SPAN] != span:
            self.state.groups[:, at.G_NEWEST] = -math.inf
        self.state.flts[at.SPAN] = span
        if len(self.state.near_bound) == 0:
            self._resize_near(len(self.state.near_id))
            self.state.near_bound["at"] = self.state.near_bound["until"] = -math.inf

    def set_season(self, clock: NDArray[np.float64] | None, hour: float) -> None:
        """The clock of a week by which pages change; None: an even one."""
        flts = self.state.flts
        flts[at.HOUR] = 0.0 if clock is None else hour
        if clock is not None:
            flts[at.SEASON : at.SEASON + at.HOURS + 1] = clock
            flts[at.STEEPEST] = np.diff(clock).max()

    def add_groups(self, n: int) -> None:
        """Room for at least so many groups, new ones without a past."""
        have = len(self.state.groups)
        if n <= have:
            return
        room = max(n, have * 3 // 2, 16)
        groups, buckets = _larger(self.state.groups, room), _larger(self.state.buckets, room)
        groups[have:, at.G_NEWEST] = -math.inf
        buckets[have:] = -1
        self.state = self.state._replace(groups=groups, buckets=buckets, paces=_larger(self.state.paces, room))

    def hold(self, host: int, until: float) -> None:
        """See `Scheduler.hold`."""
        self.state.hosts[host, at.H_UNTIL] = until

    def limit_host(self, host: int, spacing: float | None, concurrency: int | None) -> None:
        """See `Scheduler.host`."""
        if spacing is not None:
            self.state.hosts[host, at.H_SPACING] = spacing
        if concurrency is not None:
            self.state.hosts[host, at.H_LIMIT] = concurrency

    def set_delay(self, delays: ArrayLike, shares: ArrayLike) -> None:
        """Delays of signals and how probable each is."""
        times, parts = np.asarray(delays, dtype=np.float64), np.asarray(shares, dtype=np.float64)
        if times.shape != parts.shape or times.ndim != 1 or not 0 < len(times) <= _MOST_DELAYS:
            raise ParameterError(f"delay: two lists of one length, at most {_MOST_DELAYS}, are needed")
        if not ((times >= 0).all() and (np.diff(times) >= 0).all() and np.isfinite(times).all()):
            raise ParameterError("delay: times must be finite, at least 0 and sorted")
        if not ((parts >= 0).all() and abs(parts.sum() - 1) < 1e-9):
            raise ParameterError("delay: probabilities must be at least 0 and add up to 1")
        k = len(times)
        self.optional(at.EXPONENT, 0.0)
        self.state.ints[at.N_DELAYS] = k
        self.state.flts[at.DELAY_AT : at.DELAY_AT + k] = times
        self.state.flts[at.DELAY_SHARE : at.DELAY_SHARE + k] = parts

    def saved(self) -> dict[str, NDArray[Any]]:
        """Copies of all arrays, without where they lie."""
        arrays: dict[str, NDArray[Any]] = {name: array.copy() for name, array in self.state._asdict().items()}
        arrays["ints"][at.PLACES :] = 0
        return arrays

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over copies of saved arrays."""
        kinds: list[tuple[str, Any]] = [(name, kind[0]) for name, kind in zip(State._fields, at.DTYPES, strict=True)]
        self.state = State(**{name: np.array(arrays[name], dtype, order="C") for name, dtype in kinds})

    __getstate__, __setstate__ = saved, load  # a copy must not keep the addresses of its original


def _unrelated(room: int, kin: NDArray[Any]) -> NDArray[Any]:
    larger = np.zeros(room, dtype=at.KIN)
    for name in ("group", "next", "prev", "bucket"):
        larger[name] = -1
    larger["changed_at"] = -math.inf
    larger[: len(kin)] = kin
    return larger


def _larger(array: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
