"""The calls of a service as requests, and what their answers mean; whoever sends them is elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from recrawl.client.messages import ListedPage, Outcome, PickedPage, listed, picked

T = TypeVar("T")


@dataclass(frozen=True)
class Ask(Generic[T]):
    """A request, how its answer is read, and whether it may be sent ``again`` while no answer comes."""

    method: str
    path: str
    read: Callable[[dict[str, Any]], T]
    body: Any = None
    query: Mapping[str, Any] | None = None
    again: bool = True


def pick(n: int, lease: float, hosts: Sequence[str] | None, wait: float) -> Ask[list[PickedPage]]:
    """Pages to crawl."""
    body = {"n": n, "lease": lease, "hosts": None if hosts is None else list(hosts), "wait": wait}
    return Ask("POST", "/v1/pick", picked, body)


def record(outcomes: Sequence[Outcome]) -> Ask[list[str]]:
    """What came of leases."""
    return Ask("POST", "/v1/record", _results, {"outcomes": [one.as_dict() for one in outcomes]})


def release(leases: Sequence[str]) -> Ask[list[str]]:
    """Leases that are given back."""
    return Ask("POST", "/v1/release", _results, {"leases": list(leases)})


def add(pages: Sequence[str] | Mapping[str, float]) -> Ask[int]:
    """New pages."""
    named = pages.items() if isinstance(pages, Mapping) else ((url, 1.0) for url in pages)
    body = {"pages": [{"url": url, "importance": importance} for url, importance in named]}
    return Ask("POST", "/v1/pages", lambda found: int(found["added"]), body)


def update(url: str, importance: float | None, paused: bool | None) -> Ask[None]:
    """A page is changed."""
    body = {"pages": [{"url": url, "importance": importance, "paused": paused}]}
    return Ask("PATCH", "/v1/pages", lambda _: None, body)


def remove(urls: Sequence[str]) -> Ask[int]:
    """Pages that are no longer wanted."""
    return Ask("POST", "/v1/pages/remove", lambda found: int(found["removed"]), {"urls": list(urls)})


def pages(cursor: str | None) -> Ask[tuple[list[ListedPage], str | None]]:
    """Some pages after a cursor, and the next cursor."""
    return Ask("GET", "/v1/pages", listed, query={"cursor": cursor, "limit": 1000})


def signal(urls: Sequence[str]) -> Ask[dict[str, Any]]:
    """Pages have changed."""
    return Ask("POST", "/v1/signals", dict, {"signals": [{"url": url} for url in urls]})


def requested(urls: Sequence[str]) -> Ask[dict[str, Any]]:
    """Readers asked for pages; sent once, so that no request counts twice."""
    return Ask("POST", "/v1/requests", dict, {"urls": list(urls)}, again=False)


def why(url: str) -> Ask[dict[str, Any]]:
    """Everything behind the decision about a page."""
    return Ask("GET", "/v1/why", dict, query={"url": url})


def forecast(budget: str | None) -> Ask[dict[str, Any]]:
    """How fresh the copies are, and how fresh they will be at a budget."""
    return Ask("GET", "/v1/forecast", dict, query={"budget": budget})


def status() -> Ask[dict[str, Any]]:
    """The figures of ``recrawl status``."""
    return Ask("GET", "/v1/status", dict)


def budget() -> Ask[dict[str, Any]]:
    """The budget, and how much of it was used."""
    return Ask("GET", "/v1/budget", dict)


def set_budget(text: str) -> Ask[dict[str, Any]]:
    """Another budget."""
    return Ask("PUT", "/v1/budget", dict, {"budget": text})


def hosts(limit: int) -> Ask[list[dict[str, Any]]]:
    """The hosts with most pages."""
    return Ask("GET", "/v1/hosts", lambda found: list(found["hosts"]), query={"limit": limit})


def sources() -> Ask[dict[str, Any]]:
    """The figures of ``recrawl signals``."""
    return Ask("GET", "/v1/sources", dict)


def events(cursor: str | None) -> Ask[dict[str, Any]]:
    """The stream of events after a cursor."""
    return Ask("GET", "/v1/events", dict, query={"cursor": cursor})


def _results(found: dict[str, Any]) -> list[str]:
    return list(found["results"])
