"""A git history as a trace: each file a page, each commit of the main line that touches it a change."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path, PurePosixPath
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.trace import Trace
from recrawl.simulate.traces.recorded import epoch
from recrawl.simulate.worlds.events import Events

Array = NDArray[np.float64]

_COMMIT = b"\x01"
_LOG = ("log", "--first-parent", "-m", "--reverse", "--name-status", "-z", "--no-color", "--no-show-signature")
_CONFIG = ("-c", "log.showRoot=true", "-c", "log.diffMerges=separate")


def git_trace(
    repository: Path | str,
    *,
    path: str = "",
    since: float | str | date | None = None,
    follow: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """The history of a git repository as a trace, from its first commit (or ``since``) to its last; seconds since 1970.

    Each file (under ``path``, if given) is a page from the first-parent commit that adds it to the one that deletes it,
    and each commit in between that touches it is a change, at the committer's time. A file with a new name, or one that
    comes back, is a new page; with ``follow``, git's guess at renames keeps the page. ``progress`` gets how many
    commits were read. The group of a page is its folder, two levels deep.
    """
    repository = Path(repository)
    if not repository.is_dir():
        raise ParameterError(f"{repository}: is not a folder")
    history = _History()
    under = _run(repository, "rev-parse", "--show-prefix").decode(errors="replace").strip("\n") + path
    renames = ("-M",) if follow else ("--no-renames",)
    command = (
        *_LOG,
        *renames,
        "--ignore-submodules=all",
        "--format=%x01%ct",
        "HEAD",
        "--",
        *([f":(top,literal){under}"] if under else []),
    )
    for n, read in enumerate(_entries(repository, command)):
        history.apply(*read)
        if progress is not None and n % 1000 == 0:
            progress(history.commits)
    if progress is not None:
        progress(history.commits)
    if not history.key:
        raise ParameterError(f"{repository}: no commit has a file{f' under {under}' if under else ''}")
    return history.trace(repository.resolve().name, None if since is None else epoch(since))


class _History:
    """Pages as they come and go, commit by commit."""

    def __init__(self) -> None:
        self.commits = 0
        self.now = -np.inf
        self.key: list[bytes] = []
        self._created: list[float] = []
        self._deleted: list[float] = []
        self._page: dict[bytes, int] = {}  # live paths
        self._changed: list[int] = []
        self._changed_at: list[float] = []

    def apply(self, status: bytes, paths: list[bytes]) -> None:
        """One commit's time, or what it did to one file."""
        kind = status[:1]
        if kind == _COMMIT:
            self.commits += 1
            self.now = max(self.now, float(status[1:]))  # clocks of committers differ; the order does not
        elif kind == b"D":
            self._delete(paths[0])
        elif kind == b"R" and paths[0] in self._page:
            self._rename(paths[0], paths[1], similarity=status[1:])
        elif paths[-1] in self._page:
            self._change(self._page[paths[-1]])
        else:
            self._create(paths[-1])

    def _create(self, path: bytes) -> None:
        self._page[path] = len(self.key)
        self.key.append(path)
        self._created.append(self.now)
        self._deleted.append(np.inf)

    def _delete(self, path: bytes) -> None:
        page = self._page.pop(path, None)
        if page is not None:
            self._deleted[page] = self.now

    def _rename(self, old: bytes, new: bytes, similarity: bytes) -> None:
        self._delete(new)
        page = self._page[new] = self._page.pop(old)
        self.key[page] = new
        if similarity != b"100":
            self._change(page)

    def _change(self, page: int) -> None:
        self._changed.append(page)
        self._changed_at.append(self.now)

    def trace(self, name: str, since: float | None) -> Trace:
        """All of it, from ``since`` on."""
        start, end = self._created[0] if since is None else since, self.now
        if not end > start:
            raise ParameterError(f"{name}: has no commit after {'its first' if since is None else 'the given date'}")
        created, deleted = np.maximum(self._created, start), np.array(self._deleted)
        rows = np.flatnonzero(deleted > created)
        place = np.full(len(created), -1)
        place[rows] = np.arange(len(rows))
        page, at = np.array(self._changed, np.int64), np.array(self._changed_at)
        counts = (place[page] >= 0) & (at > created[page])
        changes = Events.of(place[page[counts]], at[counts], len(rows))
        keys = [self.key[row].decode(errors="backslashreplace") for row in rows.tolist()]
        return Trace(
            start,
            end,
            offset=changes.offset,
            changed_at=changes.at,
            created_at=created[rows],
            deleted_at=deleted[rows],
            url=np.array(keys, dtype=np.str_),
            group=np.array(["/".join(PurePosixPath(key).parts[:-1][:2]) or name for key in keys], dtype=np.str_),
            name=name,
        )


def _entries(repository: Path, command: tuple[str, ...]) -> Iterator[tuple[bytes, list[bytes]]]:
    """(time of a commit, []) and (status of a file, its paths), from the oldest on."""
    cells = _cells(repository, command)
    for cell in cells:
        status = cell.lstrip(b"\n")
        if status:
            yield status, [next(cells) for _ in range(0 if status[:1] == _COMMIT else 1 + (status[:1] in b"RC"))]


def _cells(repository: Path, command: tuple[str, ...]) -> Iterator[bytes]:
    """What git prints, cut at NUL."""
    with tempfile.TemporaryFile() as errors:
        git = _start(repository, command, errors)
        out, rest = cast("IO[bytes]", git.stdout), b""
        try:
            while block := out.read(1 << 20):
                *cells, rest = (rest + block).split(b"\0")
                yield from cells
        except BaseException:
            git.kill()
            raise
        finally:
            out.close()
            code = git.wait()
        if code:
            errors.seek(0)
            raise _refused(repository, errors.read())


def _start(repository: Path, command: tuple[str, ...], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            ["git", "-C", str(repository), *_CONFIG, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    except FileNotFoundError:
        raise ParameterError("git is not installed, or not on the path") from None


def _run(repository: Path, *command: str) -> bytes:
    with tempfile.TemporaryFile() as errors:
        git = _start(repository, command, errors)
        out = git.communicate()[0]
        if git.returncode:
            errors.seek(0)
            raise _refused(repository, errors.read())
        return out


def _refused(repository: Path, said: bytes) -> ParameterError:
    lines = said.decode(errors="replace").strip().splitlines() or ["git failed"]
    return ParameterError(f"{repository}: {lines[0].removeprefix('fatal: ')}")
