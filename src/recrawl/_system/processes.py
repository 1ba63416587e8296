"""Worker processes that do not outlive the process that started them, however it ends."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.synchronize import Lock

from recrawl._compile import compiling
from recrawl._compile.first_use import compile_first
from recrawl.errors import RecrawlError


@contextmanager
def worker_processes(n: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of n processes, spawned, not forked: compiled kernels need that. An exception ends them at once."""
    context = multiprocessing.get_context("spawn")
    turn = context.Lock() if compiling.is_announced() else None
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_begin, initargs=(turn,))
    default = _is_main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if default:
        signal.signal(signal.SIGTERM, _exit)
    try:
        yield pool
    except BaseException as problem:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(cancel_futures=True)
        if isinstance(problem, BrokenProcessPool):
            raise RecrawlError("a worker process was ended from outside, perhaps for lack of memory") from None
        raise
    finally:
        if default:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pool.shutdown(cancel_futures=True)


def end_with_input() -> None:
    """End this process when its standard input does: the other end is closed when the parent ends, however it does."""

    def wait() -> None:
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=wait, name="recrawl-parent", daemon=True).start()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _begin(turn: Lock | None) -> None:
    """Ctrl-C reaches all processes of a terminal: the first one decides what becomes of the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="recrawl-parent", daemon=True).start()
    compile_first()
    if turn is not None:
        compiling.announce(turn)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
