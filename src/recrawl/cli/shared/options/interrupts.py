"""What signals do: SIGTERM and Ctrl-C stop a command after the work at hand; SIGHUP reads the settings again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_STDERR = 2


class Stoppable(Protocol):
    """A crawler, or a worker of a cluster."""

    def stop(self) -> None:
        """Start no more crawls."""


def stop_on_signals(crawler: Stoppable) -> None:
    """Stop a running crawl on SIGTERM and SIGINT. Call it inside the crawl's event loop."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, crawler.stop)


def note_hangups() -> list[bool]:
    """Note SIGHUP for `reload_on_hangup`, so that it does not end a command that is still loading.

    A command on a terminal ends with it. Call it inside the event loop.
    """
    noted: list[bool] = []
    if not os.isatty(_STDERR):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, noted.append, True)
    return noted


def reload_on_hangup(reload: Callable[[], Awaitable[object]], stop: Callable[[], None], noted: Sequence[bool]) -> None:
    """Call ``reload`` on SIGHUP, or ``stop`` if the terminal of the command is gone. Call it inside the event loop.

    ``noted``: whether there was one before, as `note_hangups` gives it.
    """
    loop = asyncio.get_running_loop()
    on_terminal, running = os.isatty(_STDERR), set[asyncio.Future[object]]()

    def ended(task: asyncio.Future[object]) -> None:
        running.discard(task)
        if not task.cancelled():
            task.exception()  # a store that cannot be written ends the crawl itself

    def hang_up() -> None:
        if on_terminal and not os.isatty(_STDERR):
            stop()
            return
        task = asyncio.ensure_future(reload())
        running.add(task)
        task.add_done_callback(ended)

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    if noted:
        hang_up()


def stop_requests() -> list[bool]:
    """A list that is empty until SIGTERM or SIGINT arrives. For commands without an event loop."""
    received: list[bool] = []
    for number in _SIGNALS:
        signal.signal(number, lambda *_: received.append(True))
    return received
