"""How long predictors take to train and to score, and how good and how calibrated they are on the shop's next days.

python benchmarks/bench_predict.py [--rows 1000000] [--output benchmarks/results]

Writes predict.json and predict.png. Trees are grown and pages scored by one thread, the network is trained by as many
as JAX takes; processor time, and seconds by the clock. Compilation of kernels is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.estimate import Columns, Predictor, train_predictor
from recrawl.estimate.predict.network import NetworkSettings
from recrawl.estimate.predict.trees import TreeSettings
from recrawl.simulate.shop.history import HISTORY, METADATA, examples
from recrawl.simulate.shop.shop import Shop

CROSS = (("merchant", "weekday"),)
WAYS = {
    "metadata": Columns(categories=METADATA, crosses=CROSS),
    "history": Columns(numbers=HISTORY),
    "both": Columns(HISTORY, METADATA, CROSS),
}
LABELS = ("changed", "clicked", "seen")
KEPT = ("rows", "auc", "loss", "loss_of_one_rate", "calibration_slope", "calibration_offset", "reliability")
FIRST, LAST = 60, 200


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a call gives, its processor time and its time by the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    found = call()
    return found, time.process_time() - cpu, time.perf_counter() - clock


def trained(rows: Any, label: str, columns: Columns, family: str, threads: int) -> Predictor:
    table, labels = rows
    settings = TreeSettings(threads=threads) if family == "trees" else NetworkSettings()
    return train_predictor(
        table,
        1.0,
        labels[label],
        columns,
        page=labels["offer"],
        at=labels["day"],
        family=family,  # type: ignore[arg-type]
        settings=settings,
    )


def scores(model: Predictor) -> dict[str, Any]:
    test = model.about["scores"]["test"]
    return {name: test[name] for name in KEPT if name in test}


def some(rows: Any, n: int) -> Any:
    """Evenly taken rows."""
    every = max(1, len(rows[1]["day"]) // n)
    return tuple({name: column[::every] for name, column in part.items()} for part in rows)


def next_day(rows: Any) -> list[dict[str, Any]]:
    """Test scores of every label, on metadata, history and both; of the network on both."""
    found = []
    for label in LABELS:
        for way, columns in WAYS.items():
            for family in ("trees", "network") if way == "both" else ("trees",):
                model, cpu, _ = timed(lambda c=columns, f=family, name=label: trained(rows, name, c, f, 1))
                found.append({"label": label, "on": way, "family": family, "cpu_s": cpu, **scores(model)})
                print(label, way, family, f"AUC {found[-1]['auc']:.3f}", f"{cpu:.0f} s", flush=True)
    return found


def training(rows: Any) -> list[dict[str, Any]]:
    """Time to train on all rows: change, metadata and history."""
    found = []
    for family, threads in (("trees", 1), ("network", 1)):
        model, cpu, clock = timed(lambda f=family, n=threads: trained(rows, "changed", WAYS["both"], f, n))
        size = {"trees": len(model.model.root)} if family == "trees" else {}
        found.append(
            {
                "family": family,
                "threads": threads if family == "trees" else os.cpu_count(),
                "rows": len(rows[1]["day"]),
                "cpu_s": cpu,
                "clock_s": clock,
                **size,
                **{k: v for k, v in scores(model).items() if k not in ("rows", "reliability")},
            }
        )
        print(found[-1], flush=True)
    return found


def scoring(rows: Any, offers: Shop, n: int) -> list[dict[str, Any]]:
    """Pages scored per second of processor time, features included."""
    small = some(rows, 100_000)
    urls = offers.offers.url()
    table = {**small[0], "url": urls[small[1]["offer"]]}
    models = {
        ("trees", "metadata and history"): trained(small, "changed", WAYS["both"], "trees", 1),
        ("network", "metadata and history"): trained(small, "changed", WAYS["both"], "network", 1),
        ("trees", "URL"): trained((table, small[1]), "changed", Columns(url=True), "trees", 1),
    }
    pages = {name: np.resize(column, n) for name, column in table.items()}
    found = []
    for (family, on), model in models.items():
        wanted = {name: pages[name] for name in model.inputs}
        model.rate({name: column[:100] for name, column in wanted.items()})
        _, cpu, _ = timed(lambda m=model, w=wanted: m.prior(w))
        found.append({"family": family, "on": on, "pages": n, "pages_per_cpu_s": n / cpu})
        print(found[-1], flush=True)
    return found


def draw(found: dict[str, Any], path: Path) -> None:
    """Predicted against observed shares in tenths, and AUC by what is looked at."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    for label, colour in zip(LABELS, ("C0", "C1", "C2"), strict=True):
        for row in found["next_day"]:
            if row["label"] == label and row["on"] == "both":
                tenths = [t for t in row["reliability"] if t["predicted"] > 0 and t["observed"] > 0]
                line = "o-" if row["family"] == "trees" else "x:"
                shares = [[t[name] for t in tenths] for name in ("predicted", "observed")]
                left.loglog(*shares, line, color=colour, label=f"{label}, {row['family']}")
    left.loglog([1e-4, 1], [1e-4, 1], color="grey", lw=0.8)
    left.set(xlabel="predicted share of offer-days", ylabel="observed", title="tenths of the test days")
    left.legend(fontsize=8)
    for k, way in enumerate(WAYS):
        auc = [row["auc"] for row in found["next_day"] if row["on"] == way and row["family"] == "trees"]
        right.bar(np.arange(3) + 0.27 * (k - 1), auc, 0.25, label=way)
    right.set(xticks=range(3), xticklabels=LABELS, ylim=(0.5, 1.0), ylabel="AUC", title="next day, trees")
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--table-rows", type=int, default=300_000)
    parser.add_argument("--offers", type=int, default=100_000)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    if options.smallest:
        few = examples(Shop(200, seed=1), FIRST, LAST, 20, np.random.default_rng(2))
        print(scores(trained(few, "changed", WAYS["both"], "trees", 1)))
        return
    shop = Shop(options.offers, seed=1)
    per_day = -(-options.rows // (LAST - FIRST))
    rows, cpu, _ = timed(lambda: examples(shop, FIRST, LAST, per_day, np.random.default_rng(2)))
    print(f"{options.offers} offers, {LAST} days drawn in {cpu:.0f} s", flush=True)
    trained(some(rows, 2000), "changed", WAYS["both"], "trees", 1)  # compile
    found: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "processor": platform.machine()},
        "offers": options.offers,
        "days": [FIRST, LAST],
        "training": training(rows),
        "scoring": scoring(rows, shop, options.rows),
        "next_day": next_day(some(rows, options.table_rows)),
    }
    found["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "predict.json").write_text(json.dumps(found, indent=1) + "\n")
    draw(found, options.output / "predict.png")


if __name__ == "__main__":
    main()
