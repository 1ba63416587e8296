"""Run a kernel over all pages in chunks, on all cores; the result does not depend on how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

LIGHT, HEAVY = 1 << 16, 1 << 13  # pages in a chunk: where a page takes nanoseconds, where it takes tens of them or more


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_cores(), thread_name_prefix="recrawl")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunks(kernel: Callable[..., Any], n: int, size: int, *args: Any) -> list[Any]:
    """kernel(start, stop, *args) for every chunk of 0 … n, in order. Kernels release the interpreter lock."""
    starts = range(0, n, size)
    if len(starts) == 1:
        return [kernel(0, n, *args)]
    return list(_pool().map(lambda start: kernel(start, min(start + size, n), *args), starts))
