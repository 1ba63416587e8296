"""How much of what signals are worth does the engine get that learns their worth?

share = (learned − learned, ignoring signals) / (known − known, ignoring signals), in freshness. 1,000 pages, 200 days,
cold start. Writes signals.json, README.md's table stays by hand.

    python experiments/signals/run.py                              all worlds, five seeds, 200 and 50 crawls a day
    python experiments/signals/run.py --kinds noisy --seeds 20,21  some of them
    python experiments/signals/run.py --kinds noisy --budgets 200 --delays 0.5,1,2
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from worlds import DAYS, KINDS, Drawn, draw

from recrawl.model import Pages
from recrawl.schedule import Scheduler
from recrawl.simulate import Contender, Trace, simulate
from recrawl.simulate.run.policies import admit_unknown, greedy, learning

HERE = Path(__file__).parent
_BINS = 20  # of ten days
_PARTS = 16  # of a known distribution of delays


def known(drawn: Drawn, budget: float, *, ignoring: bool, delay: float = 0.0) -> Any:
    """The greedy choice that knows rates and qualities, also when they turn; with ``delay``, how late signals are."""
    made: list[Scheduler] = []
    middle = (np.arange(_PARTS) + 0.5) / _PARTS
    late = {"delay": (-delay * np.log1p(-middle), np.full(_PARTS, 1.0 / _PARTS))} if delay else {}

    def make(trace: Trace, rate: float, rng: np.random.Generator) -> Scheduler:
        made.append(greedy("no-signals" if ignoring else "signals", **late)(trace, rate, rng))
        return made[0]

    def turn(share: float) -> None:
        if share >= 0.5 and drawn.after is not drawn.before and not ignoring and len(made) == 1:
            pages = drawn.after.pages(drawn.rate, drawn.trace.importance)
            made[0].update(np.arange(len(pages)), recall=pages.recall, false_rate=pages.false_rate)
            made.append(made[0])

    trace = drawn.trace
    if ignoring:
        trace = replace(trace, pages=Pages(drawn.rate, trace.importance), signals=None)
    return simulate(Contender("known", make), trace, budget, bins=_BINS, progress=turn)


def learned(drawn: Drawn, budget: float, **settings: Any) -> Any:
    """The engine that knows nothing at first."""
    return simulate(Contender("learned", learning(**settings), admit_unknown), drawn.trace, budget, bins=_BINS)


def measure(kind: str, budget: float, seed: int, delay: float) -> dict[str, Any]:
    """Freshness of the four, and the worst ten days of the learning engine beside itself without signals."""
    drawn = draw(kind, seed, delay)
    runs: dict[str, Callable[[], Any]] = {
        "known": lambda: known(drawn, budget, ignoring=False),
        "known ignoring": lambda: known(drawn, budget, ignoring=True),
        "learned": lambda: learned(drawn, budget),
        "ignoring": lambda: learned(drawn, budget, sources=0),
    }
    if delay:
        runs["known with delay"] = lambda: known(drawn, budget, ignoring=False, delay=delay)
    found = {name: run() for name, run in runs.items()}
    out: dict[str, Any] = {name: round(float(run.freshness), 5) for name, run in found.items()}
    windows = found["learned"].window_freshness - found["ignoring"].window_freshness
    out["worst ten days"] = round(float(windows.min()), 5)
    out["after half time"] = round(float(windows[int(_BINS / 2)]), 5)
    assert DAYS / _BINS == 10.0
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--budgets", default="200,50")
    parser.add_argument("--seeds", default="20,21,22,23,24")
    parser.add_argument("--delays", default="0")
    parser.add_argument("--out", default=str(HERE / "signals.json"))
    given = parser.parse_args()
    path = Path(given.out)
    results: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    for kind in given.kinds.split(","):
        for budget in given.budgets.split(","):
            for delay in given.delays.split(","):
                name = f"{kind} {budget}" + (f" delay {delay}" if float(delay) else "")
                rows = results.setdefault(name, {})
                for seed in given.seeds.split(","):
                    rows[seed] = measure(kind, float(budget), int(seed), float(delay))
                    path.write_text(json.dumps(results, indent=1) + "\n")
                print(line(name, rows), flush=True)


def line(name: str, rows: dict[str, Any]) -> str:
    """One world in words: means over the seeds."""
    mean = {key: float(np.mean([row[key] for row in rows.values()])) for key in next(iter(rows.values()))}
    worth, got = mean["known"] - mean["known ignoring"], mean["learned"] - mean["ignoring"]
    share = f"{100 * got / worth:.0f}%" if worth > 0.002 else f"{got:+.4f}"
    figures = " ".join(f"{key} {value:.4f}" for key, value in mean.items())
    return f"{name}: {share} ({len(rows)} seeds) {figures}"


if __name__ == "__main__":
    main()
