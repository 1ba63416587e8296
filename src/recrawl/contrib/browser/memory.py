"""Memory of the browser: processes that take too much are ended, where the system says what they take (Linux).

The limit of JavaScript's heap does not count buffers, images and the document itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import suppress
from pathlib import Path

from recrawl.logs import event

log = logging.getLogger(__name__)
_PROC = Path("/proc")
_LOOK = 0.1  # seconds between two looks
_MIB = 1 << 20


async def watch(pid: int, limit: int) -> None:
    """End processes of the browser ``pid`` that take more than ``limit`` MiB, until this is cancelled."""
    while True:
        for one in end_large(pid, limit):
            event(log, logging.WARNING, "browser.too_large", process=one, limit=limit)
        await asyncio.sleep(_LOOK)


def end_large(pid: int, limit: int) -> list[int]:
    """End a process and those that it has started, each if it takes more than ``limit`` MiB; which were ended."""
    large = [one for one in family(pid) if own_memory(one) > limit * _MIB]
    for one in large:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    return large


def family(pid: int) -> list[int]:
    """A process and those that it has started, directly or not; those that are gone are left out."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for thread in (_PROC / str(one) / "task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def own_memory(pid: int) -> int:
    """Bytes of a process that are in memory and in no file; 0 if it is gone or the system does not say."""
    try:
        _, resident, shared, *_ = (_PROC / str(pid) / "statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
