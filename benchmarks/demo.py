"""Whole demos of 60 s in memory, for ten seeds: `python benchmarks/demo.py` writes results/demo.json.

`--render` writes the table of the result into docs/reference/demo.md.
"""

import argparse
import asyncio
import json
import re
from pathlib import Path

from recrawl.demo import LiveDemo
from recrawl.demo.verdict import second_half
from recrawl.store import MemoryStore

RESULT = Path(__file__).parent / "results/demo.json"
PAGE = Path(__file__).parents[1] / "docs/reference/demo.md"
COLUMNS = ("freshness", "without_signals", "uniform", "nutch", "second_half", "forecast", "low", "high", "expected")


def run(seed: int) -> dict[str, float]:
    """The figures of one seed."""
    verdict = asyncio.run(LiveDemo(MemoryStore(), seed=seed).run_in_memory())
    rivals = {rival.name: rival.run.freshness for rival in verdict.rivals}
    assert verdict.half is not None
    assert verdict.without_signals is not None
    return {
        "seed": seed,
        "freshness": verdict.truth.freshness,
        "without_signals": verdict.without_signals.run.freshness,
        "uniform": rivals["uniform"],
        "nutch": rivals["nutch"],
        "second_half": verdict.half.freshness,
        "forecast": verdict.half.forecast.freshness,
        "low": verdict.half.forecast.low,
        "high": verdict.half.forecast.high,
        "expected": verdict.expected,
        "gain_second_half": second_half(verdict.truth) - second_half(verdict.without_signals.run),
        "polls": verdict.polls,
        "requests": verdict.requests,
    }


def render() -> None:
    """Replace the rows of the table."""
    runs, text = json.loads(RESULT.read_text())["runs"], PAGE.read_text()
    rows = [[str(one["seed"]), *(f"{one[name]:.3f}" for name in COLUMNS)] for one in runs]
    rows.append(["mean", *(f"{sum(one[name] for one in runs) / len(runs):.3f}" for name in COLUMNS)])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    PAGE.write_text(re.sub(r"(?:^\| (?:\d+|mean) \|.*\n)+", lambda found: table, text, count=1, flags=re.MULTILINE))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Whole demos in memory.")
    parser.add_argument("--render", action="store_true", help="only write the table of the result")
    if not parser.parse_args().render:
        RESULT.write_text(json.dumps({"runs": [run(seed) for seed in range(1, 11)]}, indent=1) + "\n")
    render()
