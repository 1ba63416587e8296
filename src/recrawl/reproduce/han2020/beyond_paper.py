"""Beyond Han et al. 2020: greedy against the bandit and LambdaCrawl, regret with its bound, and a shifting world."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded
from recrawl.reproduce.han2020.figures import settings_with
from recrawl.reproduce.han2020.runs import METRICS, STREAM, days_of, decider, run_all, tasks_of, values
from recrawl.reproduce.medians import wilcoxon
from recrawl.schedule.bandits.exp3 import BANDIT_RULES, Exp3, regret_bound
from recrawl.schedule.bandits.strategies import PRESETS
from recrawl.simulate.shop.price_days import KnownRates, Plans, PriceDay
from recrawl.simulate.shop.price_run import ByBandit, run_prices

Array = NDArray[np.float64]

# --- greedy ----------------------------------------------------------------------------------------------------------

_WORLDS = ("shop", "shop-untold", "shop-steady", "shop-coupled")
_CHOICE = {
    "uniform": ("uniform", "models"),
    **{
        f"{name} ({source})": (name, source)
        for name in ("lambda", "kab5", "greedy")
        for source in ("history", "models")
    },
    "kab5 gained (models)": ("kab5 gained", "models"),
    "kab5 by class (models)": ("kab5 by class", "models"),
    "kab5 and greedy (models)": ("kab5 and greedy", "models"),
}


def _tasks_greedy(params: Params) -> list[Task]:
    return tasks_of(params, _WORLDS, seconds=30.0)


def _work_greedy(params: Params, key: Row, rng: np.random.Generator) -> Row:
    return run_all(days_of(params, key, rng), params, _CHOICE, params["budgets"], rng)


def _judge_greedy(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    table: Row = {
        world: {
            metric: {label: [_mean(rows, metric, label, b, world) for b in params["budgets"]] for label in _CHOICE}
            for metric in METRICS
        }
        for world in _WORLDS
    }
    claims = _gains(table)
    p = max(_p(rows, "greedy (models)", "lambda (models)", b) for b in params["budgets"])
    claims.append(Claim("p", "shop, click-weighted: greedy and LambdaCrawl, Wilcoxon p (largest over budgets)", p))
    return claims, {"budgets": params["budgets"], "table": table}


def _gains(table: Row) -> list[Claim]:
    """Gain of greedy over the others in each shop, and of the bandit over LambdaCrawl with poor rates."""
    claims = []
    note = "with a budget as tight as 1%, greedy spends it on offers that are clicked, and the others are not copied"
    for world in _WORLDS:
        for metric in METRICS:
            found = {label: np.array(line) for label, line in table[world][metric].items()}
            for other in ("lambda", "kab5"):
                gain = found["greedy (models)"] - found[f"{other} (models)"]
                text = f"{world}, {metric}-weighted: greedy above {other}, model rates (smallest gain over budgets)"
                claims.append(bounded(f"{world}_{metric}_{other}", text, float(gain.min()), least=0.0, note=note))
        wrong = np.array(table[world]["click"]["kab5 (history)"]) - np.array(table[world]["click"]["lambda (history)"])
        text = f"{world}, click-weighted: what the bandit gains on LambdaCrawl where rates are poor (history; smallest)"
        claims.append(Claim(f"{world}_poor_rates", text, float(wrong.min())))
    return claims


def _mean(rows: list[Row], metric: str, label: str, budget: float, world: str) -> float:
    return float(np.nanmean(values(rows, metric, label, budget, world)))


def _p(rows: list[Row], label: str, other: str, budget: float) -> float:
    """Values paired by repetition and day, averaged over draws (greedy has one draw)."""
    worlds = [row for row in rows if row["world"] == "shop"]
    found = [[np.nanmean(values([row], "click", name, budget), axis=0) for row in worlds] for name in (label, other)]
    return wilcoxon(np.array(found[0]), np.array(found[1]))


def _draw_greedy(canvas: Any, data: Row) -> None:
    n = len(data["budgets"])
    for axes, (world, table) in zip(canvas.subplots(2, 2).ravel(), data["table"].items(), strict=True):
        for at, (label, line) in enumerate(table["click"].items()):
            axes.barh(
                np.arange(n) + 0.08 * (5 - at),
                line,
                0.075,
                label=label,
                color=f"C{at}",
                hatch="//" if "hist" in label else "",
            )
        axes.set_yticks(range(n), [f"{b:.0%}" for b in data["budgets"]])
        axes.set(title=world, xlabel="click-weighted freshness (mean)", xlim=(0, 1))
    canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)


# --- regret ----------------------------------------------------------------------------------------------------------

_REGRET_WORLDS = ("shop", "shop-steady")
_POINTS = 60


def _tasks_regret(params: Params) -> list[Task]:
    return tasks_of(params, _REGRET_WORLDS, seconds=12.0)


def _work_regret(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Regret against the best fixed arm up to each step, on the copies that the bandit left."""
    days, arms, row = days_of(params, key, rng), PRESETS["kab5"], Row()
    plans = Plans(days, params["budgets"][0], "models")
    for rule in BANDIT_RULES:
        curves, gains = [], []
        for own in rng.spawn(params["draws"]):
            decider = ByBandit(plans, arms, Exp3(len(arms), rule), own, watch=True)
            run_prices(days, decider)
            reward = np.array(decider.reward)
            got = np.cumsum(reward[np.arange(len(reward)), decider.chosen])
            curves.append(np.cumsum(reward, axis=0).max(axis=1) - got)
            gains.append(reward.mean(axis=0))
        at = np.unique(np.linspace(0, len(curves[0]) - 1, _POINTS).astype(int))
        row |= {f"{rule} regret": np.mean(curves, axis=0)[at], f"{rule} arms": np.mean(gains, axis=0), "steps": at + 1}
    return row


def _judge_regret(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    claims, data = [], {"steps": rows[0]["steps"], "worlds": {}}
    steps = np.array(rows[0]["steps"])
    for world in _REGRET_WORLDS:
        here = [row for row in rows if row["world"] == world]
        data["worlds"][world] = {}
        for rule in BANDIT_RULES:
            regret = np.mean([row[f"{rule} regret"] for row in here], axis=0)
            bound = regret_bound(rule, len(PRESETS["kab5"]), steps)
            data["worlds"][world][rule] = {"regret": regret, "bound": bound}
            text = f"{world}: regret of {rule} after {steps[-1]} steps, below its bound {bound[-1]:.0f}"
            claims.append(bounded(f"{world}_{rule}", text, float(regret[-1]), most=float(bound[-1])))
            half = len(steps) // 2
            later = (regret[-1] - regret[half]) / (steps[-1] - steps[half])
            text = f"{world}: regret of {rule} per step in the second half, over that in the first"
            first = regret[half] / steps[half]
            claims.append(Claim(f"{world}_{rule}_slows", text, float(later / max(first, 1e-9))))
    return claims, data


def _draw_regret(canvas: Any, data: Row) -> None:
    for axes, (world, lines) in zip(canvas.subplots(1, 2), data["worlds"].items(), strict=True):
        for at, (rule, line) in enumerate(lines.items()):
            axes.plot(data["steps"], line["regret"], color=f"C{at}", label=rule)
            axes.plot(data["steps"], line["bound"], ":", color=f"C{at}")
        axes.set(title=world, xlabel="step (2 h)", ylabel="regret (dotted: bound)", yscale="log", ylim=(0.3, None))
        axes.legend()


# --- shift -----------------------------------------------------------------------------------------------------------

_SHIFTING, _BROKEN = "shop-shift", "shop"
_SCENES = {
    _SHIFTING: "popular offers change most, then least",
    _BROKEN: "the models break: from one day on they speak of other offers",
}
_RUNS = ("uniform", "change-weighted", "click-weighted", "impression-weighted", "lambda")
_LENGTHS = (250, 1000, 4000)  # steps before the arms swap
_NEAR = 0.02


def _tasks_shift(params: Params) -> list[Task]:
    return tasks_of(params, tuple(_SCENES), seconds=12.0)


def _work_shift(params: Params, key: Row, rng: np.random.Generator) -> Row:
    shifts = key["world"] == _SHIFTING
    given = {**params, "shift_at": params["trained"] + params["warm_up"]} if shifts else params
    days, row = days_of(given, key, rng), Row()
    days = days if shifts else _broken(days, params["warm_up"], rng)
    plans, arms = Plans(days, params["budgets"][0], "models"), PRESETS["kab5"]
    for name in (*_RUNS, *BANDIT_RULES, "greedy"):
        found = []
        for own in rng.spawn(1 if name == "greedy" else params["draws"]):
            if name in BANDIT_RULES:
                found.append(run_prices(days, ByBandit(plans, arms, Exp3(len(arms), name), own), copied=True))
            else:
                found.append(run_prices(days, decider(name, plans, own), copied=True))
        row[name] = np.mean([np.nan_to_num(run.clicks_right, nan=1.0) for run in found], axis=0)
    for rule in BANDIT_RULES:
        row[f"back {rule}"] = [_steps_back(rule, length, params["draws"], rng) for length in _LENGTHS]
    return row


def _broken(days: list[PriceDay], at: int, rng: np.random.Generator) -> list[PriceDay]:
    """From day ``at`` on, the predictions of the models are assigned to other offers."""
    other = rng.permutation(days[-1].n)
    broken = []
    for day in days[at:]:
        known = KnownRates(*(column[other[other < day.n]] for column in day.known["models"]))
        broken.append(PriceDay(day.source, {"models": known}))
    return days[:at] + broken


def _steps_back(rule: str, length: int, draws: int, rng: np.random.Generator) -> list[int]:
    """Steps after a swap of two arms (mean rewards 0.6 and 0.4) until the better arm is drawn in most of 50."""
    found = []
    for _ in range(5 * draws):
        first = rng.random((length, 2)) < [0.6, 0.4]
        then = rng.random((4 * length, 2)) < [0.4, 0.6]
        chosen = Exp3(2, rule).play(np.concatenate([first, then]).astype(float), rng)[length:]
        share = np.convolve(chosen == 1, np.ones(50) / 50, "valid")
        found.append(int(np.argmax(share > 0.5)) + 50 if (share > 0.5).any() else 4 * length)
    return found


def _judge_shift(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    claims: list[Claim] = []
    data: Row = {"at": params["warm_up"], "lengths": _LENGTHS, "scenes": {}}
    for world in _SCENES:
        here = [row for row in rows if row["world"] == world]
        line = {name: np.mean([row[name] for row in here], axis=0) for name in (*_RUNS, *BANDIT_RULES, "greedy")}
        claims += _judge_scene(world, line, params["warm_up"])
        data["scenes"][world] = line
    back = {rule: np.median([row[f"back {rule}"] for row in rows], axis=(0, 2)).tolist() for rule in BANDIT_RULES}
    for k, length in enumerate(_LENGTHS):
        for rule in BANDIT_RULES:
            text = f"two arms swap after {length} steps: steps until {rule} draws the better one more often (median)"
            claims.append(Claim(f"back_{rule}_{length}", text, back[rule][k]))
    ratio = back["exp3"][-1] / back["exp3-s"][-1]
    text = f"after {_LENGTHS[-1]} steps, sharing weight brings EXP3 back sooner (times)"
    claims.append(bounded("sharing", text, ratio, least=1.0))
    return claims, {**data, "back": back}


def _judge_scene(world: str, line: dict[str, Array], at: int) -> list[Claim]:
    half, scene = max(at // 2, 1), "shift" if world == _SHIFTING else "broken models"
    before = {name: float(line[name][at - half : at].mean()) for name in line}
    after = {name: float(line[name][-half:].mean()) for name in line}
    best, then = (max(_RUNS, key=lambda name: when[name]) for when in (before, after))
    place = sorted(_RUNS, key=lambda name: -after[name]).index(best) + 1
    ends = f"{then} is first, {after[then]:.3f}"
    text = f"{scene}: {best}, best before ({before[best]:.3f}), falls to this place of {len(_RUNS)} ({ends})"
    note = "the rates are learned again every day, and LambdaCrawl goes along with the world"
    claims = [bounded(f"{world}_best_falls", text, place, least=2, note=note)]
    for rule in BANDIT_RULES:
        text = f"{scene}: {rule} below the best strategy at the end (before: {before[best] - before[rule]:+.3f})"
        note = "rewards are weighed by the clicks that are believed, and these are wrong now"
        claims.append(bounded(f"{world}_{rule}_after", text, float(after[then] - after[rule]), most=0.05, note=note))
        near = np.convolve(line[rule][at:], np.ones(3) / 3, "valid") >= after[then] - _NEAR
        stays = np.logical_and.accumulate(near[::-1])[::-1]
        days = float(np.argmax(stays)) if stays.any() else float(len(line[rule]) - at)
        text = f"{scene}: {rule}, days until it stays within {_NEAR} of it{'' if stays.any() else ' (not reached)'}"
        claims.append(Claim(f"{world}_{rule}_days", text, days))
    return claims


def _draw_shift(canvas: Any, data: Row) -> None:
    axes = canvas.subplots(1, 3)
    for scene, (world, lines) in zip(axes, data["scenes"].items(), strict=False):
        for name, line in lines.items():
            style = "-" if name in BANDIT_RULES else ":" if name != "greedy" else "--"
            smooth = np.convolve(line, np.ones(5) / 5, "valid")
            scene.plot(np.arange(len(smooth)) + 4 - data["at"], smooth, style, label=name)
        scene.axvline(0, color="k", lw=0.8)
        scene.set(xlabel="days since", ylabel="click-weighted freshness (5-day means)")
        scene.set_title(_SCENES[world], fontsize=9)
    scene.legend(fontsize=8, ncols=2)
    for rule, steps in data["back"].items():
        axes[2].plot(data["lengths"], steps, "-o", label=rule)
    axes[2].set(xscale="log", yscale="log", xlabel="steps before two arms swap")
    axes[2].set_title("steps until the better arm is preferred", fontsize=9)
    axes[2].legend()


_SETTINGS = settings_with(budgets=[0.01, 0.1, 0.5])
_SETTINGS["tiny"] |= {"budgets": [0.1], "reps": 1}
_SHIFT = settings_with(budgets=[0.1], trained=100, warm_up=50, judged=50)
_SHIFT["tiny"] |= {"trained": 50, "warm_up": 5, "judged": 5, "reps": 1}
FIGURES = [
    Figure(
        "han2020/greedy", "Greedy, the bandit and LambdaCrawl", _SETTINGS, _tasks_greedy, _work_greedy, _judge_greedy,
        _draw_greedy, stream=STREAM, size=(11.0, 8.0),
    ),
    Figure(
        "han2020/regret", "Regret of the bandits, with its bound", settings_with(budgets=[0.1]), _tasks_regret,
        _work_regret, _judge_regret, _draw_regret, stream=STREAM, size=(10.0, 4.6),
    ),
    Figure(
        "han2020/shift", "When the best strategy changes", _SHIFT, _tasks_shift, _work_shift, _judge_shift, _draw_shift,
        stream=STREAM, size=(15.0, 4.8),
    ),
]  # fmt: skip
