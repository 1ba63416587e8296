"""Posts: pages that other processes add to a crawl that runs, or take away from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.pages import add_pages
from recrawl.engine import Engine
from recrawl.store.protocol import Store


def added(urls: list[str], importance: float | None = None, **known: list[float]) -> dict[str, Any]:
    """What to post so that pages are added; ``change_rate`` (per second) and ``evidence`` where they are predicted."""
    return {"add": urls, "importance": 1.0 if importance is None else importance, **known}


def removed(urls: list[str]) -> dict[str, Any]:
    """What to post so that pages are removed."""
    return {"remove": urls}


def asked_audit(draws: int, level: float) -> dict[str, Any]:
    """What to post so that an audit is made."""
    return {"audit": draws, "level": level}


class Posts:
    """Takes what was posted; it leaves the store in the transaction that writes what it led to."""

    def __init__(self, engine: Engine, store: Store, rules: Rules, audit: Callable[[int, float], None]) -> None:
        self._engine, self._store, self._rules, self._audit = engine, store, rules, audit

    async def take(self, now: float) -> int:
        """Do what was posted since the last time; how many pages came or went."""
        n = 0
        for number, post in await self._store.posts():
            if "add" in post:
                known = {name: post[name] for name in ("change_rate", "evidence") if name in post}
                weight = post.get("importance", 1.0)
                new = add_pages(self._engine, self._rules, post["add"], now, importance=weight, **known)
                await self._store.save(rows=self._engine.rows(new), taken=[number])
                n += len(new)
            elif "audit" in post:
                self._audit(int(post["audit"]), float(post.get("level", 0.9)))
                await self._store.save(taken=[number])
            else:
                n += await self._remove(post.get("remove", []), number, now)
        return n

    async def _remove(self, urls: list[str], number: int, now: float) -> int:
        known = self._engine.addresses.known(urls)
        ids = np.unique(known[known >= 0])
        self._engine.remove(ids)
        await self._store.save(removed=urls, taken=[number], at=now)
        return len(ids)
