"""Says that kernels are compiled, which, and how many remain; nothing where all are in the cache.

Programs that use the library hear nothing. The command calls `announce`: lines on standard error, unless `say_by` names
another way. A live view takes over with `shown_by`. Worker processes call `announce` with a lock that they share, and
the first of them that compiles speaks for all.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Lock
from pathlib import Path
from typing import Any, NamedTuple

_EVERY = 5  # seconds between two lines; a view gets one each second


class Progress(NamedTuple):
    """How far the compilation has come."""

    done: int  # kernels that this process has compiled
    left: int  # at most so many more
    now: str  # the kernel that is being compiled
    kept: bool  # whether compiled code is kept on disk

    def __str__(self) -> str:
        often = "once per version" if self.kept else "in every run (no folder for them can be written)"
        state = f"at most {self.left} to go"
        if self.done:
            state = f"{self.done} done, at most {self.left} left, now {self.now}"
        return f"compiling kernels, {often}: {state}"


Say = Callable[[Progress], object]


def print_line(progress: Progress) -> None:
    """A line on standard error."""
    print(f"recrawl: {progress}", file=sys.stderr, flush=True)  # noqa: T201


class Notice:
    """Counts the kernels that are compiled in this process, and says so."""

    def __init__(self, turn: Lock | None = None) -> None:
        self._turn = turn
        self._guard = threading.Lock()
        self._done: set[str] = set()
        self._depth = 0  # kernels being compiled, each for the sake of the one before
        self._speaks: bool | None = None
        self._kernels: Sequence[Any] = ()
        self._name = ""
        self.view: Callable[[str], object] | None = None

    def began(self, name: str, kernels: Sequence[Any]) -> None:
        """The compilation of a kernel begins; ``kernels`` are all that are loaded."""
        self._kernels, self._name = kernels, name
        with self._guard:
            self._depth += 1
            first = self._speaks is None
            if first:
                self._speaks = self._turn is None or self._turn.acquire(block=False)
        if first and self._speaks:
            self._say(seconds=0)
            threading.Thread(target=self._go_on, name="recrawl-compiling", daemon=True).start()

    def ended(self, name: str) -> None:
        """The compilation of a kernel has ended."""
        with self._guard:
            self._depth -= 1
            self._done.add(name)

    def _go_on(self) -> None:
        pause, seconds = threading.Event(), 0
        while not pause.wait(1.0):
            seconds += 1
            self._say(seconds)

    def _left(self) -> int:
        """Kernels that are loaded, not compiled here and not in the cache; the command may not need all of them."""
        return sum(not (name_of(kernel) in self._done or is_cached(kernel)) for kernel in self._kernels)

    def progress(self) -> Progress | None:
        """How far it is; None while nothing is compiled."""
        if not self._depth:
            return None
        kept = _keeps and any(_cache_file(kernel) is not None for kernel in self._kernels)
        return Progress(len(self._done), self._left(), ".".join(self._name.split(".")[-2:]), kept)

    def _say(self, seconds: int) -> None:
        progress = self.progress()
        if progress is None:
            return
        if self.view is not None:
            self.view(str(progress))
            return
        if seconds % _EVERY != 0 or not self._speaks:
            return
        try:
            _say(progress)
        except (OSError, ValueError):  # standard error is closed
            self._speaks = False


_keeps = True  # whether newly compiled code is kept on disk
_notice: Notice | None = None
_say: Say = print_line


def announce(turn: Lock | None = None) -> None:
    """Say that this process compiles kernels; with ``turn``, only if no other process has it."""
    global _notice
    _notice = _notice or Notice(turn)


def say_beside() -> None:
    """Say that another process compiles kernels."""
    if _notice is not None and _say is print_line:
        line = "kernels are compiled by a process beside this one, once per version; decisions take longer until then"
        print(f"recrawl: {line}", file=sys.stderr, flush=True)  # noqa: T201


def say_by(say: Say) -> None:
    """How it is said, if it is; by default as a line on standard error."""
    global _say
    _say = say


@contextmanager
def shown_by(view: Callable[[str], object]) -> Iterator[None]:
    """Give the lines to a view, each second, instead of writing them."""
    if _notice is not None:
        _notice.view = view
    try:
        yield
    finally:
        if _notice is not None:
            _notice.view = None


def progress() -> Progress | None:
    """How far the compilation is; None while nothing is compiled, or where nothing is said of it."""
    return None if _notice is None else _notice.progress()


def is_announced() -> bool:
    """Whether it is said that kernels are compiled."""
    return _notice is not None


def listen(kernels: Sequence[Any], *, keeps: bool) -> None:
    """Follow Numba's compilations of these kernels; the list may grow. ``keeps``: their folder can be written."""
    global _keeps
    from numba.core import event

    _keeps = keeps
    register: Any = event.register

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if _notice is not None and _is_one_of(event.data["dispatcher"], kernels):
                _notice.began(name_of(event.data["dispatcher"]), kernels)

        def on_end(self, event: Any) -> None:
            if _notice is not None and _is_one_of(event.data["dispatcher"], kernels):
                _notice.ended(name_of(event.data["dispatcher"]))

    register("numba:compile", Listener())


def name_of(kernel: Any) -> str:
    """The name of a kernel among all kernels."""
    return f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"


def _cache_file(kernel: Any) -> Any:
    """What numba knows of a kernel's file on disk, which has no public name; None: it keeps none."""
    return getattr(getattr(kernel, "_cache", None), "_cache_file", None)


def is_cached(kernel: Any) -> bool:
    """Whether a kernel's compiled code is on disk."""
    index = getattr(_cache_file(kernel), "_index_path", None)
    return index is not None and Path(index).exists()


def _is_one_of(dispatcher: Any, kernels: Sequence[Any]) -> bool:
    return any(kernel is dispatcher for kernel in kernels)
