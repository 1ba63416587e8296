"""Model files: what they record, and that a broken or hostile one is refused in one line."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

from recrawl.errors import ParameterError
from recrawl.estimate import Columns, Predictor, train_predictor
from recrawl.estimate.predict.trees import TreeSettings


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    n = 4000
    kind = rng.choice(["news", "help"], n)
    return {
        "url": np.array([f"https://a.example/{k}/{i}" for i, k in enumerate(kind)]),
        "kind": kind,
        "size": rng.random(n),
    }


@pytest.fixture(scope="module")
def model(table):
    changed = np.random.default_rng(2).random(4000) < np.where(table["kind"] == "news", 0.5, 0.05)
    columns = Columns(("size",), ("kind",), url=True)
    return train_predictor(
        table, 1.0, changed, columns, at=np.arange(4000.0), settings=TreeSettings(threads=1, n_trees=20)
    )


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    model.save(path)
    return json.loads(path.read_text())


def test_a_model_file_says_what_it_is(saved):
    assert saved["format"] == "recrawl predictor"
    assert saved["version"] == 1
    assert saved["columns"]["numbers"] == ["size"]
    assert "url_folder" in saved["features"]
    assert saved["about"]["dates"] == [0.0, 3999.0]
    assert 0.6 < saved["about"]["scores"]["test"]["auc"] < 1


@pytest.mark.slow
def test_it_is_read_where_neither_lightgbm_nor_jax_is(model, table, tmp_path):
    model.save(tmp_path / "m.json")
    code = f"""
import sys
for name in ("lightgbm", "sklearn", "jax", "optax"):
    sys.modules[name] = None
from recrawl.estimate.predict.predictor import Predictor
print(repr(float(Predictor.load({str(tmp_path / "m.json")!r}).log_rate(
    {{"url": ["https://a.example/news/7"], "kind": ["news"], "size": [0.5]}})[0])))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    here = model.log_rate({"url": ["https://a.example/news/7"], "kind": ["news"], "size": [0.5]})[0]
    assert float(done.stdout) == here


def broken(saved, *path_and_value):
    *path, last, value = path_and_value
    whole = copy.deepcopy(saved)
    place = whole
    for step in path:
        place = place[step]
    place[last] = value
    return whole


CASES = [
    (("format", "pickle"), "not a model file of recrawl"),
    (("version", 2), "version 2"),
    (("family", "forest"), "forest"),
    (("strength", "evidence", -1.0), "evidence and scale"),
    (("strength", "scale", "x"), "broken"),
    (("strength", {}), "broken"),
    (("columns", "numbers", 7), "list of names"),
    (("columns", {}), "broken"),
    (("encoded", []), "categories are not those"),
    (("encoded", 0, "values", [1, "a"]), "neither all text"),
    (("encoded", 0, "values", ["b", "a"]), "not in order"),
    (("encoded", 0, "log_rate", [1.0]), "rates are missing"),
    (("encoded", 0, "log_rate", None), "list of finite numbers"),
    (("words", "log_rate", [0.0]), "buckets"),
    (("model", "root", [10**6]), "trees are inconsistent"),
    (("model", "root", [-1]), "trees are inconsistent"),
    (("model", "root", ["x"]), "list of numbers"),
    (("model", "root", [10**12]), "list of numbers"),
    (("model", "base", None), "broken"),
    (("about", 3), "broken"),
]


@pytest.mark.parametrize(("change", "message"), CASES)
def test_broken_files_are_refused(saved, tmp_path, change, message):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(broken(saved, *change)))
    with pytest.raises(ParameterError, match=message):
        Predictor.load(path)


def test_trees_that_go_in_circles_are_refused(saved, tmp_path):
    inner = next(i for i, feature in enumerate(saved["model"]["feature"]) if feature >= 0)
    for side, child in (("left", inner), ("right", 0), ("left", 10**6)):
        path = tmp_path / "m.json"
        path.write_text(json.dumps(broken(saved, "model", side, inner, child)))
        with pytest.raises(ParameterError, match="trees are inconsistent"):
            Predictor.load(path)


def test_features_out_of_reach_are_refused(saved, tmp_path):
    inner = next(i for i, feature in enumerate(saved["model"]["feature"]) if feature >= 0)
    path = tmp_path / "m.json"
    path.write_text(json.dumps(broken(saved, "model", "feature", inner, 99)))
    with pytest.raises(ParameterError, match="trees are inconsistent"):
        Predictor.load(path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nan", "\x80\x04", '{"format": "recrawl predictor"}'])
def test_what_is_no_model_file_is_refused(tmp_path, text):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(ParameterError):
        Predictor.load(path)


def test_a_file_that_is_not_there_or_cannot_be_written(model, tmp_path):
    with pytest.raises(ParameterError, match="cannot be read"):
        Predictor.load(tmp_path / "none.json")
    with pytest.raises(ParameterError, match="cannot be written"):
        model.save(tmp_path / "none" / "m.json")
