"""Broken requests of `POST /v1/signals`, and broken host and origin headers: what may come of them.

A function that raises anything has found an error: a refusal (`ProblemError`) is documented, and checked here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from starlette.datastructures import Headers

from recrawl.serve.guard import HostGuard
from recrawl.serve.problems import ProblemError, answer
from recrawl.serve.receive.signals import parse_signals

GOOD: dict[str, Any] = {
    "signals": [
        "https://a.example/",
        {"url": "https://a.example/é?q=1", "changed_at": "2026-01-31T12:00:00Z"},
        {"prefix": "https://b.example/x/", "changed_at": 1.7e9},
        {"url": "http://[::1]:80/", "changed_at": "2026-01"},
    ]
}
ODD: list[Any] = [
    *(None, True, -1, 1e308, 10**30, "", "\ud800", "x" * 5000, [], {}, [[]], {"url": None}, "https://", "http://a b/"),
    *("https://a.example:99999/", "https://" + "a." * 200, "https://a.example/%zz\x00", "//a.example/", "é", "﷽" * 50),
    *("0000-00-00", "9999-12-31T23:59:60Z", "2026-02-30", "1", "-", {"\udfff": 1}, "https://\ud800.example/"),
    *("https://a.example/\ud800", float("nan"), float("inf"), "https://1.2.3.4.5/", "https://0x7f.1/"),
]
NAMES = ["crawl.example", "127.0.0.1", "[::1]", "evil.example"]
PARTS = [*NAMES, ":80", "@", "/", "#", "[", "]", "%", "\xff", " ", "..", "https://"]


def replaced(value: Any, rng: random.Random) -> Any:
    """A JSON value with some of its parts replaced by odd ones."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    if isinstance(value, list):
        return [replaced(one, rng) for one in value for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    if isinstance(value, dict):
        keys = [name if rng.random() < 0.9 else str(rng.choice(ODD))[:60] for name in value]
        return {key: replaced(one, rng) for key, one in zip(keys, value.values(), strict=True)}
    return value


def broken_body(rng: random.Random) -> bytes:
    """Bytes of a request: odd values, or bytes that were changed."""
    body = bytearray(json.dumps(replaced(GOOD, rng), ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice([0, 0, 0, 1, 3, 30])):
        if body:
            place = rng.randrange(len(body))
            body[place : place + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
    return bytes(body)


def broken_headers(rng: random.Random) -> list[tuple[bytes, bytes]]:
    """No headers, a host, or a host and an origin."""
    host, origin = ("".join(rng.choices(PARTS, k=rng.randrange(5))) for _ in range(2))
    return [(b"host", host.encode("latin-1")), (b"origin", origin.encode("latin-1"))][: rng.randrange(3)]


def parsed(body: bytes) -> tuple[Sequence[Any], ProblemError | None]:
    """The rows of a body, or why it is refused."""
    try:
        return parse_signals(body), None
    except ProblemError as problem:
        return [], problem


def take_body(body: bytes) -> bool:
    """Whether a body is taken; its rows and its refusal are as documented."""
    rows, problem = parsed(body)
    if problem is not None:
        assert problem.status == 422, body
        assert json.loads(bytes(answer(problem).body))["detail"]
    for row in rows:
        assert row.url.encode("ascii").startswith((b"http://", b"https://"))
        assert row.changed_at is None or -1e11 < row.changed_at < 1e12
        assert 0 <= row.resolution <= 366 * 86400.0
    return problem is None


def take_headers(guard: HostGuard, raw: list[tuple[bytes, bytes]]) -> bool:
    """Whether headers pass the guard of crawl.example; only the right ones may."""
    problem = guard._problem(Headers(raw=raw))
    if problem is not None:
        assert problem.status in (403, 421)
        return False
    host, origin = (raw[k][1].decode("latin-1") if len(raw) > k else None for k in range(2))
    assert host is not None
    assert host.removesuffix(":80") in NAMES[:3], host
    assert origin is None or origin.rpartition("//")[2] in (host, "crawl.example"), origin
    return True


def guard() -> HostGuard:
    """The guard of an interface at 127.0.0.1 and at crawl.example."""
    return HostGuard(None, "https://crawl.example/hooks")


def request_calls(rng: random.Random) -> Iterator[list[tuple[str, Callable[[], object]]]]:
    """For each input, a body of signals and the headers of a request."""
    guarded = guard()
    while True:
        body, raw = broken_body(rng), broken_headers(rng)
        yield [
            ("body", lambda body=body: take_body(body)),
            ("headers", lambda raw=raw: take_headers(guarded, raw)),
        ]
