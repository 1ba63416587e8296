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
from known import KnowingEngine
from run import BIN, DAY, FROM, HERE, Drawn, World, draw

from recrawl.crawl.listings import poll_queue
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.poll_queue import Pace
from recrawl.demo import ReplayOptions, replay_trace
from recrawl.engine import Engine
from recrawl.engine.core import own_belief
from recrawl.engine.signals.arrays import OPEN, OPENED, PRECISIONS, SHUT, SHUT_AT

MARKS = "<!-- ablation: written by ablate.py -->", "<!-- end of ablation -->"
Times = Mapping[str, Sequence[float]]  # of polls, by host


class Noted(Engine):
    """An engine that learns, or is given some of the truth: ``gate``, ``class``, ``rates``."""

    def __init__(self, budget: float, start: float, *, drawn: Drawn, given: Sequence[str] = ()) -> None:
        super().__init__(budget, start=start, min_change_probability=0.0, host_spacing=0.0, host_concurrency=1)
        assert drawn.trace.url is not None
        self._drawn, self._given = drawn, given
        self._row_of = {str(url): row for row, url in enumerate(drawn.trace.url)}

    def _append(self, urls: Any, weight: Any, fetched: Any, now: float, own: Any) -> Any:
        if "rates" in self._given:
            rows = np.array([self._row_of[url] for url in urls.packed.texts()])
            true = self._drawn.pages.change_rate[rows]
            own = own_belief(true, 1e4, len(rows), np.arange(len(rows)), self.beliefs.prior)
        return super()._append(urls, weight, fetched, now, own)

    def reserve_signals(self, rows: Any) -> None:
        """Tell the truth about hosts that are new."""
        super().reserve_signals(rows)
        self._tell()

    def fit_signals(self, until: float) -> None:
        """Tell the truth again after a refit."""
        super().fit_signals(until)
        self._tell()

    def _tell(self) -> None:
        b = self.beliefs.belief.signals
        for number, host in enumerate(self.beliefs.signals.hosts):
            honest = bool(self._drawn.honest[int(host[1:3])])
            if "gate" in self._given:
                b.host_gate[number, :, OPEN], b.host_gate[number, :, SHUT_AT] = OPENED if honest else SHUT, np.inf
            if "class" in self._given:
                b.host_prior[number], b.host_share[number] = 1e6, 0.0
                b.host_share[number, :, len(PRECISIONS) - 1 if honest else 0] = 1e12


@contextmanager
def polled_at(times: Times | None) -> Iterator[None]:
    """Poll at given times instead of by worth."""
    by_worth = poll_queue.due_times

    def due(listings: Sequence[Listing], pace: Pace) -> list[dict[str, float]]:
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
    know = partial(KnowingEngine, pages=drawn.pages, row_of={str(url): k for k, url in enumerate(drawn.trace.url)})
    learn = partial(Noted, drawn=drawn)
    found: dict[str, float] = {}
    found["no signals"], _ = run(drawn, learn, "none")
    found["known rates"], _ = run(drawn, partial(know, ignoring=True), "none")
    found["known qualities"], knowing = run(drawn, know)
    found["learned"], learned = run(drawn, learn)
    found["known, polls as learned"], _ = run(drawn, know, times=learned)
    found["learned, polls as known"], _ = run(drawn, learn, times=knowing)
    found["learned, gates known"], _ = run(drawn, partial(learn, given=["gate"]))
    found["learned, gates and precisions known"], _ = run(drawn, partial(learn, given=["gate", "class"]))
    found["learned, change rates known"], _ = run(drawn, partial(learn, given=["rates"]))
    found["learned, signals free and at once"], _ = run(drawn, learn, "inbox")
    found["known, signals free and at once"], _ = run(drawn, know, "inbox")
    print(seed, json.dumps(found), flush=True)
    return found


def table(results: Mapping[str, Mapping[str, float]]) -> str:
    """A row per way: means over seeds, and the gain over the row without signals that belongs to it."""
    mean = {name: float(np.mean([one[name] for one in results.values()])) for name in next(iter(results.values()))}
    lines = ["| | after day 20 | gain over no signals | share |", "|---|---|---|---|"]
    knowing = mean["known qualities"] - mean["known rates"]
    free = mean["known, signals free and at once"] - mean["known rates"]
    for name, fresh in mean.items():
        gain = fresh - mean["known rates" if name.startswith("known") else "no signals"]
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
