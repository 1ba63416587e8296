"""Commands say that kernels are compiled, when they are and only then; worker processes end with their parent."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

USE = """
from recrawl._compile import compiling
compiling.announce()
from recrawl.model.kernels.fresh import harmonic_inverse
harmonic_inverse(0.5)
"""
WORKERS = """
import os, signal, sys, time
from recrawl._system.processes import worker_processes

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background of a shell

if __name__ == "__main__":
    with worker_processes(2) as pool:
        ids = [pool.submit(os.getpid).result() for _ in range(20)]
        futures = [pool.submit(time.sleep, 60.0) for _ in range(4)]
        print(*set(ids), flush=True)
        [future.result() for future in futures]
"""


def lines(code, **environment):
    """What a process of its own prints on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stderr.splitlines()


def test_compilation_is_announced_once_and_not_where_kernels_are_cached(tmp_path):
    first, second = (lines(USE, NUMBA_CACHE_DIR=str(tmp_path / "kernels")) for _ in range(2))
    assert first[0].startswith("recrawl: compiling kernels, once per version: at most ")
    assert first[0].endswith(" to go")
    assert second == []


def test_with_logs_in_json_it_is_a_record(tmp_path):
    code = "from recrawl import logs\nlogs.configure('info', 'json')" + USE
    found = [json.loads(line) for line in lines(code, NUMBA_CACHE_DIR=str(tmp_path / "kernels"))]
    assert found[0].pop("time").endswith("Z")
    assert 0 < found[0].pop("left") < 1000
    assert found[0].pop("now").startswith("fresh.")
    fixed = {"level": "info", "logger": "recrawl.logs", "event": "kernels.compiling"}
    assert found[0] == {**fixed, "done": 0, "kept": True}
    assert all(one["event"] == "kernels.compiling" for one in found)


def test_progress_is_known_only_while_something_is_compiled(tmp_path):
    watch = """
import threading
from recrawl._compile import compiling
seen = {compiling.progress()}
compiling.announce()
seen.add(compiling.progress())
assert seen == {None}
thread = threading.Thread(target=lambda: harmonic_inverse(0.5))
from recrawl.model.kernels.fresh import harmonic_inverse
thread.start()
while thread.is_alive():
    seen.add(compiling.progress())
assert any(one is not None and one.left > 0 and one.now for one in seen), seen
assert compiling.progress() is None
"""
    lines(watch, NUMBA_CACHE_DIR=str(tmp_path / "kernels"))


def test_without_a_folder_it_is_said_that_every_run_compiles():
    line = lines(USE, NUMBA_CACHE_DIR="/dev/null/cache")[0]
    assert line.startswith("recrawl: compiling kernels, in every run (no folder for them can be written)")


def test_a_program_that_does_not_ask_hears_nothing(tmp_path):
    assert lines(USE.replace("compiling.announce()", ""), NUMBA_CACHE_DIR=str(tmp_path / "kernels")) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_the_process_that_started_it(tmp_path, number):
    script = tmp_path / "work.py"
    script.write_text(WORKERS)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        workers = [int(word) for word in process.stdout.readline().split()]
        os.kill(process.pid, number)
        assert process.wait(300) != 0
    assert workers
    assert gone(workers)


def gone(processes, patience=60.0):
    """Whether none of some processes runs, after at most some time."""
    ends_at = time.monotonic() + patience
    while time.monotonic() < ends_at:
        if not any(running(number) for number in processes):
            return True
        time.sleep(0.05)
    return False


def running(number):
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
