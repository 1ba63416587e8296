"""Bounds of work: inputs made to be slow must cost time in proportion to their length.

The time is that of the processor in this thread, so other threads and busy processes do not count. Each bound is many
times what the work takes; where the time is quadratic in the length, it takes minutes.
"""

import time
from contextlib import contextmanager


@contextmanager
def at_most(seconds):
    """Fail if this thread has worked for longer when the block ends."""
    began = time.thread_time()
    yield
    took = time.thread_time() - began
    assert took < seconds, f"{took:.2f} s of work, at most {seconds:g} s are allowed"
