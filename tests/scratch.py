"""Temporary files of tests are kept in memory where there is room: a transaction does not wait for a disk.

``TMPDIR`` chooses another place.
"""

import os
import tempfile

MEMORY = "/dev/shm"
ROOM = 4 << 30  # bytes that must be free; a run of all tests needs less than a tenth


def use_memory() -> None:
    """Let this process and those that it starts write temporary files to memory."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    place = os.statvfs(MEMORY)
    if place.f_bavail * place.f_frsize >= ROOM:
        os.environ["TMPDIR"], tempfile.tempdir = MEMORY, MEMORY
