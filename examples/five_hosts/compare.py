"""One table: what recrawl reports beside what the server saw."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

import truth
from serve import Request
from world import HOSTS, World

KINDS = (  # statuses of the server, and what recrawl calls them
    ("404 and 410", (404, 410), lambda one: one["gone"] and one["status"] != "301"),
    ("301 to another page", (301,), lambda one: one["gone"] and one["status"] == "301"),
    ("500 (`http-5xx`)", (500,), lambda one: one["failure"] == "http-5xx"),
    ("503 (`busy`)", (503,), lambda one: one["failure"] == "busy"),
)


@dataclass(frozen=True)
class Followed:
    """Everything that is compared: what commands printed, and the log of the server. Times as in the world."""

    world: World
    log: list[Request]  # of the run alone
    begin: float
    end: float
    budget: float
    delay: float
    run: dict[str, Any]  # recrawl run --json
    status: list[tuple[float, dict[str, Any]]]  # recrawl status --json during the run, and when
    final: dict[str, Any]  # the same after the run
    events: list[dict[str, Any]]  # recrawl events
    crawls: list[dict[str, str]]  # recrawl export --observations
    why: list[dict[str, Any]]  # recrawl why --json


@dataclass(frozen=True)
class Row:
    """One figure by both; ``holds`` is None where they need not agree."""

    what: str
    reported: str
    seen: str
    holds: bool | None = None
    note: str = ""


def rows(found: Followed) -> list[Row]:
    """The whole table."""
    return [*_requests(found), *_politeness(found), *_changes(found), *_failures(found), *_freshness(found)]


def as_json(found: Followed) -> dict[str, Any]:
    """The table, and what it was made from."""
    names = ("begin", "end", "budget", "delay", "run")
    return {**{name: getattr(found, name) for name in names}, "rows": [asdict(row) for row in rows(found)]}


def markdown(table: list[dict[str, Any]]) -> str:
    """The table for a page of documentation."""
    words = {True: "yes", False: "**no**", None: ""}
    lines = ["| figure | recrawl reports | the server saw | agree | remark |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['what']} | {row['reported']} | {row['seen']} | {words[row['holds']]} | {row['note']} |"
        for row in table
    ]
    return "\n".join(lines)


def _same(what: str, reported: int, seen: int, note: str = "") -> Row:
    return Row(what, str(reported), str(seen), reported == seen, note)


def _requests(found: Followed) -> list[Row]:
    seen, load = Counter(one.host for one in found.log), _load(found)
    total = _same("requests", found.run["requests"], len(found.log), "robots.txt included")
    by_status = _same("requests by `status`", found.final["unspent_last_day"]["requests"], len(found.log))
    by_host = [
        _same(f"requests to {host.name}", load[host.address]["requests_last_day"], seen[host.address])
        for host in HOSTS
        if host.address in load
    ]
    return [total, by_status, *by_host]


def _load(found: Followed) -> dict[str, dict[str, Any]]:
    """What ``status`` says of each host."""
    return {one["host"]: one for one in found.final["load"]["hosts"]}


def _politeness(found: Followed) -> list[Row]:
    seconds, share = found.end - found.begin, truth.fullest_window(found.log, found.budget)
    promised = f"at most {found.budget * (seconds + 1):.0f} in {seconds:.0f} s"
    table = [
        Row("budget", promised, f"{len(found.log)}", len(found.log) <= found.budget * (seconds + 1)),
        _unspent(found),
        Row(
            "budget in any window of W s",
            f"at most {found.budget:g} · (W + 1)",
            f"{100 * share:.0f}% of it in the fullest window",
            share <= 1.0,
        ),
    ]
    load = _load(found)
    for host in (host for host in HOSTS if host.address in load):
        delay, gap = load[host.address]["delay"], truth.least_gap(found.log, host.address)
        holds = gap >= delay == max(found.delay, host.crawl_delay)
        note = "Crawl-delay of robots.txt" if host.crawl_delay else ""
        table.append(Row(f"least gap at {host.name}", f"{delay:g} s", f"{gap:.3f} s", holds, note))
    return [*table, _same("requests that robots.txt disallows", 0, truth.disallowed(found.log))]


def _unspent(found: Followed) -> Row:
    """What ``status`` says was left of the budget beside what was left of it."""
    said = found.final["unspent_last_day"]
    left = found.budget * found.run["seconds"] - len(found.log)
    why = ", ".join(f"{name}: {n:.0f}" for name, n in said["why"].items() if round(n))
    holds = abs(said["unspent"] - max(left, 0.0)) <= 0.02 * found.budget * found.run["seconds"]
    return Row("budget left unspent", f"{said['unspent']:.0f}", f"{max(left, 0.0):.0f}", holds, why)


def _changes(found: Followed) -> list[Row]:
    kinds = Counter(one["kind"] for one in found.events)
    shown, made = truth.shown_changes(found.log), truth.made_changes(found.world, found.begin, found.end)
    copies, moved = truth.first_copies(found.log), "changes that an answer showed"
    modified = sum(one.status == 304 for one in found.log)
    return [
        _same("first copies", found.run["new"], copies),
        _same("`new` events", kinds["new"], copies),
        _same("changes found", found.run["changed"], shown, moved),
        _same("`changed` events", kinds["changed"], shown, moved),
        Row("changes made", "", str(made), None, "several changes between two crawls are found as one"),
        _same("answers 304", found.run["not_modified"], modified),
    ]


def _failures(found: Followed) -> list[Row]:
    table = []
    for what, statuses, is_kind in KINDS:
        reported = [{**one, "gone": one["gone"] == "true"} for one in found.crawls]
        seen = sum(one.status in statuses for one in found.log)
        table.append(_same(what, sum(is_kind(one) for one in reported), seen))
    gone = {one["url"] for one in found.events if one["kind"] == "gone"}
    left = {place for place, answers in truth.by_page(found.log).items() if _left([one.status for one in answers])}
    return [*table, _same("`gone` events", len(gone), len(left), "pages that had a copy")]


def _left(statuses: list[int]) -> bool:
    return 200 in statuses and any(status in (301, 404, 410) for status in statuses)


def _freshness(found: Followed) -> list[Row]:
    table = []
    for at, status in found.status:
        true, expected = truth.freshness_at(found.world, found.log, at), status["freshness"]
        table.append(Row(f"freshness after {at - found.begin:.0f} s", _three(expected), f"{true:.3f}"))
    expected = [one["freshness"] for _, one in found.status if one["freshness"] is not None]
    if not expected:
        return table
    true = [truth.freshness_at(found.world, found.log, at) for at, one in found.status if one["freshness"] is not None]
    table.append(Row("mean of these", f"{sum(expected) / len(expected):.3f}", f"{sum(true) / len(true):.3f}"))
    at, last = found.status[-1]
    past = truth.mean_freshness(found.world, found.log, found.begin, at, from_first_copy=True)
    table.append(
        Row("freshness so far", _three(last["freshness_so_far"]), f"{past:.3f}", None, "since the first copies")
    )
    return [*table, *_forecasts(found), *_rates(found)]


def _forecasts(found: Followed) -> list[Row]:
    """The forecast in the middle of the run beside what came true after it."""
    half = [
        (at, one["forecast"]) for at, one in found.status if one["forecast"] and at <= (found.begin + found.end) / 2
    ]
    if not half:
        return []
    at, planned = half[-1]
    true = truth.mean_freshness(found.world, found.log, at, found.end)
    text = f"{planned['freshness']:.3f} ({planned['low']:.3f} to {planned['high']:.3f})"
    holds = planned["low"] <= true <= planned["high"]
    return [Row("forecast in the middle", text, f"{true:.3f}", holds, "mean from then to the end")]


def _rates(found: Followed) -> list[Row]:
    within = n = 0
    for one in found.why:
        parts = urlsplit(one["url"])
        page = found.world.page(parts.hostname or "", parts.path)
        if page is not None and one["n_crawls"] and not page.odd and not math.isinf(page.every):
            low, high = one["change_rate_interval"]
            n, within = n + 1, within + (low <= 1.0 / page.every <= high)
    note = "true rates in the 90% interval of `why`; see below"
    return [Row("change rates", f"90% of {n} pages", f"{within} of {n} pages", None, note)]


def _three(value: float | None) -> str:
    return "not known yet" if value is None else f"{value:.3f}"
