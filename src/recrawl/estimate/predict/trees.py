"""Gradient-boosted trees for rates: fitted by LightGBM under the censored-Poisson loss, kept as plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.predict.loss import censored_loss

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int32]
Progress = Callable[[int, int], None]

_ARRAYS = {"root": "i", "feature": "i", "threshold": "f", "left": "i", "right": "i", "missing": "i"}
_FLAT = 1e-6  # least second derivative: rows that are certain must not make a leaf's step infinite


@dataclass(frozen=True)
class TreeSettings:
    """How trees are grown. Growing stops after ``patience`` trees without a lower loss on the validation rows."""

    n_trees: int = 400
    leaves: int = 31
    learning_rate: float = 0.1
    least_rows: int = 100
    pull: float = 10.0  # L2 penalty of leaf values
    patience: int = 30
    threads: int = 0  # 0: as many as there are cores


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees as arrays: log rate = base + Σ leaf values."""

    base: float
    root: Codes
    feature: Codes
    threshold: Array
    left: Codes
    right: Codes
    missing: Codes

    def log_rate(self, features: Array) -> Array:
        """Predicted logarithms of rates, one per row of features."""
        from recrawl.estimate.predict.tree_kernels import add_trees

        out = np.full(len(features), self.base)
        arrays = (self.root, self.feature, self.threshold, self.left, self.right, self.missing)
        add_trees(np.ascontiguousarray(features, np.float64), *arrays, out)
        return out

    def saved(self) -> dict[str, Any]:
        """The arrays as lists, for a model file."""
        return {"base": self.base, **{name: getattr(self, name).tolist() for name in _ARRAYS}}

    @classmethod
    def load(cls, saved: dict[str, Any], n_features: int) -> Trees:
        """Trees from the lists of a model file. Every list is checked: the file may come from anywhere."""
        arrays = {name: _column(saved.get(name), name, kind) for name, kind in _ARRAYS.items()}
        n = len(arrays["feature"])
        node = np.arange(n)
        inner = arrays["feature"] >= 0
        sound = (
            all(len(arrays[name]) == n for name in _ARRAYS if name != "root")
            and (arrays["feature"] < n_features).all()
            and ((arrays["root"] >= 0) & (arrays["root"] < n)).all()
            and all(((arrays[side] > node) & (arrays[side] < n))[inner].all() for side in ("left", "right"))
        )
        if not sound or not np.isfinite(float(saved["base"])):
            raise ParameterError("model file: its trees are inconsistent")
        return cls(float(saved["base"]), **arrays)


class TreeRows(NamedTuple):
    """Rows to learn from: one feature vector per row, the interval, and whether the page changed in it."""

    features: Array
    interval: Array
    changed: Flags


def grow(
    rows: TreeRows,
    held_out: TreeRows,
    base: float,
    settings: TreeSettings,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Trees:
    """Fit trees to rows. Growing stops when the loss on the ``held_out`` rows no longer falls."""
    try:
        import lightgbm
    except ImportError:
        raise ParameterError("predictors need LightGBM: install recrawl[predict]") from None

    options = {
        "objective": _objective(rows.interval, rows.changed),
        "num_leaves": settings.leaves,
        "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.least_rows,
        "min_sum_hessian_in_leaf": 1.0,
        "lambda_l2": settings.pull,
        "num_threads": settings.threads,
        "max_bin": 127,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
        "metric": "none",
    }
    n = len(rows.features)
    if n < 2 * settings.least_rows:  # nothing can be split
        raise _too_few(n, settings)
    data = lightgbm.Dataset(rows.features, rows.changed.astype(float), init_score=np.full(n, base))
    watch: dict[str, Any] = {"valid_sets": [], "callbacks": []}
    if len(held_out.features):
        seen, interval, changed = held_out
        valid = lightgbm.Dataset(seen, changed.astype(float), init_score=np.full(len(seen), base), reference=data)
        watch = {
            "valid_sets": [valid],
            "feval": lambda guess, _: ("loss", float(censored_loss(guess, interval, changed).value.mean()), False),
            "callbacks": [lightgbm.early_stopping(settings.patience, verbose=False)],
        }
    if progress is not None:
        report = progress
        watch["callbacks"].append(lambda env: report(env.iteration + 1, settings.n_trees))
    try:
        booster = lightgbm.train(options, data, settings.n_trees, **watch)
    except lightgbm.basic.LightGBMError:
        raise _too_few(n, settings) from None
    best = booster.best_iteration if booster.best_iteration > 0 else None
    return _flattened(booster.dump_model(num_iteration=best), base)


def _too_few(n: int, settings: TreeSettings) -> ParameterError:
    return ParameterError(
        f"no trees can be grown from {n} rows: each half of a split needs {settings.least_rows}, "
        "and properties of pages that differ"
    )


def _objective(interval: Array, changed: Flags) -> Callable[[Array, Any], tuple[Array, Array]]:
    def objective(guess: Array, _: Any) -> tuple[Array, Array]:
        loss = censored_loss(guess, interval, changed)
        return loss.gradient, np.maximum(loss.hessian, _FLAT)

    return objective


def _flattened(dump: dict[str, Any], base: float) -> Trees:
    """LightGBM's nested trees as arrays, parents before children."""
    rows: list[list[float]] = []  # feature, threshold or value, left, right, missing
    roots = []
    for tree in dump["tree_info"]:
        roots.append(len(rows))
        waiting: list[tuple[dict[str, Any], int, int]] = [(tree["tree_structure"], -1, 0)]
        while waiting:
            node, parent, side = waiting.pop()
            if parent >= 0:
                rows[parent][2 + side] = len(rows)
            if "split_feature" not in node:
                rows.append([-1, node["leaf_value"], 0, 0, 0])
                continue
            nan = 2 if node["missing_type"] != "NaN" else (0 if node["default_left"] else 1)
            rows.append([node["split_feature"], node["threshold"], 0, 0, nan])
            here = len(rows) - 1
            waiting += [(node["right_child"], here, 1), (node["left_child"], here, 0)]
    table = np.array(rows, np.float64).reshape(-1, 5)
    whole = table[:, [0, 2, 3, 4]].astype(np.int32)
    columns = [np.ascontiguousarray(whole[:, k]) for k in range(4)]
    return Trees(
        base,
        np.array(roots, np.int32),
        columns[0],
        np.ascontiguousarray(table[:, 1]),
        columns[1],
        columns[2],
        columns[3],
    )


def _column(value: Any, name: str, kind: str) -> NDArray[Any]:
    try:
        column = np.array(value, np.float64 if kind == "f" else np.int32)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"model file: {name} is not a list of numbers") from None
    if column.ndim != 1 or (kind == "f" and not np.isfinite(column).all()):
        raise ParameterError(f"model file: {name} is not a list of finite numbers")
    return column
