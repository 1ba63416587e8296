"""Predictors of the shop's next day: metadata and history predict where they carry information, and only there."""

import numpy as np
import pytest

from recrawl.estimate import Columns, train_predictor
from recrawl.estimate.predict.trees import TreeSettings
from recrawl.simulate.shop.history import HISTORY, METADATA, examples
from recrawl.simulate.shop.shop import Shop

pytestmark = pytest.mark.slow

CROSS = (("merchant", "weekday"),)
WAYS = {
    "metadata": Columns(categories=METADATA, crosses=CROSS),
    "history": Columns(numbers=HISTORY),
    "both": Columns(HISTORY, METADATA, CROSS),
}


def aucs(name, label):
    """AUC on the test days by what is looked at."""
    table, labels = examples(Shop(8000, name, seed=3), 35, 77, 1500, np.random.default_rng(1))
    settings = TreeSettings(threads=1, n_trees=60, learning_rate=0.15)
    found = {}
    for way, columns in WAYS.items():
        model = train_predictor(
            table, 1.0, labels[label], columns, page=labels["offer"], at=labels["day"], settings=settings
        )
        found[way] = model.about["scores"]["test"]["auc"]
    return found


def test_metadata_and_history_together_predict_changes_best():
    found = aucs("shop", "changed")
    assert found["metadata"] > 0.75
    assert found["both"] > found["history"] + 0.02


def test_for_impressions_history_is_enough():
    found = aucs("shop", "seen")
    assert found["history"] > found["metadata"] + 0.1
    assert found["both"] == pytest.approx(found["history"], abs=0.015)


def test_metadata_without_information_predict_nothing():
    found = aucs("shop-untold", "changed")
    assert found["metadata"] < 0.62  # weekdays and sales are known to all
    assert found["both"] < found["history"] + 0.02


def test_where_hardly_anybody_looks_history_is_not_enough():
    found = aucs("shop-sparse", "seen")
    assert found["both"] > found["history"] + 0.04
