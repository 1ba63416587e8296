"""How command tests run the command: in this process, or in one of its own."""

import subprocess
import sys
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
def run_apart() -> Callable[..., Result]:
    """Run ``recrawl`` in a process of its own."""

    def call(*argv: object) -> Result:
        command = [sys.executable, "-m", "recrawl", *map(str, argv)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def table(tmp_path):
    """Write a small CSV file and give its path."""

    def write(text: str, name: str = "pages.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write
