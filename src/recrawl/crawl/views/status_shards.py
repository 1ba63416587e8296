"""The numbers of ``recrawl status`` of a cluster, from those of its shards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from recrawl.crawl.audit.history import MOST, Point
from recrawl.crawl.audit.open_audit import audits_of_shards
from recrawl.crawl.views.status_figures import audit_figures
from recrawl.model.budget import parse_budget

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings

_LATEST = ("last_crawl", "last_try", "taken_at", "failed_at")
_EARLIEST = ("now", "freshness_at", "first")
_ALIKE = ("price", "very_stale", "very_stale_share", "comparisons_needed")
_SHARES = ("freshness", "freshness_so_far", "forecast")  # averages, weighted by importance
_STEP = 60.0  # seconds between two points of a history, at least
_OF_ONE = ("audit", "verdict", "sample")  # of single shards: not of the whole


def figures_of_shards(
    parts: Sequence[dict[str, Any]], settings: Settings, ended: Sequence[Sequence[dict[str, Any]]]
) -> dict[str, Any]:
    """Counts are added, freshness is weighted by the importance of the shards' pages.

    ``ended`` are the audits that ended, of each shard; those of single shards alone are left out.
    """
    found: dict[str, Any] = {name: _together(name, [part.get(name) for part in parts]) for name in parts[0]}
    for name in _SHARES:
        found[name] = weighted([(part["importance"], part[name]) for part in parts])
    _share_whole_budget(parts, found["load"])
    found["load"]["hosts"].sort(key=lambda one: -one["requests_last_day"])
    found["events"]["subscribers"] = _subscribers(found["events"]["subscribers"])
    found |= dict.fromkeys(_OF_ONE) | audit_figures(audits_of_shards(ended))
    return found | {"database": settings.database_name, "budget": settings.budget, "shards": len(parts)}


def _together(name: str, values: Iterable[Any]) -> Any:
    """One figure of all shards."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    first = given[0]
    if isinstance(first, dict):
        names = dict.fromkeys(key for one in given for key in one)
        return {key: _together(key, [one.get(key) for one in given]) for key in names}
    if isinstance(first, list):
        return [item for one in given for item in one]
    if name in _LATEST or name in _EARLIEST:
        return max(given) if name in _LATEST else min(given)
    if name in _ALIKE or isinstance(first, str | bool):
        return first
    return sum(given)


def _share_whole_budget(parts: Sequence[dict[str, Any]], load: dict[str, Any]) -> None:
    """Hosts as shares of the whole budget instead of that of their shards."""
    allowed = [parse_budget(part["budget"], max(part["pages"], 1)) for part in parts]
    load["hosts"] = [
        {**one, "budget_share": one["budget_share"] * rate / sum(allowed)}
        for part, rate in zip(parts, allowed, strict=True)
        for one in part["load"]["hosts"]
    ]


def sources_of_shards(parts: Sequence[dict[str, Any]], settings: Settings) -> dict[str, Any]:
    """The numbers of ``recrawl signals`` of a cluster: each source once, hosts of all shards."""
    found: dict[str, Any] = {name: _together(name, [part.get(name) for part in parts]) for name in parts[0]}
    found["sources"] = _named(found["sources"], "source")
    found["hosts"].sort(key=lambda one: -one["signals"])
    found["lost_trust"]["sources"].sort(key=lambda one: -one["at"])
    return found | {"database": settings.database_name, "sample": None, "shards": len(parts)}


def history_of_shards(parts: Sequence[tuple[float, Sequence[Point]]]) -> list[Point]:
    """The history of all shards, given the importance and the history of each: counts add up, freshness is averaged.

    >>> history_of_shards([(1.0, [Point(60.0, 0.5, None, 3, 2, 1)]), (3.0, [Point(90.0, 0.9, 0.75, 5, 4, 2)])])
    [Point(at=90.0, now=0.8, so_far=0.75, requests=8, comparisons=6, changes=3)]
    """
    ends = [point.at for _, points in parts for point in points]
    if not ends:
        return []
    width = max((max(ends) - min(ends)) / MOST, _STEP)
    last: dict[int, tuple[float, Point]] = {}
    counts: dict[int, list[int]] = {}
    fresh: dict[int, tuple[Any, Any]] = {}
    rows = [(point.at, shard, weight, point) for shard, (weight, points) in enumerate(parts) for point in points]
    for at, shard, weight, point in sorted(rows):
        bin_ = math.floor((max(ends) - at) / width)
        last[shard] = weight, point
        now, so_far = ([(w, one[k]) for w, one in last.values()] for k in (1, 2))
        fresh[bin_] = weighted(now), weighted(so_far)
        counts[bin_] = [a + b for a, b in zip(counts.get(bin_, [0, 0, 0]), point[3:], strict=True)]
    return [Point(max(ends) - bin_ * width, *fresh[bin_], *counts[bin_]) for bin_ in sorted(fresh, reverse=True)]


def weighted(parts: Sequence[tuple[float, Any]]) -> Any:
    """A weighted mean over the shards that know the figure; None if none does."""
    known = [(n, value) for n, value in parts if value is not None and n]
    if not known:
        return None
    if isinstance(known[0][1], dict):
        return {name: weighted([(n, value[name]) for n, value in known]) for name in known[0][1]}
    return sum(n * value for n, value in known) / sum(n for n, _ in known)


def _named(parts: Sequence[dict[str, Any]], by: str) -> list[dict[str, Any]]:
    """Rows of the same name as one."""
    named: dict[str, list[dict[str, Any]]] = {}
    for one in parts:
        named.setdefault(one[by], []).append(one)
    return [{key: _together(key, [part[key] for part in mine]) for key in mine[0]} for mine in named.values()]


def _subscribers(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each subscriber once: counts of all shards, the longest delay. Its cursors are those of the shards."""
    behind = {one["name"]: 0.0 for one in parts}
    for one in parts:
        behind[one["name"]] = max(behind[one["name"]], one["seconds_behind"])
    return [{**one, "seconds_behind": behind[one["name"]]} for one in _named(parts, "name")]
