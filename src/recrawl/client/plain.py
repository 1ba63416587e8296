"""Client: the calls of a service, each of which returns when it is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from recrawl.client.messages import ListedPage, Outcome, PickedPage, listed, picked
from recrawl.client.transport import Transport


class Client:
    """A client of the service at a URL; ``token`` is what ``recrawl token add`` printed.

    A call is sent again for ``patience`` seconds while no answer comes; outcomes are never recorded twice. What the
    service refuses raises `ServiceError`.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 30.0, patience: float = 60.0) -> None:
        self._transport = Transport(url, token, timeout=timeout, patience=patience)

    def pick(
        self, n: int = 100, *, lease: float = 300.0, hosts: Sequence[str] | None = None, wait: float = 0.0
    ) -> list[PickedPage]:
        """At most n pages to crawl, best first, that nobody else gets for ``lease`` seconds."""
        body = {"n": n, "lease": lease, "hosts": None if hosts is None else list(hosts), "wait": wait}
        return picked(self._transport.call("POST", "/v1/pick", body))

    def record(self, outcomes: Sequence[Outcome]) -> list[str]:
        """What came of leases; one word for each: recorded, late, repeated, outdated, released, removed, unknown."""
        found = self._transport.call("POST", "/v1/record", {"outcomes": [one.as_dict() for one in outcomes]})
        return list(found["results"])

    def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back whose pages are not crawled; one word for each."""
        return list(self._transport.call("POST", "/v1/release", {"leases": list(leases)})["results"])

    def add(self, pages: Sequence[str] | Mapping[str, float]) -> int:
        """Add pages, with the importance of each where it is given; how many are new."""
        named = pages.items() if isinstance(pages, Mapping) else ((url, 1.0) for url in pages)
        body = {"pages": [{"url": url, "importance": importance} for url, importance in named]}
        return int(self._transport.call("POST", "/v1/pages", body)["added"])

    def update(self, url: str, *, importance: float | None = None, paused: bool | None = None) -> None:
        """Change a page."""
        self._transport.call(
            "PATCH", "/v1/pages", {"pages": [{"url": url, "importance": importance, "paused": paused}]}
        )

    def remove(self, urls: Sequence[str]) -> int:
        """Remove pages; how many there were."""
        return int(self._transport.call("POST", "/v1/pages/remove", {"urls": list(urls)})["removed"])

    def pages(self) -> Iterator[ListedPage]:
        """All pages, in the order in which they were added."""
        cursor: str | None = None
        while True:
            found, cursor = listed(self._transport.call("GET", "/v1/pages", query={"cursor": cursor, "limit": 1000}))
            yield from found
            if cursor is None:
                return

    def signal(self, urls: Sequence[str]) -> dict[str, Any]:
        """Say that pages have changed; what became of the signals."""
        return self._transport.call("POST", "/v1/signals", {"signals": [{"url": url} for url in urls]})

    def requested(self, urls: Sequence[str]) -> dict[str, Any]:
        """Count requests of readers; sent once, so that none counts twice."""
        return self._transport.call("POST", "/v1/requests", {"urls": list(urls)}, again=False)

    def why(self, url: str) -> dict[str, Any]:
        """Everything behind the decision about a page."""
        return self._transport.call("GET", "/v1/why", query={"url": url})

    def forecast(self, budget: str | None = None) -> dict[str, Any]:
        """How fresh the copies are, and how fresh they will be at a budget."""
        return self._transport.call("GET", "/v1/forecast", query={"budget": budget})

    def status(self) -> dict[str, Any]:
        """The figures of ``recrawl status``."""
        return self._transport.call("GET", "/v1/status")

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
