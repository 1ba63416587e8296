"""Why a page is not crawled now, in words that tell one cause from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from recrawl.crawl.run.opening.pages import PAUSED_UNTIL
from recrawl.engine.eligibility.eligibility import Reason
from recrawl.model.spans import format_span

if TYPE_CHECKING:
    from recrawl.crawl.config.rules import Rules
    from recrawl.engine.views.explain import Explanation
    from recrawl.store import BlockingStore, Outcome, OwnedStore

_GONE = {404: "not found (404)", 410: "gone for good (410)"}
_MOVED = (301, 308)


@dataclass(frozen=True)
class Fate:
    """What a store knows of a page beside its rows: its last crawl, how its robots.txt failed, and its rule."""

    last: Outcome | None
    robots_failure: str | None
    never: bool
    min_interval: float | None

    @classmethod
    def of(cls, store: BlockingStore[OwnedStore], rules: Rules, url: str) -> Fate:
        """What is known of a page."""
        last = list(store.observations(url))[-1:]
        rule = rules.of(url)
        failure = robots_failure(store, last[0]) if last and last[0].failure == "robots" else None
        return cls(last[0] if last else None, failure, bool(rule.never), rule.min_interval)


def robots_failure(store: BlockingStore[OwnedStore], outcome: Outcome) -> str | None:
    """Why the robots.txt that a crawl met could not be read; None: it was read, and disallows the page."""
    name = robots_note(outcome)
    return noted_failure(store.notes(name).get(name))


def robots_note(outcome: Outcome) -> str:
    """The name of the note of the robots.txt that a crawl met."""
    from recrawl.crawl.polite.robots_cache import PREFIX

    parts = urlsplit(outcome.final_url or outcome.url)
    return f"{PREFIX}{parts.scheme}://{parts.netloc}"


def noted_failure(cached: Mapping[str, Any] | None) -> str | None:
    """Why a robots.txt could not be read, by its note."""
    return str(cached["failure"]) if cached and cached["failure"] else None


def outcome_text(last: Outcome, robots: str | None) -> str:
    """What the last crawl of a page came to, if it fetched no copy."""
    if last.gone:
        if last.status in _MOVED and last.final_url:
            return f"moved permanently ({last.status}) to {last.final_url}, which is a page of its own"
        return _GONE.get(last.status or 0, f"gone ({last.status})")
    if last.failure == "robots":
        unread = robots is not None and f"its robots.txt could not be read ({in_words(robots)})"
        return unread or "disallowed by robots.txt"
    if last.status and last.status >= 400:
        return f"the server answers {last.status}" + (" and asks to come later" if last.failure == "busy" else "")
    return in_words(str(last.failure))


def in_words(failure: str) -> str:
    """The name of a failure and what it means, unless its name says it."""
    from recrawl.crawl.http.fetched import FAILURES

    return failure if failure.startswith("http-") or failure not in FAILURES else f"{failure}: {FAILURES[failure]}"


def state_text(found: Explanation, fate: Fate) -> str:
    """The state of an explanation with the cause that the store knows."""
    reason, wait = found.reasons[0] if found.reasons else None, format_span(max(found.wait_until - found.now, 0.0))
    last = fate.last
    if found.wait_until >= PAUSED_UNTIL:
        return "paused until it is resumed"
    if reason == Reason.PAUSED:
        return "never crawled: a rule with never = true matches it" if fate.never else "paused until it is resumed"
    if last is None or last.fetched:
        return _held(found, fate, wait) if reason == Reason.DEFERRED and last is not None else found.state
    what = outcome_text(last, fate.robots_failure)
    if reason == Reason.GONE:
        return f"{what}; looked for again in {wait}"
    if reason == Reason.RETRY:
        times = "once" if found.failures == 1 else f"{found.failures} times in a row"
        return f"failed {times} ({what}); tried again in {wait}"
    if reason == Reason.DEFERRED:
        again = "robots.txt is read again" if last.failure == "robots" else "tried again"
        return f"not crawled: {what}; {again} in {wait}"
    return found.state


def _held(found: Explanation, fate: Fate, wait: str) -> str:
    """A page that was fetched and waits: by its rule, or by the cache headers of its server."""
    held = found.wait_until - found.fetched_at
    if fate.min_interval is not None and held <= fate.min_interval * 1.001:
        return f"its rule allows a crawl every {format_span(fate.min_interval)} at most; the next in {wait}"
    return f"held by cache headers: its server calls the copy good; crawled no sooner than in {wait}"
