"""Where the traces of a comparison come from: worlds, drawn for each repetition, or windows of recorded traces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import numpy as np

from recrawl.errors import ParameterError, unknown
from recrawl.simulate.trace import Trace
from recrawl.simulate.traces.control import control_name, poisson_control
from recrawl.simulate.traces.recorded import read_trace
from recrawl.simulate.worlds.worlds import world, world_names

_MOST_PAGES = 10**8  # of a world
_LONGEST = 1e6  # days of a world, and requests of its readers per day


@dataclass(frozen=True)
class Drawn:
    """Traces of a world, ``days`` long after ``warm`` days that do not count; a day is its unit of time.

    Readers ask for a page as Poisson(``readers`` · importance).
    """

    world: str
    n_pages: int = 1000
    days: float = 100.0
    warm: float = 0.0
    readers: float = 0.0

    def __post_init__(self) -> None:
        if self.world not in world_names():
            raise unknown("world", self.world, world_names())
        if self.n_pages < 1:
            raise ParameterError(f"pages is {self.n_pages}: at least one page is needed")
        if self.n_pages > _MOST_PAGES:
            raise ParameterError(f"pages is {self.n_pages}: must be at most {_MOST_PAGES}")
        for name, least in (("days", 1e-9), ("warm", 0.0), ("readers", 0.0)):
            if not least <= getattr(self, name) < np.inf:
                raise ParameterError(
                    f"{name} is {getattr(self, name):g}: must be finite and {'above' if least else 'at least'} 0"
                )
            if getattr(self, name) > _LONGEST:
                raise ParameterError(f"{name} is {getattr(self, name):g}: must be at most {_LONGEST:g}")

    @property
    def label(self) -> dict[str, str]:
        """Its name in results."""
        return {"world": self.world}

    def trace(self, rng: np.random.Generator) -> Trace:
        """A new trace."""
        return world(self.world, self.n_pages, requests=self.readers).draw(self.warm + self.days, rng)


@dataclass(frozen=True)
class Recorded:
    """A window of a recorded trace, ``days`` from ``start`` on (None: the last ones), and ``warm`` days before it.

    With ``poisson``, its Poisson control, drawn again for each repetition.
    """

    folder: Path
    days: float = 365.0
    warm: float = 0.0
    start: str | None = None
    poisson: bool = False

    @property
    def label(self) -> dict[str, str]:
        """Its name in results."""
        name = self.folder.resolve().name
        return {"trace": control_name(name) if self.poisson else name}

    def trace(self, rng: np.random.Generator) -> Trace:
        """The same trace every time, or a new control."""
        trace = read_trace(self.folder, start=self.start, days=self.days, warm=self.warm)
        return poisson_control(trace, rng) if self.poisson else trace


Source = Drawn | Recorded


def count_from(source: Source, trace: Trace) -> float:
    """When counting begins."""
    return trace.start + source.warm * trace.day


def live_pages(source: Source, trace: Trace) -> float:
    """Pages that exist at a time, on average, while it counts."""
    begin = count_from(source, trace)
    seen = np.maximum(trace.deleted_at - np.maximum(trace.created_at, begin), 0.0)
    return float(seen.sum() / (trace.end - begin))


@lru_cache(maxsize=1)
def trace_of(source: Source, seed: int, repetition: int) -> Trace:
    """The trace of a repetition: the same for every policy and budget, in any process."""
    trace = source.trace(rng_of(source, seed, repetition, 0))
    if len(trace.changed_at) == 0:
        raise ParameterError(f"{trace.name}: no page changes in this time")
    return trace


def rng_of(source: Source, seed: int, repetition: int, purpose: int) -> np.random.Generator:
    """Random numbers that depend on nothing but these."""
    name = crc32(next(iter(source.label.values())).encode())
    return np.random.default_rng(np.random.SeedSequence([seed, name, repetition, purpose]))
