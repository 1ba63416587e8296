"""Audits of a live crawl: pages drawn at random, fetched in full and compared with their copies.

An audit is a number of draws. Each draw is made when it is due, so that an audit that takes days still samples the
pages and times of those days. A page that is drawn twice in one audit counts twice and is fetched once; a page without
a copy is stale without a request. What a fetch finds is recorded like any other crawl: the time of an audit does not
depend on whether the page has changed, so that nothing learned from it is biased.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.audit.freshness import audited_pages, expected_freshness
from recrawl.crawl.audit.open_audit import ENDED, UNENDED, OpenAudit, check_draws
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.polite.host_limiter import HostLimiter
from recrawl.engine import Engine
from recrawl.engine.names.addresses import host_of
from recrawl.engine.views.expected import expected_fresh
from recrawl.estimate.audit import draw_pages
from recrawl.schedule.exact import access
from recrawl.store.protocol import Outcome

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_MOST = 200  # ended audits that are noted
_OWED = 10.0  # crawls that audits may be behind their share
_POLL = 0.05  # seconds between checks of a page that is being crawled
_DRAWS = 200  # at a time; the crawler does other work between
_PATIENCE = 120.0  # seconds: a drawn page whose host may not be asked for longer cannot be judged


class Audits:
    """Makes audits one after the other: requested ones, and with ``audit_share`` of the crawls always one."""

    def __init__(self, engine: Engine, limiter: HostLimiter, options: CrawlOptions) -> None:
        self._engine, self._limiter = engine, limiter
        self._share, self._size = options.audit_share, options.audit_draws
        self._rng = np.random.default_rng() if options.audit_rng is None else options.audit_rng
        self._open: OpenAudit | None = None
        self._behind: OpenAudit | None = None  # an audit that waits for a requested one
        self._requested: list[tuple[int, float, Mapping[str, Any] | None]] = []
        self._credit = 0.0
        self._ids: Ids = np.zeros(0, np.int64)
        self._drawn_from = (-1, -1)
        self.ended_audits: list[dict[str, Any]] = []
        self.n_ended = 0  # audits that ended in this run of the program
        self._new = False

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Take up the audits of earlier runs."""
        self.ended_audits = list(notes.get(ENDED, []))
        if self._share > 0 and (saved := notes.get(UNENDED)) is not None:
            self._open = OpenAudit.of_note(saved)

    def set_share(self, share: float, draws: int) -> None:
        """Another share of the crawls for audits, and another number of draws from the next audit on."""
        self._share, self._size = share, draws

    # --- what to fetch ------------------------------------------------------------------------------------------------

    def request(self, size: int, level: float = 0.9, of: Mapping[str, Any] | None = None) -> None:
        """Make an audit of ``size`` draws as soon as possible; ``of`` is kept with it."""
        check_draws(size)
        self._requested.append((size, level, of))

    @property
    def busy(self) -> bool:
        """Whether a requested audit is not made yet."""
        return bool(self._requested) or (self._open is not None and self._open.whole)

    def due(self, n: int, now: float) -> int:
        """How many of the n crawls that may begin now are for audits, at most."""
        if self._open is None or (self._requested and not self._open.whole):
            self._begin(now)
        if self._open is None:
            return 0
        if self._open.whole:
            return n
        return min(int(self._credit), n)

    def started(self, n: int) -> None:
        """Crawls have started, audits among them: a share of them is owed to audits."""
        self._credit = min(self._credit + self._share * n, _OWED)

    def next(self, n: int, now: float) -> list[tuple[int, str]]:
        """At most n drawn pages that can be fetched now, with their URLs."""
        open_ = self._open
        if open_ is None or n <= 0:
            return []
        ready: list[tuple[int, str]] = []
        hosts: set[str] = set()
        for url in list(open_.waiting):
            if len(ready) == n:
                break
            self._try(url, hosts, ready)
        for _ in range(_DRAWS):
            if len(ready) >= n or open_.drawn >= open_.size or not (open_.whole or len(open_.waiting) < n):
                break
            if (drawn := self._draw(now)) is not None:
                self._try(drawn, hosts, ready)
        for _, url in ready:
            open_.begin(url)
        self._credit -= 0 if open_.whole else len(ready)
        self._end_if_done(now)
        return ready

    def next_at(self, now: float) -> float:
        """When the next page of a requested audit can be fetched."""
        if self._requested:
            return now
        if self._open is None or not self._open.whole:
            return math.inf
        if self._open.drawn < self._open.size:
            return now
        return min((now + max(self._limiter.start_wait(url), _POLL) for url in self._open.waiting), default=math.inf)

    def _begin(self, now: float) -> None:
        if not self._requested and self._share == 0:
            return
        if not self._population():
            self._requested.clear()
        elif self._requested:
            if self._open is not None:  # the continuous audit waits
                self._open.suspend()
            size, level, of = self._requested.pop(0)
            self._behind, self._open = self._open, OpenAudit(size, level, now, self._forecast(now), True, of)
        else:
            self._open = OpenAudit(self._size, 0.9, now, self._forecast(now), False)

    def _draw(self, now: float) -> str | None:
        """Draw one page; its URL where it is to be fetched."""
        open_ = self._open
        assert open_ is not None
        if not self._population():
            open_.size = open_.drawn
            return None
        page = int(self._ids[draw_pages(self._importance, 1, self._rng)[0]])
        url = self._engine.url([page])[0]
        if not open_.draw(url):
            return None
        if not self._engine.has_copy([page])[0]:
            open_.judged[url] = (False, 0.0)
            return None
        open_.waiting[url] = None
        return url

    def _try(self, url: str, hosts: set[str], ready: list[tuple[int, str]]) -> None:
        """Add a drawn page to ``ready`` if it still exists, is not being crawled, and its host may be asked."""
        open_, host = self._open, host_of(url)
        assert open_ is not None
        page = int(self._engine.addresses.known([url])[0])
        wait = self._limiter.start_wait(url)
        if page < 0 or wait > _PATIENCE:
            del open_.waiting[url]
        elif host not in hosts and wait <= 0 and not self._leased(page):
            hosts.add(host)
            ready.append((page, url))

    def _leased(self, page: int) -> bool:
        return bool(access.status(self._engine.scheduler, np.array([page]))[0] == access.LEASED)

    # --- what was fetched ---------------------------------------------------------------------------------------------

    def ended(self, page: int, outcome: Outcome, now: float) -> None:
        """A page was fetched; call this before the engine records the outcome."""
        open_, url = self._open, outcome.url
        if open_ is None or url not in open_.running:
            return
        open_.running.discard(url)
        open_.requests += outcome.requests
        known = self._engine.addresses.known([url])[0] == page
        fresh = self._fresh(page, outcome) if known else None
        if fresh is not None:
            open_.judged[url] = (fresh, float(expected_fresh(self._engine, [page], outcome.began_at)[0]))
        self._end_if_done(now)

    def retry(self, url: str, n_requests: int = 0) -> None:
        """A page was not fetched, and is due again; ``n_requests`` were made for the robots.txt of its host."""
        if self._open is not None:
            self._open.retry(url, n_requests)

    def forbidden(self, url: str, now: float) -> None:
        """A page may not be fetched."""
        if self._open is not None:
            self._open.running.discard(url)
            self._end_if_done(now)

    def _fresh(self, page: int, outcome: Outcome) -> bool | None:
        if outcome.failure is not None:
            return None
        if outcome.gone:
            return self._engine.eligibility.times_gone(page) > 0  # known to be gone, and it is
        return None if outcome.changed is None else not outcome.changed

    def _end_if_done(self, now: float) -> None:
        if self._open is not None and self._open.complete:
            self.end(now)

    def end(self, now: float) -> None:
        """End the audit that is being made, with the pages judged so far."""
        open_ = self._open
        if open_ is None:
            return
        self._open, self._behind = self._behind, None
        done = open_.result(now, self._forecast(now))
        if done is None and open_.of is None:
            return
        found: dict[str, Any] = {"draws": 0, "unknown": open_.drawn} if done is None else done.as_dict()
        found |= {"continuous": not open_.whole} | ({} if open_.of is None else {"of": dict(open_.of)})
        self.ended_audits = [*self.ended_audits, found][-_MOST:]
        self.n_ended += 1
        self._new = True

    def pending_notes(self, *, last: bool = False) -> dict[str, Any]:
        """Notes of what changed since the last call; with ``last`` also the audit that has not ended."""
        notes: dict[str, Any] = {ENDED: self.ended_audits} if self._new else {}
        self._new = False
        if last and self._share > 0:
            unended = self._open if self._behind is None else self._behind
            notes[UNENDED] = None if unended is None or unended.whole else unended.as_note()
        return notes

    # --- all pages ----------------------------------------------------------------------------------------------------

    def _population(self) -> bool:
        """Update the pages to draw from; whether there are any."""
        state = (len(self._engine.addresses), len(self._engine))
        drawn = 0 if self._open is None else self._open.drawn
        if state != self._drawn_from or drawn % 100 == 0:
            self._ids = audited_pages(self._engine)
            self._importance = access.importance(self._engine.scheduler, self._ids)
            self._drawn_from = state
        return bool(len(self._ids)) and bool(self._importance.sum() > 0)

    def _forecast(self, now: float) -> float:
        return expected_freshness(self._engine, now)
