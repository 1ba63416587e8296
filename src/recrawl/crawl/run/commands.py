"""Commands that other processes queue for the running crawler: add pages, remove pages, set their
importance, pause pages, make an audit, add and remove tokens, poll listings, follow sites, take signals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.listings.discovery import Site
from recrawl.crawl.listings.listing import new_listing
from recrawl.crawl.run.opening.pages import add_pages, pause_pages, set_importance
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import WEBHOOK, Source
from recrawl.crawl.signals.tokens import PREFIX as TOKENS
from recrawl.engine import Engine
from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Store


def add_command(urls: list[str], importance: float | list[float] | None = None, **known: list[float]) -> dict[str, Any]:
    """The command that adds pages; ``change_rate`` (per second) and ``evidence`` where they are predicted."""
    return {"add": urls, "importance": 1.0 if importance is None else importance, **known}


def remove_command(urls: list[str]) -> dict[str, Any]:
    """The command that removes pages."""
    return {"remove": urls}


def rest_command(rests: Mapping[str, float]) -> dict[str, Any]:
    """The command that lets hosts rest until a time, because another process has asked them."""
    return {"rest": dict(rests)}


def set_command(urls: list[str], importance: float) -> dict[str, Any]:
    """The command that sets the importance of pages."""
    return {"set": urls, "importance": importance}


def pause_command(urls: list[str], *, paused: bool = True) -> dict[str, Any]:
    """The command that pauses pages until they are resumed, or resumes them."""
    return {"pause": urls, "paused": paused}


def audit_command(draws: int, level: float, of: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The command that makes an audit; ``of`` names the audit of several shards that it is a part of."""
    return {"audit": draws, "level": level} | ({} if of is None else {"of": dict(of)})


def token_command(name: str, note: Mapping[str, Any] | None) -> dict[str, Any]:
    """The command that adds a token, as it is noted, or removes one."""
    return {"token": name, "note": note}


def listing_command(url: str, kind: str) -> dict[str, Any]:
    """The command that polls a listing from now on."""
    return {"listing": url, "kind": kind}


def follow_command(site: Site) -> dict[str, Any]:
    """The command that follows a site from now on: new pages of it are found."""
    ((name, note),) = site.note().items()
    return {"follow": name, "note": note}


def signals_command(signals: Sequence[Signal]) -> dict[str, Any]:
    """The command that takes signals of token names, about URLs."""
    rows = [[one.page, one.source.speaker, one.changed_at, one.resolution] for one in signals]
    return {"signals": rows}


def received_command(kind: str, **fields: Any) -> dict[str, Any]:
    """The command that takes what another process has received for this crawl (`Receivers.received`)."""
    return {"received": {"kind": kind, **fields}}


async def _take_none(_: object) -> None:
    """By default nothing is taken."""


def _nothing(*_: object) -> None:
    """By default commands call nothing else."""


@dataclass(frozen=True)
class CommandHooks:
    """What commands call besides the engine and the store."""

    audit: Callable[[int, float, Mapping[str, Any] | None], None] = _nothing
    removed: Callable[[list[int]], None] = _nothing  # pages
    left: Callable[[list[str]], None] = _nothing  # URLs of pages that were removed
    token: Callable[[str, Mapping[str, Any] | None], None] = _nothing  # name and note
    listing: Callable[[str, str], None] = _nothing  # URL and kind
    follow: Callable[[Site], None] = _nothing
    signals: Callable[[Sequence[Signal]], Awaitable[object]] = _take_none
    received: Callable[[Mapping[str, Any]], Awaitable[object]] = _take_none
    ended: Callable[[list[str]], None] = _nothing  # URLs that are not to be crawled or polled any more


class CommandQueue:
    """Applies queued commands; each leaves the queue in the transaction that writes what it changed."""

    def __init__(self, engine: Engine, store: Store, rules: Rules, hooks: CommandHooks) -> None:
        self._engine, self._store, self._rules, self._hooks = engine, store, rules, hooks

    async def apply(self, now: float) -> int:
        """Apply the queued commands; how many pages were added or removed."""
        n = 0
        for number, command in await self._store.commands():
            if "add" in command:
                known = {name: command[name] for name in ("change_rate", "evidence") if name in command}
                weight = command.get("importance", 1.0)
                new = add_pages(self._engine, self._rules, command["add"], now, importance=weight, **known)
                await self._store.save(rows=self._engine.rows(new), applied=[number])
                n += len(new)
            elif "audit" in command:
                self._hooks.audit(int(command["audit"]), float(command.get("level", 0.9)), command.get("of"))
                await self._store.save(applied=[number])
            elif "rest" in command:
                for host, until in command["rest"].items():
                    self._engine.hold(host, max(float(until), self._engine.held_until(host)))
                await self._store.save(applied=[number])
            elif "signals" in command:
                rows = command["signals"]
                await self._hooks.signals([Signal(url, Source(WEBHOOK, name), *when) for url, name, *when in rows])
                await self._store.save(applied=[number])
            elif "received" in command:
                await self._hooks.received(command["received"])
                await self._store.save(applied=[number])
            elif "token" in command:
                name, note = command["token"], command.get("note")
                await self._store.save(notes={f"{TOKENS}{name}": note}, applied=[number])
                self._hooks.token(name, note)
            elif "listing" in command:
                await self._poll(command["listing"], command["kind"], number)
            elif "follow" in command:
                await self._store.save(notes={command["follow"]: command["note"]}, applied=[number])
                self._hooks.follow(Site.restore(command["follow"], command["note"]))
            elif "pause" in command:
                ids = pause_pages(self._engine, command["pause"], paused=bool(command["paused"]))
                await self._store.save(rows=self._engine.rows(ids), applied=[number])
            elif "set" in command:
                await self._set(command["set"], float(command["importance"]), number)
            else:
                n += await self._remove(command.get("remove", []), number, now)
        return n

    async def _poll(self, url: str, kind: str, number: int) -> None:
        known = any(one.url == url for one in await self._store.listings())
        await self._store.save(applied=[number], listings=[] if known else [new_listing(url, kind)])
        self._hooks.listing(url, kind)

    async def _set(self, urls: list[str], importance: float, number: int) -> None:
        ids = set_importance(self._engine, self._rules, urls, importance)
        await self._store.save(rows=self._engine.rows(ids), applied=[number])

    async def _remove(self, urls: list[str], number: int, now: float) -> int:
        known = self._engine.addresses.known(urls)
        ids = np.unique(known[known >= 0])
        self._engine.remove(ids)
        self._hooks.removed(ids.tolist())
        self._hooks.left(urls)
        self._hooks.ended(urls)
        listings = [StoredListing(url, None) for url in urls]
        await self._store.save(removed=urls, applied=[number], at=now, listings=listings)
        return len(ids)
