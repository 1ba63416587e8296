"""Unspent budget: how many requests were not made although the budget allowed them, and why, over the last day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTE = "unspent"  # the name of the note that holds the figures
UNLIKELY, PRICE, HOSTS, SLOTS, NOTHING = "unlikely", "price", "hosts", "slots", "nothing"
UNASKED = "unasked"
WHY = {
    UNLIKELY: "no page likely enough to have changed",
    PRICE: "no crawl that saves as much as it costs",
    HOSTS: "hosts waiting for their delay",
    SLOTS: "all connections in use",
    NOTHING: "no page to crawl: all crawled, paused or waiting for a time",
    UNASKED: "no crawler asked for a page",
}
_HOUR = 3600.0
_KEPT = 24  # hours before the present one; of the first of them, what is within the last day
_EVERY = 30.0  # seconds between two notes


class Unspent:
    """Requests that were made and those that lapsed, by hour and reason; the budget of a request lapses once.

    >>> unspent = Unspent()
    >>> unspent.count(0.0, 0, 0.0)
    >>> unspent.why = UNLIKELY
    >>> unspent.count(10.0, 4, 6.0)
    >>> unspent.figures(10.0)
    {'requests': 4, 'unspent': 6.0, 'why': {'unlikely': 6.0}}
    """

    def __init__(self) -> None:
        self.why = NOTHING  # why no request is made at present
        self._hours: dict[int, dict[str, float]] = {}
        self._used, self._lapsed = 0, 0.0
        self._written_at = 0.0

    def count(self, now: float, used: int, lapsed: float) -> None:
        """Count up to now, by the totals of a budget since it was made; what lapsed, lapsed for the present reason."""
        if used > self._used or lapsed > self._lapsed:
            hour = self._hours.setdefault(int(now // _HOUR), {})
            hour["requests"] = hour.get("requests", 0) + max(used - self._used, 0)
            if lapsed > self._lapsed:
                hour[self.why] = hour.get(self.why, 0.0) + lapsed - self._lapsed
            self._hours = {key: value for key, value in self._hours.items() if key >= now // _HOUR - _KEPT}
        self._used, self._lapsed = used, lapsed

    def figures(self, now: float) -> dict[str, Any]:
        """Requests made and left unspent in the last day, and the reasons."""
        return figures_of({"hours": self._hours}, now)

    def pending_notes(self, now: float, *, last: bool = False) -> dict[str, object]:
        """What is to be written to the store now."""
        if not last and 0 <= now - self._written_at < _EVERY:
            return {}
        self._written_at = now
        return {NOTE: {"hours": {str(key): value for key, value in self._hours.items()}}}

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Continue from the note of an earlier run."""
        if NOTE in notes:
            self._hours = {int(key): dict(value) for key, value in notes[NOTE]["hours"].items()}


def figures_of(note: Mapping[str, Any] | None, now: float) -> dict[str, Any]:
    """Requests made and left unspent in the last day, and the reasons, by the note of a crawl."""
    hours = {int(key): value for key, value in (note or {"hours": {}})["hours"].items()}
    this, passed = now // _HOUR, now % _HOUR / _HOUR
    recent = [(1.0 if key > this - _KEPT else 1.0 - passed, hours[key]) for key in hours if this - _KEPT <= key <= this]
    why = {reason: sum(part * hour.get(reason, 0.0) for part, hour in recent) for reason in WHY}
    why = {reason: amount for reason, amount in why.items() if amount > 0.0}
    requests = round(sum(part * hour.get("requests", 0) for part, hour in recent))
    return {"requests": requests, "unspent": sum(why.values()), "why": why}
