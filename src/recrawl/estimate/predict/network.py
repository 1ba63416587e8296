"""The network of Han et al. (WWW 2020): 256-128-64 ReLU, embeddings, Adagrad, L1 and L2; trained by JAX, run by NumPy.

The loss is the censored-Poisson one of the trees, so that it predicts rates as they do; at the paper's daily
intervals and rare changes it hardly differs from cross-entropy. L1 and L2 act as in proximal Adagrad on the summed
loss of a batch.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
Progress = Callable[[int, int], None]

_ROWS_AT_ONCE = 16_384


@dataclass(frozen=True)
class NetworkSettings:
    """The paper's settings. It gives no width of embeddings, batch size, learning rate or epochs: those are ours."""

    hidden: tuple[int, ...] = (256, 128, 64)
    embedding: int = 8
    l1: float = 1e-3
    l2: float = 1e-3
    learning_rate: float = 0.05
    batch: int = 512
    epochs: int = 8
    patience: int = 2


@dataclass(frozen=True, eq=False)
class Inputs:
    """Numbers (nan: unknown), one code per category column (−1: never seen), and each column's number of values."""

    numbers: Array
    codes: Codes
    n_values: list[int]

    def __getitem__(self, rows: Any) -> Inputs:
        return Inputs(self.numbers[rows], self.codes[rows], self.n_values)


@dataclass(frozen=True, eq=False)
class Network:
    """The weights. A number x enters as sign(x)·ln(1 + |x|), standardised, with a flag for unknown numbers."""

    base: float
    centre: Floats
    width: Floats
    embeddings: tuple[Floats, ...]
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    def log_rate(self, inputs: Inputs) -> Array:
        """Predicted logarithms of rates, one per row."""
        out = np.empty(len(inputs.numbers))
        for begin in range(0, len(out), _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            dense = scaled(inputs.numbers[part], self.centre, self.width)
            met = [table[code + 1] for table, code in zip(self.embeddings, inputs.codes[part].T, strict=True)]
            x = np.concatenate([dense, *met], axis=1)
            for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
                x = np.maximum(x @ w + b, 0.0)
            out[part] = self.base + (x @ self.weights[-1] + self.biases[-1])[:, 0]
        return out

    def saved(self) -> dict[str, Any]:
        """The weights for a model file: little-endian 32-bit floats in base 64, with their shapes."""
        several = {name: [_packed(a) for a in getattr(self, name)] for name in ("embeddings", "weights", "biases")}
        return {"base": self.base, "centre": _packed(self.centre), "width": _packed(self.width), **several}

    @classmethod
    def load(cls, saved: dict[str, Any], n_numbers: int, n_values: list[int]) -> Network:
        """The network of a model file; every shape is checked."""
        try:
            lists = [[_unpacked(a) for a in saved[name]] for name in ("embeddings", "weights", "biases")]
            found = cls(float(saved["base"]), _unpacked(saved["centre"]), _unpacked(saved["width"]), *map(tuple, lists))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ParameterError("model file: its network is broken") from None
        if not found._sound(n_numbers, n_values):
            raise ParameterError("model file: the layers of its network do not fit together")
        return found

    def _sound(self, n_numbers: int, n_values: list[int]) -> bool:
        if [len(table) for table in self.embeddings] != [n + 1 for n in n_values] or not self.weights:
            return False
        if any(a.ndim != 2 for a in (*self.embeddings, *self.weights)) or any(a.ndim != 1 for a in self.biases):
            return False
        width = 2 * n_numbers + sum(table.shape[1] for table in self.embeddings)
        for w, b in zip(self.weights, self.biases, strict=False):
            if w.shape[0] != width or w.shape[1] != len(b):
                return False
            width = len(b)
        shapes = self.centre.shape == self.width.shape == (n_numbers,)
        return shapes and width == 1 and len(self.weights) == len(self.biases) and np.isfinite(self.base)


def scaled(numbers: Array, centre: Floats, width: Floats) -> Floats:
    """Numbers as the network reads them: scaled logarithms, then flags for unknown numbers."""
    value = np.sign(numbers) * np.log1p(np.abs(numbers))
    unknown = np.isnan(value)
    level = np.where(unknown, 0.0, np.clip((value - centre) / width, -10.0, 10.0))
    return np.concatenate([level, unknown], axis=1).astype(np.float32)


class NetworkRows(NamedTuple):
    """Rows to learn from: the network's inputs, the interval, and whether the page changed in it."""

    inputs: Inputs
    interval: Array
    changed: Flags


def train_network(
    rows: NetworkRows,
    held_out: NetworkRows,
    base: float,
    settings: NetworkSettings,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Network:
    """Fit the weights, and return those of the epoch with the least loss on the held-out rows."""
    from recrawl.estimate.predict.loss import censored_loss
    from recrawl.estimate.predict.training import Training

    inputs = rows.inputs
    logs = np.sign(inputs.numbers) * np.log1p(np.abs(inputs.numbers))
    known = ~np.isnan(logs)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, logs, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, logs - centre, 0.0) ** 2).sum(axis=0) / count)
    around = centre.astype(np.float32), np.where(spread > 1e-6, spread, 1.0).astype(np.float32)
    dense = scaled(inputs.numbers, *around)
    training = Training(dense.shape[1], inputs.n_values, settings, base, seed)
    rng = np.random.default_rng(seed)
    best: tuple[float, Network] | None = None
    waited = 0
    for epoch in range(settings.epochs):
        training.epoch(dense, inputs.codes, rows.interval, rows.changed, rng)
        found = Network(base, *around, *training.weights())
        seen, interval, changed = held_out if len(held_out.interval) else rows
        loss = float(censored_loss(found.log_rate(seen), interval, changed).value.mean())
        if progress is not None:
            progress(epoch + 1, settings.epochs)
        if best is None or loss < best[0]:
            best, waited = (loss, found), 0
        elif (waited := waited + 1) >= settings.patience:
            break
    if best is None:
        raise ParameterError("epochs must be at least 1")
    return best[1]


def _packed(array: Floats) -> dict[str, Any]:
    return {"shape": list(array.shape), "data": base64.b64encode(array.astype("<f4").tobytes()).decode()}


def _unpacked(saved: Any) -> Floats:
    array = np.frombuffer(base64.b64decode(saved["data"], validate=True), "<f4").reshape(
        [int(n) for n in saved["shape"]]
    )
    if not np.isfinite(array).all():
        raise ValueError("not finite")
    return np.array(array, np.float32)
