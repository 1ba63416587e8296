"""Predictor: change rates (or click rates) of pages from what they look like, and the prior that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations
from recrawl.estimate.predict.encode import Outcomes, hidden
from recrawl.estimate.predict.features import Columns, Features
from recrawl.estimate.predict.network import Inputs, Network, NetworkSettings, train_network
from recrawl.estimate.predict.prior import Strength, fit_strength
from recrawl.estimate.predict.scores import score
from recrawl.estimate.predict.trees import Trees, TreeSettings, grow

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]
Given = Mapping[str, ArrayLike]
Family = Literal["trees", "network"]
Progress = Callable[[int, int], None]

_TRAIN, _VALIDATION, _TEST = 0, 1, 2
_EDGES = (0.7, 0.8)  # of the rows by date: training up to the first, validation up to the second, then test


@dataclass(eq=False)
class Predictor:
    """A rate for every row of a page table, and how far it is to be believed.

    ``strength`` is the gamma behind a predicted rate, found on later crawls of pages that were not trained on.
    ``about`` says what it was trained on and how well it does.
    """

    features: Features
    model: Trees | Network
    strength: Strength = field(default_factory=Strength)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def family(self) -> Family:
        """Which kind of model it is."""
        return "trees" if isinstance(self.model, Trees) else "network"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that a page table must have."""
        return self.features.columns.inputs

    def rate(self, table: Given) -> Array:
        """Predicted rates, per unit of the intervals trained on."""
        return np.asarray(np.exp(self.log_rate(table)))

    def log_rate(self, table: Given) -> Array:
        """Their logarithms."""
        if isinstance(self.model, Trees):
            return self.model.log_rate(self.features.matrix(table))
        return self.model.log_rate(network_inputs(self.features, table))

    def chance(self, table: Given, interval: ArrayLike = 1.0) -> Array:
        """The chance of a change within an interval, 1 − exp(−rate·interval)."""
        return np.asarray(-np.expm1(-self.rate(table) * np.asarray(interval, np.float64)))

    def prior(self, table: Given) -> GammaPrior:
        """What to believe of pages before they are crawled; an engine takes its mean and shape (`Engine.add`)."""
        return self.strength.prior(self.log_rate(table))

    def save(self, path: str | Path) -> None:
        """Write a model file: JSON, readable anywhere without LightGBM or JAX."""
        from recrawl.estimate.predict.file import write_model

        write_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        """Read a model file; one that is broken is refused in one line."""
        from recrawl.estimate.predict.file import read_model

        return read_model(Path(path))


def train_predictor(
    table: Given,
    interval: ArrayLike,
    changed: ArrayLike,
    columns: Columns,
    *,
    page: ArrayLike | None = None,
    at: ArrayLike | None = None,
    family: Family = "trees",
    settings: TreeSettings | NetworkSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Predictor:
    """Learn rates from rows "this page, looking like this, changed or not within an interval".

    Rows are split by date ``at``: the first 70% train, the next 10% say when to stop, the rest is the test; without
    dates, by page. A tenth of the pages (``page``: any name or number; default: the URL, else each row its own) is
    left out of training altogether: the scores of new pages are theirs. The prior's strength is found on later crawls
    of these pages and of those that came after the training dates.
    """
    seen, when = _outcomes(table, interval, changed, page, at)
    pick = _picker(table, columns)
    part, new = _parts(seen.page, when)
    train = (part == _TRAIN) & ~new
    if not (seen.changed[train].any() and (~seen.changed[train]).any()):
        raise ParameterError("training needs rows with a change and rows without one")
    chosen = settings or (TreeSettings() if family == "trees" else NetworkSettings())
    if family not in ("trees", "network") or isinstance(chosen, TreeSettings) != (family == "trees"):
        raise ParameterError(f"family {family!r} is not one of trees, network, or its settings are of the other")
    features = Features(columns)
    matrix = features.fit(pick(train), _rows(seen, train))
    base, stop = float(np.log(_rows(seen, train).rate())), (part == _VALIDATION) & ~new
    held = _rows(seen, stop)
    model: Trees | Network
    if isinstance(chosen, TreeSettings):
        aside = (features.matrix(pick(stop)) if stop.any() else matrix[:0], held.interval, held.changed)
        known = _rows(seen, train)
        model = grow(matrix, known.interval, known.changed, aside, base, chosen, seed=seed, progress=progress)
    else:
        known = _rows(seen, train)
        inputs = network_inputs(features, pick(train))
        for k, category in enumerate(features.categories):
            inputs.codes[hidden(known.page, category.columns), k] = -1
        beside = (network_inputs(features, pick(stop)) if stop.any() else inputs[:0], held.interval, held.changed)
        sizes = [len(category.values) for category in features.categories]
        model = train_network(
            inputs, known.interval, known.changed, beside, base, sizes, chosen, seed=seed, progress=progress
        )
    predictor = Predictor(features, model)
    _judge(predictor, pick, seen, when, part, new)
    return predictor


def network_inputs(features: Features, given: Given) -> Inputs:
    """What the network takes: numbers (words of URLs as the rates seen with them), and categories as codes."""
    table, words = features.read(given)
    numbers = [table[name] for name in features.numbers]
    numbers += [] if words is None else features.words.features(words)
    codes = [category.code(table) for category in features.categories]
    n = len(next(iter(table.values())))
    return Inputs(
        np.stack(numbers, axis=1) if numbers else np.zeros((n, 0)),
        np.stack(codes, axis=1).astype(np.int32) if codes else np.zeros((n, 0), np.int32),
    )


def _outcomes(
    table: Given, interval: ArrayLike, changed: ArrayLike, page: ArrayLike | None, at: ArrayLike | None
) -> tuple[Outcomes, Array | None]:
    hit = np.asarray(changed, np.bool_)
    n = len(hit)
    time = np.ascontiguousarray(np.broadcast_to(np.asarray(interval, np.float64), (n,)))
    if n == 0 or not ((time > 0) & np.isfinite(time)).all():
        raise ParameterError("training needs rows, each with an interval that is finite and above 0")
    who = table["url"] if page is None and "url" in table else page
    number = np.arange(n) if who is None else np.unique(np.asarray(who), return_inverse=True)[1]
    when = None if at is None else np.asarray(at, np.float64)
    for name, column in (("page", number), ("at", when)):
        if column is not None and column.shape != (n,):
            raise ParameterError(f"{name} has {column.size} rows but there are {n}")
    if when is not None and not np.isfinite(when).all():
        raise ParameterError("at: every row needs a date")
    return Outcomes(time, hit, number.astype(np.int64)), when


def _parts(page: Ids, when: Array | None) -> tuple[Ids, Flags]:
    """Which part each row is in, and whether its page is one of those left out of training."""
    mixed = (page.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
    share = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
    if when is None:
        return np.searchsorted(_EDGES, share, side="right"), share < 0.1
    edges = np.quantile(when, _EDGES)
    return np.searchsorted(edges, when, side="right"), share < 0.1


def _picker(table: Given, columns: Columns) -> Callable[[Flags | Ids], dict[str, NDArray[Any]]]:
    lacking = [name for name in columns.inputs if name not in table]
    if lacking:
        raise ParameterError(f"the table lacks {', '.join(lacking)}")
    wanted = {name: np.asarray(table[name]) for name in columns.inputs}
    return lambda rows: {name: column[rows] for name, column in wanted.items()}


def _rows(seen: Outcomes, rows: Flags | Ids) -> Outcomes:
    return Outcomes(seen.interval[rows], seen.changed[rows], seen.page[rows])


def _judge(
    predictor: Predictor,
    pick: Callable[[Flags | Ids], Given],
    seen: Outcomes,
    when: Array | None,
    part: Ids,
    new: Flags,
) -> None:
    """Scores on each part, and how far predictions hold for pages that were left out."""
    guess = predictor.log_rate(pick(np.ones(len(part), np.bool_)))
    parts = {
        "train": (part == _TRAIN) & ~new,
        "validation": (part == _VALIDATION) & ~new,
        "test": part == _TEST,
        "test_new_pages": (part == _TEST) & new,
    }
    scores = {name: score(guess[rows], seen.interval[rows], seen.changed[rows]) for name, rows in parts.items()}
    trained = np.zeros(int(seen.page.max()) + 1, np.bool_)
    trained[seen.page[parts["train"]]] = True
    aside = np.flatnonzero(~trained[seen.page] & ((part != _TRAIN) if when is not None else new))
    aside = aside[np.lexsort((aside if when is None else when[aside], seen.page[aside]))]
    if len(aside):
        _, first, who = np.unique(seen.page[aside], return_index=True, return_inverse=True)
        history = Observations.from_pages(who, seen.interval[aside], seen.changed[aside])
        predictor.strength = fit_strength(history, guess[aside][first])
    span = None if when is None else [float(when.min()), float(when.max())]
    predictor.about = {"rows": len(part), "pages": len(np.unique(seen.page)), "dates": span, "scores": scores}
