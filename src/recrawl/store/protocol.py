"""What a store keeps, and the protocol of every store."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from recrawl.store.events import Event, Subscriber
    from recrawl.store.leases import Lease
    from recrawl.store.listings import StoredListing
    from recrawl.store.signals import PendingSignal


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one crawl of a page found. Times are seconds since 1970; unknown values are None.

    ``changed`` is None where there was no copy to compare with, ``status`` where no answer came. ``failure`` names the
    reason of a failed crawl. ``requests`` counts every request made, redirects included. ``body`` is given only where
    it is to be kept, ``text`` where events are to carry it. ``flapping``: the content differs from the copy, but the
    page had it before; this is not a change. ``rolled_off``: a feed that shares no item with the poll before.
    ``signalled`` has bit k set if source k had said since the copy before that the page changed.
    """

    url: str
    began_at: float
    took: float = 0.0
    status: int | None = None
    changed: bool | None = None
    digest: str | None = None
    failure: str | None = None
    gone: bool = False
    final_url: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_type: str | None = None
    requests: int = 1
    body: bytes | None = None
    text: str | None = None
    flapping: bool = False
    rolled_off: bool = False
    signalled: int = 0

    @property
    def fetched(self) -> bool:
        """Whether this crawl fetched a copy."""
        return self.failure is None and not self.gone


RECENT = 8  # contents of a page that are kept by digest


def _tag(digest: str) -> str:
    """The detector that made a digest."""
    return digest.rpartition(":")[0]


def _short(digest: str) -> str:
    return digest.rpartition(":")[2][:16]


@dataclass(frozen=True, slots=True)
class Copy:
    """The newest copy of a page: what the next request and the next comparison need."""

    url: str
    fetched_at: float
    changed_at: float
    status: int | None
    digest: str | None
    etag: str | None
    last_modified: str | None
    content_type: str | None
    final_url: str | None
    recent: str = ""  # the last contents, newest first: 16 characters of each digest
    n_flaps: int = 0

    def seen(self, digest: str) -> bool:
        """Whether the page had this content recently."""
        return _short(digest) in self.recent.split()

    def after(self, outcome: Outcome) -> Copy:
        """The copy after a further successful crawl; "not modified" keeps the validators that it does not name."""
        changed_at = outcome.began_at if outcome.changed else self.changed_at
        return Copy(
            self.url,
            outcome.began_at,
            changed_at,
            outcome.status,
            outcome.digest or self.digest,
            *self._validators(outcome),
            outcome.content_type or self.content_type,
            outcome.final_url,
            self._recent(outcome.digest),
            self.n_flaps + outcome.flapping,
        )

    def _recent(self, digest: str | None) -> str:
        if digest is None or digest == self.digest:
            return self.recent
        comparable = self.digest is not None and _tag(digest) == _tag(self.digest)
        before = [one for one in self.recent.split() if one != _short(digest)] if comparable else []
        return " ".join([_short(digest), *before[: RECENT - 1]])

    def _validators(self, outcome: Outcome) -> tuple[str | None, str | None]:
        if outcome.status == 304:
            return outcome.etag or self.etag, outcome.last_modified or self.last_modified
        return outcome.etag, outcome.last_modified

    @classmethod
    def first(cls, outcome: Outcome) -> Copy:
        """The copy after the first crawl."""
        empty = cls(outcome.url, outcome.began_at, outcome.began_at, None, None, None, None, None, None)
        return empty.after(outcome)


def body_key(body: bytes) -> bytes:
    """The key of a body: 16 bytes of BLAKE2b.

    >>> body_key(b"").hex()
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(body, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Version:
    """One body of a page that is kept: when it was fetched, its key (BLAKE2b of the bytes), and its size."""

    url: str
    fetched_at: float
    key: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures about all pages of a store."""

    pages: int
    failing: int  # their last crawls failed
    gone: int  # their last crawls found them gone
    fetched_at: float | None  # the newest time of a copy; None: there are no pages
    requested: int  # readers asked for pages since they are counted
    as_important: int  # pages that are at least as important as asked


class SavedToo(TypedDict, total=False):
    """What `Store.save` writes besides outcomes and rows."""

    notes: Mapping[str, Any] | None
    removed: Iterable[str]
    applied: Iterable[int]
    at: float | None
    signals: Sequence[PendingSignal]
    listings: Sequence[StoredListing]
    leases: Sequence[Lease]
    leases_before: float | None


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one call of `Store.save` writes, as stores take it; TypeError for a name that is none of these."""

    outcomes: Sequence[Outcome] = ()
    rows: Mapping[str, Any] | None = None
    notes: Mapping[str, Any] | None = None
    removed: Iterable[str] = ()
    applied: Iterable[int] = ()
    at: float | None = None
    signals: Sequence[PendingSignal] = ()
    listings: Sequence[StoredListing] = ()
    leases: Sequence[Lease] = ()
    leases_before: float | None = None

    @property
    def removed_at(self) -> float:
        """When pages were removed."""
        return time.time() if self.at is None else self.at


@dataclass(frozen=True, slots=True)
class Changes:
    """What was written since a mark: the URLs of pages whose rows or signals were, and of pages that were removed."""

    urls: list[str]
    removed: list[str]


@runtime_checkable
class MarkedStore(Protocol):
    """A store that can say which pages were written since a mark, so that a state of the engine can be kept beside it.

    A mark is a text that no other database has; nothing is noted while there is none.
    """

    @property
    def checkpoint_path(self) -> Path:
        """The file beside the database for the engine's state."""

    async def set_mark(self) -> str:
        """Set a mark after all that was written before this call."""

    async def changes_since(self, mark: str) -> Changes | None:
        """What was written since a mark; None if the database does not have it."""

    async def writes_since(self, mark: str) -> int:
        """The number of transactions since a mark that are noted."""

    async def drop_marks(self, before: str | None = None) -> None:
        """Forget the marks before one, or all of them, and what is noted for them."""


@runtime_checkable
class Store(Protocol):
    """What a crawler keeps between runs; every call is awaited, so that none holds up an event loop.

    A call that writes is one transaction: it is committed when the call returns, or nothing of it is. A call whose
    caller is cancelled is still applied as a whole or not at all. Calls may be made concurrently. ``rows`` are those of
    ``Engine.rows``: columns of some pages and the state of the engine as a whole.
    """

    async def save(
        self, outcomes: Sequence[Outcome] = (), rows: Mapping[str, Any] | None = None, **more: Unpack[SavedToo]
    ) -> None:
        """Write outcomes with their events, the engine's rows, and notes (JSON values by name; None deletes one);
        delete removed pages and applied commands. All in one transaction. Outcomes of unknown pages are ignored.
        ``at`` is when pages were removed (default: the machine's time). ``signals`` replace those of their pages and
        sources; a signal is deleted with the first outcome without a failure that began after it.
        ``listings`` replace those of their URLs, ``leases`` those of their ids; leases that ended before
        ``leases_before`` are deleted.
        """

    async def load(self, urls: Iterable[str] | None = None) -> dict[str, Any] | None:
        """The rows of all pages, ready for ``Engine.restore``; None if none were ever saved.

        Given URLs, the rows of those of them that are pages; hosts and the state of the engine are read in any case.
        """

    async def sample(self, most: int) -> tuple[list[str], NDArray[np.float64]]:
        """URLs of pages as `sampling.draw` draws them, at most so many, and how many pages each stands for."""

    async def totals(self, *, importance: float = math.inf) -> Totals:
        """Figures about all pages; ``importance`` is what `Totals.as_important` compares with."""

    async def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """The URLs of all pages, or of those that begin with a text, in the order in which they were added.

        With ``most``, some so many of them.
        """

    async def copies(self, urls: Iterable[str]) -> dict[str, Copy]:
        """The newest copies of those pages that have one."""

    def observations(self, url: str | None = None, *, since: float | None = None) -> AsyncIterator[Outcome]:
        """Outcomes without bodies, in the order in which they were saved: of all pages or one, from a time on."""

    async def last_observation(self) -> Outcome | None:
        """The outcome that was saved last."""

    async def failing(self, since: float) -> list[Outcome]:
        """The last outcomes of pages that fail, or that robots.txt has forbidden since a time."""

    async def recent(self, since: float) -> dict[str, int]:
        """Numbers of crawls, changes, failures, flaps and rolled-off feeds from a time on."""

    async def requests(self, since: float, recently: float) -> list[tuple[str, int, int]]:
        """Of the pages that were crawled since a time: URL, requests since then, and since a later time."""

    async def versions(self, url: str) -> list[Version]:
        """The bodies of a page that are kept, newest first."""

    async def body(self, key: bytes) -> bytes | None:
        """A body that is kept."""

    async def notes(self, prefix: str = "") -> dict[str, Any]:
        """The notes whose names begin with a prefix."""

    async def events(self, after: int = 0, many: int = 200) -> list[Event]:
        """At most ``many`` events after a number, oldest first; events beyond the limits are deleted."""

    async def newest_events(
        self, many: int = 50, *, url: str | None = None, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """At most ``many`` events that are kept, newest first: of all pages or one, of all kinds or some."""

    def snapshot(self) -> AsyncIterator[Event]:
        """The pages that exist, as events of kind new, all with the number after which events continue."""

    async def subscribers(self) -> list[Subscriber]:
        """The subscribers by name, with the position of each."""

    async def save_subscriber(self, subscriber: Subscriber) -> None:
        """Keep the position of a subscriber; ``dropped`` is counted by the store."""

    async def remove_subscriber(self, name: str) -> None:
        """Forget a subscriber: no event is kept for it any longer."""

    async def event_counts(self) -> dict[str, int]:
        """The ``last`` number given, and of events that are kept the ``first``, their ``rows`` and ``size`` (bytes)."""

    async def signals(self, urls: Iterable[str] | None = None) -> list[PendingSignal]:
        """The pending signals of all pages, or of some, in the order in which the pages were added."""

    async def listings(self) -> list[StoredListing]:
        """The listings without their entries, by URL."""

    async def listing_entries(self, url: str) -> bytes:
        """The entries of a listing at its last poll; empty if there are none."""

    async def leases(self, ids: Iterable[str] | None = None, *, after: float = -math.inf) -> list[Lease]:
        """The leases of some ids or, without ids, those that are held; only those that end after a time. By id."""

    async def queue(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """Queue commands (JSON objects) for the running crawler, from any process."""

    async def commands(self) -> list[tuple[int, dict[str, Any]]]:
        """The queued commands that are not applied yet, oldest first, each with its number."""

    async def counts(self) -> dict[str, int]:
        """Numbers of pages, copies, observations and bodies."""

    async def check(self) -> list[str]:
        """Contradictions in what is stored, one line each; empty if there are none."""

    async def close(self) -> None:
        """Close the store; further calls are refused."""
