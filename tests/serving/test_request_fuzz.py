"""Broken requests: bodies and headers that nobody should send raise nothing but documented refusals."""

import json
import random

import pytest
from starlette.datastructures import Headers

from recrawl.serve.guard import HostGuard
from recrawl.serve.problems import ProblemError, answer
from recrawl.serve.receive.signals import parse_signals

GOOD = {
    "signals": [
        "https://a.example/",
        {"url": "https://a.example/é?q=1", "changed_at": "2026-01-31T12:00:00Z"},
        {"prefix": "https://b.example/x/", "changed_at": 1.7e9},
        {"url": "http://[::1]:80/", "changed_at": "2026-01"},
    ]
}
ODD = [
    *(None, True, -1, 1e308, 10**30, "", "\ud800", "x" * 5000, [], {}, [[]], {"url": None}, "https://", "http://a b/"),
    *("https://a.example:99999/", "https://" + "a." * 200, "https://a.example/%zz\x00", "//a.example/", "é", "﷽" * 50),
    *("0000-00-00", "9999-12-31T23:59:60Z", "2026-02-30", "1", "-", {"\udfff": 1}, "https://\ud800.example/"),
    *("https://a.example/\ud800", float("nan"), float("inf"), "https://1.2.3.4.5/", "https://0x7f.1/"),
]


def replaced(value, rng):
    """A JSON value with some of its parts replaced by odd ones."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    if isinstance(value, list):
        return [replaced(one, rng) for one in value for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    if isinstance(value, dict):
        keys = [name if rng.random() < 0.9 else str(rng.choice(ODD))[:60] for name in value]
        return {key: replaced(one, rng) for key, one in zip(keys, value.values(), strict=True)}
    return value


def broken_body(rng):
    """Bytes of a request: odd values, or bytes that were changed."""
    body = bytearray(json.dumps(replaced(GOOD, rng), ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice([0, 0, 0, 1, 3, 30])):
        if body:
            place = rng.randrange(len(body))
            body[place : place + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
    return bytes(body)


def parsed(body):
    """The rows of a body, or why it is refused."""
    try:
        return parse_signals(body), None
    except ProblemError as problem:
        return [], problem


@pytest.mark.parametrize("n", [1000, pytest.param(100_000, marks=pytest.mark.full)])
def test_broken_bodies_are_refused_by_field_and_row(n):
    rng, taken = random.Random(7), 0
    for _ in range(n):
        body = broken_body(rng)
        rows, problem = parsed(body)
        if problem is not None:
            assert problem.status == 422, body
            assert json.loads(bytes(answer(problem).body))["detail"]
        taken += problem is None
        for row in rows:
            assert row.url.encode("ascii").startswith((b"http://", b"https://"))
            assert row.changed_at is None or -1e11 < row.changed_at < 1e12
            assert 0 <= row.resolution <= 366 * 86400.0
    assert 0.01 * n < taken < 0.9 * n, "both happen"


@pytest.mark.parametrize("n", [1000, pytest.param(100_000, marks=pytest.mark.full)])
def test_broken_hosts_and_origins_are_refused(n):
    rng, guard = random.Random(7), HostGuard(None, "https://crawl.example/hooks")
    names = ["crawl.example", "127.0.0.1", "[::1]", "evil.example"]
    parts = [*names, ":80", "@", "/", "#", "[", "]", "%", "\xff", " ", "..", "https://"]
    for _ in range(n):
        host, origin = ("".join(rng.choices(parts, k=rng.randrange(5))) for _ in range(2))
        raw = [(b"host", host.encode("latin-1")), (b"origin", origin.encode("latin-1"))][: rng.randrange(3)]
        problem = guard._problem(Headers(raw=raw))
        if problem is None:
            assert len(raw) > 0
            assert host.removesuffix(":80") in names[:3], host
            assert len(raw) < 2 or origin.rpartition("//")[2] in (host, "crawl.example"), origin
        else:
            assert problem.status in (403, 421)
