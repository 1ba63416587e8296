"""What the learned run loses where: one learned quantity at a time is replaced by the truth.

The times of polls are exchanged between the run that learns and the run that knows; gates, precision classes and change
rates are set to what is true. Writes ablation.json and the second table of README.md.

    python experiments/forty_hosts/ablate.py --seeds 2
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from informed import QUALITIES, InformedEngine
from known import KnowingEngine
from run import BIN, DAY, FROM, HERE, Drawn, World, draw

from recrawl.crawl.listings import poll_queue
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.poll_queue import PollTerms
from recrawl.demo import ReplayOptions, replay_trace

MARKS = "<!-- ablation: written by ablate.py -->", "<!-- end of ablation -->"
Times = Mapping[str, Sequence[float]]  # of polls, by host


@contextmanager
def polled_at(times: Times | None) -> Iterator[None]:
    """Poll at given times instead of by worth."""
    by_worth = poll_queue.due_times

    def due(listings: Sequence[Listing], terms: PollTerms) -> list[dict[str, float]]:
        after = [-np.inf if one.polled_at is None else one.polled_at + 1.0 for one in listings]
        following = [
            [at for at in (times or {}).get(one.host, ()) if at > last]
            for one, last in zip(listings, after, strict=True)
        ]
        return [{"worth": some[0]} if some else {} for some in following]

    if times is not None:
        poll_queue.due_times = due
    try:
        yield
    finally:
        poll_queue.due_times = by_worth


def run(drawn: Drawn, make: Any, signals: Any = "polls", times: Times | None = None) -> tuple[float, Times]:
    """Freshness after day 20, and when sitemaps were polled."""
    bins = round((drawn.trace.end - drawn.trace.start) / DAY / BIN)
    with polled_at(times):
        live = replay_trace(drawn.trace, drawn.budget, ReplayOptions(signals=signals, bins=bins, engine=make))
    return float(np.mean(live.run.window_freshness[FROM:])), live.poll_times


def measure(seed: int) -> dict[str, float]:
    """Freshness of every row of the table."""
    drawn = draw(World(), seed)
    assert drawn.trace.url is not None
    row_of = {str(url): k for k, url in enumerate(drawn.trace.url)}
    know = partial(KnowingEngine, pages=drawn.pages, row_of=row_of)
    learn = partial(InformedEngine, pages=drawn.pages, row_of=row_of, honest=drawn.honest)
    found: dict[str, float] = {}
    found["no signals"], _ = run(drawn, learn, "none")
    found["known rates"], _ = run(drawn, partial(know, ignoring=True), "none")
    found["known rates and qualities"], knowing = run(drawn, know)
    found["learned"], learned = run(drawn, learn)
    found["known, polls as learned"], _ = run(drawn, know, times=learned)
    found["learned, polls as known"], _ = run(drawn, learn, times=knowing)
    found["learned, gates known"], _ = run(drawn, partial(learn, given=["gate"]))
    found["known qualities"], _ = run(drawn, partial(learn, given=QUALITIES))
    found["learned, change rates known"], _ = run(drawn, partial(learn, given=["rates"]))
    found["learned, signals free and at once"], _ = run(drawn, learn, "inbox")
    found["known, signals free and at once"], _ = run(drawn, know, "inbox")
    print(seed, json.dumps(found), flush=True)
    return found


def table(results: Mapping[str, Mapping[str, float]]) -> str:
    """A row per way: means over seeds, and the gain over the row without signals that knows the rates as it does."""
    mean = {name: float(np.mean([one[name] for one in results.values()])) for name in next(iter(results.values()))}
    lines = ["| | after day 20 | gain over no signals | share |", "|---|---|---|---|"]
    knowing = mean["known rates and qualities"] - mean["known rates"]
    free = mean["known, signals free and at once"] - mean["known rates"]
    for name, fresh in mean.items():
        gain = fresh - mean["known rates" if name.startswith(("known rates", "known,")) else "no signals"]
        share = gain / (free if "free" in name else knowing)
        cells = f"{gain:+.4f} | {share:.0%}" if name not in ("no signals", "known rates") else " | "
        lines.append(f"| {name} | {fresh:.4f} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Run all seeds and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=4, help="the first seed")
    given = parser.parse_args()
    results = {str(seed): measure(seed) for seed in range(given.first, given.first + given.seeds)}
    (HERE / "ablation.json").write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(MARKS[0])
    readme.write_text(f"{before}{MARKS[0]}\n{table(results)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


if __name__ == "__main__":
    main()
