"""Predictor: change rates (or click rates) of pages from their columns, and the gamma priors that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations
from recrawl.estimate.predict.encode import Outcomes, hidden
from recrawl.estimate.predict.features import Columns, Features
from recrawl.estimate.predict.network import Inputs, Network, NetworkRows, NetworkSettings, train_network
from recrawl.estimate.predict.prior import Strength, fit_strength
from recrawl.estimate.predict.scores import score
from recrawl.estimate.predict.trees import TreeRows, Trees, TreeSettings, grow

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
    """Predicts a rate for every row of a page table, and a gamma prior around it.

    ``strength`` gives the gamma around a predicted rate, fitted to later crawls of pages outside the training set.
    ``about`` holds the size of the training set and the scores.
    """

    features: Features
    model: Trees | Network
    strength: Strength = field(default_factory=Strength)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def family(self) -> Family:
        """The kind of model: trees or network."""
        return "trees" if isinstance(self.model, Trees) else "network"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that a page table must have."""
        return self.features.columns.inputs

    def rate(self, table: Given) -> Array:
        """Predicted rates, per unit of the intervals trained on."""
        return np.asarray(np.exp(self.log_rate(table)))

    def log_rate(self, table: Given) -> Array:
        """Natural logarithms of the predicted rates."""
        if isinstance(self.model, Trees):
            return self.model.log_rate(self.features.matrix(table))
        return self.model.log_rate(network_inputs(self.features, table))

    def chance(self, table: Given, interval: ArrayLike = 1.0) -> Array:
        """Probability of a change within an interval, 1 − exp(−rate·interval)."""
        return np.asarray(-np.expm1(-self.rate(table) * np.asarray(interval, np.float64)))

    def prior(self, table: Given) -> GammaPrior:
        """Gamma priors of pages that were never crawled. `Engine.add` takes their mean and shape."""
        return self.strength.prior(self.log_rate(table))

    def save(self, path: str | Path) -> None:
        """Write a model file: JSON, readable without LightGBM or JAX."""
        from recrawl.estimate.predict.file import write_model

        write_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        """Read a model file. A broken file raises ParameterError."""
        from recrawl.estimate.predict.file import read_model

        return read_model(Path(path))


class TrainingOptions(TypedDict, total=False):
    """Keywords of `train_predictor`, all optional."""

    page: ArrayLike | None  # the page of every row, by any name or number; default: the URL, else each row its own page
    at: ArrayLike | None  # the date of every row, as a number; default: rows are split by page
    family: Family  # default: trees
    settings: TreeSettings | NetworkSettings | None  # of the family
    seed: int  # default: 0
    progress: Progress | None  # called with (steps done, steps in all)


def train_predictor(
    table: Given, interval: ArrayLike, changed: ArrayLike, columns: Columns, **options: Unpack[TrainingOptions]
) -> Predictor:
    """Learn rates from crawls: a row holds a page's columns, an interval, and whether the page changed in it.

    Rows are split by the date ``at``: the first 70% are for training, the next 10% decide when to stop, the rest is
    the test. Without dates, rows are split by page. A tenth of the pages is left out of training: they give the scores
    of new pages. The strength of the prior is fitted to later crawls of these pages and of pages first seen after the
    training dates. ``TrainingOptions`` lists the keywords.
    """
    unknown = options.keys() - TrainingOptions.__annotations__
    if unknown:
        raise TypeError(f"train_predictor() got an unexpected keyword argument {min(unknown)!r}")
    family, settings = options.get("family", "trees"), options.get("settings")
    seed, progress = options.get("seed", 0), options.get("progress")
    seen, when = _outcomes(table, interval, changed, options.get("page"), options.get("at"))
    pick = _picker(table, columns)
    part, new = _parts(seen.page, when)
    train = (part == _TRAIN) & ~new
    if not (seen.changed[train].any() and (~seen.changed[train]).any()):
        raise ParameterError("training needs rows with a change and rows without one")
    chosen = settings or (TreeSettings() if family == "trees" else NetworkSettings())
    if family not in ("trees", "network") or isinstance(chosen, TreeSettings) != (family == "trees"):
        raise ParameterError(f"family {family!r} is not one of trees, network, or its settings are of the other")
    features = Features(columns)
    known, stop = _rows(seen, train), (part == _VALIDATION) & ~new
    matrix = features.fit(pick(train), known)
    base, held = float(np.log(known.rate())), _rows(seen, stop)
    model: Trees | Network
    if isinstance(chosen, TreeSettings):
        aside = TreeRows(features.matrix(pick(stop)) if stop.any() else matrix[:0], held.interval, held.changed)
        rows = TreeRows(matrix, known.interval, known.changed)
        model = grow(rows, aside, base, chosen, seed=seed, progress=progress)
    else:
        inputs = network_inputs(features, pick(train))
        for k, category in enumerate(features.categories):
            inputs.codes[hidden(known.page, category.columns), k] = -1
        later = network_inputs(features, pick(stop)) if stop.any() else inputs[:0]
        beside = NetworkRows(later, held.interval, held.changed)
        lines = NetworkRows(inputs, known.interval, known.changed)
        model = train_network(lines, beside, base, chosen, seed=seed, progress=progress)
    predictor = Predictor(features, model)
    _judge(predictor, pick, seen, when, part, new)
    return predictor


def network_inputs(features: Features, given: Given) -> Inputs:
    """The inputs of the network: numbers (words of URLs as rates), and categories as codes."""
    table, words = features.read(given)
    numbers = [table[name] for name in features.numbers]
    numbers += [] if words is None else features.words.features(words)
    codes = [category.code(table) for category in features.categories]
    n = len(next(iter(table.values())))
    return Inputs(
        np.stack(numbers, axis=1) if numbers else np.zeros((n, 0)),
        np.stack(codes, axis=1).astype(np.int32) if codes else np.zeros((n, 0), np.int32),
        [len(category.values) for category in features.categories],
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
    """The part of each row (training, validation, test), and whether its page is left out of training."""
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
    """Set the scores of each part, and the strength of the prior from pages that were left out."""
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
