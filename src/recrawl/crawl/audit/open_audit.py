"""An audit that is being made, its notes in the store, and the audits that ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from recrawl.errors import ParameterError
from recrawl.estimate.audit import Audit, Judged, audit_of, stratified

MOST_DRAWS = 100_000  # of one audit: its interval is at most 0.6 points wide
NOTES = "audit"  # prefix of both notes
ENDED, UNENDED = "audits", "audit_unended"  # notes: audits that ended, and the one that did not


@dataclass
class OpenAudit:
    """The draws of an audit so far: pages that are judged, that are being fetched, and that wait for a fetch."""

    size: int
    level: float
    began_at: float
    forecast: float
    whole: bool  # all draws at once, or a share of the crawl
    of: Mapping[str, Any] | None = None  # the audit of several shards that it is a part of
    drawn: int = 0
    requests: int = 0
    times: dict[str, int] = field(default_factory=dict)  # draws of each page so far
    judged: dict[str, tuple[bool, float]] = field(default_factory=dict)  # fresh or not, and the expected freshness
    waiting: dict[str, None] = field(default_factory=dict)  # drawn, to be fetched, in order
    running: set[str] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        """Whether all pages are drawn and fetched."""
        return self.drawn >= self.size and not self.waiting and not self.running

    def draw(self, url: str) -> bool:
        """Count a draw of a page; whether it is the page's first."""
        self.drawn += 1
        self.times[url] = self.times.get(url, 0) + 1
        return self.times[url] == 1

    def begin(self, url: str) -> None:
        """The fetch of a page begins."""
        del self.waiting[url]
        self.running.add(url)

    def retry(self, url: str, n_requests: int) -> None:
        """A page that was not fetched waits again; requests for its robots.txt count."""
        if url in self.running:
            self.running.discard(url)
            self.requests += n_requests
            self.waiting[url] = None

    def suspend(self) -> None:
        """Pages that are being fetched wait again."""
        self.waiting |= dict.fromkeys(self.running)
        self.running.clear()

    def result(self, now: float, forecast: float) -> Audit | None:
        """The audit of the pages judged so far; None if there are none. ``forecast`` is the one of now."""
        judged = [Judged(self.times[url], *found) for url, found in self.judged.items()]
        n = sum(one.draws for one in judged)
        if n == 0:
            return None
        return audit_of(
            judged,
            began_at=self.began_at,
            ended_at=now,
            forecast=(self.forecast + forecast) / 2,
            unknown=self.drawn - n,
            requests=self.requests,
            level=self.level,
        )

    def as_note(self) -> dict[str, Any]:
        """The audit as a note; pages that are being fetched count as drawn and still to be fetched."""
        saved = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("whole", "running")}
        return {**saved, "waiting": dict.fromkeys([*self.waiting, *sorted(self.running)])}

    @classmethod
    def of_note(cls, note: Mapping[str, Any]) -> Self:
        """The audit of a note that `as_note` made."""
        return cls(**note, whole=False)


def check_draws(n: int) -> None:
    """Raise ParameterError for a number of draws that an audit cannot have."""
    if not 1 <= n <= MOST_DRAWS:
        raise ParameterError(f"an audit of {n} draws: must be from 1 to {MOST_DRAWS}")


def audits_of_shards(ended: Iterable[Sequence[Mapping[str, Any]]]) -> list[Audit]:
    """The audits of all shards together, from the notes of each; those whose parts are not all there yet are left out.

    A shard that could judge none of its draws has noted that.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for saved in ended:
        for one in saved:
            if "of" in one:
                parts.setdefault(one["of"]["id"], []).append(one)
    found = []
    for mine in parts.values():
        judged = [Audit.from_dict(one) for one in mine if one["draws"]]
        if judged and sum(one["draws"] + one["unknown"] for one in mine) >= mine[0]["of"]["draws"]:
            lost = sum(one["unknown"] for one in mine if not one["draws"])
            whole = stratified(judged)
            found.append(replace(whole, unknown=whole.unknown + lost))
    return sorted(found, key=lambda one: one.ended_at)


def saved_audits(notes: Mapping[str, Any]) -> list[Audit]:
    """The audits among a store's notes, oldest first."""
    return [Audit.from_dict(saved) for saved in notes.get(ENDED, []) if saved["draws"]]
