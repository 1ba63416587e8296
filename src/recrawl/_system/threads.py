"""Long work in a thread of its own, while an event loop goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future


async def in_thread(work: Callable[[], None], name: str) -> None:
    """Do work in a thread, and raise what it raises. The thread does not keep the program from ending."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            work()
        except BaseException as problem:
            done.set_exception(problem)
        else:
            done.set_result(None)

    threading.Thread(target=run, name=name, daemon=True).start()
    await asyncio.wrap_future(done)
