"""What is sent to a service and comes from it. Times are seconds since 1970, durations seconds."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class PickedPage:
    """A page to crawl until a time; ``etag`` and ``last_modified`` are for a conditional request."""

    lease: str
    url: str
    until: float
    etag: str | None = None
    last_modified: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Headers that let a server answer 304 if the page has not changed.

        >>> PickedPage("x", "https://a.example/", 0.0, etag='"1"').headers
        {'If-None-Match': '"1"'}
        """
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a lease: ``status``, or ``error``; one of ``body``, ``digest``, ``changed``, or none of them.

    ``requests`` are all that were made for the page, redirects and robots.txt too.
    """

    lease: str
    status: int | None = None
    error: str | None = None
    body: bytes | str | None = None
    digest: str | None = None
    changed: bool | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_type: str | None = None
    final_url: str | None = None
    fetched_at: float | None = None
    took: float = 0.0
    requests: int = 1
    retry_after: float | None = None
    good_for: float | None = None
    links: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it, without what is not known.

        >>> Outcome("x", status=200, body=b"hi").as_dict()
        {'lease': 'x', 'status': 200, 'body_base64': 'aGk='}
        """
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or (one.name != "lease" and value == one.default):
                continue
            if one.name == "body" and isinstance(value, bytes):
                found["body_base64"] = base64.b64encode(value).decode()
            else:
                found[one.name] = list(value) if one.name == "links" else value
        return found


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page; ``change_rate`` is per day, ``fresh`` the probability that the copy is fresh."""

    url: str
    importance: float
    fetched_at: float | None
    change_rate: float
    fresh: float
    paused: bool


def picked(found: Mapping[str, Any]) -> list[PickedPage]:
    """The pages of an answer."""
    return [PickedPage(**page) for page in found["pages"]]


def listed(found: Mapping[str, Any]) -> tuple[list[ListedPage], str | None]:
    """The pages of a list, and the cursor of the next."""
    return [ListedPage(**page) for page in found["pages"]], found["cursor"]
