"""Client: the calls of a service, each of which returns when it is answered."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from recrawl.client import calls
from recrawl.client.events import PAUSE, EventLines, PageEvent
from recrawl.client.messages import ListedPage, Outcome, PickedPage
from recrawl.client.transport import Transport
from recrawl.client.tries import Service


class Client:
    """A client of the service at a URL; ``token`` is what ``recrawl token add`` printed.

    A call is sent again for ``patience`` seconds while no answer comes; outcomes are never recorded twice. What the
    service refuses raises `ServiceError`.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 30.0, patience: float = 60.0) -> None:
        self._transport = Transport(Service(url, token, timeout, patience))

    def pick(
        self, n: int = 100, *, lease: float = 300.0, hosts: Sequence[str] | None = None, wait: float = 0.0
    ) -> list[PickedPage]:
        """At most n pages to crawl, best first, that nobody else gets for ``lease`` seconds."""
        return self._transport.call(calls.pick(n, lease, hosts, wait))

    def record(self, outcomes: Sequence[Outcome]) -> list[str]:
        """What came of leases; one word for each: recorded, late, repeated, outdated, released, removed, unknown."""
        return self._transport.call(calls.record(outcomes))

    def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back whose pages are not crawled; one word for each."""
        return self._transport.call(calls.release(leases))

    def add(self, pages: Sequence[str] | Mapping[str, float]) -> int:
        """Add pages, with the importance of each where it is given; how many are new."""
        return self._transport.call(calls.add(pages))

    def update(self, url: str, *, importance: float | None = None, paused: bool | None = None) -> None:
        """Change a page."""
        self._transport.call(calls.update(url, importance, paused))

    def remove(self, urls: Sequence[str]) -> int:
        """Remove pages; how many there were."""
        return self._transport.call(calls.remove(urls))

    def pages(self) -> Iterator[ListedPage]:
        """All pages, in the order in which they were added."""
        found, cursor = self._transport.call(calls.pages(None))
        yield from found
        while cursor is not None:
            found, cursor = self._transport.call(calls.pages(cursor))
            yield from found

    def signal(self, urls: Sequence[str]) -> dict[str, Any]:
        """Say that pages have changed; what became of the signals."""
        return self._transport.call(calls.signal(urls))

    def requested(self, urls: Sequence[str]) -> dict[str, Any]:
        """Count requests of readers; sent once, so that none counts twice."""
        return self._transport.call(calls.requested(urls))

    def why(self, url: str) -> dict[str, Any]:
        """Everything behind the decision about a page."""
        return self._transport.call(calls.why(url))

    def forecast(self, budget: str | None = None) -> dict[str, Any]:
        """How fresh the copies are, and how fresh they will be at a budget."""
        return self._transport.call(calls.forecast(budget))

    def status(self) -> dict[str, Any]:
        """The figures of ``recrawl status``."""
        return self._transport.call(calls.status())

    def budget(self) -> dict[str, Any]:
        """The budget in words and in requests per second, and how much of it was used."""
        return self._transport.call(calls.budget())

    def set_budget(self, budget: str) -> dict[str, Any]:
        """Another budget, in words such as 2/s or 1/page/day, until the service starts again."""
        return self._transport.call(calls.set_budget(budget))

    def hosts(self, limit: int = 100) -> list[dict[str, Any]]:
        """The hosts with most pages."""
        return self._transport.call(calls.hosts(limit))

    def sources(self) -> dict[str, Any]:
        """The figures of ``recrawl signals``: what sources of signals have been worth."""
        return self._transport.call(calls.sources())

    def events(self, cursor: str | None = None) -> Iterator[PageEvent]:
        """Events as they come, without end: new ones, or those after a cursor; "start" is the oldest that is kept.

        A stream that is cut off goes on where it was.
        """
        lines = EventLines(cursor)
        while True:
            lines.begin()
            for line in self._transport.lines(calls.events(lines.cursor)):
                found = lines.take(line)
                if found is not None:
                    yield found
            time.sleep(PAUSE)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
