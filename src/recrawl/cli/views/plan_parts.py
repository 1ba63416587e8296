"""``recrawl plan`` of a log in several files: each part becomes a table of rates, and a budget is solved for all."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.files.columns import read_pages
from recrawl.cli.shared.files.part_calls import Call, calling
from recrawl.cli.shared.files.tables import read_table
from recrawl.cli.shared.logs.crawl_log import remarks
from recrawl.cli.shared.logs.log_parts import SAMPLE, LogPart, fitted, sample_of
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.cli.shared.options.solve_request import Request
from recrawl.cli.shared.pages.page_parts import Part, asked_by
from recrawl.cli.views.estimate_parts import summed
from recrawl.cli.views.plan_report import Asked, history_of, rate_figures
from recrawl.errors import ParameterError
from recrawl.estimate import GammaPrior, GroupPriors, estimate_change_rate, poisson_look
from recrawl.estimate.prospects import DRAWS, FreshTime, drawn, fresh_times, schedule_shares, spread
from recrawl.model.budget import parse_budget
from recrawl.model.freshness import page_freshness
from recrawl.model.pages import Pages
from recrawl.model.spans import DAY
from recrawl.solver.parts import Mix, PartsProblem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Sums:
    """What a part adds to the figures of all."""

    counts: dict[str, int]  # pages, pages_gone, crawls, changes, failed_crawls, tested
    page_time: float
    importance: float
    scheduled: float  # Σ importance × freshness, if the log's intervals went on
    rejected: float  # tested pages whose constant rate is rejected
    fresh: FreshTime
    said: dict[str, Any]  # repairs, computed, remarks, sources


def plan_parts(
    paths: Sequence[Path], asked: Asked, options: LogOptions, places: tuple[int, str | None]
) -> dict[str, Any]:
    """All figures of a log in parts but the curve; rates are per day."""
    if asked.target is not None:
        raise ParameterError("--target needs the log in one file")
    from rich.console import Console

    parts = [LogPart(path.resolve(), options, asked.group) for path in paths]
    with (
        Console(stderr=True).status(f"reading {len(paths)} files") as status,
        calling(*places) as call,
        tempfile.TemporaryDirectory() as made,
    ):
        samples = call(partial(sample_of, -(-SAMPLE // len(parts))), parts)
        ended = max(one.ended for one in samples)
        days = (ended - min(one.began for one in samples)) / DAY
        timed = [replace(part, until=ended) for part in parts]
        work = partial(_rated, fitted(samples), asked.level, Path(made))
        sums: list[_Sums] = call(work, list(enumerate(timed)))
        status.update(f"solving for the pages of {len(paths)} files")
        tables = sorted(Path(made).glob("*.parquet"))
        found = _figures(sums, asked, days)
        n, own = found["pages"], found["own_budget"]["per_day"]
        wanted = own if asked.budget is None else parse_budget(asked.budget, n) * DAY
        others = [parse_budget(text, n) * DAY for text in asked.budgets or []] or [wanted / 2, wanted * 2]
        found["budgets"] = [_at(call, tables, one, found, asked.level) for one in sorted({wanted, *others})]
    return {"files": [str(path) for path in paths], **found}


def _rated(groups: GroupPriors, level: float, folder: Path, numbered: tuple[int, LogPart]) -> _Sums:
    """Write the rates of a part's live pages to a folder; what the part adds to the figures."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number, part = numbered
    log = part.log()
    history = history_of(log, str(part.path))
    seen, there = history.observations, history.there
    rates = estimate_change_rate(seen, prior=groups.of(part.labels(log)), level=level)
    gamma, weight = rates.gamma(), history.importance[there]
    columns = {"change_rate": gamma.mean[there] * DAY, "importance": weight, "evidence": gamma.shape[there]}
    pq.write_table(pa.table(columns), folder / f"{number:06d}.parquet")
    look = poisson_look(seen, estimate_change_rate(seen, "mle", level=None).change_rate, log.ended_at)
    n, m = int(there.sum()), len(seen.interval)
    counts = {"pages": n, "pages_gone": len(seen) - n, "crawls": m, "changes": int(seen.changed.sum())}
    counts |= {"failed_crawls": log.n_failed, "tested": look.n_tested}
    return _Sums(
        counts,
        history.page_time,
        float(weight.sum()),
        float(schedule_shares(history, rates) @ weight),
        look.rejected * look.n_tested if look.n_tested else 0.0,
        fresh_times(history, rates),
        {"repairs": log.repairs, "computed": log.computed, "remarks": remarks(log), "sources": log.sources},
    )


def _figures(sums: Sequence[_Sums], asked: Asked, days: float) -> dict[str, Any]:
    """The figures of the log itself."""
    counts = summed(one.counts for one in sums)
    n, tested = counts["pages"], counts.pop("tested", 0)
    crawls = counts["crawls"] + counts["failed_crawls"]
    own = crawls * n / sum(one.page_time for one in sums)
    past = sum((one.fresh for one in sums[1:]), sums[0].fresh).freshness(asked.level)
    by_rates = sum(one.scheduled for one in sums) / sum(one.importance for one in sums)
    rejected = sum(one.rejected for one in sums) / tested if tested else None
    return {
        **counts,
        "days": days,
        "level": asked.level,
        "repairs": summed(one.said["repairs"] for one in sums),
        "computed": summed(one.said["computed"] for one in sums),
        "remarks": list(dict.fromkeys(line for one in sums for line in one.said["remarks"])),
        "signals_left_out": any(one.said["sources"] for one in sums),
        "own_budget": rate_figures(own, n),
        "now": {**asdict(past), "by_rates": by_rates},
        "target": None,
        "poisson": {"pages_tested": tested, "rejected": rejected},
    }


def _at(call: Call, tables: Sequence[Path], budget: float, found: dict[str, Any], level: float) -> dict[str, Any]:
    """The prospect of a budget per day."""
    parts = [Part(path, Request(budget=f"{budget:.17g}/day")) for path in tables]
    problem = PartsProblem(asked_by(call, parts))
    plan = problem.solve("freshness", budget=budget)
    answers = call(partial(_fresh, plan.mix, budget / problem.n_pages), list(enumerate(parts)))
    total = np.sum(answers, axis=0) / problem.importance
    low, high = spread(total[1:], level)
    n, own = found["pages"], found["own_budget"]["per_day"]
    best = {"freshness": plan.freshness, "low": plan.freshness + low, "high": min(plan.freshness + high, 1.0)}
    more = {"times_own": budget / own, **best, "alike": float(total[0]), "never": plan.n_never}
    return {**rate_figures(budget / DAY, n), **more}


def _fresh(mix: Mix, each: float, numbered: tuple[int, Part]) -> Array:
    """Σ importance × freshness of a part: at equal rates, then at the best ones for each draw of its rates."""
    number, part = numbered
    table = read_table(part.path)
    pages = read_pages(table)
    weight = np.broadcast_to(np.asarray(pages.importance, np.float64), len(pages))
    shape, rng = np.asarray(pages.evidence, np.float64), np.random.default_rng([0, number])
    gamma, crawled = GammaPrior(shape, shape / pages.change_rate), mix.rates(part.curves(pages))
    equal = float(page_freshness(pages, np.full(len(pages), each)) @ weight)
    best = [float(page_freshness(Pages(drawn(gamma, rng)), crawled) @ weight) for _ in range(DRAWS)]
    return np.array([equal, *best])
