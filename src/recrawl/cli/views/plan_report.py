"""Results of ``recrawl plan``: the figures as a dictionary, and as text."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.cli.shared.histories.readers import importance_of
from recrawl.cli.shared.logs.crawl_log import CrawlLog, read_crawl_log, remarks
from recrawl.cli.shared.logs.log_parts import group_labels
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.errors import ParameterError
from recrawl.estimate import GammaPrior, estimate_change_rate, fit_group_priors, poisson_look
from recrawl.estimate.prospects import History, Prospects, freshness_of_schedule, freshness_so_far
from recrawl.model.budget import format_rate, parse_budget
from recrawl.model.spans import DAY, format_span

_CURVE = 12  # budgets of the curve, from an eighth to eight times


@dataclass(frozen=True)
class Asked:
    """The options as given; budgets are text such as 5000/day."""

    budget: str | None = None
    budgets: list[str] | None = None
    target: float | None = None
    group: str = "host"
    level: float = 0.9

    def __post_init__(self) -> None:
        for text in [*([] if self.budget is None else [self.budget]), *(self.budgets or [])]:
            parse_budget(text, 1)


def share(text: str) -> float:
    """A target given as 0.95 or 95%.

    >>> share("95%"), share("0.95")
    (0.95, 0.95)
    """
    try:
        value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = math.nan
    if not 1e-6 <= value < 1:
        raise ParameterError(f"--target is {text!r}: a share such as 0.95 or 95% is expected")
    return value


def worked_out(
    path: Path, asked: Asked, options: LogOptions | None = None, access_log: Path | None = None
) -> dict[str, Any]:
    """Read a log and compute all figures. Requests of an access log are the importance."""
    log = read_crawl_log(path, options)
    if access_log is not None:
        importance, said = importance_of(access_log, log.urls)
        log = replace(log, importance=importance, notes=[*log.notes, *said])
    return {"file": str(path), **prospects_of(log, asked, str(path))}


def prospects_of(log: CrawlLog, asked: Asked, name: str = "the log") -> dict[str, Any]:
    """All figures of a log; rates are per day."""
    history = history_of(log, name)
    seen, there, n = history.observations, history.there, int(history.there.sum())
    labels = group_labels(log, asked.group)
    rates = estimate_change_rate(seen, prior=fit_group_priors(seen, labels).of(labels), level=asked.level)
    flat = estimate_change_rate(seen, "mle", level=None).change_rate
    look = poisson_look(seen, flat, log.ended_at)
    gamma = rates.gamma()
    live = GammaPrior(gamma.shape[there], gamma.rate[there])
    prospects = Prospects(live, history.importance[there], asked.level, np.random.default_rng(0))
    budget = history.budget if asked.budget is None else parse_budget(asked.budget, n)
    others = [budget / 2, budget * 2] if asked.budgets is None else [parse_budget(text, n) for text in asked.budgets]
    past = freshness_so_far(history, rates, asked.level)
    return {
        "pages": n,
        "pages_gone": len(seen) - n,
        "crawls": len(seen.interval),
        "changes": int(seen.changed.sum()),
        "failed_crawls": log.n_failed,
        "days": log.days,
        "level": asked.level,
        "repairs": log.repairs,
        "computed": log.computed,
        "remarks": remarks(log),
        "signals_left_out": bool(log.sources),
        "own_budget": rate_figures(history.budget, n),
        "now": {**asdict(past), "by_rates": freshness_of_schedule(history, rates)},
        "budgets": [_prospect(prospects, one, history.budget, n) for one in sorted({budget, *others})],
        "curve": _curve(prospects, budget),
        "target": None if asked.target is None else _target(prospects, asked.target, history.budget, n),
        "poisson": {
            "pages_tested": look.n_tested,
            "rejected": look.rejected if look.n_tested else None,
            "burst": look.burst,
        },
    }


def history_of(log: CrawlLog, name: str) -> History:
    """The log as a history. Pages that are gone or that never answered are not planned for."""
    seen = log.observations
    if not len(seen.interval) or not seen.interval.sum() > 0:
        raise ParameterError(f"{name}: no page was crawled twice, so nothing is known of changes")
    crawled = ~np.isnan(log.crawled_at)
    since = np.where(crawled, log.left_at - log.crawled_at, 0.0)
    live = crawled & ~log.gone
    importance = np.ones(len(log.urls)) if log.importance is None else log.importance
    if not live.any():
        raise ParameterError(f"{name}: every page is gone by its end")
    if not importance[live].sum() > 0:
        raise ParameterError(f"{name}: importance is 0 on every page")
    return History(seen, importance, np.maximum(since, 0.0), log.n_failed, live)


def rate_figures(budget: float, n: int) -> dict[str, Any]:
    """A budget of n pages per day."""
    return {"per_day": budget * DAY, "per_page_day": budget * DAY / n}


def _prospect(prospects: Prospects, budget: float, own: float, n: int) -> dict[str, Any]:
    found = prospects.at(budget)
    return {
        **rate_figures(budget, n),
        "times_own": budget / own,
        **asdict(found.best),
        "alike": found.uniform,
        "never": found.n_never,
    }


def _curve(prospects: Prospects, budget: float) -> list[dict[str, float]]:
    points = [prospects.at(budget * factor) for factor in np.geomspace(0.125, 8.0, _CURVE).tolist()]
    return [{"per_day": one.budget * DAY, "alike": one.uniform, **asdict(one.best)} for one in points]


def _target(prospects: Prospects, target: float, own: float, n: int) -> dict[str, Any]:
    budget, low, high = prospects.budget_for(target)
    ends = {"low_per_day": low * DAY, "high_per_day": high * DAY}
    return {"freshness": target, **rate_figures(budget, n), **ends, "times_own": budget / own}


def print_plan(found: dict[str, Any], files: list[Path]) -> None:
    """Print the figures as text."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for line in lines(found):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    table = Table("budget", "of the log's", "freshness", f"{found['level']:.0%} interval", "equal rates", box=None)
    for row in found["budgets"]:
        table.add_row(
            format_rate(row["per_day"], per="day", unit="day"),
            f"{row['times_own']:.3g}×",
            f"{row['freshness']:.3f}",
            f"{row['low']:.3f} … {row['high']:.3f}",
            f"{row['alike']:.3f}",
        )
    console.print(table, markup=False)
    if found["target"] is not None:
        console.print(target_line(found["target"]), highlight=False, markup=False, soft_wrap=True)
    for file in files:
        console.print(f"wrote {file}", highlight=False, markup=False)


def lines(found: dict[str, Any]) -> list[str]:
    """The summary, one sentence per line."""
    now, poisson, own = found["now"], found["poisson"], found["own_budget"]["per_day"]
    gone = f" ({found['pages_gone']} more are gone)" if found["pages_gone"] else ""
    said = [f"repaired: {name}: {count}" for name, count in found["repairs"].items()]
    said += found["remarks"]
    said += [
        f"{found['pages']} pages{gone}, {found['crawls']} intervals over {format_span(found['days'] * DAY)}, "
        f"{found['changes']} changed; the log spends {format_rate(own, per='day', unit='day')}",
        f"so far the copies were fresh {now['freshness']:.3f} of the time ({now['low']:.3f} to {now['high']:.3f}), "
        f"by the outcomes; with every page at a constant rate it would be {now['by_rates']:.3f}",
    ]
    if poisson["pages_tested"]:
        said.append(
            f"a constant rate is rejected for {poisson['rejected']:.0%} of {poisson['pages_tested']} pages with enough "
            "history (5% expected): the larger this share, the less reliable are the figures below"
        )
    if found["signals_left_out"]:
        said.append("the log's signals are ignored: the figures below are without their benefit")
    said.append("the best schedule would reach, by budget:")
    return said


def target_line(target: dict[str, Any]) -> str:
    """The sentence about the budget for a target."""
    budget, low, high = (
        format_rate(target[name], per="day", unit="day") for name in ("per_day", "low_per_day", "high_per_day")
    )
    return f"for {target['freshness']:.3g}: {budget} ({low} to {high}), {target['times_own']:.3g} times the log's"
