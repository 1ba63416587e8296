"""Events: what became of pages. Each event is compared with the last event of its page; numbers go up by one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from recrawl.errors import ParameterError
from recrawl.store.protocol import Outcome

KINDS = ("new", "changed", "redirected", "gone")
_ROW = 200  # bytes that an event counts beside its strings


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a page that subscribers receive.

    ``number`` goes up by one from event to event. ``id`` is unique among all databases; a second delivery has the same
    id. ``old_…`` is the state in the page's last event, ``new_…`` the state now; texts only where they are kept.
    """

    number: int
    id: str
    url: str
    kind: str  # one of KINDS
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
        """The event as it is written out, without unknown fields."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def size(self) -> int:
        """Bytes towards the size limit: about its size on disk without texts."""
        texts = (self.old_digest, self.new_digest, self.old_final_url, self.new_final_url, self.content_type)
        return _ROW + len("".join([self.url, *filter(None, texts)]).encode())


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The state of a page in its last event."""

    gone: bool
    digest: str | None
    final_url: str | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Subscriber:
    """The position of a subscriber: ``cursor`` is the number of the last event delivered to it.

    ``taken`` counts delivered events and ``taken_at`` is when the last ones were delivered (seconds since 1970).
    ``failures`` counts failed deliveries in a row. ``dropped`` counts events deleted before they were delivered.
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
    """How many events are kept: delivered ones for ``age`` seconds, all of them within ``rows`` and ``size`` (bytes).

    Beyond ``rows`` or ``size`` the oldest are deleted, and counted for each subscriber that had not received them. Of
    each page, the newest ``texts`` events keep their texts, and those that were not delivered to all.
    """

    rows: int = 1_000_000
    size: int = 1 << 30
    age: float = 30 * 86400.0
    texts: int = 1_000_000

    def __post_init__(self) -> None:
        if self.rows < 0 or self.size < 0 or self.texts < 0 or not 0 <= self.age <= math.inf:
            raise ParameterError("limits of events must be at least 0")


def event_of(last: LastEvent | None, outcome: Outcome) -> Event | None:
    """The event of an outcome, given the page's last event; None if nothing changed. The store gives number and id.

    >>> event_of(None, Outcome("https://a.example/", 5.0, status=200, digest="d")).kind
    'new'
    """
    if outcome.gone:
        if last is None or last.gone:
            return None
        reason = "not-found" if outcome.final_url is None or outcome.status in (404, 410) else "moved"
        return _event("gone", last, outcome, reason=reason, new_final_url=outcome.final_url)
    if not outcome.fetched:
        return None
    found = {
        "content_type": outcome.content_type,
        "new_digest": outcome.digest or (last.digest if last is not None else None),
        "new_final_url": outcome.final_url,
        "new_text": outcome.text,
    }
    if outcome.text is None and last is not None and found["new_digest"] == last.digest:
        found["new_text"] = last.text
    if last is None or last.gone:
        return _event("new", last, outcome, **found)
    if outcome.final_url != last.final_url:
        return _event("redirected", last, outcome, **found)
    return _event("changed", last, outcome, **found) if outcome.changed else None


def removed_event(last: LastEvent | None, url: str, at: float) -> Event | None:
    """The event of a page that the user removes."""
    if last is None or last.gone:
        return None
    return _event("gone", last, Outcome(url, at), reason="removed")


def last_event_after(event: Event) -> LastEvent:
    """The state of a page after an event."""
    if event.kind == "gone":
        return LastEvent(True, event.old_digest, event.old_final_url, event.old_text)
    return LastEvent(False, event.new_digest, event.new_final_url, event.new_text)


def n_undelivered(subscriber: Subscriber, first: int, last: int) -> int:
    """How many of the events from one number to another were not delivered to a subscriber."""
    return max(0, last - max(first - 1, subscriber.cursor))


def delivered_to_all(subscribers: Iterable[Subscriber]) -> float:
    """The number up to which every subscriber has received all events; infinity without subscribers."""
    return min((one.cursor for one in subscribers), default=math.inf)


def n_overdue(
    oldest: Iterable[tuple[int, float, int]], total: tuple[int, int], limits: EventLimits, held: float, before: float
) -> int:
    """How many of the oldest events (number, time, size) are to be deleted; ``total`` are rows and size of all.

    Events beyond the limits are, and those before a time that were delivered to all (numbers up to ``held``).
    """
    rows, size = total
    n = 0
    for number, at, bytes_ in oldest:
        if rows <= limits.rows and size <= limits.size and not (number <= held and at < before):
            break
        n, rows, size = n + 1, rows - 1, size - bytes_
    return n


def _event(kind: str, last: LastEvent | None, outcome: Outcome, **found: Any) -> Event:
    old = last or LastEvent(True, None, None)
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
