"""40 hosts through the live crawler: what sitemaps are worth when their quality is not known, learned, and known.

Half of the sitemaps are honest, half stamp every page every day. The crawler of ``recrawl run`` crawls them in memory
by the manual clock; all rows have the same requests, polls of sitemaps included. Writes results.json, the table of
README.md and freshness.png.

    python experiments/forty_hosts/run.py
    python experiments/forty_hosts/run.py --seeds 1 --days 30 --out /tmp/check
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from informed import QUALITIES, InformedEngine
from known import KnowingEngine

from recrawl.demo import ReplayOptions, even_budget, replay_trace
from recrawl.model import Pages
from recrawl.simulate import Trace
from recrawl.simulate.trace import Signals
from recrawl.simulate.worlds.events import Events

HERE = Path(__file__).parent
MARKS = "<!-- table: written by run.py -->", "<!-- end of table -->"
DAY = 86400.0
START = 20_000 * DAY
BIN = 10.0  # days
FROM = 2  # bins that are not counted: the first 20 days
SHARE, BELOW = 0.8, 0.01  # what is asked for: of the gain of knowing; most that ten days may lie below no signals
Array = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Hosts in turn honest and stamping; an honest sitemap moves a page's date for a share of its changes."""

    hosts: int = 40
    pages: int = 25  # of a host
    rate: float = 0.1  # mean changes of a page per day
    recall: float = 0.8
    budget: float = 0.1  # requests per page and day
    days: float = 60.0


@dataclass(frozen=True)
class Drawn:
    """A trace of a world, and what is true of its pages."""

    trace: Trace
    pages: Pages
    honest: NDArray[np.bool_]  # by host
    budget: float  # requests per second


def draw(world: World, seed: int) -> Drawn:
    """Pages with gamma rates; copies are fresh at the start."""
    rng = np.random.default_rng(seed)
    n, end = world.hosts * world.pages, START + world.days * DAY
    host = np.arange(n) // world.pages
    honest = np.arange(world.hosts) % 2 == 0
    rate = rng.gamma(0.7, world.rate / 0.7, n)
    page = np.repeat(np.arange(n), rng.poisson(rate * world.days))
    at = rng.uniform(START, end, len(page))
    announced = honest[host[page]] & (rng.random(len(at)) < world.recall)
    stamped = np.flatnonzero(~honest[host])
    midnight = START + DAY * np.arange(1, int(world.days))
    when = np.concatenate([at[announced], np.repeat(midnight, len(stamped))])
    about = np.concatenate([np.floor(at[announced]), np.repeat(midnight, len(stamped))])
    signals = Signals.of(when, np.concatenate([page[announced], np.tile(stamped, len(midnight))]), changed_at=about)
    changes = Events.of(page, at, n)
    urls = np.array([f"https://h{h:02}.example/{k}" for k, h in enumerate(host)])
    trace = Trace(
        START, end, changes.offset, changes.at, importance=np.ones(n), url=urls, signals=signals, name="hosts", day=DAY
    )
    recall = np.where(honest[host], world.recall, 0.0)
    per_second = np.maximum(rate, 1e-4) / DAY
    true = Pages(per_second, recall=recall, false_rate=np.where(recall > 0, 1e-3 * per_second, 0.0))
    return Drawn(trace, true, honest, even_budget(world.budget * n / DAY))


def ways(drawn: Drawn) -> dict[str, ReplayOptions]:
    """The rows: engines that learn, that learn rates alone, and that know; without and with polls of the sitemaps."""
    urls = drawn.trace.url
    assert urls is not None
    row_of = {str(url): row for row, url in enumerate(urls)}
    know = partial(KnowingEngine, pages=drawn.pages, row_of=row_of)
    informed = partial(InformedEngine, pages=drawn.pages, row_of=row_of, honest=drawn.honest, given=QUALITIES)
    bins = round((drawn.trace.end - drawn.trace.start) / DAY / BIN)
    return {
        "no signals": ReplayOptions(signals="none", bins=bins),
        "learned": ReplayOptions(signals="polls", bins=bins),
        "known qualities": ReplayOptions(signals="polls", bins=bins, engine=informed),
        "known rates": ReplayOptions(signals="none", bins=bins, engine=partial(know, ignoring=True)),
        "known rates and qualities": ReplayOptions(signals="polls", bins=bins, engine=know),
    }


def measure(world: World, seed: int, held: dict[str, Any], keep: Callable[[], None]) -> None:
    """Run the rows of a seed that are not held: freshness by ten days, requests and polls; ``keep`` after each."""
    drawn = draw(world, seed)
    for name, options in ways(drawn).items():
        if name in held:
            continue
        began = time.process_time()
        live = replay_trace(drawn.trace, drawn.budget, options)
        polls = np.array([live.polls.get(f"h{h:02}.example", 0) for h in range(world.hosts)])
        held[name] = {
            "freshness": [round(float(one), 5) for one in live.run.window_freshness],
            "requests": live.requests,
            "polls": {"honest": int(polls[drawn.honest].sum()), "stamping": int(polls[~drawn.honest].sum())},
            "wrong": live.wrong,
        }
        mean, took = np.mean(held[name]["freshness"][FROM:]), time.process_time() - began
        print(f"seed {seed}, {name}: {mean:.4f} after day 20, {live.requests} requests, {took:.0f} CPU-s", flush=True)
        keep()


def figures(results: dict[str, Any]) -> dict[str, float]:
    """What was asked for, of means over seeds: shares of what knowing gains, and the worst ten days."""
    by_bin = {name: np.mean([run[name]["freshness"] for run in results.values()], axis=0) for name in names(results)}
    later = {name: float(row[FROM:].mean()) for name, row in by_bin.items()}
    gain, knowing = later["learned"] - later["no signals"], later["known qualities"] - later["no signals"]
    with_rates = later["known rates and qualities"]
    return {
        "gain_learned": gain,
        "gain_known": knowing,
        "share": gain / knowing,
        "share_where_rates_are_known": gain / (with_rates - later["known rates"]),
        "share_of_rates_and_qualities": gain / (with_rates - later["no signals"]),
        "worst_ten_days": float((by_bin["learned"] - by_bin["no signals"]).min()),
    }


def keep(file: Path, results: dict[str, Any]) -> dict[str, float]:
    """Write the results; the figures, once all rows of all seeds were run."""
    whole = len({tuple(sorted(runs)) for runs in results.values()}) == 1
    found = figures(results) if whole and "known rates and qualities" in names(results) else {}
    rounded = {name: round(value, 5) for name, value in found.items()}
    file.write_text(json.dumps({"figures": rounded, "seeds": results}, indent=1) + "\n")
    return found


def names(results: dict[str, Any]) -> list[str]:
    """The rows."""
    return list(next(iter(results.values())))


def table(results: dict[str, Any]) -> str:
    """A row per way: means over seeds."""
    n_bins = len(next(iter(results.values()))["learned"]["freshness"])
    heads = [f"days {int(BIN * k)}–{int(BIN * (k + 1))}" for k in range(n_bins)]
    lines = [f"| | after day 20 | ± | {' | '.join(heads)} | requests | polls, honest | polls, stamping |"]
    lines.append("|---" * (len(heads) + 6) + "|")
    for name in names(results):
        runs = [run[name] for run in results.values()]
        fresh = np.array([run["freshness"] for run in runs])
        later = fresh[:, FROM:].mean(axis=1)
        error = later.std(ddof=1) / np.sqrt(len(later)) if len(later) > 1 else np.nan
        cells = " | ".join(f"{one:.4f}" for one in fresh.mean(axis=0))
        polls = " | ".join(f"{np.mean([run['polls'][kind] for run in runs]):.0f}" for kind in ("honest", "stamping"))
        requests = np.mean([run["requests"] for run in runs])
        lines.append(f"| {name} | {later.mean():.4f} | {error:.4f} | {cells} | {requests:.0f} | {polls} |")
    return "\n".join(lines)


def draw_plot(results: dict[str, Any], path: Path) -> None:
    """Freshness over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, colour in zip(names(results), ("tab:gray", "tab:red", "tab:orange", "silver", "tab:green"), strict=True):
        fresh = np.mean([run[name]["freshness"] for run in results.values()], axis=0)
        axes.plot(BIN * (np.arange(len(fresh)) + 0.5), fresh, marker="o", color=colour, label=name)
    axes.set_xlabel("day")
    axes.set_ylabel("freshness, means of ten days")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> int:
    """Run all seeds and write the results; exit code 1: something is beyond its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--days", type=float, default=World.days)
    parser.add_argument("--pages", type=int, default=World.pages, help="pages of a host")
    parser.add_argument("--budget", type=float, default=World.budget, help="requests per page and day")
    parser.add_argument("--add", action="store_true", help="run what the file of results does not have")
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    world = World(pages=given.pages, days=given.days, budget=given.budget)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "results.json"
    results: dict[str, Any] = json.loads(file.read_text())["seeds"] if given.add and file.is_file() else {}
    for seed in range(given.first, given.first + given.seeds):
        runs = results.setdefault(str(seed), {})
        measure(world, seed, runs, lambda: keep(file, results))
    results = {seed: {name: runs[name] for name in ways(draw(world, 0))} for seed, runs in results.items()}
    found = keep(file, results)
    draw_plot(results, given.out / "freshness.png")
    print(table(results), *(f"{name} {value:.4f}" for name, value in found.items()), sep="\n")
    readme = HERE / "README.md"
    if given.out == HERE and readme.is_file():
        before, rest = readme.read_text().split(MARKS[0])
        readme.write_text(f"{before}{MARKS[0]}\n{table(results)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")
    return int(found["share"] < SHARE or found["worst_ten_days"] < -BELOW)


if __name__ == "__main__":
    sys.exit(main())
