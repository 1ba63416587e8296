"""Pages without history: predicted priors against priors of folder, host and population, at equal budgets.

Known pages were crawled at irregular intervals before a date; cold pages come on that date and are crawled by the
engine for a while, each starting from one of several priors that were learned from the known pages alone. Staleness is
that of the cold pages, counted exactly.

    python experiments/predict/cold.py shop
    python experiments/predict/cold.py traces FOLDER…
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import ParameterError
from recrawl.estimate import Columns, GammaPrior, Observations, fit_group_priors, fit_prior, train_predictor
from recrawl.estimate.predict.trees import TreeSettings
from recrawl.simulate import Trace, read_trace, simulate
from recrawl.simulate.run.policies import learning
from recrawl.simulate.run.run import Contender
from recrawl.simulate.shop.settings import COLUMNS, shop_settings
from recrawl.simulate.shop.shop import Shop

Figures = dict[str, dict[str, float]]

HERE = Path(__file__).parent
BUDGETS = (0.02, 0.05, 0.1, 0.2)  # crawls per page and day
MIN_FOLDER = 3  # pages that a folder must have for a prior of its own
TREES = TreeSettings(threads=1, least_rows=50)


@dataclass
class Known:
    """Pages that were crawled before: per crawl the page, the interval in days and whether the page had changed."""

    page: np.ndarray
    interval: np.ndarray
    changed: np.ndarray
    at: np.ndarray
    url: np.ndarray
    table: dict[str, np.ndarray]

    def observations(self) -> Observations:
        return Observations.from_pages(self.page, self.interval, self.changed, n_pages=len(self.url))


def crawled(trace: Trace, rng: np.random.Generator, mean: float) -> tuple[np.ndarray, ...]:
    """Crawls of a trace's pages at intervals uniform on (0, 2·mean) days: page, interval, changed, when."""
    columns: list[list[Any]] = [[], [], [], []]
    for i in range(len(trace)):
        begin, end = trace.created_at[i], trace.deleted_at[i]
        steps = rng.uniform(0.0, 2.0 * mean * trace.day, int((end - begin) / (mean * trace.day) * 2 + 10))
        at = begin + np.cumsum(steps)
        at = np.concatenate([[begin], at[at < end]])
        if len(at) < 2:
            continue
        changes = trace.changed_at[trace.offset[i] : trace.offset[i + 1]]
        hit = np.diff(np.searchsorted(changes, at, side="right")) > 0
        for column, part in zip(columns, (np.full(len(hit), i), np.diff(at) / trace.day, hit, at[1:]), strict=True):
            column.append(part)
    return tuple(np.concatenate(column) for column in columns)


def folders(url: np.ndarray) -> np.ndarray:
    return np.array([u.rpartition("/")[0] for u in url.tolist()])


def hosts(url: np.ndarray) -> np.ndarray:
    return np.array([u.split("/")[2] for u in url.tolist()])


def group_priors(known: Known, cold_url: np.ndarray) -> dict[str, GammaPrior]:
    """Priors of cold pages from their host, and from their folder where it has pages, else from their host."""
    seen = known.observations()
    n = len(cold_url)
    population = fit_prior(seen, day=1.0)
    by_host = fit_group_priors(seen, hosts(known.url), day=1.0).of(hosts(cold_url))
    by_folder = fit_group_priors(seen, folders(known.url), day=1.0).of(folders(cold_url))
    names, size = np.unique(folders(known.url), return_counts=True)
    place = np.minimum(np.searchsorted(names, folders(cold_url)), len(names) - 1)
    enough = (names[place] == folders(cold_url)) & (size[place] >= MIN_FOLDER)
    mixed = [np.where(enough, f, h) for f, h in zip(by_folder.rows(n), by_host.rows(n), strict=True)]
    return {"population": GammaPrior(*population.rows(n)), "host": by_host, "folder, host": GammaPrior(*mixed)}


def predicted(known: Known, cold: dict[str, np.ndarray], columns: Columns) -> tuple[GammaPrior, dict[str, Any]]:
    table = {name: column[known.page] for name, column in known.table.items()}
    model = train_predictor(table, known.interval, known.changed, columns, page=known.page, at=known.at, settings=TREES)
    scores = model.about["scores"]["test_new_pages"]
    kept = {name: scores.get(name) for name in ("auc", "calibration_slope", "loss", "loss_of_one_rate")}
    return model.prior(cold), {**kept, **asdict(model.strength)}


def with_prior(prior: GammaPrior | None, shown: np.ndarray | None) -> Contender:
    """The engine with a given prior for each new page; None: the engine learns a prior itself."""

    def admit(policy: Any, trace: Trace, rows: np.ndarray, now: float) -> np.ndarray:
        urls, weight = trace.url[rows].tolist(), (trace.importance if shown is None else shown)[rows]
        if prior is None:
            return policy.add(urls, now, fetched_at=now, importance=weight)
        shape, time = prior.rows(len(trace))
        rate, shape = (shape / time)[rows] / trace.day, shape[rows]
        return policy.add(urls, now, fetched_at=now, importance=weight, change_rate=rate, evidence=shape)

    return Contender("engine", learning(), admit)


def staleness(priors: dict[str, GammaPrior | None], trace: Trace, shown: dict[str, np.ndarray]) -> Figures:
    """Staleness of the cold pages under each prior and budget; ``shown`` is the importance that the engine is given."""
    found: Figures = {}
    for budget in BUDGETS:
        per_time = budget * trace.n_live / trace.day
        found[str(budget)] = {
            name: 1.0 - simulate(with_prior(prior, shown.get(name)), trace, per_time).freshness
            for name, prior in priors.items()
        }
    return found


def shop_case(seed: int, name: str = "shop", n_known: int = 40_000, n_cold: int = 4_000) -> dict[str, Any]:
    """Known offers were crawled about every four days for two months; cold ones are watched for the month after."""
    past, days, n = 60, 30, n_known + n_cold
    shop = Shop(n, shop_settings(name, arriving=0.0), seed=seed)
    rng = np.random.default_rng([seed, 99])
    cold = np.sort(rng.permutation(n)[:n_cold])
    warm = np.setdiff1d(np.arange(n), cold)
    url = shop.offers.url()
    columns = {**{name: getattr(shop.offers, name) for name in COLUMNS}, "url": url}
    table, cold_table = ({name: column[rows] for name, column in columns.items()} for rows in (warm, cold))
    changes: list[tuple[np.ndarray, np.ndarray]] = []
    click_rows: list[tuple[np.ndarray, ...]] = []
    change_rate, click_rate = np.zeros(n), np.zeros(n)
    for day in shop.days(past + days):
        changes.append((day.changes.offer, day.changes.at))
        if day.day >= past:
            change_rate += day.rates.change / days
            click_rate += day.rates.click / days
        else:
            some = rng.integers(0, len(warm), len(warm) // 4)
            hit = day.n_clicks[warm[some]] > 0
            click_rows.append((some, np.ones(len(some)), hit, np.full(len(some), float(day.day))))
    offer, at = (np.concatenate([part[k] for part in changes]) for k in (0, 1))
    crawls = crawled(_window(offer, at, warm, 0.0, float(past), url), rng, 4.0)
    known = Known(*crawls, url[warm], table)
    clicked = Known(*(np.concatenate([rows[k] for rows in click_rows]) for k in range(4)), url[warm], table)
    trace = _window(offer, at, cold, float(past), float(past + days), url)
    ways = {"predictor, URL": Columns(url=True), "predictor, metadata": Columns(categories=COLUMNS)}
    fitted = {way: [predicted(part, cold_table, spec) for part in (known, clicked)] for way, spec in ways.items()}
    by_group, shown_by_group = group_priors(known, url[cold]), group_priors(clicked, url[cold])
    priors: dict[str, GammaPrior | None] = {
        "none": None,
        **by_group,
        **{way: found[0][0] for way, found in fitted.items()},
        "true rates": GammaPrior.from_mean(np.maximum(change_rate[cold], 1e-6), 1e6),
    }
    shown = {
        **{way: prior.mean for way, prior in shown_by_group.items()},
        **{way: found[1][0].mean for way, found in fitted.items()},
        "true rates": click_rate[cold],
    }
    read = replace(trace, importance=click_rate[cold])
    return {
        "seed": seed,
        "scores": {way: {"change": found[0][1], "click": found[1][1]} for way, found in fitted.items()},
        "offers": staleness(priors, trace, {}),
        "readers": staleness(priors, read, {"none": np.ones(n_cold), **shown}),
    }


def trace_case(folder: Path, start: str) -> dict[str, Any]:
    """Known pages were crawled about weekly in the year before a date; cold pages were born in the year after."""
    when = datetime.fromisoformat(f"{start}T00:00:00+00:00")
    before = read_trace(folder, start=(when - timedelta(days=365)).timestamp(), days=365)
    after = read_trace(folder, start=when.timestamp(), days=365)
    rng = np.random.default_rng(7)
    known = Known(*crawled(before, rng, 7.0), before.url, {"url": before.url})
    cold = np.flatnonzero(after.created_at > after.start)
    trace = _some(after, cold)
    by_url, scores = predicted(known, {"url": trace.url}, Columns(url=True))
    priors: dict[str, GammaPrior | None] = {"none": None, **group_priors(known, trace.url), "predictor, URL": by_url}
    return {
        "trace": folder.name,
        "start": start,
        "known": len(before),
        "cold": len(trace),
        "changes": int(trace.n_changes.sum()),
        "scores": scores,
        "pages": staleness(priors, trace, {}),
    }


def _window(offer: np.ndarray, at: np.ndarray, who: np.ndarray, start: float, end: float, url: np.ndarray) -> Trace:
    """The changes of some offers between two days."""
    number = np.full(int(max(offer.max(), who.max())) + 1, -1)
    number[who] = np.arange(len(who))
    inside = (number[offer] >= 0) & (at >= start) & (at < end)
    page, when = number[offer[inside]], at[inside]
    order = np.lexsort((when, page))
    offset = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=len(who)))])
    return Trace(start, end, offset=offset, changed_at=when[order], url=url[who], name="cold")


def _some(trace: Trace, rows: np.ndarray) -> Trace:
    """Some pages of a trace, all of them equally important."""
    parts = [trace.changed_at[trace.offset[i] : trace.offset[i + 1]] for i in rows.tolist()]
    return Trace(
        trace.start,
        trace.end,
        offset=np.concatenate([[0], np.cumsum([len(part) for part in parts])]),
        changed_at=np.concatenate(parts),
        created_at=trace.created_at[rows],
        deleted_at=trace.deleted_at[rows],
        url=trace.url[rows],
        name=trace.name,
        day=trace.day,
    )


def main() -> None:
    """Run one of the two experiments and write its figures beside this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["shop", "traces"])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--starts", nargs="*", default=["2021-08-01", "2023-08-01"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    if options.what == "shop":
        for seed in options.seeds:
            rows.append(shop_case(seed))
            print(json.dumps(rows[-1]), flush=True)
    for folder in options.folders if options.what == "traces" else ():
        if not (folder / "pages.parquet").is_file():
            print(f"{folder} holds no recorded trace: skipped")
            continue
        for start in options.starts:
            try:
                rows.append(trace_case(folder, start))
            except ParameterError as problem:
                print(f"{folder.name} from {start}: {problem}; skipped")
                continue
            print(json.dumps(rows[-1]), flush=True)
    if rows:
        (options.out or HERE / f"cold-{options.what}.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
