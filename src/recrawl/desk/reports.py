"""Reports: what foreign crawlers say of a crawl, and the same as the crawler's own fetches say it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from recrawl.crawl.http.fetched import FAILURES, Fetched
from recrawl.crawl.http.semantics import failure_of, is_gone
from recrawl.crawl.polite.not_modified import Validators
from recrawl.crawl.run.compare import Given, Hop
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError, RowError, unknown
from recrawl.store.leases import Lease
from recrawl.store.protocol import Copy, Outcome

MOST_REQUESTS = 100  # of one crawl
_SECONDS = ("fetched_at", "took", "retry_after", "good_for")
_ROBOTS_WAIT = 86400.0  # seconds until a page that robots.txt forbids is picked again


class Report(NamedTuple):
    """What a crawler says of a lease: ``status`` of the last answer, or ``error`` (one of `FAILURES`).

    What counts as a change is decided by one of: ``body`` (compared by the detector of the page), ``digest`` (compared
    with the digest before), ``changed``; by none of them, nothing is learned but the age of the copy. ``requests`` are
    all that were made for it: redirects and robots.txt too. ``fetched_at`` is when the request was sent (seconds since
    1970; default: when the page was picked), ``retry_after`` the seconds that a server asked to wait.
    """

    lease: str
    status: int | None = None
    error: str | None = None
    body: bytes | None = None
    digest: str | None = None
    changed: bool | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_type: str | None = None
    final_url: str | None = None
    fetched_at: float | None = None
    took: float = 0.0
    requests: int = 1
    retry_after: float | None = None
    good_for: float | None = None
    links: tuple[str, ...] = ()

    def check(self, row: int) -> None:
        """Raise ParameterError if this cannot be what a crawler found."""
        if (self.status is None) == (self.error is None):
            raise RowError(row, "status", "give either status or error")
        if self.status is not None and not 100 <= self.status <= 599:
            raise RowError(row, "status", f"is {self.status}: must lie between 100 and 599")
        if self.error is not None and self.error not in FAILURES:
            raise RowError(row, "error", str(unknown("error", self.error, tuple(FAILURES))))
        if (self.body is not None) + (self.digest is not None) + (self.changed is not None) > 1:
            raise RowError(row, "digest", "give only one of body, digest and changed")
        if not 0 <= self.requests <= MOST_REQUESTS:
            raise RowError(row, "requests", f"is {self.requests}: must lie between 0 and {MOST_REQUESTS}")
        for value in (self.fetched_at, self.took, self.retry_after, self.good_for):
            if value is not None and not 0 <= value < math.inf:
                name = next(name for name in _SECONDS if getattr(self, name) is value)
                raise RowError(row, name, "must be a number, at least 0")
        if self.final_url is not None:
            try:
                canonical(self.final_url)
            except ParameterError as problem:
                raise RowError(row, "final_url", str(problem)) from None

    @property
    def is_success(self) -> bool:
        """Whether the page was fetched, and not answered as not modified."""
        return self.status is not None and self.status != 304 and failure_of(self.status, conditional=True) is None

    def began(self, lease: Lease, now: float) -> float:
        """When the request was sent: between the pick and now, whatever the crawler's clock says."""
        began = lease.picked_at if self.fetched_at is None else self.fetched_at
        return min(max(began, lease.picked_at), now)

    def said(self, lease: Lease, now: float) -> Given:
        """As a page that was fetched, of which the digest is given."""
        began, status, digest = self.began(lease, now), self.status or 0, self.digest or ""
        named = (self.etag, self.last_modified, self.content_type)
        return Given(lease.url, began, self.took, status, digest, *named, self.requests)

    def hop(self, lease: Lease, copy: Copy | None, now: float) -> Hop:
        """Where the crawl was."""
        began = self.began(lease, now)
        hop = Hop(lease.url, self.final_url or lease.url, began, self.requests, took=self.took)
        if copy is not None and lease.conditional:
            hop.had = Validators(copy.etag, copy.last_modified)
            hop.sent = hop.had
        return hop

    def fetched(self, hop: Hop) -> Fetched:
        """As a fetch of the crawler."""
        named = {"etag": self.etag, "last-modified": self.last_modified, "content-type": self.content_type}
        headers = {name: value for name, value in named.items() if value is not None}
        status = self.status or 0
        failure = self.error or failure_of(status, conditional=True)
        return Fetched(
            hop.url,
            self.final_url or hop.url,
            status,
            hop.began,
            self.took,
            headers,
            self.body or b"",
            not_modified=status == 304,
            failure=failure,
            gone=is_gone(status),
            retry_after=self.retry_after,
        )

    def given_digest(self, hop: Hop) -> str | None:
        """The digest to compare by; None: that of the body."""
        if self.body is not None:
            return None
        return f"at {hop.began!r}" if self.digest is None else self.digest

    def as_said(self, outcome: Outcome, copy: Copy | None) -> Outcome:
        """The outcome where neither body nor digest was given: changed as the crawler says, if it says so."""
        if self.body is not None or self.digest is not None or not outcome.fetched or outcome.status == 304:
            return outcome
        changed = None if copy is None else self.changed
        keeps = self.changed is not True and copy is not None and copy.digest is not None
        return replace(outcome, changed=changed, flapping=False, digest=None if keeps else outcome.digest)

    def retry_at(self, now: float) -> float | None:
        """Before when a page that robots.txt forbids is not picked; None: nothing forbids it."""
        return None if self.error != "robots" else now + (self.retry_after or _ROBOTS_WAIT)
