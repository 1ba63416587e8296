"""One page: its state, its host, what is kept with it."""

from typing import Any

import numpy as np

from recrawl._compile.jit import inline
from recrawl.schedule.exact.kernels.state.view import prefetch
from recrawl.schedule.exact.layout import State

_int64: Any = np.int64


@inline
def whole(i: int) -> int:
    """A number that is kept in 32 bits as one of 64: each kernel is then compiled for one kind of ids."""
    number: int = _int64(i)
    return number


@inline
def set_state(s: State, i: int, state: int) -> None:
    """Change a page's state."""
    s.rec[i].state = state


@inline
def state_of(s: State, i: int) -> int:
    """A page's state."""
    return int(s.rec[i].state)


@inline
def host_of(s: State, i: int) -> int:
    """A page's host, −1 for none."""
    return int(s.host[i]) if s.host.size > 0 else -1


@inline
def forget_bounds(s: State, i: int) -> None:
    """Forget below which exponent a page stays far: its parameters or the levels have changed."""
    s.rec[i].least = 0.0


@inline
def fetch_page(s: State, i: int) -> None:
    """Load the rows of a page into the cache."""
    prefetch(s.rec, i)
    if s.source.size > 0:
        prefetch(s.source, i)
    if s.member.size > 0:
        prefetch(s.member, i)
        prefetch(s.extra[max(s.head[0].evidence_row, 0)], i)
