"""The tables of events of `SqliteStore`: written with the outcomes, the oldest deleted beyond the limits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from recrawl.store.events import (
    Event,
    EventLimits,
    LastEvent,
    Subscriber,
    delivered_to_all,
    last_event_after,
    n_overdue,
    n_undelivered,
)
from recrawl.store.packing import packed_text, unpacked_text
from recrawl.store.sqlite.database import select_in

_EVENT = tuple(field.name for field in fields(Event) if field.name not in ("number", "id", "old_text", "new_text"))
_event_cells = attrgetter(*_EVENT)
_SUBSCRIBER = tuple(field.name for field in fields(Subscriber))
_ADD = (
    f"INSERT INTO event ({', '.join(_EVENT)}, old_text, new_text, size) VALUES ({', '.join('?' * (len(_EVENT) + 3))})"
)
_SELECT = f"SELECT number, {', '.join(_EVENT)}, old_text, new_text FROM event"
_READ = f"{_SELECT} WHERE number > ? ORDER BY number LIMIT ?"
_WITH_TEXT = (
    "SELECT number, coalesce(length(old_text), 0) + coalesce(length(new_text), 0) FROM event "
    "WHERE url = ? AND (new_text IS NOT NULL OR old_text IS NOT NULL) ORDER BY number DESC LIMIT -1 OFFSET ?"
)
_SET_LAST = "INSERT OR REPLACE INTO last_event (page, gone, digest, final_url, text) VALUES (?, ?, ?, ?, ?)"
_SET_SUBSCRIBER = (
    f"INSERT INTO subscriber ({', '.join(_SUBSCRIBER)}) VALUES ({', '.join('?' * len(_SUBSCRIBER))}) "
    "ON CONFLICT (name) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _SUBSCRIBER if name not in ("name", "dropped"))
)
_NOW_THERE = (
    "SELECT page.id, url, coalesce(copy.changed_at, 0), copy.status, copy.content_type, last_event.digest, "
    "last_event.final_url, last_event.text FROM last_event JOIN page ON page.id = last_event.page "
    "LEFT JOIN copy ON copy.page = page.id "
    "WHERE NOT last_event.gone AND page.id > ? ORDER BY page.id LIMIT ?"
)
_FRONT = 500  # events looked at when trimming
_ASKED = 500  # pages in one question
_MANY = 200  # pages read at a time


class EventTables:
    """The tables ``event``, ``last_event``, ``subscriber`` and ``event_total`` of a connection, within limits."""

    def __init__(self, limits: EventLimits) -> None:
        self.limits = limits

    # --- writing -----------------------------------------------------------------------------------------------------

    def last_events(self, connection: sqlite3.Connection, pages: Sequence[int]) -> dict[int, LastEvent]:
        """The last events of pages, without texts."""
        found: dict[int, LastEvent] = {}
        for first in range(0, len(pages), _ASKED):
            part = pages[first : first + _ASKED]
            asked = f"SELECT page, gone, digest, final_url FROM last_event WHERE page IN ({', '.join('?' * len(part))})"
            for page, gone, digest, final_url in connection.execute(asked, part):
                found[page] = LastEvent(bool(gone), digest, final_url)
        return found

    def add(self, connection: sqlite3.Connection, events: Sequence[tuple[int, Event]]) -> None:
        """Write events of pages, each with the text of its page's last event, and let it be the last event then."""
        ids = list({page for page, _ in events})
        texts = dict(select_in(connection, "SELECT page, text FROM last_event WHERE page", ids))
        rows, lasts, total = [], dict[int, tuple[Any, ...]](), 0
        for page, event in events:
            old, new = texts.get(page), packed_text(event.new_text)
            if new is None and event.new_digest is not None and event.new_digest == event.old_digest:
                new = old
            size = event.size + len(old or b"") + len(new or b"")
            rows.append((*_event_cells(event), old, new, size))
            last, total = last_event_after(event), total + size
            texts[page] = old if last.gone else new
            lasts[page] = (page, last.gone, last.digest, last.final_url, texts[page])
        connection.executemany(_ADD, rows)
        connection.execute("UPDATE event_total SET rows = rows + ?, size = size + ?", (len(rows), total))
        connection.executemany(_SET_LAST, lasts.values())
        for url in {event.url for (_, event), row in zip(events, rows, strict=True) if row[-3] or row[-2]}:
            self._trim_texts(connection, url)

    def trim(self, connection: sqlite3.Connection, now: float) -> None:
        """Delete the oldest events: those beyond the limits, and those that are old and were delivered to all."""
        rows, size = connection.execute("SELECT rows, size FROM event_total").fetchone()
        subscribers = self.subscribers(connection)
        held, before = delivered_to_all(subscribers), now - self.limits.age
        while True:
            front = connection.execute(
                "SELECT number, at, size FROM event ORDER BY number LIMIT ?", (_FRONT,)
            ).fetchall()
            gone = n_overdue(front, (rows, size), self.limits, held, before)
            rows, size = rows - gone, size - sum(bytes_ for *_, bytes_ in front[:gone])
            if gone:
                self._drop(connection, front[0][0], front[gone - 1][0], subscribers)
                connection.execute("UPDATE event_total SET rows = ?, size = ?", (rows, size))
            if gone < _FRONT:
                return

    def _trim_texts(self, connection: sqlite3.Connection, url: str) -> None:
        """Delete the texts of a page's delivered events, but of the newest."""
        beyond = connection.execute(_WITH_TEXT, (url, self.limits.texts)).fetchall()
        held = delivered_to_all(self.subscribers(connection)) if beyond else 0
        for number, size in beyond:
            if number <= held:
                clear = "UPDATE event SET old_text = NULL, new_text = NULL, size = size - ? WHERE number = ?"
                connection.execute(clear, (size, number))
                connection.execute("UPDATE event_total SET size = size - ?", (size,))

    def _drop(self, connection: sqlite3.Connection, first: int, last: int, subscribers: list[Subscriber]) -> None:
        connection.execute("DELETE FROM event WHERE number <= ?", (last,))
        for subscriber in subscribers:
            if n := n_undelivered(subscriber, first, last):
                connection.execute("UPDATE subscriber SET dropped = dropped + ? WHERE name = ?", (n, subscriber.name))

    def set_subscriber(self, connection: sqlite3.Connection, subscriber: Subscriber) -> None:
        """Write the position of a subscriber; its count of dropped events stays."""
        connection.execute(_SET_SUBSCRIBER, tuple(getattr(subscriber, name) for name in _SUBSCRIBER))

    def remove_subscriber(self, connection: sqlite3.Connection, name: str) -> None:
        """Delete the position of a subscriber."""
        connection.execute("DELETE FROM subscriber WHERE name = ?", (name,))

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self, connection: sqlite3.Connection, after: int, many: int) -> list[Event]:
        """Events after a number."""
        stream = self._stream(connection)
        return [_event(row, stream) for row in connection.execute(_READ, (after, many))]

    def newest(
        self, connection: sqlite3.Connection, many: int, url: str | None, kinds: Sequence[str] | None
    ) -> list[Event]:
        """The newest events, of one page or all, of some kinds or all; each question has an index of its own."""
        where, given = ("", []) if url is None else ("WHERE url = ?", [url])
        if kinds is not None:
            where = f"{where} {'AND' if where else 'WHERE'} {'+' if url is not None else ''}kind = ?"
        rows = []
        for kind in [None] if kinds is None else dict.fromkeys(kinds):
            values = [*given, *([] if kind is None else [kind]), many]
            rows += connection.execute(f"{_SELECT} {where} ORDER BY number DESC LIMIT ?", values).fetchall()
        stream = self._stream(connection)
        return [_event(row, stream) for row in sorted(rows, key=lambda row: -row[0])[:many]]

    def subscribers(self, connection: sqlite3.Connection) -> list[Subscriber]:
        """All subscribers, by name."""
        found = connection.execute(f"SELECT {', '.join(_SUBSCRIBER)} FROM subscriber ORDER BY name")
        return [Subscriber(*row) for row in found]

    def totals(self, connection: sqlite3.Connection) -> dict[str, int]:
        """The last number ever given, and of the events that are kept the first number, rows and bytes."""
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'").fetchone()
        first = connection.execute("SELECT min(number) FROM event").fetchone()[0]
        rows, size = connection.execute("SELECT rows, size FROM event_total").fetchone()
        end = 0 if last is None else int(last[0])
        return {"first": end + 1 if first is None else first, "last": end, "rows": rows, "size": size}

    def snapshot(self, connection: sqlite3.Connection, last: int, after: int) -> tuple[list[Event], int]:
        """Some of the pages that exist as events of kind new, after one page; and the last of these."""
        stream = self._stream(connection)
        found, page = list[Event](), 0
        for page, url, at, status, kind, digest, final_url, text in connection.execute(_NOW_THERE, (after, _MANY)):
            event = Event(last, f"{stream}.{last}.{page}", url, "new", at, status, None, kind)
            found.append(replace(event, new_digest=digest, new_final_url=final_url, new_text=unpacked_text(text)))
        return found, page

    def check(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Contradictions between the tables."""
        rows, size = connection.execute("SELECT count(*), coalesce(sum(size), 0) FROM event").fetchone()
        totals = self.totals(connection)
        if (rows, size) != (totals["rows"], totals["size"]):
            yield f"{rows} events of {size} bytes are counted as {totals['rows']} of {totals['size']}"
        if rows != totals["last"] - totals["first"] + 1:
            yield f"{rows} events are numbered from {totals['first']} to {totals['last']}"

    @staticmethod
    def _stream(connection: sqlite3.Connection) -> str:
        return str(connection.execute("SELECT id FROM event_total").fetchone()[0])


def _event(row: tuple[Any, ...], stream: str) -> Event:
    number, *cells, old, new = row
    values = dict(zip(_EVENT, cells, strict=True))
    return Event(number, f"{stream}.{number}", **values, old_text=unpacked_text(old), new_text=unpacked_text(new))
