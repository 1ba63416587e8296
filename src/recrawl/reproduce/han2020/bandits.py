"""Han et al. 2020, figures 4 to 6: the bandit against LambdaCrawl, its arms over time, and subsets of its arms."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded
from recrawl.reproduce.han2020.figures import settings_with
from recrawl.reproduce.han2020.runs import BUDGETS, METRICS, STREAM, TIGHT, compared, days_of, run_all, tasks_of
from recrawl.schedule.bandits.exp3 import Exp3
from recrawl.schedule.bandits.strategies import PRESETS
from recrawl.simulate.shop.price_days import STEPS, Plans
from recrawl.simulate.shop.price_run import ByBandit, run_prices

_LAMBDA, _KAB5, _OTHER = "lambda", "kab5", "kab5 gained"
_NAMES = {"click": "click-weighted", "offer": "offer-level"}
_REWARD_NOTE = "the reward favours strategies whose crawls often find a change, whatever it is worth: see table5"
_STEADY, _TENTH = "shop-steady", 0.1


# --- figure 4 --------------------------------------------------------------------------------------------------------


def _tasks4(params: Params) -> list[Task]:
    return tasks_of(params, ("shop", _STEADY), seconds=8.0)


def _work4(params: Params, key: Row, rng: np.random.Generator) -> Row:
    policies = {name: (name, "models") for name in (_LAMBDA, _KAB5, _OTHER)}
    budgets = params["budgets"] if key["world"] == "shop" else [_TENTH]
    return run_all(days_of(params, key, rng), params, policies, budgets, rng)


def _judge4(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    budgets, claims = params["budgets"], []
    data: Row = {"budgets": budgets}
    for label, words in ((_KAB5, "KAB5"), (_OTHER, "KAB5 with the reward 'gained' (beyond the paper)")):
        for metric in METRICS:
            found = compared(rows, metric, label, _LAMBDA, budgets)
            data[f"{label} {metric}"] = [[*each["difference"], each["p"]] for each in found]
            above = sum(each["difference"].value > 0 and each["p"] < 0.05 for each in found)
            text = f"{words} above LambdaCrawl, {_NAMES[metric]} (budgets of {len(budgets)})"
            key = f"{label.replace(' ', '_')}_{metric}_above"
            if label == _KAB5:
                claims.append(bounded(key, text, above, least=len(budgets), paper=len(budgets), note=_REWARD_NOTE))
            else:
                claims.append(Claim(key, text, above))
    tight = np.array([each[0] for each in data["kab5 offer"]])
    text = (
        "offer-level: the gain is larger at the three tightest budgets than at the three widest (difference of medians)"
    )
    note = "at the tightest budgets most offers have no copy after three months, whoever chooses"
    claims.append(
        bounded("tight_gain", text, float(np.median(tight[:3]) - np.median(tight[-3:])), least=0.0, note=note)
    )
    lost = compared(rows, "click", _KAB5, _LAMBDA, [_TENTH], _STEADY)[0]["difference"].value
    text = (
        f"in the steady shop one strategy is best: what the bandit gains at {_TENTH:.0%} (should fail there, at most 0)"
    )
    claims.append(bounded("steady_gain", text, lost, most=0.0))
    return claims, data


def _draw4(canvas: Any, data: Row) -> None:
    for axes, metric in zip(canvas.subplots(1, 2), METRICS, strict=True):
        for label, colour in ((_KAB5, "#aa3377"), (_OTHER, "#4477aa")):
            _band(axes, data["budgets"], data[f"{label} {metric}"], label, colour)
        axes.set(
            xscale="log",
            xlabel="budget, % of offers per day",
            title=_NAMES[metric],
            ylabel="freshness above LambdaCrawl",
        )
        axes.axhline(0, color="k", lw=0.8)
        axes.legend()


def _band(axes: Any, budgets: list[float], line: list[list[float]], label: str, colour: str) -> None:
    x, found = 100 * np.array(budgets), np.array([each[:3] for each in line], np.float64)
    axes.plot(x, found[:, 0], "-o", ms=3, color=colour, label=label)
    axes.fill_between(x, found[:, 1], found[:, 2], color=colour, alpha=0.2, lw=0)


# --- figure 5 --------------------------------------------------------------------------------------------------------

_EVERY = 6  # steps between two points of the picture


def _tasks5(params: Params) -> list[Task]:
    return tasks_of(params, seconds=8.0)


def _work5(params: Params, key: Row, rng: np.random.Generator) -> Row:
    days, arms, row = days_of(params, key, rng), PRESETS[_KAB5], {}
    for budget in params["budgets"]:
        for gained in (False, True):
            total = np.zeros((len(days) * STEPS, len(arms)))
            for own in rng.spawn(params["draws"]):
                decider = ByBandit(Plans(days, budget, "models"), arms, Exp3(len(arms)), own, gained=gained)
                run_prices(days, decider)
                total += np.array(decider.probability)
            mean = total / params["draws"]
            row[f"{budget:g}{' gained' if gained else ''}"] = [*mean[::_EVERY].round(4).tolist(), mean[-1].tolist()]
    return row


def _judge5(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    arms = PRESETS[_KAB5]
    names = [f"{budget:g}{more}" for budget in params["budgets"] for more in ("", " gained")]
    mean = {name: np.mean([row[name] for row in rows], axis=0) for name in names}
    claims = []
    for budget in params["budgets"]:
        last = dict(zip(arms, mean[f"{budget:g}"][-1].tolist(), strict=True))
        most = max(last, key=lambda arm: last[arm])
        for arm in ("lambda", "click-weighted"):
            text = (
                f"at {budget:.0%}: the probability of {arm} ends above 0.2 (the largest is {most}'s, {last[most]:.2f})"
            )
            key = f"{arm.split('-')[0]}_{budget:g}"
            claims.append(bounded(key, text, last[arm], least=0.2, paper="above 0.2", note=_REWARD_NOTE))
        other = dict(zip(arms, mean[f"{budget:g} gained"][-1].tolist(), strict=True))
        most = max(other, key=lambda arm: other[arm])
        text = f"at {budget:.0%}, reward 'gained' (beyond the paper): the largest is {most}'s"
        claims.append(Claim(f"gained_{budget:g}", text, other[most]))
    spread = [float(np.std(mean[f"{budget:g}"][-1])) for budget in params["budgets"]]
    text = "the more budget, the less the probabilities differ (sd at the largest budget over that at the smallest)"
    note = "at the smallest budget most offers have no copy yet, so that uniform crawling, too, finds them wrong"
    claims.append(bounded("less_imbalanced", text, spread[-1] / spread[0], most=1.0, note=note))
    return claims, {"arms": list(arms), "every": _EVERY, "mean": mean}


def _draw5(canvas: Any, data: Row) -> None:
    for axes, (name, lines) in zip(canvas.subplots(2, 2, sharey=True).ravel(), data["mean"].items(), strict=True):
        steps = data["every"] * np.arange(len(lines))
        for at, arm in enumerate(data["arms"]):
            axes.plot(steps, np.array(lines)[:, at], label=arm)
        budget, _, gained = name.partition(" ")
        axes.set(
            title=f"{float(budget):.0%}, reward {gained or 'of the paper'}", xlabel="step (2 h)", ylabel="probability"
        )
    axes.legend(fontsize=8)


# --- figure 6 --------------------------------------------------------------------------------------------------------


def _tasks6(params: Params) -> list[Task]:
    return tasks_of(params, seconds=8.0)


def _work6(params: Params, key: Row, rng: np.random.Generator) -> Row:
    policies = {name: (name, "models") for name in (_LAMBDA, *PRESETS)}
    return run_all(days_of(params, key, rng), params, policies, params["budgets"], rng)


def _judge6(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    budgets = params["budgets"]
    data: Row = {"budgets": budgets}
    for metric in METRICS:
        for name in PRESETS:
            found = compared(rows, metric, name, _LAMBDA, budgets)
            data[f"{name} {metric}"] = [[*each["difference"], each["p"]] for each in found]
    claims = []
    for metric in METRICS:
        gain = np.array([each["difference"].value for each in compared(rows, metric, "kab3", "kab2", budgets)])
        middle = f"budgets of {len(budgets)}; median gain {np.median(gain):+.4f}"
        text = f"the uniform arm helps: KAB3 above KAB2, {_NAMES[metric]} ({middle})"
        note = "it takes crawls from the click-weighted arm, to which the reward leaves few"
        claims.append(bounded(f"uniform_{metric}", text, int((gain > 0).sum()), least=len(budgets), note=note))
    for metric in METRICS:
        last = np.array([[each[0] for each in data[f"{name} {metric}"]] for name in PRESETS])
        text = f"KAB5 is the best of the four, {_NAMES[metric]} (largest distance from the best)"
        note = "arms that seek clicks take crawls from those that seek changes or seek nothing"
        worst = float((last.max(0) - last[-1]).max())
        claims.append(bounded(f"kab5_best_{metric}", text, worst, most=0.002, note=note))
    first, last = (np.mean([abs(data[f"{name} click"][at][0]) for name in PRESETS]) for at in (0, -1))
    text = "the gap to LambdaCrawl closes with the budget (click-weighted, at the largest over at the smallest)"
    claims.append(bounded("gap_closes", text, float(last / max(first, 1e-9)), most=1.0))
    return claims, data


def _draw6(canvas: Any, data: Row) -> None:
    for axes, metric in zip(canvas.subplots(1, 2), METRICS, strict=True):
        for name, colour in zip(PRESETS, ("#777777", "#ccbb44", "#4477aa", "#aa3377"), strict=True):
            _band(axes, data["budgets"], data[f"{name} {metric}"], name, colour)
        axes.set(xlabel="budget, % of offers per day", title=_NAMES[metric], ylabel="freshness above LambdaCrawl")
        axes.axhline(0, color="k", lw=0.8)
        axes.legend()


_SETTINGS4 = settings_with(budgets=[*TIGHT, *BUDGETS])
_SETTINGS4["tiny"]["budgets"] = [0.01, 0.1]
_SETTINGS4["quick"]["budgets"] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.9]
_SETTINGS6 = settings_with(budgets=list(BUDGETS))
_SETTINGS6["tiny"]["budgets"] = [0.1, 0.5]
FIGURES = [
    Figure(
        "han2020/fig4", "The bandit beside LambdaCrawl over budgets", _SETTINGS4, _tasks4, _work4, _judge4, _draw4,
        stream=STREAM, size=(11.0, 4.6),
    ),
    Figure(
        "han2020/fig5", "Probabilities of the arms over time", settings_with(budgets=[0.01, 0.1]), _tasks5, _work5,
        _judge5, _draw5, stream=STREAM, size=(10.0, 7.0),
    ),
    Figure(
        "han2020/fig6", "Which arms the bandit needs", _SETTINGS6, _tasks6, _work6, _judge6, _draw6, stream=STREAM,
        size=(11.0, 4.6),
    ),
]  # fmt: skip
