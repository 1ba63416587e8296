"""Pages whose belief is a small mixture: where their components lie, and how they come and go.

A page's components are COMPONENTS rows of `State.mixtures`; those that it does not need have a weight of 0. The
optional column `mixture` has their number, from 1 on. Free ones are chained: the weight −1 in the first row, then the
number of the next free one.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.model.kernels.mixture import (
    components_doubt,
    components_elapsed,
    components_growth,
    components_value,
)
from recrawl.schedule.exact.kernels.state.pages import forget_bounds
from recrawl.schedule.exact.kernels.state.view import Header, opened
from recrawl.schedule.exact.layout import COMPONENTS, State

FREE = -1.0  # weight in the first row of a free mixture


@inline
def mixture_of(s: State, i: int) -> int:
    """The number of a page's mixture, from 1 on; 0: it has none."""
    return int(s.extra[s.head[0].mixture_row, i]) if s.head[0].mixture_row >= 0 else 0


@jit_lean
def mixture_value(s: State, mixture: int, time: float) -> float:
    """V per unit of importance at a clock time since the fetch."""
    return components_value(s.mixtures[(mixture - 1) * COMPONENTS : mixture * COMPONENTS], time)


@jit_lean
def mixture_doubt(s: State, mixture: int, time: float, heard: bool) -> float:
    """−ln P(fresh) at a clock time since the fetch, with or without what the signals since then say."""
    return components_doubt(s.mixtures[(mixture - 1) * COMPONENTS : mixture * COMPONENTS], time, heard)


@jit_lean
def mixture_growth(s: State, mixture: int, time: float) -> tuple[float, float]:
    """(V, at most its slope) as `components_growth` says."""
    return components_growth(s.mixtures[(mixture - 1) * COMPONENTS : mixture * COMPONENTS], time)


@jit_lean
def mixture_elapsed(s: State, mixture: int, time: float, known: float, goal: float) -> float:
    """A clock time, at least `time`, up to which V stays below a goal; V is known now, or negative."""
    return components_elapsed(s.mixtures[(mixture - 1) * COMPONENTS : mixture * COMPONENTS], time, known, goal)


@jit_lean
def drop_components(s: State, i: int) -> None:
    """A page has no mixture any more; the caller places it again."""
    mixture = mixture_of(s, i)
    if mixture == 0:
        return
    first = (mixture - 1) * COMPONENTS
    s.mixtures[first, 0] = FREE
    s.mixtures[first, 1] = s.head[0].free_mixture
    s.head[0].free_mixture = mixture
    s.head[0].n_free_mixtures += 1
    s.extra[s.head[0].mixture_row, i] = 0.0
    forget_bounds(s, i)


@inline
def _new_mixture(s: State) -> int:
    """A free number; there must be room."""
    mixture = s.head[0].free_mixture
    if mixture > 0:
        s.head[0].free_mixture = int(s.mixtures[(mixture - 1) * COMPONENTS, 1])
        s.head[0].n_free_mixtures -= 1
        return int(mixture)
    s.head[0].n_mixtures += 1
    return int(s.head[0].n_mixtures)


@jit_lean
def write_components(s: State, i: int, components: NDArray[np.float64]) -> None:
    """Give a page components, at most COMPONENTS rows; none: its own parameters hold again.

    There must be room for a further mixture. The caller places the page again.
    """
    if components.shape[0] == 0:
        drop_components(s, i)
        return
    mixture = mixture_of(s, i)
    if mixture == 0:
        mixture = _new_mixture(s)
        s.extra[s.head[0].mixture_row, i] = mixture
    first = (mixture - 1) * COMPONENTS
    for m in range(COMPONENTS):
        for k in range(s.mixtures.shape[1]):
            s.mixtures[first + m, k] = components[m, k] if m < components.shape[0] else 0.0
    forget_bounds(s, i)


@jit_lean
def write_all(header: Header, ids: NDArray[np.int64], components: NDArray[np.float64], each: int) -> None:
    """Give each page the next `each` rows of components, or all the same where there are no more."""
    s = opened(header)
    for k in range(ids.size):
        first = k * each if components.shape[0] > each else 0
        write_components(s, ids[k], components[first : first + each])
