"""Model files: JSON with everything that scoring needs. Every part is checked when the file is read."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl._system.files import whole_file
from recrawl.errors import ParameterError
from recrawl.estimate.predict.encode import Category, WordRates
from recrawl.estimate.predict.features import Columns, Features
from recrawl.estimate.predict.network import Network
from recrawl.estimate.predict.prior import Strength
from recrawl.estimate.predict.trees import Trees
from recrawl.estimate.predict.urls import N_BUCKETS, URL_CATEGORIES

if TYPE_CHECKING:
    from recrawl.estimate.predict.predictor import Predictor

FORMAT, VERSION = "recrawl predictor", 1
_LARGEST = 1 << 29  # bytes
_STRENGTH = ("evidence", "scale", "power", "centre")


def write_model(predictor: Predictor, path: Path) -> None:
    """Write a model file. An existing file is replaced when the new one is complete."""
    columns = predictor.features.columns
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "family": predictor.family,
        "about": predictor.about,
        "strength": asdict(predictor.strength),
        "columns": {
            "numbers": list(columns.numbers),
            "categories": list(columns.categories),
            "crosses": [list(cross) for cross in columns.crosses],
            "url": columns.url,
        },
        "features": predictor.features.names,
        "encoded": [_category(category) for category in predictor.features.categories],
        "words": _words(predictor.features) if columns.url else None,
        "model": predictor.model.saved(),
    }
    try:
        with whole_file(path) as partial:
            partial.write_text(json.dumps(whole, allow_nan=False, separators=(",", ":")), encoding="utf-8")
    except OSError as problem:
        raise ParameterError(f"{path} cannot be written: {problem.strerror}") from None


def read_model(path: Path) -> Predictor:
    """Read a model file. The file may come from anywhere: nothing in it is executed."""
    from recrawl.estimate.predict.predictor import Predictor

    whole = _read(path)
    try:
        strength = Strength(**{name: float(whole["strength"][name]) for name in _STRENGTH})
        found = Predictor(*_parts(whole), strength, dict(whole["about"]))
    except ParameterError as problem:
        raise ParameterError(f"{path}: {problem}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise ParameterError(f"{path}: the model file is broken ({type(problem).__name__}: {problem})") from None
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise ParameterError(f"{path} is larger than {_LARGEST >> 20} MB: no model file")
        whole = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ParameterError(f"{path} cannot be read: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise ParameterError(f"{path} is not a model file: no JSON") from None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise ParameterError(f"{path} is not a model file of recrawl")
    if whole.get("version") != VERSION:
        raise ParameterError(f"{path} has version {whole.get('version')!r}; this recrawl reads version {VERSION}")
    return whole


def _parts(whole: dict[str, Any]) -> tuple[Features, Trees | Network]:
    given = whole["columns"]
    names = [_texts(given[name]) for name in ("numbers", "categories")]
    columns = Columns(names[0], names[1], tuple(_texts(cross) for cross in given["crosses"]), bool(given["url"]))
    features = Features(columns, [_as_category(saved) for saved in whole["encoded"]])
    single = (*columns.categories, *(URL_CATEGORIES if columns.url else ()))
    if [category.columns for category in features.categories] != [*((name,) for name in single), *columns.crosses]:
        raise ParameterError("its categories are not those of its columns")
    if columns.url:
        rates = _floats(whole["words"]["log_rate"])
        if len(rates) != N_BUCKETS:
            raise ParameterError(f"words has {len(rates)} buckets, not {N_BUCKETS}")
        features.words = WordRates(rates, float(whole["words"]["unseen"]))
    if whole["family"] == "trees":
        return features, Trees.load(whole["model"], len(features.names))
    if whole["family"] == "network":
        n_numbers = len(features.numbers) + (len(WordRates.names) if columns.url else 0)
        return features, Network.load(whole["model"], n_numbers, [len(c.values) for c in features.categories])
    raise ParameterError(f"family {whole['family']!r} is not one of trees, network")


def _category(category: Category) -> dict[str, Any]:
    return {
        "columns": list(category.columns),
        "values": category.values.tolist(),
        "log_rate": category.log_rate.tolist(),
    }


def _words(features: Features) -> dict[str, Any]:
    return {"log_rate": features.words.log_rate.round(6).tolist(), "unseen": features.words.unseen}


def _as_category(saved: dict[str, Any]) -> Category:
    kinds = {type(value) for value in saved["values"]}
    if len(kinds) > 1 or not kinds <= {str, int}:
        raise ParameterError("the values of a category are neither all text nor all whole numbers")
    values: NDArray[Any] = np.array(saved["values"], np.int64 if kinds == {int} else np.str_)
    rates = _floats(saved["log_rate"])
    if values.ndim != 1 or len(values) != len(rates) or (values[1:] <= values[:-1]).any():
        raise ParameterError("the values of a category are not in order, or their rates are missing")
    return Category(_texts(saved["columns"]), values, rates)


def _floats(values: Any) -> NDArray[np.float64]:
    column = np.array(values, np.float64)
    if column.ndim != 1 or not np.isfinite(column).all():
        raise ParameterError("a list of finite numbers is expected")
    return column


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ParameterError("a list of names is expected")
    return tuple(values)
