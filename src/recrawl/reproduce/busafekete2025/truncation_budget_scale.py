"""Busa-Fekete et al., WWW 2025: truncated values (figure 6), a changing budget (figure 9), and scale."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from recrawl.model.pages import Pages
from recrawl.model.value import crawl_value
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded
from recrawl.reproduce.pictures import COLOURS
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.simulate.run.policies import contender
from recrawl.simulate.run.run import simulate
from recrawl.simulate.worlds.population import uniform_pages
from recrawl.simulate.worlds.worlds import World
from recrawl.solver.solving import solve

# --- figure 6 ---------------------------------------------------------------------------------------------------------

_TERMS = (1, 2, 3)


def _truncated(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """The crawl value over elapsed time without signals: exact, and truncated to its first terms."""
    page = Pages(key["change_rate"], 1.0, key["recall"], key["false_rate"])
    elapsed = np.linspace(0.0, 30.0, params["points"])[1:]
    lines = {"exact": crawl_value(page, elapsed)} | {f"{j}": crawl_value(page, elapsed, terms=j) for j in _TERMS}
    return {"elapsed": elapsed, **lines}


def _tasks6(params: Params) -> list[Task]:
    return [Task({"change_rate": 0.5, "recall": r, "false_rate": f}, 0.1) for r, f in ((0.5, 0.25), (0.8, 0.5))]


def _judge6(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    miss = {
        j: max(float(np.max(np.abs(np.subtract(row["exact"], row[f"{j}"])) / np.max(row["exact"]))) for row in rows)
        for j in _TERMS
    }
    claims = [
        Claim(f"error_{j}", f"largest error of {j} term{'s' * (j > 1)}, of the largest value", miss[j]) for j in _TERMS
    ]
    ratio = miss[1] / max(miss[3], 1e-300)
    claims.append(
        bounded("shrinks", "each term brings the value nearer (error of 1 term over that of 3)", ratio, least=1.0)
    )
    return claims, {"pages": rows}


def _draw6(canvas: Any, data: Row) -> None:
    styles = {"exact": "-", "1": ":", "2": "-.", "3": "--"}
    for axes, page in zip(canvas.subplots(1, len(data["pages"]), squeeze=False)[0], data["pages"], strict=True):
        for name, style in styles.items():
            axes.plot(
                page["elapsed"],
                page[name],
                style,
                label=name if name == "exact" else f"first {name} term{'s' * (name > '1')}",
            )
        axes.set(xlabel="effective time since the last crawl", ylabel="crawl value")
        axes.set_title(
            f"change rate {page['change_rate']}, recall {page['recall']}, false rate {page['false_rate']}", fontsize=10
        )
        axes.legend()


# --- figure 9 ---------------------------------------------------------------------------------------------------------

_LOW, _HIGH = 100.0, 150.0


def _burn_in(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Windowed freshness of GREEDY under a budget that rises by half and falls back, and under both budgets."""
    scale, end = params["scale"], params["horizon"]
    trace = World("poisson", uniform_pages(round(1000 * scale), rng)).draw(end, rng)
    low, high = _LOW * scale, _HIGH * scale
    budgets: dict[str, Any] = {"low": low, "high": high, "changing": [(0.0, low), (end / 3, high), (2 * end / 3, low)]}
    runs = {
        name: simulate(contender("no-signals"), trace, budget, bins=params["bins"]) for name, budget in budgets.items()
    }
    return {name: run.window_freshness for name, run in runs.items()}


def _judge9(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    n = params["bins"]
    mean = {name: np.mean([row[name] for row in rows], axis=0) for name in ("low", "high", "changing")}
    thirds = [("low", slice(n // 6, n // 3)), ("high", slice(n // 2, 2 * n // 3)), ("low", slice(5 * n // 6, n))]
    misses = [np.mean(mean["changing"][part]) - np.mean(mean[level][part]) for level, part in thirds]
    worst = max(float(abs(miss)) for miss in misses)
    text = "accuracy reaches the level of each budget, nothing computed again (largest miss, last half of a third)"
    step = float(np.mean(mean["high"][thirds[1][1]]) - np.mean(mean["low"][thirds[1][1]]))
    claims = [
        bounded("level_error", text, worst, most=0.01),
        Claim("step", "what half as much budget again brings", step),
    ]
    width = params["horizon"] / n
    return claims, {"time": (width * (np.arange(n) + 0.5)), **mean}


def _draw9(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    names = {"low": "budget 100 throughout", "high": "budget 150 throughout", "changing": "100, then 150, then 100"}
    for (name, label), colour in zip(names.items(), ("#228833", "#4477aa", "#cc3311"), strict=True):
        axes.plot(data["time"], data[name], label=label, color=colour, lw=2 if name == "changing" else 1.2)
    axes.set(xlabel="time", ylabel="accuracy in a window", title="GREEDY, 1000 pages, a budget that changes")
    axes.grid(alpha=0.3)
    axes.legend()


# --- scale ------------------------------------------------------------------------------------------------------------


def _speed(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Seconds per decision of one scheduler on one core, in calls of 1000 decisions with a signal for each."""
    _timed(2000, 20, rng)  # compiled first
    seconds, scheduler = _timed(key["m"], params["calls"], rng)
    return {"seconds": seconds, "bytes": scheduler.nbytes / key["m"]}


def _timed(m: int, calls: int, rng: np.random.Generator) -> tuple[float, Scheduler]:
    """The last calls are timed, after as many decisions as there are pages, or as many calls as that if these are more.

    Copies start at the ages they have in the long run, but unsignalled: the first decisions are dearer than later ones.
    """
    budget, n = m / 10, min(1000, m // 20)
    scheduler = Scheduler(budget=budget, lease=n / budget)
    pages = uniform_pages(m, rng, "noisy")
    rate = solve(pages.replace(recall=0.0, false_rate=0.0), budget).crawl_rate
    longest = np.divide(1.0, rate, out=np.full(m, 100.0), where=rate > 0)
    scheduler.add(pages, 0.0, fetched_at=-rng.random(m) * longest)
    before = max(calls, m // n)
    began = 0.0
    for call in range(before + calls):
        signalled = rng.integers(0, m, n)
        if call == before:
            began = time.perf_counter()
        now = (call + 1) * n / budget
        scheduler.signal(signalled, now)
        scheduler.record(scheduler.pick(now, n), now)
    return (time.perf_counter() - began) / (calls * n), scheduler


def _judge_scale(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    speed = [1 / row["seconds"] for row in rows]
    last = rows[-1]
    growth = last["seconds"] / rows[0]["seconds"]
    claims = [
        bounded(
            "decisions_per_second",
            f"decisions per second on one core, {last['m']:.0e} pages",
            speed[-1],
            least=1e4,
            paper="1e4 per second over a fleet",
        ),
        bounded("bytes_per_page", "bytes per page", last["bytes"], most=1000.0),
        bounded("growth", f"time per decision, {last['m']:.0e} pages over {rows[0]['m']:.0e}", growth, most=10.0),
        Claim(
            "fleet_gigabytes",
            "memory for the paper's 1e9 pages over its fleet, in gigabytes",
            last["bytes"],
            paper="1e9 pages",
        ),
    ]
    return claims, {
        "m": [row["m"] for row in rows],
        "decisions_per_second": speed,
        "bytes_per_page": [row["bytes"] for row in rows],
    }


def _draw_scale(canvas: Any, data: Row) -> None:
    left, right = canvas.subplots(1, 2)
    left.plot(data["m"], data["decisions_per_second"], "o-", color=COLOURS["NCIS"])
    left.axhline(1e4, color="#999999", ls="--", label="the paper's fleet: 1e4 crawls/s")
    left.set(xscale="log", yscale="log", xlabel="pages", ylabel="decisions per second, one core")
    left.legend()
    right.plot(data["m"], data["bytes_per_page"], "o-", color=COLOURS["GREEDY"])
    right.set(xscale="log", xlabel="pages", ylabel="bytes per page", ylim=(0, None))


def _tasks9(params: Params) -> list[Task]:
    return [Task({"rep": rep}, params["horizon"] * params["scale"] * 3e-3) for rep in range(params["reps"])]


def _scale_tasks(params: Params) -> list[Task]:
    return [Task({"m": m}, m * 2e-5 + 1.0) for m in params["sizes"]]


_POINTS: dict[str, Params] = {setting: {"points": 200} for setting in ("tiny", "quick", "full")}
_SETTINGS9: dict[str, Params] = {
    "tiny": {"scale": 0.05, "horizon": 30.0, "bins": 12, "reps": 2},
    "quick": {"scale": 1.0, "horizon": 400.0, "bins": 48, "reps": 4},
    "full": {"scale": 1.0, "horizon": 400.0, "bins": 48, "reps": 100},
}
_SIZES: dict[str, Params] = {
    "tiny": {"sizes": [1000, 2000], "calls": 5},
    "quick": {"sizes": [10_000, 100_000, 1_000_000], "calls": 300},
    "full": {"sizes": [10_000, 100_000, 1_000_000, 10_000_000], "calls": 1000},
}
FIGURES = [
    Figure(
        "busafekete2025/fig6", "The crawl value and its first terms", _POINTS, _tasks6, _truncated, _judge6, _draw6,
        size=(10.0, 4.4),
    ),
    Figure("busafekete2025/fig9", "A budget that changes", _SETTINGS9, _tasks9, _burn_in, _judge9, _draw9),
    Figure(
        "busafekete2025/scale", "Decisions per second and bytes per page", _SIZES, _scale_tasks, _speed, _judge_scale,
        _draw_scale, size=(10.0, 4.4),
    ),
]  # fmt: skip
