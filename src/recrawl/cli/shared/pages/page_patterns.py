"""Pages of a database that are named by URLs and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.cli.shared.options.places import Places


def matching(places: Places, patterns: list[str], *, listings: bool = False) -> list[str]:
    """The pages that URLs and patterns (``*`` matches any text) name, each once; one without a page is refused.

    The URLs of listings can be named too if ``listings``, but not by patterns.
    """
    from recrawl.crawl.config.rules import pattern
    from recrawl.crawl.urls import canonical

    known, polled = dict[str, None](), set[str]()
    for place in places.places:
        with place.shared() as store:
            known |= dict.fromkeys(store.urls())
            polled |= {one.url for one in store.listings()} if listings else set()
    found: dict[str, None] = {}
    for text in patterns:
        urls = [url for url in known if pattern(text).fullmatch(url)] if "*" in text else [canonical(text)]
        if not urls or (urls[0] not in known and urls[0] not in polled):
            raise ParameterError(f"{text}: no such page in {places.settings.database_name}")
        found |= dict.fromkeys(urls)
    return list(found)
