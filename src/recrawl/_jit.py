"""How every kernel is compiled: the one place for compiler flags and for where compiled code is kept.

Never fast-math: infinity is a value here (a proof signal weighs infinity, a page never crawled waits for infinity).
Sums alone may be reordered (`jit_sum`), which lets them run in vector registers. Division follows IEEE, so that
0-guards are written out where they matter and cost nothing where they do not.

Numba notices a change of a kernel's own file only, but kernels call kernels of other files. So the cache is one
folder per state of all kernel files and the layout they share, in the user's cache folder: it cannot be stale, and a
read-only install works. Where no folder can be written, kernels are compiled anew in each process.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

_config: Any = numba.config
_njit: Any = numba.njit

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile a kernel on first use: no Python objects, no lock held, kept on disk between processes."""
    return _compile(function, inline=False)


def jit_sum(function: F) -> F:
    """Compile a kernel whose loops only add up: the compiler may reorder additions, and nothing else."""
    return _compile(function, inline=False, reorder=True)


def jit_lean(function: F) -> F:
    """Compile a kernel that allocates nothing: without reference counts, calls that pass many arrays cost little."""
    return _compile(function, inline=False, counted=False)


def inline(function: F) -> F:
    """Compile a small kernel that is part of its callers: the optimiser sees through the call."""
    return _compile(function, inline=True)


def inline_sum(function: F) -> F:
    """Compile a loop that only adds up as part of its callers; the loop itself must carry the leave to reorder."""
    return _compile(function, inline=True, reorder=True)


def _compile(function: F, *, inline: bool, reorder: bool = False, counted: bool = True) -> F:
    folder = cache_folder()
    before = _config.CACHE_DIR
    _config.CACHE_DIR = str(folder or "")
    try:
        options: dict[str, object] = {"nogil": True, "error_model": "numpy", "forceinline": inline}
        options["cache"] = folder is not None and not inline
        options["fastmath"] = {"reassoc"} if reorder else False
        if not counted:
            options["_nrt"] = False
        compiled: F = _njit(**options)(function)
    finally:
        _config.CACHE_DIR = before
    return compiled


@cache
def cache_folder() -> Path | None:
    """The folder that holds the compiled kernels of exactly this source, or None where none can be written."""
    stamp = _source_stamp()
    for base in _candidates():
        folder = base / stamp
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError:
            continue
        if not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid():
            return folder
    return None


def _candidates() -> list[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen) / "recrawl"]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return [Path(home) / "recrawl" / "kernels", Path(tempfile.gettempdir()) / f"recrawl-kernels-{user}"]


def _source_stamp() -> str:
    package = Path(__file__).parent
    digest = hashlib.sha256(f"{sys.version_info[:2]}{numba.__version__}".encode())
    for path in sorted([Path(__file__), *package.rglob("_*kernels*.py"), *package.rglob("layout.py")]):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
