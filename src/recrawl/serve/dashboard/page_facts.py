"""One page: why it is crawled when it is, its crawls, its changes and its signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recrawl.crawl.feeds.polling import PREFIX as FEEDS
from recrawl.crawl.feeds.polling import Feed
from recrawl.crawl.signals.sources import NOTE, Sources
from recrawl.crawl.views.reasons import Fate, noted_failure, robots_note
from recrawl.crawl.views.why_report import why_lines
from recrawl.engine.views.explain import Explanation
from recrawl.serve.crawls.view import CrawlView, kind_of
from recrawl.serve.dashboard.contents import Change, Titles, last_changes
from recrawl.store.protocol import Copy, Outcome, Store

_SHOWN = 100  # crawls of the timeline
_RECENT = 30 * 86400.0  # seconds of it that are read


@dataclass(frozen=True)
class PageFacts:
    """Everything that the page's view shows."""

    url: str
    title: str
    paused: bool
    ruled: bool  # a rule gives its importance
    explained: Explanation
    why: list[str]
    copy: Copy | None
    crawls: list[dict[str, Any]]
    changes: list[Change]
    keep: int  # bodies kept of each page
    pending: list[dict[str, Any]]  # signals since the copy


async def page_facts(crawl: CrawlView, titles: Titles, url: str) -> PageFacts | None:
    """The facts of a page; None if there is no such page."""
    explained, store, now = await crawl.explain(url), crawl.store_of(url), crawl.clock.now()
    if explained is None:
        return None
    sources = Sources.restore(await store.notes(NOTE))
    copies = await crawl.copies([url])
    copy, rows = copies.get(url), await crawl.rows([url], copies)
    crawls = await _crawls(store, url, now)
    rule = crawl.settings.rules().of(url)
    last = crawls[0] if crawls else None
    failure = await _robots_failure(store, last) if last is not None and last.failure == "robots" else None
    fate = Fate(last, failure, bool(rule.never), rule.min_interval)
    feed = (await store.notes(FEEDS + url)).get(FEEDS + url)
    pending = await store.signals([url])
    return PageFacts(
        url=url,
        title="" if copy is None else (await titles.of([copy])).get(url, ""),
        paused=any(row.state == "paused" for row in rows),
        ruled=rule.importance is not None,
        explained=explained,
        why=why_lines(explained, fate, copy, None if feed is None else Feed.of_note(feed)),
        copy=copy,
        crawls=[_shown(one) for one in crawls[:_SHOWN]],
        changes=await last_changes(store, copy),
        keep=crawl.settings.keep,
        pending=[{"source": sources.name(one.source), "at": one.at, "changed_at": one.changed_at} for one in pending],
    )


async def _crawls(store: Store, url: str, now: float) -> list[Outcome]:
    """The crawls of the last weeks, or of all time if there were none; the newest first."""
    found = [one async for one in store.observations(url, since=now - _RECENT)]
    return (found or [one async for one in store.observations(url)])[::-1]


async def _robots_failure(store: Store, outcome: Outcome) -> str | None:
    name = robots_note(outcome)
    return noted_failure((await store.notes(name)).get(name))


def _shown(one: Outcome) -> dict[str, Any]:
    kind = kind_of(one)
    detail = one.failure or (f"redirects to {one.final_url}" if one.final_url else "")
    if one.flapping:
        detail = "returned to content seen before"
    return {"at": one.began_at, "kind": kind, "status": one.status, "took": one.took, "detail": detail}
