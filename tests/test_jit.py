"""Compiled kernels work on a read-only install and without any folder to write to; their cache follows their source."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import recrawl
from recrawl._compile import jit

pytestmark = pytest.mark.slow
NOWHERE = "/dev/null/home"  # a folder below a file can be made by nobody, not even by root
USE = """
import math
import recrawl
from recrawl._compile.jit import cache_folder, writable_folder
from recrawl.model.kernels.fresh import harmonic_inverse
x = harmonic_inverse(0.5)
assert abs(x - 1 + math.exp(-x) - 0.5) < 1e-12
print(recrawl.__file__)
print(cache_folder())
print(writable_folder())
print(not harmonic_inverse.stats.cache_hits)
"""
# Root may write to every folder, unless it gives up the right to.
BOUND = ["setpriv", "--bounding-set=-dac_override"] if os.getuid() == 0 else []


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


def run(package: Path, *before: str, **environment: str) -> list[str]:
    """The lines that a fresh process prints, with nothing in its environment that was not given."""
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [*before, sys.executable, "-c", USE], env=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_read_only_install_without_a_home(package, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    file, folder, *_ = run(package, HOME=NOWHERE, TMPDIR=str(temporary))
    assert file.startswith(str(package))
    assert not list(package.rglob("__pycache__"))
    assert folder.startswith(str(temporary))
    assert list(Path(folder).rglob("*.nbi"))


def test_chosen_cache_folder(package, tmp_path):
    _, folder, *_ = run(package, HOME=NOWHERE, NUMBA_CACHE_DIR=str(tmp_path / "chosen"))
    assert folder.startswith(str(tmp_path / "chosen"))
    assert list(Path(folder).rglob("*.nbi"))


def test_no_folder_at_all(package):
    _, folder, *_ = run(package, HOME=NOWHERE, NUMBA_CACHE_DIR="/dev/null/cache")
    assert folder == "None"
    assert not list(package.rglob("*.nbi"))


def test_a_warm_cache_is_used(package, tmp_path):
    chosen = {"HOME": NOWHERE, "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    _, folder, *_ = run(package, **chosen)
    before = {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*.nbc")}
    assert before
    run(package, **chosen)
    assert {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*.nbc")} == before


@pytest.mark.parametrize("missing", [False, True])
def test_a_folder_that_can_only_be_read_is_read(package, tmp_path, missing):
    """As in a container whose file system is read-only; a kernel that the folder does not hold is compiled."""
    chosen = {"HOME": NOWHERE, "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    folder = Path(run(package, **chosen)[1])
    for file in folder.rglob("*.nb*") if missing else ():
        file.unlink()
    before = set(folder.rglob("*.nb*"))
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        assert run(package, *BOUND, **chosen)[1:] == [str(folder), "None", str(missing)]
    finally:
        for path in folders:
            path.chmod(0o755)
    assert set(folder.rglob("*.nb*")) == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a folder that belongs to somebody else")
def test_a_folder_of_somebody_else_is_not_read(package, tmp_path):
    """Kernels are code: what another user has put there is not run."""
    chosen = {"HOME": NOWHERE, "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    folder = run(package, **chosen)[1]
    os.chown(folder, 12345, -1)
    assert run(package, **chosen)[1] == "None"


@pytest.fixture
def stamp(package, monkeypatch):
    """The stamp of a module of the copied package, read again each time."""
    monkeypatch.setattr(jit, "_PACKAGE", package / "recrawl")

    def of(file: str) -> str:
        jit.source_stamp.cache_clear()
        jit._imported.cache_clear()
        return jit.source_stamp(package / "recrawl" / file)

    yield of
    jit.source_stamp.cache_clear()
    jit._imported.cache_clear()


def edit(package: Path, file: str) -> None:
    path = package / "recrawl" / file
    path.chmod(0o644)
    path.write_text(path.read_text() + "\n# one more line\n")


@pytest.mark.parametrize(
    ("kernel", "edited"),
    [
        ("model/kernels/fresh.py", "model/kernels/fresh.py"),
        ("model/kernels/signals.py", "model/kernels/fresh.py"),  # imported directly
        ("schedule/exact/kernels/picking.py", "model/kernels/fresh.py"),  # over several modules
        ("schedule/exact/kernels/picking.py", "schedule/exact/layout.py"),
        ("simulate/run/loop_kernels.py", "schedule/exact/kernels/picking.py"),
    ],
)
def test_the_stamp_changes_with_every_file_that_a_kernel_uses(package, stamp, kernel, edited):
    before = stamp(kernel)
    assert stamp(kernel) == before
    edit(package, edited)
    assert stamp(kernel) != before


@pytest.mark.parametrize("edited", ["errors.py", "solver/kernels.py", "schedule/exact/kernels/picking.py"])
def test_the_stamp_ignores_files_that_a_kernel_does_not_use(package, stamp, edited):
    before = stamp("model/kernels/signals.py")
    edit(package, edited)
    assert stamp("model/kernels/signals.py") == before


def test_the_stamp_changes_with_the_module_s_name(package, stamp):
    """A kernel of the same source in another package is not taken from the cache: it refers to its module by name."""
    before = stamp("schedule/exact/kernels/value/ranking.py")
    moved = package / "recrawl" / "schedule" / "ranking.py"
    moved.write_bytes((package / "recrawl" / "schedule/exact/kernels/value/ranking.py").read_bytes())
    assert stamp("schedule/ranking.py") != before


def test_the_stamp_does_not_depend_on_the_place(stamp, monkeypatch):
    copied = stamp("model/kernels/signals.py")
    monkeypatch.undo()
    jit.source_stamp.cache_clear()
    assert jit.source_stamp(Path(recrawl.__file__).parent / "model/kernels/signals.py") == copied


def test_kernels_import_modules_and_not_packages():
    root = Path(recrawl.__file__).parent
    files = [file for file in root.rglob("*.py") if "from recrawl._compile.jit import" in file.read_text()]
    assert len(files) > 20
    for file in files:
        for package, names, _ in jit._IMPORT.findall(file.read_text()):
            home = root.joinpath(*package.split(".")[1:])
            modules = [home / f"{name.split()[0]}.py" for name in names.strip("()").split(",") if name.strip()]
            assert home.with_suffix(".py").is_file() or all(module.is_file() for module in modules), (file, names)


def test_flags():
    @jit.jit
    def ratio(a, b):
        return a / b

    @jit.jit
    def total(values):
        out = 0.0
        for value in values:
            out += value
        return out

    assert ratio(1.0, 0.0) == float("inf")  # division follows IEEE
    assert total((1e16, 1.0, -1e16)) == 0.0  # and sums keep their order unless asked
