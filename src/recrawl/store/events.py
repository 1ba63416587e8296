"""Events: what became of pages, told once each against what was told before, in the order of their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from recrawl.errors import ParameterError
from recrawl.store.protocol import Outcome

KINDS = ("new", "changed", "redirected", "gone")
_ROW = 200  # bytes that an event counts as beside its words


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that became of a page.

    ``number`` goes up by one from event to event and ``id`` is unique among all databases; a second delivery has the
    same id. ``old_…`` is what the page's event before said, ``new_…`` what was found; texts only where they are kept.
    """

    number: int
    id: str
    url: str
    kind: str  # a word of KINDS
    at: float  # when the fetch began, seconds since 1970
    status: int | None = None
    reason: str | None = None  # of gone: not-found, moved, removed
    content_type: str | None = None
    old_digest: str | None = None
    new_digest: str | None = None
    old_final_url: str | None = None
    new_final_url: str | None = None
    old_text: str | None = None
    new_text: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The event as it is written out: what is not known is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def size(self) -> int:
        """Bytes that it counts as, about what it takes on disk without texts."""
        words = (self.url, self.old_digest, self.new_digest, self.old_final_url, self.new_final_url, self.content_type)
        return _ROW + sum(len(word.encode()) for word in words if word)


@dataclass(frozen=True, slots=True)
class Told:
    """What the last event of a page said."""

    gone: bool
    digest: str | None
    final_url: str | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Follower:
    """Who takes events, by name: ``cursor`` is the number of the last one taken.

    ``failures`` counts deliveries that failed in a row, ``dropped`` events that were let go before they were taken.
    """

    name: str
    cursor: int = 0
    taken: int = 0
    failures: int = 0
    failure: str | None = None
    failed_at: float | None = None
    taken_at: float | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class EventLimits:
    """How many events are kept: those that all followers have taken for ``age`` seconds, others up to the limits.

    Beyond ``rows`` or ``size`` bytes the oldest are dropped, and counted where a follower had not taken them.
    """

    rows: int = 1_000_000
    size: int = 1 << 30
    age: float = 30 * 86400.0

    def __post_init__(self) -> None:
        if self.rows < 0 or self.size < 0 or not 0 <= self.age <= math.inf:
            raise ParameterError("limits of events must be at least 0")


def event_of(told: Told | None, outcome: Outcome) -> Event | None:
    """The event that an outcome is, given what was told of its page; number and id are the store's to give.

    >>> event_of(None, Outcome("https://a.example/", 5.0, status=200, digest="d")).kind
    'new'
    """
    if outcome.gone:
        if told is None or told.gone:
            return None
        reason = "not-found" if outcome.final_url is None or outcome.status in (404, 410) else "moved"
        return _event("gone", told, outcome, reason=reason, new_final_url=outcome.final_url)
    if not outcome.fetched:
        return None
    found = {
        "content_type": outcome.content_type,
        "new_digest": outcome.digest or (told.digest if told is not None else None),
        "new_final_url": outcome.final_url,
        "new_text": outcome.text,
    }
    if outcome.text is None and told is not None and found["new_digest"] == told.digest:
        found["new_text"] = told.text
    if told is None or told.gone:
        return _event("new", told, outcome, **found)
    if outcome.final_url != told.final_url:
        return _event("redirected", told, outcome, **found)
    return _event("changed", told, outcome, **found) if outcome.changed else None


def removed_event(told: Told | None, url: str, at: float) -> Event | None:
    """The event of a page that the user takes away."""
    if told is None or told.gone:
        return None
    return _event("gone", told, Outcome(url, at), reason="removed")


def told_after(event: Event) -> Told:
    """What has been told once an event has."""
    if event.kind == "gone":
        return Told(True, event.old_digest, event.old_final_url, event.old_text)
    return Told(False, event.new_digest, event.new_final_url, event.new_text)


def n_untaken(follower: Follower, first: int, last: int) -> int:
    """How many of the events from one number to another a follower has not taken."""
    return max(0, last - max(first - 1, follower.cursor))


def held_by(followers: Iterable[Follower]) -> float:
    """The number up to which all followers have taken everything; infinity where nobody follows."""
    return min((one.cursor for one in followers), default=math.inf)


def _event(kind: str, told: Told | None, outcome: Outcome, **found: Any) -> Event:
    old = told or Told(True, None, None)
    return Event(
        0,
        "",
        outcome.url,
        kind,
        outcome.began_at,
        outcome.status,
        old_digest=old.digest,
        old_final_url=old.final_url,
        old_text=old.text,
        **found,
    )
