"""Fuzzing: calls of what reads the web with inputs of `fuzz_inputs`, and what came of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import fuzz_inputs as inputs

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.feeds.cache import FeedCache
from recrawl.crawl.formats.sitemaps import read_sitemap
from recrawl.crawl.http.charset import decode
from recrawl.crawl.listings.reading import KINDS, read_listing
from recrawl.crawl.listings.table import Table
from recrawl.crawl.polite.robots import Robots, _cached
from recrawl.crawl.signals.indexnow.keys import Keys, Taken
from recrawl.crawl.signals.indexnow.ping import Ping, holds_key, read_body, read_query
from recrawl.crawl.signals.websub.discovery import discover, speaks_for
from recrawl.crawl.signals.websub.items import ItemMemory, feed_items, is_whole
from recrawl.errors import RecrawlError

Call = Callable[[], object]


def detector_calls(rng: random.Random) -> Iterator[list[tuple[str, Call]]]:
    """For each input, a call of every detector, and of the feeds."""
    bodies, detectors = inputs.pages(), inputs.all_detectors()
    feeds = FeedCache(300.0)
    n = 0
    while True:
        n += 1
        page = inputs.fetched(rng, inputs.broken(rng, bodies))
        calls: list[tuple[str, Call]] = [
            (f"{one.name}-{one.version}", lambda one=one, page=page: one.digest(page)) for one in detectors
        ]
        url = f"https://a.example/{n % 50}"
        yield [*calls, ("feeds", lambda page=page, url=url, n=n: feeds.fetched(url, page, 60.0 * n))]


def robots_calls(rng: random.Random) -> Iterator[list[tuple[str, Call]]]:
    """For each robots.txt, the question whether pages may be fetched."""
    for body in inputs.robots_texts(rng):
        page = inputs.fetched(rng, body)

        def ask(page: Any = page) -> None:
            robots = Robots(None, "recrawl/1 (+x)", SystemClock())  # type: ignore[arg-type]
            robots._cache["https://a.example"] = _cached(page, None, time.time())
            for path in ("/", "/a?b=c", "/%C3%A9", "/é", "//x", "/robots.txt"):
                robots.cached_rule(f"https://a.example{path}")

        yield [("robots", ask)]


def charset_calls(rng: random.Random) -> Iterator[list[tuple[str, Call]]]:
    """For each body, its text under a type that need not be right."""
    bodies = inputs.pages()
    names = [
        "utf-8",
        "utf-16",
        "utf-32",
        "cp1252",
        "big5",
        "euc-kr",
        "iso-2022-jp",
        "koi8-r",
        "idna",
        "rot13",
        "x" * 60,
    ]
    while True:
        body = inputs.broken(rng, bodies) if rng.random() < 0.5 else rng.randbytes(rng.randint(0, 400))
        said = rng.choice([*inputs.TYPES, f"text/html; charset={rng.choice(names)}", f"charset='{rng.choice(names)}"])
        yield [("charset", lambda body=body, said=said: decode(body, said).encode("utf-8"))]


def listing_calls(rng: random.Random) -> Iterator[list[tuple[str, Call]]]:
    """For each listing, what it says, and what is new against the listing before."""
    table = Table.of([])
    while True:
        body, kind = inputs.broken(rng, inputs.LISTINGS), rng.choice([*KINDS, None])
        page = inputs.fetched(rng, body)
        pieces = [body[k : k + 97] for k in range(0, len(body), 97)]

        def compare(page: Any = page, kind: str | None = kind) -> None:
            nonlocal table
            reading = read_listing(page, kind)
            if reading is not None:
                table.difference(reading.pages)
                table = Table.unpack(Table.of(reading.pages).pack())

        yield [("listing", compare), ("pieces", lambda pieces=pieces: list(read_sitemap(pieces)))]


def receiver_calls(rng: random.Random) -> Iterator[list[tuple[str, Call]]]:
    """For each input, all that hubs and pings can send: links, verifications, signatures, deliveries, requests."""
    bodies, table, keys, memory = (
        inputs.pages(),
        inputs.subscriptions(rng),
        Keys(lambda urls: [True] * len(urls)),
        ItemMemory(),
    )
    now = 1.7e9
    while True:
        now += rng.expovariate(1e-3)
        page = inputs.fetched(rng, inputs.broken(rng, bodies if rng.random() < 0.5 else inputs.LISTINGS))
        page.headers["link"] = inputs.link_header(rng)  # type: ignore[index]
        name, query, ping = inputs.callback_name(rng, table), inputs.hub_query(rng), inputs.ping_body(rng)

        def links(page: Any = page, now: float = now) -> None:
            found = discover(page)
            if found is not None:
                speaks_for(page.url, page.final_url, found, lambda url: False)
            table.found(page.url, found, now)
            for request in table.due(now):
                table.sent(request.name, now)
                table.answered(request.name, rng.random() < 0.5, now)

        def delivered(page: Any = page, name: str = name, now: float = now) -> None:
            table.judge(name, inputs.signature(rng), page.body)
            items = feed_items(page)
            memory.news(page.url, items)
            memory.keep(page.url, items)
            is_whole(page, "text/html", 5)

        def pinged(ping: bytes = ping, query: dict[str, str] = query, now: float = now, page: Any = page) -> None:
            for found in (read_body(ping), read_query(query)):
                taken = keys.take(found, now) if isinstance(found, Ping) else None
                if isinstance(taken, Taken) and taken.check is not None:
                    keys.checked(taken.check, holds_key(page.body, taken.check.key))

        verify = lambda name=name, query=query, now=now: table.verify(name, query, now)  # noqa: E731
        yield [("links", links), ("verify", verify), ("delivered", delivered), ("pinged", pinged)]


def run(makes: Callable[[random.Random], Iterator[list[tuple[str, Call]]]], n: int, seed: int) -> dict[str, Any]:
    """Make n inputs and all calls of each."""
    made = makes(random.Random(seed))
    calls, slowest, errors = 0, (0.0, ""), list[str]()
    began = time.process_time()
    for number in range(n):
        for name, call in next(made):
            start = time.process_time()
            try:
                call()
            except RecrawlError as problem:
                errors.append(f"{name}, seed {seed}, input {number}: {problem!r} (documented, but not for this path)")
            except Exception as problem:
                errors.append(f"{name}, seed {seed}, input {number}: {problem!r}")
            slowest = max(slowest, (time.process_time() - start, name))
            calls += 1
    took = time.process_time() - began
    return {
        "inputs": n,
        "calls": calls,
        "errors": len(errors),
        "first_errors": errors[:10],
        "slowest_call_ms": round(1000 * slowest[0], 2),
        "slowest": slowest[1],
        "cpu_seconds": round(took, 1),
    }
