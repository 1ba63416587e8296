"""The numbers of ``recrawl status``: pages, crawls, freshness, audits, feeds, subscribers, failing hosts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from recrawl.crawl.views.hub_report import hub_figures
from recrawl.crawl.views.reasons import robots_failure
from recrawl.crawl.views.signals_report import lost_figures
from recrawl.crawl.views.status_load import failing_figures, load_figures
from recrawl.engine.names.addresses import host_of

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.crawl.run.opening.partial import Sampled
    from recrawl.engine import Engine
    from recrawl.estimate.audit import Audit
    from recrawl.store import BlockingStore, Outcome, OwnedStore

_DAY = 86400.0
_TIMES_ERROR = 1.645  # standard errors on each side of an interval of 90%
_LISTED = 10_000  # hosts at most
_DOUBTED = "not-modified lies"  # the reason given for hosts whose 304 is not believed


def figures(store: BlockingStore[OwnedStore], settings: Settings, now: float) -> dict[str, Any]:
    """Everything that ``recrawl status --json`` prints."""
    from recrawl.crawl.audit.open_audit import ENDED, saved_audits
    from recrawl.crawl.run.opening.partial import open_sampled

    failing = store.failing(now - _DAY)
    reasons = [(outcome, _reason(store, outcome)) for outcome in failing]
    troubled = hosts_in_trouble(store, reasons, now)
    sampled = store.run(open_sampled(store.store, settings, now, {_name(one) for one in troubled}))
    engine, last = sampled.engine, store.last_observation()
    found: dict[str, Any] = {
        "now": now,
        "database": store.store.name,
        **store.counts(),
        "bytes": store.store.size(),
        "posted": sum(len(command.get("add", [])) for _, command in store.commands()),
        "importance": _importance(engine),
        "failing": sampled.totals.failing,
        "gone": sampled.totals.gone,
        "last_crawl": None if last is None else last.began_at,
        **{f"{name}_last_day": n for name, n in store.recent(now - _DAY).items()},
        "feeds": feed_figures(store),
        "listings": listing_figures(store),
        "hubs": hub_figures(store, now),
        "lost_trust": lost_figures(store, engine),
        "budget": settings.budget,
        "objective": engine.settings.objective,
        "policy": engine.settings.policy,
        "policy_words": engine.choice.words(engine) or engine.settings.policy,
        "price": engine.price,
        "very_stale": engine.settings.very_stale,
        "very_stale_share": engine.settings.very_stale_share,
        "unspent_last_day": unspent_figures(store, now),
        "freshness": None,
        "freshness_at": now,
        "freshness_so_far": None,
        "comparisons": 0,
        "comparisons_needed": 0,
        "forecast": None,
        "events": event_figures(store, now),
        "hosts": with_holds(troubled, engine, now),
        "failing_pages": failing_figures(store, [(one, reason) for one, reason in reasons if reason is not None]),
        "load": load_figures(store, settings, sampled.totals.pages, now),
        "sample": None,
        **audit_figures(saved_audits(store.notes(ENDED))),
    }
    if len(engine):
        found |= _freshness(store, sampled, settings, now)
    return found


def _importance(engine: Engine) -> float:
    """The importance of all pages that are not paused: their weight in an average over shards."""
    from recrawl.crawl.audit.freshness import audited_pages
    from recrawl.schedule.exact import access

    return float(access.importance(engine.scheduler, audited_pages(engine)).sum()) if len(engine) else 0.0


def _freshness(store: BlockingStore[OwnedStore], sampled: Sampled, settings: Settings, now: float) -> dict[str, Any]:
    """Figures about freshness; of a sample, the interval of the forecast includes the error of the sample.

    All are None while too few comparisons were made. What a running crawl has reported lately is taken over.
    """
    from recrawl.crawl.audit.freshness import NOTE, noted_freshness, reported_freshness

    engine = sampled.engine
    noted = noted_freshness(store.notes(NOTE).get(NOTE), now)
    fresh, at = noted or (reported_freshness(engine, now), now)
    found: dict[str, Any] = {
        "freshness": fresh.now,
        "freshness_at": at,
        "freshness_so_far": fresh.so_far,
        "comparisons": fresh.comparisons,
        "comparisons_needed": fresh.needed,
    }
    if fresh.now is None:
        return found
    error = 0.0 if sampled.error is None else _TIMES_ERROR * sampled.error
    found["sample"] = None if sampled.error is None else {"pages": len(engine), "error": error}
    return {**found, "forecast": _forecast(engine, settings.rates(sampled.totals.pages)[1], error)}


def _forecast(engine: Engine, budget: float, error: float) -> dict[str, float]:
    """Freshness in the long run at a budget."""
    planned = engine.forecast(budget)
    low, high = (math.hypot(end - planned.freshness, error) for end in (planned.low, planned.high))
    return {
        "freshness": planned.freshness,
        "low": max(planned.freshness - low, 0.0),
        "high": min(planned.freshness + high, 1.0),
    }


def unspent_figures(store: BlockingStore[OwnedStore], now: float) -> dict[str, Any]:
    """Requests that the budget allowed in the last day: those made, those left unspent, and why."""
    from recrawl.crawl.polite.unspent import NOTE, figures_of

    return figures_of(store.notes(NOTE).get(NOTE), now)


def listing_figures(store: BlockingStore[OwnedStore]) -> dict[str, Any]:
    """Listings that are polled, what they said, and what was discovered."""
    from recrawl.crawl.listings.discovery import COUNTS
    from recrawl.crawl.listings.dropped import DroppedPages

    states = [one.state or {} for one in store.listings()]
    dropped = store.notes(DroppedPages.NOTE).get(DroppedPages.NOTE, {"n_gone": 0, "gone": []})
    counts = store.notes(COUNTS).get(COUNTS, {"today": {}, "elsewhere": {}, "limited": {}})
    return {
        "polled": len(states),
        "failing": sum(state.get("failures", 0) > 0 for state in states),
        "entries": sum(state.get("n_entries", 0) for state in states),
        "signals": sum(state.get("n_signals", 0) for state in states),
        "discovered_today": sum(counts["today"].values()),
        "found_elsewhere": sum(counts["elsewhere"].values()),
        "beyond_limit_today": sum(counts["limited"].values()),
        "dropped_and_gone": dropped["n_gone"],
        "last_dropped": dropped["gone"],
    }


def feed_figures(store: BlockingStore[OwnedStore]) -> dict[str, int]:
    """Number of feeds, of those polled more often because items would be lost, and of those that lost items."""
    from recrawl.crawl.feeds.polling import PREFIX

    notes = store.notes(PREFIX).values()
    hurried, rolled = sum(note["interval"] is not None for note in notes), sum(note["rolled"] > 0 for note in notes)
    return {"pages": len(notes), "hurried": hurried, "rolled_off": rolled}


def audit_figures(audits: Sequence[Audit]) -> dict[str, Any]:
    """The last audit, the number of audits, and whether they agree with the forecasts."""
    from recrawl.crawl.views.audit_report import verdict_text
    from recrawl.estimate.audit import verdict

    judged = verdict(audits)
    if judged is None:
        return {"audit": None, "audits": 0, "verdict": None}
    return {
        "audit": audits[-1].as_dict(),
        "audits": len(audits),
        "verdict": {**judged.as_dict(), "words": verdict_text(audits)},
    }


def event_figures(store: BlockingStore[OwnedStore], now: float) -> dict[str, Any]:
    """Events in the store, and how far behind each subscriber is."""
    found: dict[str, Any] = store.event_counts()
    subscribers = []
    for one in store.subscribers():
        lag = found["last"] - one.cursor
        waiting = store.events(one.cursor, 1)
        behind = now - waiting[0].at if waiting else 0.0
        subscribers.append({**asdict(one), "lag": lag, "seconds_behind": round(max(behind, 0.0), 3)})
    return {**found, "subscribers": subscribers}


def hosts_in_trouble(
    store: BlockingStore[OwnedStore], failing: list[tuple[Outcome, str | None]], now: float
) -> list[dict[str, Any]]:
    """Hosts that failed in the last day: number of pages per reason, last attempt."""
    by_host: defaultdict[str, list[tuple[Outcome, str | None]]] = defaultdict(list)
    for outcome, reason in failing:
        by_host[urlsplit(outcome.url).netloc].append((outcome, reason))
    found = []
    for host, outcomes in by_host.items():
        reasons = Counter(reason for _, reason in outcomes if reason is not None)
        if reasons:
            last = max(outcome.began_at for outcome, _ in outcomes)
            found.append({"host": host, "reasons": dict(reasons.most_common()), "last_try": last})
    found += [{"host": host, "reasons": {_DOUBTED: 1}, "last_try": None} for host in _doubted(store, now, by_host)]
    return sorted(found, key=lambda one: str(one["host"]))[:_LISTED]


def with_holds(troubled: list[dict[str, Any]], engine: Engine, now: float) -> list[dict[str, Any]]:
    """The same hosts, with the end of each host's pause."""
    until = {one["host"]: engine.held_until(_name(one)) for one in troubled}
    return [{**one, "left_alone_until": at if (at := until[one["host"]]) > now else None} for one in troubled]


def _name(troubled: dict[str, Any]) -> str:
    """The name of a host, without its port: rules of hosts go by names."""
    return host_of(f"http://{troubled['host']}/")


def _reason(store: BlockingStore[OwnedStore], outcome: Outcome) -> str | None:
    """Why a page fails. None if robots.txt was read and disallows the page: that is no failure of its host."""
    if outcome.failure != "robots":
        return outcome.failure
    unread = robots_failure(store, outcome)
    return None if unread is None else f"robots.txt: {unread}"


def _doubted(store: BlockingStore[OwnedStore], now: float, listed: Container[str]) -> list[str]:
    """Hosts whose "not modified" is not believed, without those listed already."""
    trust = store.notes("trust").get("trust", {"hosts": {}})
    return [host for host, one in trust["hosts"].items() if one["doubted_until"] > now and host not in listed]
