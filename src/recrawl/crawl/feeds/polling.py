"""Feeds as pages: missed items are detected, and the feed is polled often enough from then on.

A feed shows its newest L items. Items that arrive at a rate r push the last one seen out after a time that has the
gamma distribution of shape L and rate r, if they come one by one and independently; the longest interval in which one
of them is still there with probability 0.99 is that distribution's 1% point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from recrawl.crawl.formats.feed_items import Item

PREFIX = "feed:"  # notes of feeds
OVERLAP = 0.99  # probability that two polls share an item
HOPELESS = 5  # polls in a row without overlap, at the shortest interval, after which a feed gets no interval
_HALF_LIFE = 14 * 86400.0  # seconds after which an arrival counts half
_FUTURE = 86400.0  # seconds by which a date may be ahead
_MOST_IDS = 500


@dataclass(frozen=True, slots=True)
class Feed:
    """What is known of a feed: the items of the last poll, how fast they arrive, and how often some were missed."""

    ids: tuple[int, ...]
    polled_at: float
    length: int  # the most items it had lately
    arrivals: float = 0.0  # seen between polls, older ones weighted less
    watched: float = 0.0  # seconds over which they were counted, weighted likewise
    dated: float = 0.0  # per second, by the dates of the items of the last poll
    rush: float = 0.0  # per second, between the last two polls, where half of the items were new
    rolled: int = 0  # polls in which nothing was left of the one before
    rolled_in_row: int = 0
    interval: float | None = None  # seconds between polls; None: no limit

    @property
    def rate(self) -> float:
        """Items per second."""
        seen = self.arrivals / self.watched if self.watched > 0 else 0.0
        return max(seen, self.dated, self.rush)

    def as_note(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {**asdict(self), "ids": list(self.ids)}

    @classmethod
    def of_note(cls, note: dict[str, Any]) -> Feed:
        """The feed of a note that `as_note` made."""
        return cls(**{**note, "ids": tuple(note["ids"])})


def polled(before: Feed | None, items: Sequence[Item], now: float, shortest: float) -> tuple[Feed, bool]:
    """A feed after a further poll, and whether nothing was left of the one before; ``shortest``: 0 sets no interval."""
    ids = tuple(dict.fromkeys(item.id for item in items))[:_MOST_IDS]
    if before is None:
        first = Feed(ids, now, len(ids), dated=dated_rate(items, now))
        return replace(first, interval=_interval(first, shortest)), False
    known = set(before.ids)
    n_new = sum(one not in known for one in ids)
    rolled = bool(ids) and bool(known) and n_new == len(ids)
    elapsed = max(now - before.polled_at, 0.0)
    weight = 0.5 ** (elapsed / _HALF_LIFE)
    length = max(len(ids), int(before.length * 0.9)) if ids else before.length
    after = Feed(
        ids or before.ids,
        now,
        length,
        weight * before.arrivals + n_new,
        weight * before.watched + elapsed,
        dated_rate(items, now) if ids else before.dated,
        n_new / elapsed if elapsed > 0 and 2 * n_new >= max(length, 1) else weight * before.rush,
        before.rolled + rolled,
        before.rolled_in_row + 1 if rolled else 0,
    )
    return replace(after, interval=_interval(after, shortest)), rolled


def unmodified(before: Feed, now: float, shortest: float) -> Feed:
    """A feed after a poll that was answered "not modified"."""
    elapsed = max(now - before.polled_at, 0.0)
    weight = 0.5 ** (elapsed / _HALF_LIFE)
    after = replace(
        before,
        polled_at=now,
        arrivals=weight * before.arrivals,
        watched=weight * before.watched + elapsed,
        rush=weight * before.rush,
        rolled_in_row=0,
    )
    return replace(after, interval=_interval(after, shortest))


def _interval(feed: Feed, shortest: float) -> float | None:
    if shortest <= 0 or feed.rate <= 0 or feed.length < 1:
        return None
    longest = longest_interval(feed.length, feed.rate)
    if longest < shortest and feed.rolled_in_row >= HOPELESS:
        return None
    return max(longest, shortest)


def longest_interval(length: int, rate: float, overlap: float = OVERLAP) -> float:
    """The longest interval after which one of ``length`` items is still listed with probability ``overlap``.

    T with P(Gamma(length, rate) < T) = 1 - overlap.

    >>> round(longest_interval(1, 1.0, 0.5), 4)  # of one item: half an exponential's life
    0.6931
    """
    from scipy.special import gammaincinv

    return float(gammaincinv(length, 1.0 - overlap)) / rate


def dated_rate(items: Sequence[Item], now: float) -> float:
    """Items per second by their dates: the larger of all of them and the newer half; 0 without usable dates."""
    dates = sorted(
        (item.published for item in items if item.published is not None and item.published <= now + _FUTURE),
        reverse=True,
    )
    if len(dates) < 4 or len(dates) < 0.8 * len(items):
        return 0.0
    rates = [(n - 1) / (dates[0] - dates[n - 1]) for n in (len(dates), len(dates) // 2) if dates[0] > dates[n - 1]]
    return max(rates, default=0.0)
