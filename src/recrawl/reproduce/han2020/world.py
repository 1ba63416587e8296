"""The shop as Han et al. 2020 use theirs: models trained on its first months, then days on which strategies are run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate.predict.features import Columns
from recrawl.estimate.predict.predictor import Predictor, train_predictor
from recrawl.estimate.predict.trees import TreeSettings
from recrawl.simulate.shop.history import HISTORY, METADATA, Midnight, examples
from recrawl.simulate.shop.price_days import KnownRates, PriceDay, from_history, from_truth, record_days
from recrawl.simulate.shop.settings import shop_settings
from recrawl.simulate.shop.shop import Shop

Array = NDArray[np.float64]
LABELS = {"change": "changed", "click": "clicked", "impression": "seen"}
_CROSSED = (("merchant", "weekday"),)  # merchants change prices on days of their own
INPUTS = {
    "metadata": Columns(categories=METADATA, crosses=_CROSSED),
    "history": Columns(numbers=HISTORY),
    "both": Columns(numbers=HISTORY, categories=METADATA, crosses=_CROSSED),
}


@dataclass(frozen=True)
class Calendar:
    """Days of a shop: models learn from the first ``trained``, then strategies warm up, then they are judged.

    The paper's data: 2018/08/01 to 2019/01/09, to 2019/03/10, to 2019/04/10.
    """

    trained: int = 162
    warm_up: int = 60
    judged: int = 31

    @property
    def last(self) -> int:
        """The day after the last."""
        return self.trained + self.warm_up + self.judged


@dataclass(frozen=True)
class World:
    """A shop: its name, size and seed, and the share of it that the models are trained on."""

    name: str
    n: int
    seed: int
    rows: int  # a day to learn from
    calendar: Calendar = Calendar()
    shift_at: int | None = None

    def shop(self) -> Shop:
        """Draw the shop."""
        settings = shop_settings(self.name)
        return Shop(
            self.n, settings if self.shift_at is None else replace(settings, shift_at=self.shift_at), seed=self.seed
        )


def train(world: World, inputs: str, task: str, table: Any, label: Any) -> Predictor:
    """A model of one task on some of the columns."""
    settings = TreeSettings(n_trees=200, threads=1)
    interval, hit = np.ones(len(label["day"])), label[LABELS[task]]
    return train_predictor(
        table, interval, hit, INPUTS[inputs], page=label["offer"], at=label["day"], settings=settings, seed=world.seed
    )


def learn_from(world: World, shop: Shop) -> tuple[Any, Any]:
    """Training rows and labels: offers drawn uniformly on each day.

    (The paper adds rows drawn by clicks against the imbalance; a likelihood needs none, and keeps its rates.)
    """
    rng = np.random.default_rng([world.seed, 4])
    return examples(shop, 30, world.calendar.trained, world.rows, rng)


@lru_cache(maxsize=3)
def prepared(world: World) -> list[PriceDay]:
    """The days after training, each with rates from history, from models and the true ones."""
    shop = world.shop()
    table, label = learn_from(world, shop)
    models = {task: train(world, "both", task, table, label) for task in LABELS}

    def from_models(midnight: Midnight) -> KnownRates:
        """Predictions of the models: probability of a change, and rates of clicks and impressions."""
        change = models["change"].chance(midnight.table)
        return KnownRates(change, models["click"].rate(midnight.table), models["impression"].rate(midnight.table))

    sources = {"history": from_history, "models": from_models, "truth": from_truth}
    return record_days(shop, world.calendar.trained, world.calendar.last, sources)
