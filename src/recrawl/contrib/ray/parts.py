"""Work on parts of a table by the processes of a Ray cluster: each holds one part at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from recrawl.errors import RecrawlError

T = TypeVar("T")

_TRIES = 3  # of a part whose process or machine was lost


def mapped(work: Callable[[T], Any], parts: Sequence[T], at_once: int) -> list[Any]:
    """What ``work`` returns for each part, in their order; at most so many parts are worked on at a time.

    Files must be at the same place on all machines. A part whose machine is lost is given to another.
    """
    call = ray.remote(max_retries=_TRIES, num_cpus=1)(_call)
    answers: dict[int, Any] = {}
    running: dict[Any, int] = {}
    left = list(enumerate(parts))[::-1]
    while left or running:
        while left and len(running) < at_once:
            k, part = left.pop()
            running[call.remote(work, part)] = k
        (done,), _ = ray.wait(list(running), num_returns=1)
        answers[running.pop(done)] = _answer(done)
    return [answers[k] for k in range(len(parts))]


def _call(work: Callable[[T], Any], part: T) -> Any:
    return work(part)


def _answer(done: Any) -> Any:
    try:
        return ray.get(done)
    except RayTaskError as problem:
        raise problem.cause from None
    except RayError as problem:
        raise RecrawlError(f"a part was lost: {type(problem).__name__}") from None
