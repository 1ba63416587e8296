"""A flood of signals: 10,000 about each of 20 pages, at once or over 60 days. Do those pages, or others, lose crawls?

python experiments/signals/flood.py                    all cases, writes flood.json
python experiments/signals/flood.py --signals 1000     a smaller flood
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from worlds import DAYS, N, draw

from recrawl.simulate import Contender, Trace, simulate
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.trace import Signals

HERE = Path(__file__).parent
CASES = (("noisy", "trusted"), ("proof", "trusted"), ("mixed", "trusted"), ("noisy", "unknown"), ("liar", "turned"))
BEGIN, FLOODED, LASTS = 120.0, 20, 60.0


def flooded(trace: Trace, pages: NDArray[np.int64], source: int, each: int, days: float) -> Trace:
    """The trace with further signals about some pages, from a day on."""
    rng = np.random.default_rng(1)
    at = BEGIN + rng.random(len(pages) * each) * max(days, 1e-3)
    more = Signals.of(at, np.repeat(pages, each), source)
    old = trace.signals
    assert old is not None
    return replace(trace, signals=Signals.of(*(np.concatenate(pair) for pair in zip(old, more, strict=True))))


def crawls(trace: Trace, budget: float) -> tuple[NDArray[np.int64], float]:
    """Crawls per page from the flood on, and the largest change rate that is believed at the end, per day."""
    made: list[Any] = []

    def make(*given: Any) -> Any:
        made.append(learning(sources=2)(*given))
        return made[0]

    run = simulate(Contender("learned", make, admit_unknown), trace, budget, count_from=BEGIN)
    return run.crawls, float(made[0].pages().change_rate.max())


def measure(kind: str, speaker: str, budget: float, each: int, days: float) -> dict[str, float]:
    """Crawls with the flood over crawls without it: of the flooded pages together and the worst, and of the others."""
    trace = draw(kind, 40).trace
    pages = np.random.default_rng(2).choice(N, FLOODED, replace=False)
    before, _ = crawls(trace, budget)
    after, fastest = crawls(flooded(trace, pages, int(speaker == "unknown"), each, days), budget)
    others = np.setdiff1d(np.arange(N), pages)
    return {
        "flooded": round(float(after[pages].sum() / before[pages].sum()), 3),
        "others": round(float(after[others].sum() / before[others].sum()), 3),
        "fastest believed, per day": round(fastest, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--signals", type=int, default=10_000)
    parser.add_argument("--budgets", default="200,50")
    parser.add_argument("--out", default=str(HERE / "flood.json"))
    given = parser.parse_args()
    assert BEGIN + LASTS <= DAYS
    results = {}
    for kind, speaker in CASES:
        for days in (0.0, LASTS):
            for budget in given.budgets.split(","):
                name = f"{speaker} source ({kind}), {'over 60 days' if days else 'at once'}, {budget} crawls a day"
                results[name] = measure(kind, speaker, float(budget), given.signals, days)
                print(name, results[name], flush=True)
    Path(given.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
