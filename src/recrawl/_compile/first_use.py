"""First use: while another process compiles the kernels of an engine, small engines run them uncompiled.

Compiling takes a minute on a new machine, once per version. An engine of a few thousand pages need not wait for it: a
kernel that is not on disk yet runs as the Python code that it is written as (`plain.py`), with the same results.
Meanwhile a process beside this one uses an engine once, compiled (`recrawl.engine.rehearsal`), which puts the kernels
on disk; they are taken from there as they come. Once it has ended, what is missing is compiled here.

Nothing runs uncompiled where an engine has more than `SMALL` pages, where a program says `compile_first`, and where
compiled code cannot be kept on disk.
"""

import atexit
import os
import subprocess
import sys
import threading
from typing import Any

from recrawl._compile import compiling
from recrawl._compile.compiling import is_cached
from recrawl._compile.plain import uncompiled

SMALL = 5000  # pages
COMPILE_FIRST = "RECRAWL_COMPILE_FIRST"  # environment: anything but "" and "0" is as `compile_first` from the start
_OWN = ("recrawl.engine.", "recrawl.schedule.exact.")  # modules whose kernels can run uncompiled
_CALLS = 50  # of uncompiled kernels, before another process is worth its start
_COMPILER = "recrawl.engine.rehearsal"


class FirstUse:
    """Whether kernels run uncompiled in this process, and the process that compiles them."""

    def __init__(self) -> None:
        self.is_over = os.environ.get(COMPILE_FIRST, "0") not in ("", "0")  # missing kernels are compiled here
        self._calls = 0
        self._compiler: subprocess.Popen[bytes] | None = None
        self._guard = threading.RLock()
        self._forms: dict[Any, Any] = {}

    def instead(self, kernel: Any, args: tuple[Any, ...]) -> Any:
        """What to call instead of a kernel that is not loaded; None: it is on disk, or to be compiled."""
        if self.is_over or not kernel.py_func.__module__.startswith(_OWN):
            return None
        with self._guard:
            self._calls += 1
            if self._calls == _CALLS:
                self._begin()
            if is_cached(kernel) and kernel.load(args):
                return None
            if self._compiler is not None and self._compiler.poll() is not None:
                self.end()
                return None
            if kernel not in self._forms:
                self._forms[kernel] = uncompiled(kernel)
            return self._forms[kernel]

    def end(self) -> None:
        """From now on, missing kernels are compiled in this process."""
        with self._guard:
            self.is_over = True
            self._forms.clear()
            compiler, self._compiler = self._compiler, None
        if compiler is not None:
            compiler.kill()
            compiler.communicate()

    def _begin(self) -> None:
        """Start the process that compiles. It ends with this one: it reads from a pipe that is closed then."""
        words = [sys.executable, "-m", _COMPILER]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._compiler = subprocess.Popen(words, env={**os.environ, COMPILE_FIRST: "1"}, **pipes)
        atexit.register(self.end)
        compiling.say_beside()


first_use = FirstUse()


def compile_first() -> None:
    """Compile kernels before they are used, from now on: for work that is long beside the compiler's."""
    if not first_use.is_over:
        first_use.end()


def grown(n_pages: int) -> None:
    """A scheduler has so many pages: too many for uncompiled kernels?"""
    if n_pages > SMALL:
        compile_first()
