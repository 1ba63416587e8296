"""How command tests run the command: in this process, or in one of its own."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

import pytest

from recrawl.cli import main


class Result(NamedTuple):
    """What a run of the command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch) -> Callable[..., Result]:
    """Run ``recrawl`` in this process."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*argv: object) -> Result:
        with pytest.raises(SystemExit) as ended:
            main([str(arg) for arg in argv])
        out, err = capsys.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def run_until(run) -> Callable[..., Result]:
    """Run a crawl in this process that would go on for a minute, and end it as Ctrl-C does once something holds."""

    def call(holds: Callable[[], object], *argv: object) -> Result:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.1):  # a look may open the database: more often takes time from the crawl
                if holds():
                    os.kill(os.getpid(), signal.SIGINT)
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return run(*argv, "--for", "60s")
        finally:
            ended.set()
            watcher.join()

    return call


@pytest.fixture
def run_apart() -> Callable[..., Result]:
    """Run ``recrawl`` in a process of its own."""

    def call(*argv: object) -> Result:
        command = [sys.executable, "-m", "recrawl", *map(str, argv)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        lines = [line for line in done.stderr.splitlines(keepends=True) if "compiling kernels" not in line]
        return Result(done.returncode, done.stdout, "".join(lines))

    return call


@pytest.fixture
def table(tmp_path):
    """Write a small CSV file and give its path."""

    def write(text: str, name: str = "pages.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write
