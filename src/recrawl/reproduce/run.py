"""Run figures: tasks in one process or several, finished rows on disk, so that an interrupted run can go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, as_completed
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from recrawl._system.files import named, whole_file
from recrawl._system.processes import worker_processes
from recrawl.errors import ParameterError
from recrawl.reproduce.figure import Figure, Params, Result, Row, Task, plain

Progress = Callable[[float], None]


class Workers:
    """Processes that do tasks; one job means this process."""

    def __init__(self, jobs: int = 1) -> None:
        if jobs < 1:
            raise ParameterError(f"jobs is {jobs}: must be at least 1")
        self.jobs = jobs
        self._stack = ExitStack()
        self._pool = self._stack.enter_context(worker_processes(jobs)) if jobs > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)

    def rows(self, figure: Figure, params: Params, seed: int, tasks: list[Task]) -> Iterator[tuple[Task, Row]]:
        """Each task with its row, in the order in which tasks end. Long tasks start first."""
        order = sorted(tasks, key=lambda task: -task.seconds)
        if self._pool is None:
            for task in order:
                yield task, _do(figure.id, params, seed, task.key)
            return
        futures: dict[Future[Row], Task] = {
            self._pool.submit(_do, figure.id, params, seed, task.key): task for task in order
        }
        for future in as_completed(futures):
            yield futures[future], future.result()


def _do(id: str, params: Params, seed: int, key: Row) -> Row:
    from recrawl.reproduce.catalogue import figures

    figure = figures()[id]
    return {**key, **plain(figure.work(params, key, figure.rng(seed, key)))}


class RunOptions(TypedDict, total=False):
    """Keywords of `reproduce`, all optional."""

    seed: int  # default: 0
    reps: int | None  # repetitions; default: those of the setting
    workers: Workers | None  # default: this process
    partial: Path | None  # file for finished rows; default: none is written
    resume: bool  # do not repeat rows in ``partial`` that have the same seed and parameters; default: False
    progress: Progress | None  # called with the seconds of work done, as estimated


def reproduce(figure: Figure, setting: str = "quick", **options: Unpack[RunOptions]) -> Result:
    """Run the tasks of a figure at a setting and judge the claims. ``RunOptions`` lists the keywords."""
    unknown = options.keys() - RunOptions.__annotations__
    if unknown:
        raise TypeError(f"reproduce() got an unexpected keyword argument {min(unknown)!r}")
    seed, progress, workers = options.get("seed", 0), options.get("progress"), options.get("workers")
    params = figure.params(setting, options.get("reps"))
    tasks = figure.tasks(params)
    began = time.perf_counter()
    head = {"id": figure.id, "seed": seed, "params": params}
    book = _Book(options.get("partial"), head, options.get("resume", False))
    todo = [task for task in tasks if book.get(task.key) is None]
    if progress is not None:
        progress(sum(task.seconds for task in tasks) - sum(task.seconds for task in todo))
    for task, row in (workers or Workers()).rows(figure, params, seed, todo):
        book.put(task.key, row)
        if progress is not None:
            progress(task.seconds)
    claims, data = figure.judge(params, [book.rows[_name(task.key)] for task in tasks])
    seconds = round(time.perf_counter() - began, 1)
    return Result(figure.id, figure.title, setting, seed, params, seconds, claims, plain(data))


class _Book:
    """Finished rows by key, in memory and, one line each, in a file."""

    def __init__(self, path: Path | None, head: Row, resume: bool) -> None:
        self.rows: dict[str, Row] = {}
        self._path = path
        if path is None:
            return
        head["params"] = {name: value for name, value in head["params"].items() if name != "reps"}
        first = json.dumps(head, sort_keys=True)
        lines = path.read_text().splitlines() if resume and path.exists() else []
        if lines[:1] == [first]:
            for line in lines[1:]:
                entry = _parsed(line)
                if entry is not None:
                    self.rows[_name(entry["key"])] = entry["row"]
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [json.dumps({"key": json.loads(name), "row": row}) for name, row in self.rows.items()]
        with whole_file(path) as partial:
            partial.write_text("\n".join([first, *kept]) + "\n")

    def get(self, key: Row) -> Row | None:
        return self.rows.get(_name(key))

    def put(self, key: Row, row: Row) -> None:
        self.rows[_name(key)] = row
        if self._path is not None:
            with named(self._path), self._path.open("a") as file:
                file.write(json.dumps({"key": key, "row": row}) + "\n")


def _name(key: Row) -> str:
    return json.dumps(key, sort_keys=True)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:  # the line that an interruption cut short
        return None
