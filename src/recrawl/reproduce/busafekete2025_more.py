"""Busa-Fekete et al., WWW 2025: a Bing-like population, truncated values, a changing budget, scale (figures 5, 6, 9)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from recrawl.model.pages import Pages
from recrawl.model.value import crawl_value
from recrawl.reproduce._draw import poisson_trace
from recrawl.reproduce.busafekete2025 import instance
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column, mean_error
from recrawl.reproduce.pictures import COLOURS, draw_lines
from recrawl.schedule.scheduler import Scheduler
from recrawl.simulate.policies import contender
from recrawl.simulate.population import bing_like
from recrawl.simulate.run import Contender, simulate
from recrawl.simulate.trace import Trace

Array = NDArray[np.float64]

_TOP_SHARE = 0.05  # pages whose quality is drawn from the upper tail
_MOST_FALSE = 4.0  # false signals per day: what a sitemap read every six hours can give
_NOISE = (0.0, 0.1, 0.2)
_LINES5 = {"GREEDY": "no-signals", "CIS+": "trusting-plus", "NCIS": "signals"}

# --- figure 5 ---------------------------------------------------------------------------------------------------------


def _quality(top: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Array, Array]:
    """Precision ~ Beta(.6, 3), recall ~ Beta(.8, 1.6): the upper 5% of each for the top pages, the rest for others."""
    share = np.where(top, 1 - _TOP_SHARE, 0.0) + np.where(top, _TOP_SHARE, 1 - _TOP_SHARE) * rng.random((2, len(top)))
    return beta.ppf(share[0], 0.6, 3.0), beta.ppf(share[1], 0.8, 1.6)


def corrupted_world(n: int, rng: np.random.Generator) -> tuple[Pages, dict[float, Pages]]:
    """Bing-like pages with signals as they are, and as a policy believes them with noise p in both quality numbers.

    The top pages are those that the data set labels as signalled, filled up to 5% at random. A precision near 0 stands
    for endless false signals (1/precision has no mean here), so there are at most four a day.
    """
    plain = bing_like(n, rng)
    top = plain.recall == 1
    top |= rng.random(n) < (_TOP_SHARE - top.mean()) / (1 - top.mean())
    precision, recall = _quality(top, rng)
    false_rate = np.minimum(recall * plain.change_rate * (1 - precision) / np.maximum(precision, 1e-12), _MOST_FALSE)
    pages = Pages(plain.change_rate, plain.importance, recall, false_rate)
    noise = rng.random((2, n))
    believed = {
        p: Pages.from_quality(
            pages.change_rate,
            pages.importance,
            precision=np.maximum((1 - p) * pages.precision + p * noise[0], 1e-9),
            recall=(1 - p) * recall + p * noise[1],
        )
        for p in _NOISE
    }
    return pages, believed


def _bing(params: Params, key: Row, rng: np.random.Generator) -> Row:
    pages, believed = corrupted_world(params["pages"], rng)
    trace = poisson_trace(pages, params["steps"], rng)
    row: Row = {"signals_per_page": len(trace.signals.at) / len(pages) if trace.signals else 0.0}
    for line, policy in _LINES5.items():
        for p, told in believed.items():
            if line == "GREEDY" and p > 0:
                row[f"{line} {p:g}"] = row[f"{line} 0"]  # it does not look at quality
                continue
            runs = Contender(line, contender(policy).make, _teller(told))
            row[f"{line} {p:g}"] = simulate(runs, trace, params["pages"] * 0.05).freshness
    return row


def _teller(told: Pages) -> Any:
    def admit(policy: Any, trace: Trace, rows: NDArray[np.int64], now: float) -> Any:
        return policy.add(told[rows], now, fetched_at=now)

    return admit


def _judge5(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    lines: dict[str, dict[str, list[float]]] = {}
    for line in _LINES5:
        pairs = [mean_error(column(rows, f"{line} {p:g}")) for p in _NOISE]
        lines[line] = {"mean": [pair[0] for pair in pairs], "error": [pair[1] for pair in pairs]}

    def less(one: str, other: str) -> tuple[float, float]:
        return mean_error(column(rows, one) - column(rows, other))

    note = "believing signals of poor pages more than they deserve costs NCIS; CIS+ leaves those pages alone"
    fall = mean_error((column(rows, "CIS+ 0") - column(rows, "CIS+ 0.2")) - (column(rows, "NCIS 0") - column(rows, "NCIS 0.2")))
    claims = [bounded("over_greedy", "NCIS at least GREEDY, quality known exactly", *less("NCIS 0", "GREEDY 0"), least=0.0)]
    claims.append(bounded("over_cis_plus", "NCIS at least CIS+, quality known exactly", *less("NCIS 0", "CIS+ 0"), least=0.0))
    for p in _NOISE[1:]:
        for other, key in (("GREEDY", "over_greedy"), ("CIS+", "over_cis_plus")):
            difference = less(f"NCIS {p:g}", f"{other} {p:g}")
            claims.append(bounded(f"{key}_{p:g}", f"NCIS at least {other}, noise {p:g}", *difference, least=0.0, note=note))
    claims.append(bounded("robust", "CIS+ loses more than NCIS as noise grows to 0.2", *fall, least=0.0, note=note))
    return claims, {"noise": list(_NOISE), "lines": lines}


def _draw5(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    draw_lines(axes, data["noise"], data["lines"])
    axes.set(xlabel="share of noise in precision and recall", ylabel="accuracy (freshness)")
    axes.set_title("Bing-like pages, 5% crawled per step")


# --- figure 6 ---------------------------------------------------------------------------------------------------------

_TERMS = (1, 2, 3)


def _truncated(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """The crawl value over elapsed time without signals so far: exact, and by its first terms."""
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
    claims = [Claim(f"error_{j}", f"largest error of {j} term{'s' * (j > 1)}, of the largest value", miss[j]) for j in _TERMS]
    ratio = miss[1] / max(miss[3], 1e-300)
    claims.append(bounded("shrinks", "each term brings the value nearer (error of 1 term over that of 3)", ratio, least=1.0))
    return claims, {"pages": rows}


def _draw6(canvas: Any, data: Row) -> None:
    styles = {"exact": "-", "1": ":", "2": "-.", "3": "--"}
    for axes, page in zip(canvas.subplots(1, len(data["pages"]), squeeze=False)[0], data["pages"], strict=True):
        for name, style in styles.items():
            axes.plot(page["elapsed"], page[name], style, label=name if name == "exact" else f"first {name} term{'s' * (name > '1')}")
        axes.set(xlabel="effective time since the last crawl", ylabel="crawl value")
        axes.set_title(f"change rate {page['change_rate']}, recall {page['recall']}, false rate {page['false_rate']}", fontsize=10)
        axes.legend()


# --- figure 9 ---------------------------------------------------------------------------------------------------------

_LOW, _HIGH = 100.0, 150.0


def _burn_in(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Windowed freshness of GREEDY with a budget that rises by half and falls back, and with both budgets throughout."""
    scale, end = params["scale"], params["horizon"]
    trace = poisson_trace(instance(round(1000 * scale), rng, "none"), end, rng)
    low, high = _LOW * scale, _HIGH * scale
    budgets: dict[str, Any] = {"low": low, "high": high, "changing": [(0.0, low), (end / 3, high), (2 * end / 3, low)]}
    runs = {name: simulate(contender("no-signals"), trace, budget, bins=params["bins"]) for name, budget in budgets.items()}
    return {name: run.window_freshness for name, run in runs.items()}


def _judge9(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    n = params["bins"]
    mean = {name: np.mean([row[name] for row in rows], axis=0) for name in ("low", "high", "changing")}
    thirds = [("low", slice(n // 6, n // 3)), ("high", slice(n // 2, 2 * n // 3)), ("low", slice(5 * n // 6, n))]
    misses = [np.mean(mean["changing"][part]) - np.mean(mean[level][part]) for level, part in thirds]
    worst = max(float(abs(miss)) for miss in misses)
    text = "accuracy reaches the level of each budget, with nothing computed anew (largest miss in the second half of a third)"
    step = float(np.mean(mean["high"][thirds[1][1]]) - np.mean(mean["low"][thirds[1][1]]))
    claims = [bounded("level_error", text, worst, most=0.01), Claim("step", "what half as much budget again brings", step)]
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


def _pace(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Seconds per decision of one scheduler on one core, in calls of 100 decisions, a signal for each."""
    _timed(1000, 20, rng)  # compiled first
    seconds, scheduler = _timed(key["m"], params["calls"], rng)
    return {"seconds": seconds, "bytes": scheduler.nbytes / key["m"]}


def _timed(m: int, calls: int, rng: np.random.Generator, n: int = 100) -> tuple[float, Scheduler]:
    budget = m / 10
    scheduler = Scheduler(budget=budget, lease=n / budget)
    pages = instance(m, rng, "noisy")
    scheduler.add(pages, 0.0, fetched_at=-rng.uniform(0.0, 20.0, m))
    told = rng.integers(0, m, (2 * calls, n))
    began = 0.0
    for call in range(2 * calls):
        if call == calls:
            began = time.perf_counter()
        now = (call + 1) * n / budget
        scheduler.signal(told[call], now)
        scheduler.record(scheduler.pick(now, n), now)
    return (time.perf_counter() - began) / (calls * n), scheduler


def _judge_scale(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    pace = [1 / row["seconds"] for row in rows]
    last = rows[-1]
    growth = last["seconds"] / rows[0]["seconds"]
    claims = [
        bounded("decisions_per_second", f"decisions per second on one core, {last['m']:.0e} pages", pace[-1], least=1e4, paper="1e4 per second over a fleet"),
        bounded("bytes_per_page", "bytes per page", last["bytes"], most=1000.0),
        bounded("growth", f"time per decision, {last['m']:.0e} pages over {rows[0]['m']:.0e}", growth, most=10.0),
        Claim("fleet_gigabytes", "memory for the paper's 1e9 pages over its fleet, in gigabytes", last["bytes"], paper="1e9 pages"),
    ]
    return claims, {"m": [row["m"] for row in rows], "decisions_per_second": pace, "bytes_per_page": [row["bytes"] for row in rows]}


def _draw_scale(canvas: Any, data: Row) -> None:
    left, right = canvas.subplots(1, 2)
    left.plot(data["m"], data["decisions_per_second"], "o-", color=COLOURS["NCIS"])
    left.axhline(1e4, color="#999999", ls="--", label="the paper's fleet: 1e4 crawls/s")
    left.set(xscale="log", yscale="log", xlabel="pages", ylabel="decisions per second, one core")
    left.legend()
    right.plot(data["m"], data["bytes_per_page"], "o-", color=COLOURS["GREEDY"])
    right.set(xscale="log", xlabel="pages", ylabel="bytes per page", ylim=(0, None))


def _reps(seconds: float) -> Any:
    return lambda params: [Task({"rep": rep}, seconds * params.get("weight", 1.0)) for rep in range(params["reps"])]


_SETTINGS5: dict[str, Params] = {
    "tiny": {"pages": 200, "steps": 5.0, "reps": 2, "weight": 0.01},
    "quick": {"pages": 10_000, "steps": 40.0, "reps": 3, "weight": 1.0},
    "full": {"pages": 100_000, "steps": 200.0, "reps": 10, "weight": 60.0},
}
_SETTINGS9: dict[str, Params] = {
    "tiny": {"scale": 0.05, "horizon": 30.0, "bins": 12, "reps": 2, "weight": 0.01},
    "quick": {"scale": 1.0, "horizon": 400.0, "bins": 48, "reps": 4, "weight": 1.0},
    "full": {"scale": 1.0, "horizon": 400.0, "bins": 48, "reps": 100, "weight": 1.0},
}
_SIZES: dict[str, Params] = {
    "tiny": {"sizes": [1000, 2000], "calls": 5},
    "quick": {"sizes": [10_000, 100_000, 1_000_000], "calls": 500},
    "full": {"sizes": [10_000, 100_000, 1_000_000, 10_000_000], "calls": 2000},
}
FIGURES = [
    Figure("busafekete2025/fig5", "Corrupted signal quality on a Bing-like population", _SETTINGS5, _reps(20.0), _bing, _judge5, _draw5),
    Figure("busafekete2025/fig6", "The crawl value and its first terms", {s: {"points": 200} for s in ("tiny", "quick", "full")}, _tasks6, _truncated, _judge6, _draw6, size=(10.0, 4.4)),
    Figure("busafekete2025/fig9", "A budget that changes", _SETTINGS9, _reps(2.5), _burn_in, _judge9, _draw9),
    Figure("busafekete2025/scale", "Decisions per second and bytes per page", _SIZES, lambda params: [Task({"m": m}, m * 2e-6 + 1) for m in params["sizes"]], _pace, _judge_scale, _draw_scale, size=(10.0, 4.4)),
]  # fmt: skip
