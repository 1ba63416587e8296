"""What was heard of pages since their newest copies: the pending signals in memory, to know repetitions by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PASSED_ON = 16  # repetitions per copy that the engine gets at most: the 2nd, 4th, 8th … signal


@dataclass(slots=True)
class Heard:
    """The signals of one source about one page since its copy."""

    at: float  # of the newest that is stored
    changed_at: float | None
    n: int = 1  # signals, with repetitions
    again_at: float = -math.inf  # the latest change that a repetition can be about
    crawled: bool = False  # whether a crawl has begun or ended since: a further signal is no repetition
    waits: bool = False  # whether the engine gets it when the crawl that runs has ended

    def repeats(self, changed_at: float | None) -> bool:
        """Whether a further signal says nothing new."""
        if self.crawled:
            return False
        return changed_at is None or (self.changed_at is not None and changed_at <= self.changed_at)

    def repeat(self, about: float) -> bool:
        """Count a repetition, which is about a change at that time or before; whether the engine gets it."""
        self.n += 1
        self.again_at = max(self.again_at, about)
        return self.n & (self.n - 1) == 0 and self.n <= 1 << PASSED_ON


class HeardTable:
    """By page and source; as many entries as there are pending signals in the store."""

    def __init__(self) -> None:
        self._pages: dict[int, dict[int, Heard]] = {}
        self._counts: dict[int, int] = {}  # entries by source
        self._crawling: set[int] = set()

    def of(self, page: int, source: int) -> Heard | None:
        """What a source has said about a page since its copy."""
        mine = self._pages.get(page)
        return None if mine is None else mine.get(source)

    def set(self, page: int, source: int, heard: Heard) -> None:
        """A signal is stored, or is about to be."""
        mine = self._pages.setdefault(page, {})
        if source not in mine:
            self._counts[source] = self._counts.get(source, 0) + 1
        mine[source] = heard

    def drop(self, page: int, source: int) -> None:
        """A signal is not stored after all, or no longer."""
        mine = self._pages.get(page)
        if mine is not None and mine.pop(source, None) is not None:
            self._counts[source] -= 1
            if not mine:
                del self._pages[page]

    def count(self, source: int) -> int:
        """How many pages have a pending signal of a source."""
        return self._counts.get(source, 0)

    @property
    def total(self) -> int:
        """How many signals are pending."""
        return sum(self._counts.values())

    @property
    def is_empty(self) -> bool:
        """Whether no signal is pending."""
        return not self._pages

    def pages(self) -> list[int]:
        """The pages with pending signals."""
        return list(self._pages)

    def began(self, page: int) -> None:
        """A crawl of a page begins."""
        self._crawling.add(page)
        for heard in self._pages.get(page, {}).values():
            heard.crawled = True

    def begin(self, pages: Iterable[int]) -> None:
        """Crawls of pages begin about which no signal is pending."""
        self._crawling.update(pages)

    def end(self, pages: Iterable[int]) -> None:
        """Crawls of pages have ended about which no signal is pending."""
        self._crawling.difference_update(pages)

    def is_crawled(self, page: int) -> bool:
        """Whether a crawl of a page runs."""
        return page in self._crawling

    def ended(self, page: int) -> Iterator[tuple[int, Heard]]:
        """A crawl of a page has ended: the signals that came while it ran, which the engine gets now.

        Its outcome may be stored at any time from now on: no further signal is a repetition of those before.
        """
        self._crawling.discard(page)
        for source, heard in self._pages.get(page, {}).items():
            heard.crawled = True
            if heard.waits:
                heard.waits = False
                yield source, heard

    def renewed(self, page: int, began_at: float) -> Iterator[tuple[int, Heard]]:
        """A good outcome is about to be stored, and will delete signals that came before its fetch: those that were
        repeated since. They count from their repetition on."""
        for source, heard in self._pages.get(page, {}).items():
            if heard.at < began_at <= heard.again_at:
                heard.at, heard.changed_at = heard.again_at, None
                yield source, heard

    def before(self, page: int, began_at: float) -> list[int]:
        """The sources whose signals came before a fetch began."""
        return [source for source, heard in self._pages.get(page, {}).items() if heard.at < began_at]

    def saved(self, page: int, began_at: float) -> list[int]:
        """A good outcome is stored: signals before it are over; whose they were."""
        over = self.before(page, began_at)
        for source in over:
            self.drop(page, source)
        return over

    def forget(self, page: int) -> None:
        """A page is removed."""
        self._crawling.discard(page)
        for source in list(self._pages.get(page, {})):
            self.drop(page, source)
