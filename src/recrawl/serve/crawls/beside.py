"""Beside: a process of its own for figures about many pages, so that no pick and no record waits for them.

A thread is not enough: it shares the interpreter with the event loop, and kernels keep the interpreter to themselves.
The process is started by the first call, works on what calls give it (it reads the database itself), answers one call
at a time at a low priority, and ends with its parent.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, ParamSpec, TypeVar

from recrawl.errors import RecrawlError

P = ParamSpec("P")
T = TypeVar("T")

_NICE = 10


class Beside:
    """A process that runs functions of modules; their arguments and results are pickled."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()
        self._closed = False

    def call(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a function there and wait for its result: not for an event loop."""
        with self._turn:
            try:
                process = self._started()
                assert process.stdin is not None
                assert process.stdout is not None
                pickle.dump((work, args, options), process.stdin)
                process.stdin.flush()
                well, found = pickle.load(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                self._end()
                raise RecrawlError("the process that computes figures has ended") from None
        if not well:
            raise found
        answer: T = found
        return answer

    def close(self) -> None:
        """End the process, also in the middle of a call."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise OSError("closed")
        if self._process is None:
            command = [sys.executable, "-m", "recrawl.serve.crawls.beside"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def answer_calls(calls: BinaryIO, answers: BinaryIO) -> None:
    """Run the functions that come, until there are no more."""
    while True:
        try:
            work, args, options = pickle.load(calls)
        except EOFError:
            return
        try:
            found = True, work(*args, **options)
        except Exception as problem:
            found = False, _sendable(problem)
        pickle.dump(found, answers)
        answers.flush()


def _sendable(problem: Exception) -> Exception:
    """A problem as it can be raised elsewhere."""
    try:
        pickle.loads(pickle.dumps(problem))
    except Exception:
        return RecrawlError(str(problem))
    return problem


def main() -> None:
    """Answer the calls of the parent. What is printed goes to the standard error stream."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the parent decides what becomes of it
    os.nice(_NICE)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer_calls(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
