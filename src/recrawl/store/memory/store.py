"""MemoryStore: a store in memory, for tests and trials."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate.sampling import draw
from recrawl.store.columns import TABLE, Gathered, cells, whole
from recrawl.store.events import Event, EventLimits, Subscriber, event_of, removed_event
from recrawl.store.leases import HELD, Lease
from recrawl.store.listings import StoredListing
from recrawl.store.memory.events import EventList
from recrawl.store.protocol import Batch, Copy, Outcome, SavedToo, Totals, Version, body_key
from recrawl.store.signals import PendingSignal


class MemoryStore:
    """Keeps everything in dictionaries; ``keep`` bodies of each page, ``events`` within limits."""

    def __init__(self, *, keep: int = 1, events: EventLimits | None = None) -> None:
        self._keep = keep
        self._events = EventList(events or EventLimits())
        self._rows: dict[str, tuple[Any, ...]] = {}
        self._whole: str | None = None  # JSON
        self._hosts: dict[str, tuple[float, float, float]] = {}
        self._copies: dict[str, Copy] = {}
        self._observations: list[Outcome] = []
        self._versions: dict[str, list[Version]] = {}
        self._bodies: dict[bytes, bytes] = {}
        self._notes: dict[str, str] = {}
        self._commands: dict[int, str] = {}
        self._n_commands = 0
        self._signals: dict[str, dict[int, PendingSignal]] = {}
        self._listings: dict[str, tuple[str, bytes]] = {}  # state as JSON, entries
        self._leases: dict[str, Lease] = {}

    async def save(
        self, outcomes: Sequence[Outcome] = (), rows: Mapping[str, Any] | None = None, **more: Unpack[SavedToo]
    ) -> None:
        """See `Store.save`."""
        batch = Batch(outcomes, rows, **more)
        notes = batch.notes or {}
        texts = {name: json.dumps(value) for name, value in notes.items()}
        given = [(one.url, one.state, one.entries) for one in batch.listings]
        states = [(url, None if state is None else json.dumps(state), entries) for url, state, entries in given]
        new = list(cells(rows)) if rows is not None else []
        if rows is not None:
            self._whole = whole(rows)
            self._hosts.update(rows["hosts"])
            self._rows.update((cell[0], cell) for cell in new)
        for signal in batch.signals:
            if signal.url in self._rows:
                self._signals.setdefault(signal.url, {})[signal.source] = signal
        for outcome in outcomes:
            if outcome.url in self._rows:
                self._save_one(outcome)
        self._notes.update(texts)
        for name, value in notes.items():
            if value is None:
                del self._notes[name]
        self._forget(dict.fromkeys(batch.removed), batch.removed_at)
        self._save_listings(states)
        self._save_leases(batch.leases, batch.leases_before)
        for number in batch.applied:
            self._commands.pop(number, None)

    def _save_leases(self, leases: Sequence[Lease], before: float | None) -> None:
        self._leases.update((lease.id, lease) for lease in leases)
        if before is not None:
            self._leases = {name: lease for name, lease in self._leases.items() if lease.until >= before}

    def _save_listings(self, states: Iterable[tuple[str, str | None, bytes | None]]) -> None:
        for url, state, entries in states:
            before = self._listings.pop(url, ("", b""))
            if state is not None:
                self._listings[url] = state, before[1] if entries is None else entries

    def _save_one(self, outcome: Outcome) -> None:
        url = outcome.url
        self._observations.append(replace(outcome, body=None, text=None))
        if outcome.failure is None and url in self._signals:
            later = {k: one for k, one in self._signals.pop(url).items() if one.at >= outcome.began_at}
            self._signals |= {url: later} if later else {}
        if outcome.fetched:
            before = self._copies.get(url)
            self._copies[url] = Copy.first(outcome) if before is None else before.after(outcome)
        if outcome.body is not None and self._keep > 0:
            key = body_key(outcome.body)
            self._bodies[key] = outcome.body
            kept = self._versions.setdefault(url, [])
            kept.insert(0, Version(url, outcome.began_at, key, len(outcome.body)))
            del kept[self._keep :]
            self._sweep()
        if (event := event_of(self._events.last_events.get(url), outcome)) is not None:
            self._events.add(event)

    def _sweep(self) -> None:
        used = {version.key for kept in self._versions.values() for version in kept}
        self._bodies = {key: body for key, body in self._bodies.items() if key in used}

    def _forget(self, urls: dict[str, None], at: float) -> None:
        if not urls:
            return
        for url in urls:
            if (event := removed_event(self._events.last_events.get(url), url, at)) is not None:
                self._events.add(event)
            for table in (self._rows, self._copies, self._versions, self._signals, self._events.last_events):
                table.pop(url, None)
        self._observations = [outcome for outcome in self._observations if outcome.url not in urls]
        self._sweep()

    async def load(self, urls: Iterable[str] | None = None) -> dict[str, Any] | None:
        """See `Store.load`."""
        if self._whole is None:
            return None
        wanted = None if urls is None else set(urls)
        cells = [cell for url, cell in self._rows.items() if wanted is None or url in wanted]
        gathered = Gathered(len(cells))
        if cells:
            gathered.take(cells)
        assert len(TABLE) == len(next(iter(self._rows.values()), TABLE))
        return gathered.loaded(self._whole, dict(self._hosts))

    async def sample(self, most: int) -> tuple[list[str], NDArray[np.float64]]:
        """See `Store.sample`."""
        urls, drawn = list(self._rows), draw(self._column("importance"), most, np.random.default_rng(0))
        return [urls[j] for j in drawn.rows.tolist()], drawn.stands_for

    async def totals(self, *, importance: float = math.inf) -> Totals:
        """See `Store.totals`."""
        failing, gone = (int((self._column(name) > 0).sum()) for name in ("failures", "times_gone"))
        newest = float(self._column("fetched_at").max()) if self._rows else None
        requested, as_important = self._column("watched_from") != 0.0, self._column("importance") >= importance
        return Totals(len(self._rows), failing, gone, newest, int(requested.sum()), int(as_important.sum()))

    def _column(self, name: str) -> NDArray[np.float64]:
        at = TABLE.index(name)
        return np.array([cell[at] for cell in self._rows.values()], np.float64)

    async def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """See `Store.urls`."""
        return list(islice((url for url in self._rows if url.startswith(prefix)), most))

    async def copies(self, urls: Iterable[str]) -> dict[str, Copy]:
        """See `Store.copies`."""
        return {url: self._copies[url] for url in urls if url in self._copies}

    async def observations(self, url: str | None = None, *, since: float | None = None) -> AsyncIterator[Outcome]:
        """See `Store.observations`."""
        for outcome in list(self._observations):
            if (url is None or outcome.url == url) and (since is None or outcome.began_at >= since):
                yield outcome

    async def last_observation(self) -> Outcome | None:
        """See `Store.last_observation`."""
        return self._observations[-1] if self._observations else None

    async def failing(self, since: float) -> list[Outcome]:
        """See `Store.failing`."""
        last = {outcome.url: outcome for outcome in self._observations}
        at = TABLE.index("failures")
        looked = {url for url, cell in self._rows.items() if cell[at] > 0}
        looked |= {one.url for one in self._observations if one.failure == "robots" and one.began_at >= since}
        order = {id(outcome): k for k, outcome in enumerate(self._observations)}
        found = [last[url] for url in looked if url in last and last[url].failure is not None]
        return sorted(found, key=lambda outcome: order[id(outcome)])

    async def recent(self, since: float) -> dict[str, int]:
        """See `Store.recent`."""
        found = [outcome async for outcome in self.observations(since=since)]
        changes, failures = sum(bool(o.changed) for o in found), sum(o.failure is not None for o in found)
        flapping, rolled_off = sum(o.flapping for o in found), sum(o.rolled_off for o in found)
        return {
            "crawls": len(found),
            "changes": changes,
            "failures": failures,
            "flapping": flapping,
            "rolled_off": rolled_off,
        }

    async def requests(self, since: float, recently: float) -> list[tuple[str, int, int]]:
        """See `Store.requests`."""
        found: dict[str, list[int]] = {}
        async for one in self.observations(since=since):
            mine = found.setdefault(one.url, [0, 0])
            mine[0] += one.requests
            mine[1] += one.requests if one.began_at >= recently else 0
        return [(url, all_, late) for url, (all_, late) in found.items()]

    async def versions(self, url: str) -> list[Version]:
        """See `Store.versions`."""
        return list(self._versions.get(url, []))

    async def body(self, key: bytes) -> bytes | None:
        """See `Store.body`."""
        return self._bodies.get(key)

    async def notes(self, prefix: str = "") -> dict[str, Any]:
        """See `Store.notes`."""
        return {name: json.loads(text) for name, text in sorted(self._notes.items()) if name.startswith(prefix)}

    async def events(self, after: int = 0, many: int = 200) -> list[Event]:
        """See `Store.events`."""
        return self._events.read(after, many)

    async def newest_events(
        self, many: int = 50, *, url: str | None = None, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """See `Store.newest_events`."""
        return self._events.newest(many, url, kinds)

    async def snapshot(self) -> AsyncIterator[Event]:
        """See `Store.snapshot`."""
        for event in self._events.snapshot(self._copies):
            yield event

    async def subscribers(self) -> list[Subscriber]:
        """See `Store.subscribers`."""
        return self._events.subscribers()

    async def save_subscriber(self, subscriber: Subscriber) -> None:
        """See `Store.save_subscriber`."""
        self._events.set_subscriber(subscriber)

    async def remove_subscriber(self, name: str) -> None:
        """See `Store.remove_subscriber`."""
        self._events.remove_subscriber(name)

    async def event_counts(self) -> dict[str, int]:
        """See `Store.event_counts`."""
        return self._events.totals()

    async def signals(self, urls: Iterable[str] | None = None) -> list[PendingSignal]:
        """See `Store.signals`."""
        wanted = self._signals if urls is None else set(urls) & self._signals.keys()
        by_page = (self._signals[url] for url in self._rows if url in wanted)
        return [mine[source] for mine in by_page for source in sorted(mine)]

    async def listings(self) -> list[StoredListing]:
        """See `Store.listings`."""
        return [StoredListing(url, json.loads(state)) for url, (state, _) in sorted(self._listings.items())]

    async def listing_entries(self, url: str) -> bytes:
        """See `Store.listing_entries`."""
        return self._listings.get(url, ("", b""))[1]

    async def leases(self, ids: Iterable[str] | None = None, *, after: float = -math.inf) -> list[Lease]:
        """See `Store.leases`."""
        if ids is None:
            found = [lease for lease in self._leases.values() if lease.state == HELD]
        else:
            found = [self._leases[name] for name in dict.fromkeys(ids) if name in self._leases]
        return sorted((lease for lease in found if lease.until > after), key=lambda lease: lease.id)

    async def queue(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """See `Store.queue`."""
        for value in [json.dumps(command) for command in commands]:
            self._n_commands += 1
            self._commands[self._n_commands] = value

    async def commands(self) -> list[tuple[int, dict[str, Any]]]:
        """See `Store.commands`."""
        return [(number, json.loads(text)) for number, text in sorted(self._commands.items())]

    async def counts(self) -> dict[str, int]:
        """See `Store.counts`."""
        return {
            "pages": len(self._rows),
            "copies": len(self._copies),
            "observations": len(self._observations),
            "bodies": len(self._bodies),
        }

    async def check(self) -> list[str]:
        """See `Store.check`."""
        lost = [url for url in self._copies if url not in self._rows]
        return [f"a copy of {url}, which is no page" for url in lost]

    async def close(self) -> None:
        """See `Store.close`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
