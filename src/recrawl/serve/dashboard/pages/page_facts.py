"""One page: why it is crawled when it is, its crawls, its changes and its signals."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.crawl.feeds.polling import PREFIX as FEEDS
from recrawl.crawl.feeds.polling import Feed
from recrawl.crawl.signals.sources import NOTE, Sources
from recrawl.crawl.views.reasons import Fate, noted_failure, robots_note
from recrawl.crawl.views.why_report import why_lines
from recrawl.engine.views.explain import Explanation
from recrawl.serve.crawls.view import CrawlView, kind_of
from recrawl.serve.dashboard.pages.contents import Titles, last_changes
from recrawl.serve.dashboard.pages.timeline import SIGNAL, Entry, counts, timeline
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
    kinds: list[str]  # of the last crawls, the newest first
    counts: str  # the last crawls in words
    timeline: list[Entry]
    shows_changes: bool  # what the newest changes were can be shown
    keep: int  # bodies kept of each page


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
    waiting = [
        Entry(one.at, SIGNAL, f"{sources.name(one.source)}: waits for the next crawl")
        for one in await store.signals([url])
    ]
    changes = await last_changes(store, copy)
    return PageFacts(
        url=url,
        title="" if copy is None else (await titles.of([copy])).get(url, ""),
        paused=any(row.state == "paused" for row in rows),
        ruled=rule.importance is not None,
        explained=explained,
        why=why_lines(explained, fate, copy, None if feed is None else Feed.of_note(feed)),
        copy=copy,
        kinds=[kind_of(one) for one in crawls[:_SHOWN]],
        counts=counts(crawls[:_SHOWN]),
        timeline=timeline(crawls[:_SHOWN], changes, waiting, sources.name),
        shows_changes=bool(changes),
        keep=crawl.settings.keep,
    )


async def _crawls(store: Store, url: str, now: float) -> list[Outcome]:
    """The crawls of the last weeks, or of all time if there were none; the newest first."""
    found = [one async for one in store.observations(url, since=now - _RECENT)]
    return (found or [one async for one in store.observations(url)])[::-1]


async def _robots_failure(store: Store, outcome: Outcome) -> str | None:
    name = robots_note(outcome)
    return noted_failure((await store.notes(name)).get(name))
