"""Memory: the arrays of a scheduler, how they start, grow, are saved, and check themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl._compile.first_use import grown
from recrawl.errors import ParameterError
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.kernels.state.signal_log import refill_log
from recrawl.schedule.exact.layout import State

assert at.HEAD.fields is not None
_NOW, _THRESHOLD = at.HEAD.fields["now"][1] // 8, at.HEAD.fields["threshold"][1] // 8  # numbers of the header
_PAGES_PER_SLOT = 128  # at least, in one wheel if all were in it


class Memory:
    """Holds the current `State` and replaces its arrays when they must grow."""

    def __init__(self, start: float, lease: float) -> None:
        if not (lease > 0):
            raise ParameterError(f"lease is {lease}: must be above 0")
        state = at.empty_state()
        head = state.head[0]
        head["origin"] = head["now"] = start
        head["width"] = 1.0
        head["lease_time"] = lease
        head["near_level"] = head["far_level"] = math.inf
        self.state = state
        self._new_wheel(0)

    @property
    def state(self) -> State:
        """All arrays."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        self.header: at.Header = state.head.view(np.int64)
        self._floats = state.head.view(np.float64)
        for name, array in state._asdict().items():
            place = at.place_of(name)
            self.header[place : place + 1 + array.ndim] = array.ctypes.data, *array.shape

    @property
    def now(self) -> float:
        """The largest time seen."""
        return self._floats.item(_NOW)

    @property
    def threshold(self) -> float:
        """The smallest value of the last pick."""
        return self._floats.item(_THRESHOLD)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.state)

    def set_tick(self, budget: float | None, change_rate: NDArray[np.float64]) -> None:
        """Choose the width of a tick: half the time between two crawls. Only while nothing is asleep."""
        state = self.state
        if state.head[0]["n_asleep"]:
            return
        n = max(int(state.head[0]["n_alive"]), 1)
        active = change_rate[change_rate > 0]
        cycle = n / budget if budget else (1.0 / float(np.median(active)) if len(active) else 1.0)
        state.head[0]["width"] = cycle / (2 * n)
        state.head[0]["origin"] = state.head[0]["now"]
        state.head[0]["clock"] = 0
        if not self._has_empty_wheel(len(state.rec)):
            self._new_wheel(len(state.rec))

    def append(self, n: int) -> NDArray[np.int64]:
        """Room for n more pages; their ids."""
        state = self.state
        first = int(state.head[0]["n_pages"])
        if first + n > at.MOST_IDS:
            raise ParameterError(f"{first + n} pages: a scheduler holds at most {at.MOST_IDS} ids")
        grown(first + n)
        if first + n > len(state.rec):
            size = max(first + n, 2 * first if n < first else 0)
            del state  # each column is let go before the next one grows
            self._widen_pages(size)
            self._widen_wheel(size)
        if self.state.head[0]["span"] > 0:
            _clear_members(self.state.member[first : first + n])
        self.state.head[0]["n_pages"] = first + n
        self.state.head[0]["n_alive"] += n
        return np.arange(first, first + n, dtype=np.int64)

    def _widen_pages(self, size: int) -> None:
        """Room for so many pages in every column, one after the other."""
        self.state = self.state._replace(rec=_larger(self.state.rec, size))
        if len(self.state.source):
            self.state = self.state._replace(source=_larger(self.state.source, size))
        if self._optional_columns():
            extra = np.zeros((len(self.state.extra), size))
            extra[:, : self.state.extra.shape[1]] = self.state.extra
            self.state = self.state._replace(extra=extra)
            del extra
        if len(self.state.host):
            host = np.full(size, -1, dtype=np.int32)
            host[: len(self.state.host)] = self.state.host
            self.state = self.state._replace(host=host)
        if self.state.head[0]["span"] > 0:
            self.state = self.state._replace(member=_larger(self.state.member, size))

    def _has_empty_wheel(self, room: int) -> bool:
        """Whether the wheel is empty and has the size for so many pages: single pages are added without a new one."""
        state = self.state
        size = at.CHUNK * (room // (at.CHUNK - at.FIRST) + len(state.slots))
        fits = int(state.head[0]["wheel_bits"]) == _wheel_bits(room) and len(state.wheel) == size
        return fits and bool((state.slots == -1).all())

    def _new_wheel(self, room: int) -> None:
        """An empty wheel whose slots, which each may leave a chunk part empty, are few beside the pages."""
        bits = _wheel_bits(room)
        wheels = at.HORIZON // bits
        slots = np.full(wheels << bits, -1, dtype=np.int32)
        self.state = self.state._replace(slots=slots, wheel=np.zeros(0, dtype=np.int32))
        for name, value in (("wheel_bits", bits), ("n_wheels", wheels), ("free_chunk", -1)):
            self.state.head[name] = value
        self._widen_wheel(room)

    def _widen_wheel(self, room: int) -> None:
        """As many chunks as so many pages can ever fill: all of a slot are full but the last."""
        state = self.state
        before = len(state.wheel)
        wheel = _larger(state.wheel, at.CHUNK * (room // (at.CHUNK - at.FIRST) + len(state.slots)))
        if len(wheel) == before:
            return
        wheel[before :: at.CHUNK] = np.arange(before + at.CHUNK, len(wheel) + at.CHUNK, at.CHUNK)
        wheel[-at.CHUNK] = state.head[0]["free_chunk"]
        state.head[0]["free_chunk"] = before
        self.state = state._replace(wheel=wheel)

    def _optional_columns(self) -> int:
        """How many optional columns are in use."""
        return len(self.optional_rows())

    def optional_rows(self) -> list[int]:
        """The rows of the optional columns that are in use."""
        rows = (int(self.state.head[f"{name}_row"][0]) for name in at.OPTIONAL)
        return [row for row in rows if row >= 0]

    def optional(self, name: str, default: float) -> NDArray[np.float64]:
        """An optional column, made on first use."""
        state = self.state
        row = int(state.head[f"{name}_row"][0])
        if row < 0:
            row = self._optional_columns()
            extra = np.zeros((row + 1, len(state.rec)))
            if row:
                extra[:row] = state.extra[:row]
            extra[row] = default
            self.state = state._replace(extra=extra)
            self.state.head[f"{name}_row"] = row
        column: NDArray[np.float64] = self.state.extra[row]
        return column

    def use_sources(self) -> None:
        """Room for what is believed of the signals of each page; pages have none until it is written."""
        if len(self.state.source) == 0:
            source = np.zeros(len(self.state.rec), at.SOURCE)
            source["missed"] = self.state.rec["change_rate"]
            self.state = self.state._replace(source=source)

    def grow(self, what: int) -> None:
        """Make the array larger (or smaller) that a kernel asked for."""
        state = self.state
        state.head[0]["wanted"] = at.DONE
        if what == at.GROW_NEAR:
            room = 2 * len(state.near_id)
            self._resize_near(room)
        elif what == at.FIT_NEAR:
            room = max(len(state.near_id) * 2 // 3, int(state.head[0]["n_near"]) + 1)  # more may be near since
            self._resize_near(room)
        elif what == at.GROW_BLOCKS:
            need = int(state.head[0]["n_near"]) // at.BLOCK + len(state.hosts) + 2 * at.BANDS
            used = int(state.head[0]["n_blocks"] - state.head[0]["n_free_blocks"])
            room = max(len(state.blocks) * 5 // 4 + 1, used + need)
            self.state = state._replace(blocks=_larger(state.blocks, room))
        elif what == at.FIT_LOG:
            self._fit_log()
        else:
            self.state = state._replace(leases=_larger(state.leases, 2 * len(state.leases)))

    def _resize_near(self, room: int) -> None:
        state, n = self.state, int(self.state.head[0]["n_near"])
        bounded = room if len(state.member) or state.head[0]["span"] else 0
        self.state = state._replace(
            near_id=_larger(state.near_id[:n], room),
            near_val=_larger(state.near_val[:n], room),
            near_bound=_larger(state.near_bound[:n], bounded),
        )

    def _fit_log(self) -> None:
        """A log with room for the signals that are to come, and an eighth more."""
        old = self.state
        room = max(int(old.head[0]["log_room"]) * 9 // 8, 64)
        self.state = old._replace(
            log=np.zeros(room, dtype=at.SIGNAL),
            log_heads=np.full(room, -1, dtype=np.int32),
            log_weight=np.zeros(room if max(old.head[0]["exponent_row"], old.head[0]["mixture_row"]) >= 0 else 0),
        )
        refill_log(self.header, old.log, old.log_weight)

    def add_hosts(self, n: int) -> None:
        """Room for more hosts, each without limits."""
        hosts = np.zeros(n, dtype=at.HOST)
        hosts["until"], hosts["limit"], hosts["head"] = -math.inf, math.inf, -1
        self.state = self.state._replace(hosts=np.concatenate([self.state.hosts, hosts]))

    def set_hosts(self, rows: NDArray[np.int64], hosts: NDArray[np.int32]) -> None:
        """Say which host pages are on."""
        if len(self.state.host) == 0:
            self.state = self.state._replace(host=np.full(len(self.state.rec), -1, dtype=np.int32))
        running = self.state.hosts["running"]
        leased = self.state.rec["state"][rows] == at.LEASED
        before = self.state.host[rows][leased]
        np.subtract.at(running, before[before >= 0], 1)
        np.add.at(running, hosts[leased & (hosts >= 0)], 1)
        self.state.host[rows] = hosts

    def relate(self, span: float, memory: float) -> None:
        """Let pages follow clocks from now on; those of another width of bins start again."""
        for name, value in (("span", span), ("memory", memory)):
            if not 0 < value < math.inf:
                raise ParameterError(f"{name} is {value}: must be finite and above 0")
        if self.state.head[0]["span"] == 0:
            before = len(self.state.member)
            self.state = self.state._replace(member=_larger(self.state.member, len(self.state.rec)))
            _clear_members(self.state.member[before : int(self.state.head[0]["n_pages"])])
        if self.state.head[0]["span"] != span:
            self.state.groups["newest"] = -math.inf
        self.state.head["span"], self.state.head["memory"] = span, memory
        if len(self.state.near_bound) == 0:
            self._resize_near(len(self.state.near_id))
            self.state.near_bound["at"], self.state.near_bound["room"] = -math.inf, -1.0

    def add_groups(self, n: int) -> None:
        """Room for at least so many clocks; new ones were never published."""
        have = len(self.state.groups)
        if n <= have:
            return
        room = max(n, have * 3 // 2, 16)
        groups, buckets = _larger(self.state.groups, room), _larger(self.state.buckets, room)
        groups["newest"][have:] = -math.inf
        groups["tail"][have:] = 1.0
        buckets[have:] = -1
        self.state = self.state._replace(groups=groups, buckets=buckets, bins=_larger(self.state.bins, room))

    def add_mixtures(self, n: int) -> None:
        """Room for so many more mixtures."""
        if self.state.head[0]["objective"] != 0:
            raise ParameterError("components: mixtures are known for the objective 'freshness' only")
        self.optional("mixture", 0.0)
        head, have = self.state.head[0], len(self.state.mixtures) // at.COMPONENTS
        need = int(head["n_mixtures"] - head["n_free_mixtures"]) + n
        if need > have:
            room = at.COMPONENTS * max(need, have * 3 // 2)
            self.state = self.state._replace(mixtures=_larger(self.state.mixtures, room))

    def hold(self, host: int, until: float) -> None:
        """See `Scheduler.hold`."""
        self.state.hosts[host]["until"] = until

    def limit_host(self, host: int, spacing: float | None, concurrency: int | None) -> None:
        """See `Scheduler.host`."""
        if spacing is not None:
            self.state.hosts[host]["spacing"] = spacing
        if concurrency is not None:
            self.state.hosts[host]["limit"] = concurrency

    def set_delay(self, delays: ArrayLike, shares: ArrayLike) -> None:
        """Delays of signals and how probable each is."""
        times, parts = np.asarray(delays, dtype=np.float64), np.asarray(shares, dtype=np.float64)
        if times.shape != parts.shape or times.ndim != 1 or not 0 < len(times) <= at.MOST_DELAYS:
            raise ParameterError(f"delay: two lists of one length, at most {at.MOST_DELAYS}, are needed")
        if not ((times >= 0).all() and (np.diff(times) >= 0).all() and np.isfinite(times).all()):
            raise ParameterError("delay: times must be finite, at least 0 and sorted")
        if not ((parts >= 0).all() and abs(parts.sum() - 1) < 1e-9):
            raise ParameterError("delay: probabilities must be at least 0 and add up to 1")
        k = len(times)
        self.optional("exponent", 0.0)
        self.state.head["n_delays"] = k
        self.state.delays["at"][:k], self.state.delays["share"][:k] = times, parts

    def saved(self) -> dict[str, NDArray[Any]]:
        """All arrays, without room for more pages; that of the head is a copy without addresses."""
        arrays: dict[str, NDArray[Any]] = {**self.state._asdict(), "head": self.state.head.copy()}
        arrays["head"]["places"] = 0
        n = int(self.state.head[0]["n_pages"])
        arrays |= {name: arrays[name][:n] for name in ("rec", "host", "member", "source")}
        return {**arrays, "extra": self.state.extra[:, :n]}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over copies of saved arrays."""
        self.state = State(**{name: np.array(arrays[name], held.dtype, order="C") for name, held in at.SCHEMA.items()})

    __getstate__, __setstate__ = saved, load  # a copy must not keep the addresses of its original


def _clear_members(members: NDArray[Any]) -> None:
    """Let members be in no group."""
    for name in ("group", "next", "prev", "bucket"):
        members[name] = -1


def _wheel_bits(room: int) -> int:
    """The bits of a slot's number in one wheel."""
    return next((bits for bits in (12, 9) if room >= _PAGES_PER_SLOT << bits), 6)


def _larger(array: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
