"""No web: what a crawl fetches with that does not crawl."""

from __future__ import annotations

from collections.abc import Mapping

from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.run.opening.assemble import Web


class NoFetcher:
    """Fetches nothing: every fetch fails."""

    async def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """A failure."""
        return Fetched(url, url, 0, 0.0, 0.0, failure="connect")

    async def close(self) -> None:
        """Nothing is open."""


def no_web(clock: Clock | None = None) -> Web:
    """A web that is not there; robots.txt is left to those who crawl."""
    return Web("", NoFetcher(), None, clock or SystemClock())
