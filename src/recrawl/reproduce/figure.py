"""Figure: one figure or table of a paper as tasks to run, claims to judge and a picture to draw."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from recrawl._system.files import whole_file
from recrawl.errors import ParameterError

Params = dict[str, Any]
Row = dict[str, Any]


class Task(NamedTuple):
    """One piece of work: its key, and roughly how many seconds it takes on one core."""

    key: Row
    seconds: float = 1.0


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: its figure (or a check value) beside ours. ``holds`` is None for figures only reported.

    ``error`` is the standard error of ``ours``; ``note`` the reason where a claim does not hold.
    """

    key: str
    text: str
    ours: float | None
    error: float | None = None
    paper: float | str | None = None
    holds: bool | None = None
    note: str = ""


class Bounds(TypedDict, total=False):
    """Keywords of `bounded`, all optional."""

    least: float
    most: float
    paper: float | str | None  # the paper's figure
    note: str  # the reason why the claim does not hold


def bounded(key: str, text: str, ours: float, error: float | None = None, **bounds: Unpack[Bounds]) -> Claim:
    """A claim that holds if least ≤ ours ≤ most. The note is dropped if the claim holds.

    >>> bounded("gap", "within 0.01", 0.002, most=0.01).holds
    True
    """
    holds = bool(bounds.get("least", -np.inf) <= ours <= bounds.get("most", np.inf))
    note = "" if holds else bounds.get("note", "")
    return Claim(key, text, float(ours), error, bounds.get("paper"), holds, note)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    ``tasks`` lists the work of a setting. ``work`` does one task and returns plain numbers; it is a module-level
    function, because it runs in other processes. ``judge`` turns all rows into claims and into the data of the picture.
    ``draw`` draws that data into an empty matplotlib figure. Figures with the same ``stream`` have the same draws.
    """

    id: str
    title: str
    settings: Mapping[str, Params]
    tasks: Callable[[Params], list[Task]]
    work: Callable[[Params, Row, np.random.Generator], Row]
    judge: Callable[[Params, list[Row]], tuple[list[Claim], Row]]
    draw: Callable[[Any, Row], None]
    stream: str = ""
    size: tuple[float, float] = (8.0, 5.0)

    def params(self, setting: str, reps: int | None = None) -> Params:
        """The parameters of a setting, with ``reps`` repetitions if given."""
        chosen = dict(self.settings[setting])
        if reps is not None and "reps" in chosen:
            chosen["reps"] = reps
        return chosen

    def rng(self, seed: int, key: Row) -> np.random.Generator:
        """The random generator of a task. It depends on the seed and the task only, not on the process."""
        place = [zlib.crc32(text.encode()) for text in (self.stream or self.id, json.dumps(key, sort_keys=True))]
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))


@dataclass(frozen=True)
class Result:
    """The claims and data of a figure that was run."""

    id: str
    title: str
    setting: str
    seed: int
    params: Params
    seconds: float
    claims: list[Claim]
    data: Row

    def as_dict(self) -> Row:
        """Everything as plain values; numbers that are not finite become null."""
        return dict(plain(asdict(self)))

    def save(self, folder: Path) -> Path:
        """Write <folder>/<paper>/<id>.json and return its path."""
        path = folder / f"{self.id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            partial.write_text(json.dumps(self.as_dict(), indent=1, allow_nan=False) + "\n")
        return path

    def draw(self, path: Path) -> None:
        """Draw the picture into a file."""
        from recrawl.reproduce.catalogue import figures

        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure as Canvas
        except ImportError:
            raise ParameterError("pictures need matplotlib: pip install 'recrawl[data]'") from None
        figure = figures()[self.id]
        path.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}):
            canvas = Canvas(figsize=figure.size, dpi=120, layout="constrained")
            figure.draw(canvas, self.data)
            with whole_file(path) as partial:
                canvas.savefig(partial)


def mean_error(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, float]:
    """Mean and its standard error (0 for a single value).

    >>> mean_error([1.0, 3.0])
    (2.0, 1.0)
    """
    x = np.asarray(values, np.float64)
    return float(x.mean()), float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else 0.0


def column(rows: Sequence[Row], name: str, **where: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """One column of the rows that match ``where``."""
    return np.array([row[name] for row in rows if all(row[key] == value for key, value in where.items())])


def plain(value: Any) -> Any:
    """A value as JSON types: lists for arrays, None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
