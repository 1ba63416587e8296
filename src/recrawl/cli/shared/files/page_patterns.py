"""Pages of a database that are named by URLs and patterns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.store import BlockingStore, OwnedStore


def matching(store: BlockingStore[OwnedStore], patterns: list[str], listings: Iterable[str] = ()) -> list[str]:
    """The pages that URLs and patterns (``*`` matches any text) name, each once; one without a page is refused.

    The URLs of ``listings`` can be named too, but not by patterns.
    """
    from recrawl.crawl.config.rules import pattern
    from recrawl.crawl.urls import canonical

    known, polled = dict.fromkeys(store.urls()), set(listings)
    found: dict[str, None] = {}
    for text in patterns:
        urls = [url for url in known if pattern(text).fullmatch(url)] if "*" in text else [canonical(text)]
        if not urls or (urls[0] not in known and urls[0] not in polled):
            raise ParameterError(f"{text}: no such page in {store.store.name}")
        found |= dict.fromkeys(urls)
    return list(found)
