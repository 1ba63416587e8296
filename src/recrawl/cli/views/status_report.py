"""The text of ``recrawl status``: the figures of a database, one per line."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recrawl.crawl.audit.freshness import Freshness
from recrawl.crawl.views.hub_report import hub_rows
from recrawl.crawl.views.signals_report import lost_lines
from recrawl.crawl.views.status_load import failing_lines, load_lines
from recrawl.model.spans import format_span

_SHOWN = 200  # hosts at most
_OBJECTIVES = {
    "harmonic": "harmonic: few unseen changes, no page starved",
    "age": "age: no copy long out of date",
}


def status_lines(found: dict[str, Any]) -> list[str]:
    """All lines; ``found`` is what ``status_figures.figures`` returns."""
    lines = [f"{label:<26}{text}" for label, text in [*_counts(found), *_freshness(found), *_events(found["events"])]]
    lines += failing_lines(found["failing_pages"], found["now"]) + load_lines(found["load"], found["now"])
    lines += lost_lines(found["lost_trust"])
    return [*lines, *_hosts(found["hosts"]), *(f"damaged: {problem}" for problem in found.get("problems", []))]


def _counts(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("pages", f"{found['pages']} ({found['copies']} with a copy)"),
        ("crawls", f"{found['observations']}, in the last day {found['crawls_last_day']}"),
        ("changes in the last day", f"{found['changes_last_day']}"),
        ("failures in the last day", f"{found['failures_last_day']}"),
        ("failing, gone", f"{found['failing']}, {found['gone']}"),
        ("bodies", f"{found['bodies']}"),
    ]
    if found["objective"] in _OBJECTIVES:
        rows.append(("objective", _OBJECTIVES[found["objective"]]))
    if found["policy"] != "value":
        rows.append(("policy", found["policy_words"]))
    if found["price"]:
        rows.append(("price of a crawl", _price(found)))
    if found["flapping_last_day"]:
        rows.append(("flapping in the last day", f"{found['flapping_last_day']} returns to content seen before"))
    if found["feeds"]["pages"]:
        rows.append(("feeds", _feeds(found["feeds"], found["rolled_off_last_day"])))
    if found["listings"]["polled"]:
        rows.append(("listings", _listings(found["listings"])))
    if found["listings"]["dropped_and_gone"]:
        n = found["listings"]["dropped_and_gone"]
        rows.append(("left their sitemap, gone", f"{n}, last {found['listings']['last_dropped'][-1]}"))
    rows += hub_rows(found["hubs"])
    if found["posted"]:
        rows.append(("waiting to be added", f"{found['posted']}"))
    if found["last_crawl"] is not None:
        rows.append(("last crawl", _date(found["last_crawl"])))
    if round(found["unspent_last_day"]["unspent"]):
        rows.append(("unspent in the last day", _unspent(found["unspent_last_day"])))
    return rows


def _price(found: dict[str, Any]) -> str:
    """What a crawl must save, and the bound on very stale copies."""
    text = f"{format_span(found['price'])} of staleness times importance; a crawl that saves less is not made"
    if found["very_stale_share"]:
        stale, share = format_span(found["very_stale"]), 100 * found["very_stale_share"]
        text += f", but at most {share:.3g}% of crawls may find a copy stale for {stale}"
    return text


def _unspent(unspent: dict[str, Any]) -> str:
    """How many requests were left unspent, and why."""
    from recrawl.crawl.polite.unspent import WHY

    left, made = round(unspent["unspent"]), unspent["requests"]
    reasons = sorted(unspent["why"].items(), key=lambda item: -item[1])
    parts = [f"{round(n)} {WHY[reason]}" for reason, n in reasons if round(n)]
    return f"{left} of {left + made} requests: {', '.join(parts)}"


def _feeds(feeds: dict[str, int], last_day: int) -> str:
    text = f"{feeds['pages']}, {feeds['hurried']} polled in time for their items"
    if feeds["rolled_off"]:
        text += f"; items rolled off in {feeds['rolled_off']}, in the last day {last_day} times"
    return text


def _listings(listings: dict[str, Any]) -> str:
    text = f"{listings['polled']} polled, {listings['signals']} signals so far"
    if listings["failing"]:
        text += f"; {listings['failing']} fail"
    if listings["discovered_today"] or listings["beyond_limit_today"]:
        text += f"; {listings['discovered_today']} new pages today"
    if listings["beyond_limit_today"]:
        text += f", {listings['beyond_limit_today']} beyond the limit"
    if listings["found_elsewhere"]:
        text += f"; {listings['found_elsewhere']} new URLs elsewhere"
    return text


def _freshness(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = freshness_rows(
        Freshness(*(found[name] for name in ("freshness", "freshness_so_far", "comparisons", "comparisons_needed")))
    )
    if found["freshness"] is not None and round(age := found["now"] - found["freshness_at"]) > 0:
        rows[0] = (rows[0][0], f"{rows[0][1]}, as the crawl reported {format_span(age)} ago")
    if (plan := found["forecast"]) is not None:
        span = f"{plan['freshness']:.3f} in the long run ({plan['low']:.3f} to {plan['high']:.3f})"
        rows.append((f"freshness at {found['budget']}", span))
    if found["sample"] is not None:
        sample = found["sample"]
        text = f"{sample['pages']} of {found['pages']} pages, drawn by importance; error at most {sample['error']:.3f}"
        rows.append(("freshness is estimated by", text))
    if found["audit"] is not None:
        from recrawl.crawl.views.audit_report import audit_rows
        from recrawl.estimate.audit import Audit

        rows += audit_rows(Audit.from_dict(found["audit"]))
        rows.append(("audit and forecast", found["verdict"]["words"]))
    return rows


def freshness_rows(fresh: Freshness) -> list[tuple[str, str]]:
    """The freshness as ``recrawl status`` and the live view of ``recrawl run`` show it."""
    rows = [("freshness now", str(fresh))]
    if fresh.so_far is not None:
        rows.append(("freshness so far", f"{fresh.so_far:.3f} (by what crawls found)"))
    return rows


def _events(events: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("events", f"{events['last']} so far, {events['rows']} kept from number {events['first']} on")]
    for one in events["subscribers"]:
        text = f"{one['lag']} events behind" + (f" ({format_span(one['seconds_behind'])})" if one["lag"] else "")
        if one["failures"]:
            text += f"; failed {one['failures']} times in a row, last: {one['failure']}"
        if one["dropped"]:
            text += f"; {one['dropped']} EVENTS DROPPED before delivery: it must start again from a snapshot"
        rows.append((f"subscriber {one['name']}", text))
    return rows


def _hosts(hosts: list[dict[str, Any]]) -> list[str]:
    lines = [f"hosts that fail: {len(hosts)}"] if hosts else []
    lines += [_host(one) for one in hosts[:_SHOWN]]
    more = len(hosts) - _SHOWN
    return lines + ([f"  and {more} more; --json lists them"] if more > 0 else [])


def _host(one: dict[str, Any]) -> str:
    reasons = ", ".join(f"{reason} ({n} pages)" if n > 1 else reason for reason, n in one["reasons"].items())
    until = one["left_alone_until"]
    rest = "" if until is None else f"; not crawled until {_date(until)}"
    return f"  {one['host']:<40}{reasons}{rest}"


def _date(at: float) -> str:
    return datetime.fromtimestamp(at).isoformat(" ", "seconds")
