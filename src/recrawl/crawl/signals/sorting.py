"""Sorting of signals: which of those that came are new, repeat others, are about older copies, or are too many."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recrawl.crawl.signals.heard import Heard, HeardTable
from recrawl.crawl.signals.sources import Source
from recrawl.store.signals import PendingSignal


class Signal(NamedTuple):
    """A source says that a page changed at ``changed_at``, or up to ``resolution`` seconds later.

    ``page`` is a URL or the engine's id. ``changed_at`` is None where the source does not say when; a date without a
    time has a resolution of 86400.
    """

    page: str | int
    source: Source
    changed_at: float | None = None
    resolution: float = 0.0


def speakers_of(signals: Sequence[Signal]) -> dict[Source, int]:
    """How many signals each source sends.

    >>> speakers_of([Signal("https://a.example/", Source("feed", "a.example"))] * 2)
    {Source(kind='feed', speaker='a.example'): 2}
    """
    if signals and all(one.source is signals[0].source for one in signals):
        return {signals[0].source: len(signals)}
    return dict(Counter(one.source for one in signals))


class New(NamedTuple):
    """A signal that is to be stored and given to the engine."""

    page: int
    heard: Heard
    signal: PendingSignal


@dataclass
class Sorted:
    """What is to be done with the signals of one call."""

    counts: dict[Source, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    new: dict[tuple[int, int], New] = field(default_factory=dict)  # by page and source
    pages: Counter[int] = field(default_factory=Counter)  # pages without a pending signal before, by source
    repeated: list[tuple[int, Heard, PendingSignal]] = field(default_factory=list)  # with pages
    unknown: dict[Source, list[str]] = field(default_factory=lambda: defaultdict(list))
    late: list[tuple[int, PendingSignal]] = field(default_factory=list)  # about changes before the copies, with pages

    def total(self, name: str) -> int:
        """How many signals have become that."""
        return sum(counts[name] for counts in self.counts.values())


class Sorting:
    """Sorts the signals of one call, all of which came at ``now``; ``most`` pages have a pending signal of a source."""

    def __init__(self, heard: HeardTable, most: int, now: float) -> None:
        self.done = Sorted()
        self._heard, self._most, self._now = heard, most, now

    def kind(self, page: int, row: PendingSignal, copied_at: float) -> str:
        """Whether a signal about a page is new, and what is to be done with it."""
        done, changed_at, source = self.done, row.changed_at, row.source
        if changed_at is not None and min(changed_at + row.resolution, self._now) <= copied_at:
            done.late.append((page, row))
            return "outdated"
        key = (page, source)
        before = done.new.get(key)
        earlier = self._heard.of(page, source) if before is None else before.heard
        if earlier is None:
            if self._heard.count(source) + done.pages[source] >= self._most:
                return "limited"
            done.pages[source] += 1
        elif earlier.repeats(changed_at):
            done.repeated.append((page, earlier, row))
            return "repeated"
        done.new[key] = New(page, Heard(self._now, changed_at), row)
        return "accepted"
