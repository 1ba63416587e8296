"""Han et al. 2020, tables 4 to 6: accuracy of predictions for the next day, and freshness of strategies with them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from recrawl.estimate.predict.scores import auc
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column, mean_error
from recrawl.reproduce.han2020.runs import (
    BUDGETS,
    STREAM,
    WEIGHTED,
    compared,
    days_of,
    medians,
    policies_of,
    run_all,
    tasks_of,
    values,
    world_of,
)
from recrawl.reproduce.han2020.world import INPUTS, LABELS, learn_from, train
from recrawl.reproduce.medians import wilcoxon
from recrawl.simulate.shop.history import examples

_PAPER_AUC = {"change": (0.860, 0.833, 0.882), "click": (0.796, 0.948, 0.949), "impression": (0.736, 0.896, 0.895)}
_SUBSETS = 20
_UNTOLD, _FICKLE = "shop-untold", "shop-fickle"
_POLICIES = policies_of(["history", "models"], {"kab5": ("kab5", "models")})
_MODELS = [f"{name} (models)" for name in WEIGHTED]
_KAB_NOTE = (
    "the reward is the share of crawled clicks whose copy was wrong, which is largest where prices change most often: "
    "the bandit comes to prefer change-weighted crawling, and in this shop clicks and changes have nothing to do with "
    "each other"
)
_COPIED = {label: _POLICIES[label] for label in ("change-weighted (history)", "lambda (history)", "lambda (models)")}


# --- table 4 ---------------------------------------------------------------------------------------------------------


def _tasks4(params: Params) -> list[Task]:
    return tasks_of(params, ("shop", _UNTOLD, _FICKLE), seconds=6.0)


def _predict(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """AUC on the days after training, over 20 subsets, by task and columns."""
    world = world_of(params, key, rng)
    shop = world.shop()
    table, label = learn_from(world, shop)
    later, truth = examples(shop, world.calendar.trained, world.calendar.last, params["rows"], rng)
    subset = rng.integers(0, _SUBSETS, len(truth["day"]))
    row: Row = {}
    for task, hit in LABELS.items():
        for inputs in INPUTS:
            chance = train(world, inputs, task, table, label).chance(later)
            row[f"{task} {inputs}"] = [auc(chance[subset == k], truth[hit][subset == k]) for k in range(_SUBSETS)]
            row[f"{task} {inputs} all"] = auc(chance, truth[hit])
            row[f"{task} {inputs} ratio"] = float(chance.mean() / max(truth[hit].mean(), 1e-9))
    return row


def _judge4(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    shop, claims, data = [row for row in rows if row["world"] == "shop"], [], {}
    for task, paper in _PAPER_AUC.items():
        for inputs, theirs in zip(INPUTS, paper, strict=True):
            ours, error = mean_error(_numbers(shop, f"{task} {inputs} all"))
            data[f"{task} {inputs}"] = {"auc": ours, "paper": theirs, "sd": _spread(shop, f"{task} {inputs}")}
            claims.append(Claim(f"{task}_{inputs}", f"AUC of next-day {task} on {inputs}", ours, error, theirs))
    best = _auc(shop, "change both") - max(_auc(shop, "change metadata"), _auc(shop, "change history"))
    p = max(_test(shop, "change both", f"change {other}") for other in ("metadata", "history"))
    text = f"change: both together are best (smallest gain; Wilcoxon p = {p:.1g})"
    claims.append(bounded("change_both_best", text, best, least=0.0))
    for task in ("click", "impression"):
        tie = _auc(shop, f"{task} both") - _auc(shop, f"{task} history")
        claims.append(
            bounded(f"{task}_tie", f"{task}: history alone ties with both (gain)", tie, least=-0.01, most=0.01)
        )
        gap = _auc(shop, f"{task} history") - _auc(shop, f"{task} metadata")
        claims.append(
            bounded(f"{task}_history_better", f"{task}: history is better than metadata (gain)", gap, least=0.0)
        )
    for task in LABELS:
        ratio, error = mean_error(column(shop, f"{task} both ratio"))
        claims.append(Claim(f"{task}_ratio", f"{task}: predicted over observed share, both", ratio, error))
    untold = [row for row in rows if row["world"] == _UNTOLD]
    chance = _auc(untold, "change metadata")
    text = (
        "where metadata say nothing but the weekday, their AUC for changes is near chance (the claim should fail there)"
    )
    claims.append(bounded("untold_metadata", text, chance, least=0.45, most=0.6))
    gain = _auc(untold, "change both") - _auc(untold, "change history")
    text = "and both together gain nothing on history (the claim should fail there)"
    note = "the weekday counts as metadata, and prices change more on some days than on others"
    claims.append(bounded("untold_both", text, gain, most=0.01, note=note))
    fickle = [row for row in rows if row["world"] == _FICKLE]
    gain = _auc(fickle, "click both") - _auc(fickle, "click history")
    text = "where an offer's clicks come and go within a day, history does not tie for clicks (gain; should fail there)"
    note = "a month of an offer's clicks says as much of it as its metadata"
    claims.append(bounded("fickle_tie", text, gain, least=0.01, note=note))
    return claims, data


def _auc(rows: list[Row], name: str) -> float:
    return float(np.mean(_numbers(rows, f"{name} all")))


def _spread(rows: list[Row], name: str) -> float:
    return float(np.nanmean(np.nanstd(_numbers(rows, name), axis=1)))


def _test(rows: list[Row], a: str, b: str) -> float:
    return wilcoxon(_numbers(rows, a), _numbers(rows, b))


def _numbers(rows: list[Row], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """One column; nan for values that are undefined (a subset without clicks)."""
    return np.array([row[name] for row in rows], np.float64)


def _draw4(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    for at, inputs in enumerate(INPUTS):
        x = np.arange(len(LABELS)) + 0.25 * (at - 1)
        found = [data[f"{task} {inputs}"] for task in LABELS]
        axes.bar(x, [each["auc"] for each in found], 0.23, yerr=[each["sd"] for each in found], capsize=3, label=inputs)
        axes.plot(x, [each["paper"] for each in found], "k_", ms=18, label="paper" if at == 0 else None)
    axes.set_xticks(range(len(LABELS)), list(LABELS))
    axes.set(ylabel="AUC, next day (bars: ± sd over 20 subsets)", ylim=(0.5, 1.0))
    axes.legend(ncols=4, loc="upper center")


# --- tables 5 and 6 --------------------------------------------------------------------------------------------------


def _tasks5(params: Params) -> list[Task]:
    return tasks_of(params, ("shop",), seconds=16.0)


def _work5(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Both tables use the same runs, so a process caches the last ones."""
    return dict(_runs5(json.dumps([params, key], sort_keys=True), int(rng.integers(2**62))))


@lru_cache(maxsize=4)
def _runs5(what: str, seed: int) -> Row:
    params, key = json.loads(what)
    rng = np.random.default_rng(seed)
    days = days_of(params, key, rng)
    row = run_all(days, params, _POLICIES, params["budgets"], rng)
    again = run_all(days, params, _COPIED, params["budgets"][:1], rng, copied=True)
    return {**row, **{f"copied {name}": value for name, value in again.items()}}


def _judge_table(metric: str, params: Params, rows: list[Row]) -> tuple[dict[str, np.ndarray[Any, Any]], Row]:
    found = medians(rows, metric, list(_POLICIES), params["budgets"])
    table = {label: np.array([each.value for each in line]) for label, line in found.items()}
    above = compared(rows, metric, "kab5", "lambda (models)", params["budgets"])
    data: Row = {"budgets": params["budgets"], "medians": dict(table)}
    data["intervals"] = {label: [(each.low, each.high) for each in line] for label, line in found.items()}
    data["kab5 over lambda (models)"] = [
        {"percent": list(each["percent"]), "difference": list(each["difference"]), "p": each["p"]} for each in above
    ]
    return table, data


def _judge5(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    table, data = _judge_table("click", params, rows)
    n = len(params["budgets"])
    lowest = [min(table, key=lambda label: table[label][at]) for at in range(n)]
    count = sum(label.startswith("change") for label in lowest)
    text = f"change-weighted is the worst of all (budgets of {n}; else: {_names(lowest, 'change')})"
    note = "with 30-day averages LambdaCrawl never crawls an offer whose price or clicks were quiet for a month"
    claims = [bounded("change_worst", text, count, least=n, paper=n, note=note)]
    group = ("uniform", *_MODELS)
    lowest = [min(group, key=lambda label: table[label][at]) for at in range(n)]
    text = f"change-weighted is the worst with model rates (budgets of {n}; else: {_names(lowest, 'change')})"
    note = "at larger budgets uniform is: what changes at most once or twice a day is then crawled often enough"
    count = sum(label.startswith("change") for label in lowest)
    claims.append(bounded("change_worst_models", text, count, least=n, note=note))
    best = sum(max(_MODELS, key=lambda label: table[label][at]).startswith("lambda") for at in range(n))
    text = f"with model rates LambdaCrawl is the best strategy (budgets of {n})"
    claims.append(bounded("lambda_best", text, best, least=n, paper=n))
    claims += _judge_kab5(table, data, n, "click")
    for name in WEIGHTED:
        gain = table[f"{name} (models)"] - table[f"{name} (history)"]
        text = f"{name}: model rates beat history rates (smallest gain over budgets)"
        if name == "impression-weighted":
            claims.append(Claim("models_impression", text + "; not always in the paper", float(gain.min())))
        else:
            claims.append(bounded(f"models_{name.split('-')[0]}", text, float(gain.min()), least=0.0))
    least = params["budgets"][0]
    for label in _COPIED:
        ours = float(np.nanmedian(values(rows, "click", label, least)))
        then = float(np.nanmedian(_numbers(rows, f"copied click {label} {least:g}")))
        text = f"{label} at {least:.0%}: {ours:.3f}; if every offer had a copy from the start"
        claims.append(Claim(f"copied_{label.replace(' ', '_')}", text, then))
    return claims, data


def _judge_kab5(table: dict[str, np.ndarray[Any, Any]], data: Row, n: int, metric: str) -> list[Claim]:
    others = [label for label in table if label != "kab5"]
    loss = np.array([max(table[label][at] for label in others) for at in range(n)]) - table["kab5"]
    above = data["kab5 over lambda (models)"]
    better = sum(each["p"] < 0.05 and each["difference"][0] > 0 for each in above)
    percent = [each["percent"][0] for each in above]
    span = f"{min(percent):+.2f}% to {max(percent):+.2f}%"
    text = f"KAB5 beats LambdaCrawl, Wilcoxon p < 0.05 (budgets of {n}; median increase {span})"
    claims = [bounded(f"kab5_better_{metric}", text, better, least=n, paper=n, note=_KAB_NOTE)]
    if metric == "click":
        text = "KAB5 is the best of all or within noise (largest distance from the best, below 0.002)"
        claims.append(bounded("kab5_best", text, float(loss.max()), most=0.002, paper="best", note=_KAB_NOTE))
    return claims


def _judge6(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    table, data = _judge_table("offer", params, rows)
    n = len(params["budgets"])
    highest = [max(table, key=lambda label: table[label][at]) for at in range(n)]
    text = f"uniform is the best of all (budgets of {n}; else: {_names(highest, 'uniform')})"
    note = (
        "offers differ in how often they change, so crawling those that do somewhat more often keeps more copies right"
    )
    claims = [bounded("uniform_best", text, sum(label == "uniform" for label in highest), least=n, paper=n, note=note)]
    for name in WEIGHTED:
        gain = table[f"{name} (models)"] - table[f"{name} (history)"]
        text = f"{name}: model rates beat history rates by a lot (smallest gain over budgets, at least 0.1)"
        claims.append(bounded(f"models_{name.split('-')[0]}", text, float(gain.min()), least=0.1))
    return claims + _judge_kab5(table, data, n, "offer"), data


def _names(labels: list[str], known: str) -> str:
    """Names other than the expected one, each once."""
    return ", ".join(dict.fromkeys(label for label in labels if not label.startswith(known))) or "none"


def _draw_table(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    for label, line in data["medians"].items():
        style = "--" if "(history)" in label else "-"
        colour = _COLOURS[label.split(" (")[0]]
        axes.plot(100 * np.array(data["budgets"]), line, style, marker="o", ms=3, color=colour, label=label)
    axes.set(xlabel="budget: crawls per day, % of offers", ylabel="freshness (median)", ylim=(None, 1.0))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)


_COLOURS = {
    "uniform": "#777777", "change-weighted": "#cc3311", "click-weighted": "#4477aa", "impression-weighted": "#ccbb44",
    "lambda": "#228833", "kab5": "#aa3377",
}  # fmt: skip
_DAYS: Params = {"trained": 162, "warm_up": 60, "judged": 31}
SETTINGS: dict[str, Params] = {
    "tiny": {"trained": 50, "warm_up": 3, "judged": 3, "offers": 200, "rows": 150, "reps": 2, "draws": 2},
    "quick": {**_DAYS, "offers": 4000, "rows": 300, "reps": 2, "draws": 2},
    "full": {**_DAYS, "offers": 20_000, "rows": 2000, "reps": 10, "draws": 5},
}


def settings_with(**more: Any) -> dict[str, Params]:
    """The settings of the paper's figures, with additions for one of them."""
    return {name: {**params, **more} for name, params in SETTINGS.items()}


_PREDICTED = settings_with()
_PREDICTED["tiny"]["reps"] = 1
_TABLE = settings_with(budgets=list(BUDGETS))
_TABLE["tiny"]["budgets"] = [0.1, 0.5]
FIGURES = [
    Figure("han2020/table4", "Predicting the next day", _PREDICTED, _tasks4, _predict, _judge4, _draw4, stream=STREAM),
    Figure(
        "han2020/table5", "Click-weighted freshness over budgets", _TABLE, _tasks5, _work5, _judge5, _draw_table,
        stream=STREAM, size=(9.0, 6.0),
    ),
    Figure(
        "han2020/table6", "Offer freshness over budgets", _TABLE, _tasks5, _work5, _judge6, _draw_table, stream=STREAM,
        size=(9.0, 6.0),
    ),
]  # fmt: skip
