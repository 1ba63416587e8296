"""Pages of a database that are named by URLs and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.store import BlockingStore, SqliteStore


def matching(store: BlockingStore[SqliteStore], patterns: list[str]) -> list[str]:
    """The pages that URLs and patterns (``*`` matches any text) name, each once; one without a page is refused."""
    from recrawl.crawl.config.rules import pattern
    from recrawl.crawl.urls import canonical

    known = dict.fromkeys(store.urls())
    found: dict[str, None] = {}
    for text in patterns:
        urls = [url for url in known if pattern(text).fullmatch(url)] if "*" in text else [canonical(text)]
        if not urls or urls[0] not in known:
            raise ParameterError(f"{text}: no such page in {store.store.path}")
        found |= dict.fromkeys(urls)
    return list(found)
