"""A full disk: every command names the file that it could not write, and leaves no empty file."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = "/dev/full"
PAGES = Path(__file__).parents[2] / "examples" / "pages.csv"
SOLVE = ("solve", PAGES, "--budget", "150/day")


@pytest.mark.slow
def test_the_file_that_could_not_be_written_is_named(run, tmp_path):
    for name, option in (("rates.csv", "--output"), ("rates.png", "--plot"), ("rates.parquet", "--output")):
        (tmp_path / name).symlink_to(FULL)
        result = run(*SOLVE, option, tmp_path / name)
        assert result.code == 2
        assert result.err.startswith(f"recrawl: {tmp_path / name}: "), result.err
        assert result.err.count("\n") == 1


def test_no_empty_file_is_left_where_a_picture_fails(run, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def broken(self, path, **options):
        Path(path).touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", broken)
    result = run(*SOLVE, "--plot", tmp_path / "rates.png")
    assert result.err == f"recrawl: {tmp_path / 'rates.png'}: No space left on device\n"
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_database_is_named(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recrawl.db.lock").symlink_to(FULL)
    result = run("add", "https://a.example/")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "recrawl.db.lock: " in result.err


@pytest.mark.slow
def test_standard_output_is_named(tmp_path):
    with open(FULL, "w") as full:
        command = [sys.executable, "-m", "recrawl", "--version"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (2, "recrawl: standard output: No space left on device\n")
