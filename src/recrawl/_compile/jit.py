"""How every kernel is compiled: the one place for compiler flags and for where compiled code is kept.

Never fast-math: infinity is a value here (a proof signal weighs infinity, a page never crawled waits for infinity).
Sums alone may be reordered (`jit_sum`), which lets them run in vector registers. Division follows IEEE, so that
0-guards are written out where they matter and cost nothing where they do not.

Numba checks only the file of the kernel itself, but kernels call kernels of other files. Compiled code is therefore
kept in one folder per source state of a module and of every recrawl module that it imports, directly or not: a kernel
is never stale, and an edited formula recompiles only the kernels that use it. The folder does not depend on where the
package is installed, so environments with the same source share it. A folder that can only be read, such as that of a
read-only container, is read: what it does not hold is compiled again in each process, as everything is where there is
no folder.
"""

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from recrawl._compile import parts
from recrawl._compile.parts import KernelDispatcher

_config: Any = numba.config
_njit: Any = numba.njit
_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^from recrawl((?:\.\w+)*) import (\([^)]*\)|[^\n]*)|^import recrawl((?:\.\w+)+)", re.MULTILINE)

F = TypeVar("F", bound=Callable[..., object])

KERNELS: list[Any] = []  # all that are loaded, without those that are part of their callers


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
    options: dict[str, object] = {"nogil": True, "error_model": "numpy", "forceinline": inline}
    options["fastmath"] = {"reassoc"} if reorder else False
    if not counted:
        options["_nrt"] = False
    file = Path(function.__code__.co_filename)
    base = None if inline else cache_folder()
    if base is None or not file.is_file():
        plain: F = _made(function, options, cached=False)
        if not inline:
            KERNELS.append(plain)
        return plain
    folder = base / source_stamp(file)
    before = _config.CACHE_DIR, getattr(_config, "CACHE_LOCATOR_CLASSES", "")
    _config.CACHE_DIR, _config.CACHE_LOCATOR_CLASSES = str(folder), f"{__name__}.KernelLocator"
    try:
        compiled: F = _made(function, options, cached=True)
    finally:
        _config.CACHE_DIR, _config.CACHE_LOCATOR_CLASSES = before
    _save_if_possible(compiled)
    KERNELS.append(compiled)
    return compiled


def _made(function: Any, options: dict[str, object], *, cached: bool) -> Any:
    if _config.DISABLE_JIT:
        return function
    if not parts.is_tried():
        return _njit(cache=cached, **options)(function)
    kernel: Any = KernelDispatcher(function, targetoptions={"nopython": True, "boundscheck": None, **options})
    if cached:
        kernel.enable_caching()
    return kernel


def _save_if_possible(kernel: Any) -> None:
    """Let a kernel be used whose compiled code cannot be written: the folder is read-only, or the disk full."""
    if _config.DISABLE_JIT:
        return
    save = kernel._cache.save_overload

    def save_overload(signature: Any, compiled: Any) -> None:
        with suppress(OSError):
            save(signature, compiled)

    kernel._cache.save_overload = save_overload


class KernelLocator:
    """Where Numba keeps a kernel: in the folder of its module's source stamp, wherever the package is installed."""

    def __init__(self, folder: str, line: int) -> None:
        self._folder, self._line = folder, line

    @classmethod
    def from_function(cls, function: Any, _file: str) -> "KernelLocator":
        """The locator of a kernel that is being compiled."""
        return cls(_config.CACHE_DIR, function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        os.makedirs(self._folder, exist_ok=True, mode=0o700)

    def get_cache_path(self) -> str:
        """The folder."""
        return self._folder

    def get_source_stamp(self) -> str:
        """The name of the folder: it stands for all sources."""
        return os.path.basename(self._folder)

    def get_disambiguator(self) -> str:
        """What tells kernels of one name apart."""
        return str(self._line)


@cache
def cache_folder() -> Path | None:
    """The folder that holds all compiled kernels: one that can be written, or else read; None if there is none."""
    return writable_folder() or next(filter(_is_readable, _candidates()), None)


@cache
def writable_folder() -> Path | None:
    """The folder in which newly compiled kernels are kept, or None where none can be written."""
    return next(filter(_is_writable, _candidates()), None)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return False
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()


def _is_readable(folder: Path) -> bool:
    """Whether kernels may be loaded from a folder: loading runs what is in it, so it must be ours or root's."""
    if not os.access(folder, os.R_OK | os.X_OK):
        return False
    return not hasattr(os, "getuid") or folder.stat().st_uid in (0, os.getuid())


def _candidates() -> list[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen) / "recrawl"]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return [Path(home) / "recrawl" / "kernels", Path(tempfile.gettempdir()) / f"recrawl-kernels-{user}"]


@cache
def source_stamp(file: Path) -> str:
    """A digest of a source file, of every recrawl module that it imports, directly or not, and of the compiler."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}{numba.__version__}".encode())
    closure, todo = {file}, [file]
    while todo:
        new = _imported(todo.pop()) - closure
        closure |= new
        todo += new
    inside = sorted(path.relative_to(_PACKAGE).as_posix() for path in closure if path.is_relative_to(_PACKAGE))
    for path in [file, Path(__file__), Path(parts.__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    for name in inside:  # with its place in the package: compiled kernels refer to their module by name
        digest.update(name.encode() + b"\0" + (_PACKAGE / name).read_bytes())
    return digest.hexdigest()[:16]


@cache
def _imported(file: Path) -> frozenset[Path]:
    """The files of the recrawl modules that a file imports at its top level; packages are skipped, they are lazy."""
    names = set()
    for package, imported, module in _IMPORT.findall(file.read_text(encoding="utf-8")):
        names.add(module or package)
        names |= {f"{package}.{name.split()[0]}" for name in imported.strip("()").split(",") if name.strip()}
    files = (_PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in names if name)
    return frozenset(file for file in files if file.is_file())


def _listen() -> None:
    from recrawl._compile import compiling, first_use  # not at the top: stamps of kernels must not depend on them

    compiling.listen(KERNELS, keeps=writable_folder() is not None)
    if writable_folder() is not None:
        KernelDispatcher.instead = first_use.first_use.instead


_listen()
