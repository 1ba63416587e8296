"""The tables of events of `PostgresStore`: written with the outcomes, the oldest deleted beyond the limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from recrawl.store.events import (
    Event,
    EventLimits,
    LastEvent,
    Subscriber,
    delivered_to_all,
    event_of,
    last_event_after,
    n_overdue,
    n_undelivered,
    removed_event,
)
from recrawl.store.packing import packed_text, unpacked_text
from recrawl.store.postgres import statements as sql
from recrawl.store.protocol import Outcome

_EVENT = tuple(field.name for field in fields(Event) if field.name not in ("number", "id", "old_text", "new_text"))
_COLUMNS = ("number", *_EVENT, "old_text", "new_text", "size")
_SELECT = f"SELECT number, {', '.join(_EVENT)}, old_text, new_text FROM event"
_READ = f"{_SELECT} WHERE number > $1 ORDER BY number LIMIT $2"
_OF_PAGE = "left(url, 500) = left($1, 500) AND url = $1"
_TRIM_TEXTS = (
    "UPDATE event SET old_text = NULL, new_text = NULL, size = event.size - beyond.bytes FROM (SELECT number, "
    "coalesce(octet_length(old_text), 0) + coalesce(octet_length(new_text), 0) AS bytes, "
    "row_number() OVER (PARTITION BY url ORDER BY number DESC) AS place FROM event "
    "WHERE left(url, 500) = ANY ($1::text[]) AND (new_text IS NOT NULL OR old_text IS NOT NULL)) AS beyond "
    "WHERE beyond.number = event.number AND beyond.place > $2 AND beyond.number <= $3 RETURNING beyond.bytes"
)  # of the newest events of each page, and of those that were not delivered, texts are kept
_SET_LAST = sql.upsert(
    "last_event", "page", {"page": int, "gone": bool, "digest": str, "final_url": str, "text": bytes}
)
_SUBSCRIBER = tuple(field.name for field in fields(Subscriber))
_SET_SUBSCRIBER = (
    f"INSERT INTO subscriber ({', '.join(_SUBSCRIBER)}) VALUES "
    f"({', '.join(f'${k + 1}' for k in range(len(_SUBSCRIBER)))}) ON CONFLICT (name) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _SUBSCRIBER if name not in ("name", "dropped"))
)
_NOW_THERE = (
    "SELECT page.id, url, coalesce(copy.changed_at, 0), copy.status, copy.content_type, last_event.digest, "
    "last_event.final_url, last_event.text FROM last_event JOIN page ON page.id = last_event.page "
    "LEFT JOIN copy ON copy.page = page.id WHERE NOT last_event.gone AND page.id > $1 ORDER BY page.id LIMIT $2"
)
_TEXTS = "SELECT page, text FROM last_event WHERE page = ANY ($1::bigint[]) AND text IS NOT NULL"
_LAST = 1 << 62  # beyond all numbers of events
_FRONT = 500  # events looked at when trimming
_MANY = 200  # pages read at a time

Changes = list[tuple[int, Event]]


def changes_of(outcomes: Sequence[tuple[int, Outcome]], last: dict[int, LastEvent]) -> Changes:
    """The events of outcomes, each compared with the one before it; ``last`` is brought up to date."""
    found: Changes = []
    for page, outcome in outcomes:
        event = event_of(last.get(page), outcome)
        if event is not None:
            found.append((page, event))
            last[page] = last_event_after(event)
    return found


def removals_of(pages: Sequence[tuple[int, str]], last: dict[int, LastEvent], at: float) -> Changes:
    """The events of pages that the user removes."""
    events = ((page, removed_event(last.get(page), url, at)) for page, url in pages)
    return [(page, event) for page, event in events if event is not None]


class EventTables:
    """The tables ``event``, ``last_event``, ``subscriber`` and ``event_total``, within limits."""

    def __init__(self, limits: EventLimits) -> None:
        self.limits = limits

    # --- writing -----------------------------------------------------------------------------------------------------

    async def add(self, connection: Any, changes: Changes) -> None:
        """Write events, with the texts of the pages' last events, and let them be the last events now."""
        if not changes:
            return
        pages = list({page for page, _ in changes})
        texts: dict[int, bytes | None] = dict(map(tuple, await connection.fetch(_TEXTS, pages)))
        number, rows, size = await connection.fetchrow("SELECT last, rows, size FROM event_total FOR UPDATE")
        records, newest = [], dict[int, LastEvent]()
        for page, event in changes:
            old, new = texts.get(page), packed_text(event.new_text)
            if new is None and event.new_digest is not None and event.new_digest == event.old_digest:
                new = old
            number, bytes_ = number + 1, event.size + len(old or b"") + len(new or b"")
            cells = (getattr(event, name) for name in _EVENT)
            cells = (sql.plain(cell) if isinstance(cell, str) else cell for cell in cells)
            records.append((number, *cells, old, new, bytes_))
            newest[page] = last_event_after(event)
            texts[page] = old if newest[page].gone else new
            rows, size = rows + 1, size + bytes_
        await connection.copy_records_to_table("event", records=records, columns=_COLUMNS)
        states = [(page, last.gone, last.digest, last.final_url, texts[page]) for page, last in newest.items()]
        await connection.execute(_SET_LAST, *sql.arrays(states, 5))
        with_text = [record[1] for record in records if record[-3] is not None or record[-2] is not None]
        size -= await self._trim_texts(connection, with_text)
        total = await self._trimmed(connection, max(event.at for _, event in changes), (rows, size))
        await connection.execute("UPDATE event_total SET last = $1, rows = $2, size = $3", number, *total)

    async def _trim_texts(self, connection: Any, urls: Sequence[str]) -> int:
        """Delete the texts of delivered events, but of the newest of each page; how many bytes these were."""
        if not urls:
            return 0
        held = min(delivered_to_all(await self.subscribers(connection)), _LAST)
        starts = list({url[:500] for url in urls})
        return sum(row[0] for row in await connection.fetch(_TRIM_TEXTS, starts, self.limits.texts, int(held)))

    async def _trimmed(self, connection: Any, now: float, total: tuple[int, int]) -> tuple[int, int]:
        """Delete the oldest events: those beyond the limits, and those that are old and were delivered to all.

        The rows and the size that are left.
        """
        subscribers = await self.subscribers(connection)
        held, before = delivered_to_all(subscribers), now - self.limits.age
        while True:
            asked = "SELECT number, at, size FROM event ORDER BY number LIMIT $1"
            front = [tuple(row) for row in await connection.fetch(asked, _FRONT)]
            n = n_overdue(front, total, self.limits, held, before)
            if n:
                total = (total[0] - n, total[1] - sum(bytes_ for *_, bytes_ in front[:n]))
                await self._drop(connection, front[0][0], front[n - 1][0], subscribers)
            if n < _FRONT:
                return total

    async def _drop(self, connection: Any, first: int, last: int, subscribers: list[Subscriber]) -> None:
        await connection.execute("DELETE FROM event WHERE number <= $1", last)
        for subscriber in subscribers:
            if n := n_undelivered(subscriber, first, last):
                dropped = "UPDATE subscriber SET dropped = dropped + $1 WHERE name = $2"
                await connection.execute(dropped, n, subscriber.name)

    async def set_subscriber(self, connection: Any, subscriber: Subscriber) -> None:
        """Write the position of a subscriber; its count of dropped events stays."""
        await connection.execute(_SET_SUBSCRIBER, *(getattr(subscriber, name) for name in _SUBSCRIBER))

    async def remove_subscriber(self, connection: Any, name: str) -> None:
        """Delete the position of a subscriber."""
        await connection.execute("DELETE FROM subscriber WHERE name = $1", name)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def read(self, connection: Any, after: int, many: int) -> list[Event]:
        """Events after a number."""
        stream = await self._stream(connection)
        return [_event(row, stream) for row in await connection.fetch(_READ, after, many)]

    async def newest(self, connection: Any, many: int, url: str | None, kinds: Sequence[str] | None) -> list[Event]:
        """The newest events, of one page or all, of some kinds or all; each question has an index of its own."""
        given = [] if url is None else [sql.plain(url)]
        where = ["true"] if url is None else [_OF_PAGE]
        rows = []
        for kind in [None] if kinds is None else dict.fromkeys(kinds):
            values = [*given, *([] if kind is None else [kind]), many]
            mine = where if kind is None else [*where, f"kind = ${len(given) + 1}"]
            asked = f"{_SELECT} WHERE {' AND '.join(mine)} ORDER BY number DESC LIMIT ${len(values)}"
            rows += await connection.fetch(asked, *values)
        stream = await self._stream(connection)
        return [_event(row, stream) for row in sorted(rows, key=lambda row: -row[0])[:many]]

    async def subscribers(self, connection: Any) -> list[Subscriber]:
        """All subscribers, by name."""
        found = await connection.fetch(f"SELECT {', '.join(_SUBSCRIBER)} FROM subscriber ORDER BY name")
        return [Subscriber(*row) for row in found]

    async def totals(self, connection: Any) -> dict[str, int]:
        """The last number ever given, and of the events that are kept the first number, rows and bytes."""
        first = await connection.fetchval("SELECT min(number) FROM event")
        last, rows, size = await connection.fetchrow("SELECT last, rows, size FROM event_total")
        return {"first": last + 1 if first is None else first, "last": last, "rows": rows, "size": size}

    async def snapshot(self, connection: Any, last: int, after: int) -> tuple[list[Event], int]:
        """Some of the pages that exist as events of kind new, after one page; and the last of these."""
        stream = await self._stream(connection)
        found, page = list[Event](), 0
        for page, url, at, status, kind, digest, final_url, text in await connection.fetch(_NOW_THERE, after, _MANY):
            event = Event(last, f"{stream}.{last}.{page}", url, "new", at, status, None, kind)
            found.append(replace(event, new_digest=digest, new_final_url=final_url, new_text=unpacked_text(text)))
        return found, page

    async def check(self, connection: Any) -> list[str]:
        """Contradictions between the tables."""
        rows, size = await connection.fetchrow("SELECT count(*), coalesce(sum(size), 0)::bigint FROM event")
        totals, problems = await self.totals(connection), []
        if (rows, size) != (totals["rows"], totals["size"]):
            problems.append(f"{rows} events of {size} bytes are counted as {totals['rows']} of {totals['size']}")
        if rows != totals["last"] - totals["first"] + 1:
            problems.append(f"{rows} events are numbered from {totals['first']} to {totals['last']}")
        return problems

    @staticmethod
    async def _stream(connection: Any) -> str:
        return str(await connection.fetchval("SELECT id FROM event_total"))


def _event(row: Sequence[Any], stream: str) -> Event:
    number, *cells, old, new = row
    values = dict(zip(_EVENT, cells, strict=True))
    return Event(number, f"{stream}.{number}", **values, old_text=unpacked_text(old), new_text=unpacked_text(new))
