"""Compiled kernels work on a read-only install and without any folder to write to; their cache follows their source."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import recrawl
from recrawl import _jit

NOWHERE = "/dev/null/home"  # a folder below a file can be made by nobody, not even by root
USE = """
import math
import recrawl
from recrawl._jit import cache_folder
from recrawl.model._kernels import harmonic_inverse
x = harmonic_inverse(0.5)
assert abs(x - 1 + math.exp(-x) - 0.5) < 1e-12
print(recrawl.__file__)
print(cache_folder())
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package in a folder that nobody may write to."""
    place = tmp_path / "install"
    shutil.copytree(Path(recrawl.__file__).parent, place / "recrawl", ignore=shutil.ignore_patterns("__pycache__"))
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o555)
    yield place
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o755)


def run(package: Path, **environment: str) -> list[str]:
    """The lines that a fresh process prints, with nothing in its environment that was not given."""
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_read_only_install_without_a_home(package, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    file, folder = run(package, HOME=NOWHERE, TMPDIR=str(temporary))
    assert file.startswith(str(package))
    assert not list(package.rglob("__pycache__"))
    assert folder.startswith(str(temporary))
    assert list(Path(folder).rglob("*.nbi"))


def test_chosen_cache_folder(package, tmp_path):
    _, folder = run(package, HOME=NOWHERE, NUMBA_CACHE_DIR=str(tmp_path / "chosen"))
    assert folder.startswith(str(tmp_path / "chosen"))
    assert list(Path(folder).rglob("*.nbi"))


def test_no_folder_at_all(package):
    _, folder = run(package, HOME=NOWHERE, NUMBA_CACHE_DIR="/dev/null/cache")
    assert folder == "None"
    assert not list(package.rglob("*.nbi"))


def test_a_warm_cache_is_used(package, tmp_path):
    chosen = {"HOME": NOWHERE, "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    _, folder = run(package, **chosen)
    before = {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*.nbc")}
    assert before
    run(package, **chosen)
    assert {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*.nbc")} == before


@pytest.mark.parametrize("file", ["model/_kernels.py", "model/_signal_kernels.py", "solver/_kernels.py", "_jit.py"])
def test_the_stamp_changes_with_every_kernel_file(package, tmp_path, monkeypatch, file):
    monkeypatch.setattr(_jit, "__file__", str(package / "recrawl" / "_jit.py"))
    before = _jit._source_stamp()
    assert _jit._source_stamp() == before
    path = package / "recrawl" / file
    path.chmod(0o644)
    path.write_text(path.read_text() + "\n# one more line\n")
    assert _jit._source_stamp() != before


def test_the_stamp_ignores_other_files(package, monkeypatch):
    monkeypatch.setattr(_jit, "__file__", str(package / "recrawl" / "_jit.py"))
    before = _jit._source_stamp()
    path = package / "recrawl" / "errors.py"
    path.chmod(0o644)
    path.write_text(path.read_text() + "\n# one more line\n")
    assert _jit._source_stamp() == before


def test_flags():
    @_jit.jit
    def ratio(a, b):
        return a / b

    @_jit.jit
    def total(values):
        out = 0.0
        for value in values:
            out += value
        return out

    assert ratio(1.0, 0.0) == float("inf")  # division follows IEEE
    assert total((1e16, 1.0, -1e16)) == 0.0  # and sums keep their order unless asked
