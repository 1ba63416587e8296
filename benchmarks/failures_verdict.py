"""For `failures_cluster.py`: what the logs of servers and workers and the database say together."""

from __future__ import annotations

import asyncio
import itertools
import json
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from failures_web import Asked
from failures_worker import DELAY

from recrawl.cluster import tables
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.store.postgres.address import Address

STOPS = ("stop", "hold")  # failures in which a worker goes on later
_WINDOWS = (1.0, 5.0, 20.0)
_SLACK = 0.02  # seconds that a server may see a request late


@dataclass
class Run:
    """All that is known after a run."""

    folder: Path
    database: str
    asked: list[Asked]
    failures: list[dict[str, Any]]
    shard: dict[str, int]  # of each page
    budget: float
    lease: float


def verdict(run: Run) -> dict[str, Any]:
    """Every promise, with the number of times that it was broken."""
    lines = [json.loads(line) for file in run.folder.glob("*.jsonl") for line in whole_lines(file)]
    return {
        "requests": len(run.asked),
        "seconds_of_crawling": round(run.asked[-1].at - run.asked[0].at),
        **_outcomes(run, lines),
        **_hosts(run),
        **_budget(run),
        **_recovered(run),
    }


def whole_lines(file: Path) -> list[str]:
    """Complete lines: a killed worker may have left a part of one."""
    return [line for line in file.read_text().split("\n")[:-1] if line]


def _outcomes(run: Run, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Outcomes and events of the database beside those that were acknowledged."""
    cluster = asyncio.run(tables.read(Address.parse(run.database)))
    assert cluster is not None
    acknowledged = {etag: line for line in lines for etag in line.get("saved", ())}
    delivered: dict[int, set[int]] = defaultdict(set)
    for line in lines:
        delivered[line["shard"]] |= set(line.get("delivered", ()))
    found: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    served = {one.etag for one in run.asked}
    with ShardStores(cluster) as stores:
        for shard in range(cluster.shards):
            store = stores.shared(shard)
            outcomes, events = list(store.observations()), store.events(0, 1_000_000)
            etags = [one.etag for one in outcomes if one.etag]
            stored.update(etags)
            epochs = [acknowledged[etag]["epoch"] for etag in etags if etag in acknowledged]
            found["written_after_the_next_owner"] += sum(b < a for a, b in itertools.pairwise(epochs))
            found["of_another_shard"] += sum(run.shard[one.url] != shard for one in outcomes)
            numbers = [one.number for one in events]
            found["events"] += len(events)
            found["event_numbers_wrong"] += numbers != list(range(1, len(events) + 1))
            found["events_not_of_outcomes"] += _events_of(outcomes) != [(one.url, one.new_digest) for one in events]
            cursor = next((one.cursor for one in store.subscribers()), 0)
            found["events_not_delivered"] += len(set(numbers[:cursor]) - delivered[shard]) + len(numbers) - cursor
    return {
        "outcomes": sum(stored.values()),
        "acknowledged": len(acknowledged),
        "acknowledged_missing": sum(etag not in stored for etag in acknowledged),
        "outcomes_doubled": sum(n > 1 for n in stored.values()),
        "outcomes_never_served": sum(etag not in served for etag in stored),
        **found,
    }


def _events_of(outcomes: list[Any]) -> list[tuple[str, str]]:
    """The events that outcomes in this order make: the first copy of a page, and each change."""
    known: set[str] = set()
    made = []
    for one in outcomes:
        if one.fetched and (one.url not in known or one.changed):
            known.add(one.url)
            made.append((one.url, one.digest))
    return made


def _hosts(run: Run) -> dict[str, Any]:
    """Hosts that were asked by two at once, or too soon; what was sent before a stop is counted apart."""
    by_host: dict[str, list[Asked]] = defaultdict(list)
    for one in run.asked:
        by_host[one.host].append(one)
    found: Counter[str] = Counter({"two_at_once": 0, "too_soon": 0, "sent_before_a_stop": 0})
    least = float("inf")
    for mine in by_host.values():
        for before, one in itertools.pairwise(mine):
            gap = one.at - before.ended
            if gap >= DELAY - _SLACK:
                least = min(least, gap)
            elif _stopped(run, before) or _stopped(run, one):
                found["sent_before_a_stop"] += 1
            else:
                found["two_at_once" if gap < 0 and before.worker != one.worker else "too_soon"] += 1
    return {**found, "least_gap": round(least, 3)}


def _stopped(run: Run, one: Asked) -> bool:
    """Whether a worker was stopped within moments of its request."""
    stops = [failure for failure in run.failures if failure["kind"] in STOPS and failure["worker"] == one.worker]
    return any(abs(one.at - failure["at"]) < 0.5 or abs(one.at - failure["until"]) < 0.5 for failure in stops)


def _budget(run: Run) -> dict[str, Any]:
    """Most requests in windows of W seconds beside budget·(W + 1), and what is beyond budget·(W + 1 + failures)."""
    times = [one.at for one in run.asked]
    most, beyond = {}, 0
    for window in _WINDOWS:
        counts = [bisect_left(times, start + window) - k for k, start in enumerate(times)]
        most[f"{window:g} s"] = round(max(counts) / (run.budget * (window + 1.0)), 3)
        for start, n in zip(times, counts, strict=True):
            k = sum(start - 3 * run.lease <= one["at"] <= start + window for one in run.failures)
            beyond += n > run.budget * (window + 1.0 + k)
    return {"most_requests_by_allowed": most, "windows_beyond_the_budget": beyond, "budget": run.budget}


def _recovered(run: Run) -> dict[str, Any]:
    """After kills that nothing else followed at once: leases until each shard of the dead worker was crawled again."""
    shard_of_host = {url.split("/")[2].partition(":")[0]: shard for url, shard in run.shard.items()}
    times: dict[int, list[float]] = defaultdict(list)
    for one in run.asked:
        times[shard_of_host[one.host]].append(one.at)
    took = []
    for one in run.failures:
        at = one["at"]
        if one["kind"] != "kill" or any(other is not one and _disturbs(run, other, at) for other in run.failures):
            continue
        for shard in set(one["shards"]) & times.keys():
            place = bisect_left(times[shard], at + 0.2)
            if place < len(times[shard]):
                took.append((times[shard][place] - at) / run.lease)
    return {
        "shards_of_killed_workers": len(took),
        "leases_until_crawled_again": {"most": round(max(took, default=0.0), 2), "beyond_3": sum(t > 3 for t in took)},
    }


def _disturbs(run: Run, other: dict[str, Any], at: float) -> bool:
    """Whether another failure keeps shards from their owners within three leases from a time on."""
    spans = [(other["at"], other["until"] + run.lease)]
    if other["kind"] in STOPS:
        spans = [(other["at"], other["at"] + 2 * run.lease), (other["until"], other["until"] + run.lease)]
    return any(begin < at + 3 * run.lease and end > at for begin, end in spans)
