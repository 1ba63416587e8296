"""Work in a copy of this process: it sees the memory as it is now, and holds nobody up.

The copy runs one function and ends. It uses no lock, thread, socket or database of its original: those files are closed
first, and it ends without any clean-up of Python. The kernel copies only memory that one of the two writes to.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable

AVAILABLE = hasattr(os, "fork")
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def fork(work: Callable[[], None]) -> int:
    """Run work in a copy of this process; the number of the copy, for `ended_well`. OSError: there is no room."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before: loading takes locks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python and of libraries with threads: they are not used there
        parent, copy = os.getpid(), os.fork()
    if copy == 0:
        code = 1
        try:
            _begin(parent, library)
            work()
            code = 0
        finally:
            os._exit(code)
    return copy


def ended_well(copy: int) -> bool:
    """Wait until a copy of this process has ended; whether its work was done."""
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0


def _begin(parent: int, library: ctypes.CDLL | None) -> None:
    """Leave everything that belongs to the original."""
    gc.disable()  # what is collected might close a connection in an orderly way
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the original
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if library is not None:
        library.prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.nice(5)
