"""Every policy of the engine on the demo's web, live by the manual clock; writes results.json, results.png, README.md.

Each run is a whole demo in memory: 500 pages on eight hosts, first copies, then a budget far below what changes, with
robots.txt, host delays, failures and outages. What results.json holds already is not run again.

    python experiments/live_policies/run.py
    python experiments/live_policies/run.py --seeds 1 --seconds 20 --out /tmp/check
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.demo import LiveDemo
from recrawl.demo.verdict import renewals
from recrawl.engine.policies.names import POLICIES
from recrawl.store import MemoryStore
from recrawl.store.protocol import Outcome

HERE = Path(__file__).parent
START, END = "<!-- table: written by run.py -->", "<!-- end of table -->"
FIRST = 1
HOUR = 1.0  # a second of the demo stands for an hour

RUNS: dict[str, dict[str, Any]] = {name: {"policy": name} for name in POLICIES}
RUNS |= {
    "value, harmonic": {"objective": "harmonic"},
    "value, age": {"objective": "age"},
    "deadline, harmonic": {"policy": "deadline", "objective": "harmonic"},
    "poisson, harmonic": {"policy": "poisson", "objective": "harmonic"},
    "value, price 20 h": {"price": 20 * HOUR},
    "value, price 40 h": {"price": 40 * HOUR},
    "value, price 40 h, 20% stale for 12 h": {"price": 40 * HOUR, "very_stale": 12 * HOUR, "very_stale_share": 0.2},
}


class Measured(LiveDemo):
    """A demo of which only the truth is computed: no samples on the way, no forecast and no rivals."""

    truth: tuple[float, int]

    async def _watch(self, *_: Any) -> None:
        """Nobody watches."""

    def _judge(self, outcomes: list[Outcome], end: float) -> Any:
        page_of = {url: number for number, url in enumerate(self._web.urls)}
        found = renewals(self._web.log, outcomes, page_of, self._web.started_at)
        requests = sum(self._begin < request.at <= end for request in self._web.log)
        self.truth = self._truth(found, self._begin, end, 0)[1].freshness, requests


def one(name: str, seed: int, seconds: float) -> dict[str, float]:
    """One demo: the true freshness of the copies and the requests that it took."""
    demo = Measured(MemoryStore(), seconds=seconds, seed=seed, choices=RUNS[name], signals=False)
    asyncio.run(demo.run_in_memory())
    return {"seed": seed, "freshness": demo.truth[0], "requests": demo.truth[1]}


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """A row per policy, the freshest first."""
    lines = ["| policy | freshness | ± | requests |", "|---|---|---|---|"]
    rows = sorted(results.items(), key=lambda item: -np.mean([run["freshness"] for run in item[1]]))
    for name, runs in rows:
        fresh = np.array([run["freshness"] for run in runs])
        error = fresh.std(ddof=1) / np.sqrt(len(fresh)) if len(fresh) > 1 else np.nan
        requests = np.mean([run["requests"] for run in runs])
        lines.append(f"| {name} | {fresh.mean():.4f} | {error:.4f} | {requests:.0f} |")
    return "\n".join(lines)


def draw(results: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Freshness against requests made."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 6))
    rows = sorted(results.items(), key=lambda item: np.mean([run["freshness"] for run in item[1]]))
    for at, (_, runs) in enumerate(rows):
        axes.scatter([run["freshness"] for run in runs], [at] * len(runs), s=12, color="tab:blue", alpha=0.5)
        axes.scatter([np.mean([run["freshness"] for run in runs])], [at], s=40, color="black", marker="|")
    axes.set_yticks(range(len(rows)), [f"{name} ({np.mean([r['requests'] for r in runs]):.0f})" for name, runs in rows])
    axes.set_xlabel("freshness of the copies (in brackets: requests made)")
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run what is missing, and write everything again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    path = given.out / "results.json"
    given.out.mkdir(parents=True, exist_ok=True)
    found = json.loads(path.read_text()) if path.exists() else {"seconds": given.seconds, "runs": {}}
    for seed in range(FIRST, FIRST + given.seeds):
        for name in RUNS:
            runs = found["runs"].setdefault(name, [])
            if seed not in [run["seed"] for run in runs]:
                runs.append(one(name, seed, found["seconds"]))
                path.write_text(json.dumps(found, indent=1) + "\n")
    draw(found["runs"], given.out / "results.png")
    readme = given.out / "README.md"
    if readme.exists():
        before, _, rest = readme.read_text().partition(START)
        readme.write_text(f"{before}{START}\n{table(found['runs'])}\n{END}{rest.partition(END)[2]}")
    print(table(found["runs"]))


if __name__ == "__main__":
    main()
