"""What listings are worth, as a crawl learns it: credits for signals, and what their pages let expect."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.listings.credits import Credits, Ids
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.poll_queue import PollTerms
from recrawl.crawl.listings.registry import Registry
from recrawl.crawl.signals.sorting import Signal
from recrawl.engine import Engine

PRIOR_PAGES = 2000  # pages of a listing from which its worth is expected
_RENEWED = 50  # listings whose expected worth is computed at a time
_RENEW_EVERY = 0.25  # days


class Worths:
    """Changes the worth of the listings of a registry."""

    def __init__(
        self, engine: Engine, registry: Registry, terms: Callable[[], PollTerms], trusts: Callable[[Listing], bool]
    ) -> None:
        self._engine, self._registry, self._terms, self._trusts = engine, registry, terms, trusts
        self.credits = Credits(engine)
        self._renewed: dict[str, float] = {}  # when what is expected of listings was computed
        self._renew_at = -math.inf

    @property
    def is_judged(self) -> bool:
        """Whether the crawl value at the margin is known, by which signals are judged."""
        return 0 < self._terms().threshold < math.inf

    def newer(self, signals: Sequence[Signal]) -> list[Signal]:
        """The signals about pages with copies that may be of changes after them: the news of a first poll."""
        return [
            one for one, is_news in zip(signals, self._are_news(signals, math.inf)[1].tolist(), strict=True) if is_news
        ]

    def since(self, signals: Sequence[Signal], before: float | None) -> list[Signal]:
        """The signals of a sitemap without those about pages that it names for the first time and does not date, if
        their copies were fetched since it was polled before: it names a page when it is made, and the copy has that.
        """
        if before is None or all(one.changed_at is not None for one in signals):
            return list(signals)
        ids = self._engine.addresses.known([str(one.page) for one in signals])
        copied_at = np.full(len(ids), -math.inf)
        copied_at[ids >= 0] = self._engine.fetched_at(ids[ids >= 0])
        old = (copied_at < before).tolist()
        return [one for one, is_old in zip(signals, old, strict=True) if is_old or one.changed_at is not None]

    def signalled(self, listing: Listing, signals: Sequence[Signal], before: float | None, now: float) -> None:
        """Note which pages a listing signals: what they are worth is known when they have been crawled."""
        ids, news = self._are_news(signals, now)
        seen = now if before is None else (before + now) / 2
        added = self.credits.signalled(listing.family, ids[news].tolist(), seen, self._terms().threshold)
        root = self._registry.get(listing.family)
        if root is not None and added:
            root.worth = root.worth.signalled(added)

    def _are_news(self, signals: Sequence[Signal], now: float) -> tuple[Ids, NDArray[np.bool_]]:
        """The pages of signals, and which of them have a copy from before the change."""
        ids = self._engine.addresses.known([str(one.page) for one in signals])
        latest = np.array([now if one.changed_at is None else one.changed_at + one.resolution for one in signals])
        news = ids >= 0
        copied_at = self._engine.fetched_at(ids[news])
        news[news] = (latest[news] > copied_at) & np.isfinite(copied_at)
        return ids, news

    def crawled(self, page: int, *, changed: bool, at: float) -> None:
        """A page was crawled: the listing that signalled it first gets what that was worth."""
        credit = self.credits.crawled(page, changed=changed, at=at)
        root = None if credit is None else self._registry.get(credit.listing)
        if credit is not None and root is not None:
            root.worth = root.worth.credited(credit.gain, credit.lead).signalled(-1)
            self._registry.changed(root)

    def expect(self, listing: Listing, ids: Ids, n_pages: float) -> None:
        """What some of the pages of a listing let expect of it; ``n_pages`` is how many it names."""
        root = self._registry.get(listing.family)
        if not len(ids) or root is None or not self.is_judged:
            return
        forecast = self.credits.forecast(ids, self._terms().threshold)
        root.worth = root.worth.with_prior(self._engine.pages(ids), forecast).scaled(n_pages / len(ids))
        self._registry.changed(root)

    def renew(self, now: float) -> None:
        """Compute again what the pages of some listings let expect of them: rates and the margin move."""
        if now < self._renew_at:
            return
        listings = [one for one in self._registry if one.worth.polls and not one.follows_index and not one.as_page]
        oldest = sorted(listings, key=lambda one: self._renewed.get(one.url, -math.inf))[:_RENEWED]
        for one in oldest:
            ids = self._engine.addresses.on_host(one.host)
            some = ids[:: max(len(ids) // PRIOR_PAGES, 1)]
            self.expect(one, some, float(min(len(ids), max(one.n_entries, 1))))
            one.trusted = self._trusts(one)
            self._renewed[one.url] = now
        self._renewed = {one.url: self._renewed[one.url] for one in listings if one.url in self._renewed}
        self._renew_at = now + _RENEW_EVERY * self._engine.settings.day
