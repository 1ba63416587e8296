"""Kernels stay within their arrays: tests that use most of them run again, compiled with every index checked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = ["engine/test_unlikely.py", "engine/test_rows.py", "schedule/test_saved.py", "engine/test_addresses.py"]


@pytest.mark.full
def test_no_index_is_out_of_bounds(tmp_path):
    chosen = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "RECRAWL_COMPILE_FIRST": "1"}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-m", "not full and not slow", *FILES]
    ended = subprocess.run(
        command, cwd=TESTS, env={**os.environ, **chosen}, capture_output=True, text=True, timeout=3600, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
