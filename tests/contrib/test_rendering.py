"""When a page counts as complete, and what it costs, with pages that are not a browser's."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest

from recrawl.contrib.browser.options import BrowserLimits, Render
from recrawl.contrib.browser.rendering import _IDLE, Rendering
from recrawl.crawl import Crawler, CrawlOptions, Fetched, ManualClock, MemoryWeb, Rules, add_pages
from recrawl.crawl.http.memory import Answer
from recrawl.engine import Engine
from recrawl.store import MemoryStore

PLAIN = Fetched("https://a.example/", "https://a.example/", 200, 0.0, 0.0)
LIMITS = BrowserLimits(total=60.0, settling=30.0, quiet=0.001)


class SlowPage:
    """Has something to do each time that it is asked, ``n_busy`` times: a request, or another page."""

    def __init__(self, n_busy, problem=None, closed=False):
        self._n_busy, self._problem, self._closed = n_busy, problem, closed
        self.rendering, self.n_asked = None, 0

    def on(self, name, call):
        pass

    def is_closed(self):
        return self._closed

    async def goto(self, url, **how):
        pass

    async def evaluate(self, code):
        if code != _IDLE:
            return f"text after {self.n_asked}"
        self.n_asked += 1
        if self.n_asked <= self._n_busy:
            if self._problem is not None:
                raise self._problem
            self.rendering._last += 1e-6  # a request has ended meanwhile
        return None


def rendered(page, limits=LIMITS):
    page.rendering = Rendering(PLAIN, None, limits)
    return asyncio.run(page.rendering.run(page, Render("always")))


@pytest.mark.parametrize("problem", [None, RuntimeError("Execution context was destroyed, because of a navigation")])
def test_a_page_that_goes_on_is_waited_for(problem):
    assert rendered(SlowPage(3, problem)) == b"text after 4"


def test_a_page_that_is_closed_is_not_asked_again():
    page = SlowPage(1, RuntimeError("the page is no more"), closed=True)
    with pytest.raises(RuntimeError, match="no more"):
        rendered(page)
    assert page.n_asked == 1


def test_a_page_that_never_rests_is_read_when_time_is_up():
    assert rendered(SlowPage(10**9), BrowserLimits(total=60.0, settling=0.05, quiet=0.001)).startswith(b"text after ")


@pytest.mark.parametrize("n_further", [0, 4])
def test_the_budget_pays_for_what_scripts_ask_for(n_further):
    """At two requests a second, pages that make four more each are fetched a fifth as often."""

    class ScriptedWeb(MemoryWeb):
        async def fetch(self, url, **known):
            fetched = await super().fetch(url, **known)
            further = tuple(f"https://api.example/{k}" for k in range(n_further))
            return fetched if url.endswith("robots.txt") else replace(fetched, beside=further)

    clock, store = ManualClock(1e9), MemoryStore()
    web = ScriptedWeb(lambda url, now: f"<main><p>{url} at {now}</p></main>", clock)
    engine = Engine(2.0, start=clock.now(), host_spacing=0.01)
    add_pages(engine, Rules(), [f"https://a.example/{k}" for k in range(200)], clock.now())
    crawler = Crawler(engine, store, web, CrawlOptions(), clock=clock)

    async def run():
        await store.save(rows=engine.rows())
        await clock.drive(crawler.run(until=1e9 + 500.0))
        return [one async for one in store.observations()]

    outcomes = asyncio.run(run())
    crawler.close()
    assert {one.requests for one in outcomes} == {1 + n_further}
    assert sum(one.requests for one in outcomes) == pytest.approx(1000, rel=0.03)


class Route:
    """What the browser learns about one request."""

    def __init__(self):
        self.status = None

    async def fulfill(self, status, headers, body):
        self.status = status

    async def abort(self, why):
        self.status = why


def test_what_scripts_were_refused_is_known():
    """An answer that asks to come later reaches the page, and whoever decides when the host is asked again."""
    busy = Answer(status=429, body=b"later", headers={"retry-after": "90"})
    web = MemoryWeb(lambda url, now: busy if "busy" in url else "data", ManualClock(1e9))
    rendering = Rendering(PLAIN, web, LIMITS)

    async def asked(url):
        request = SimpleNamespace(url=url, resource_type="fetch", method="GET", headers={})
        request.is_navigation_request = lambda: False
        route = Route()
        await rendering.answer(route, request)
        return route.status

    assert asyncio.run(asked("https://api.example/busy")) == 429
    assert asyncio.run(asked("https://api.example/data")) == 200
    (refused,) = rendering.failed
    assert (refused.url, refused.failure, refused.retry_after, refused.body) == (
        "https://api.example/busy", "busy", 90.0, b"",
    )  # fmt: skip


def test_a_host_that_asks_scripts_to_come_later_is_left_alone():
    refused = Fetched("https://api.example/x", "https://api.example/x", 429, 1e9, 0.1, failure="busy", retry_after=90.0)

    class ScriptedWeb(MemoryWeb):
        async def fetch(self, url, **known):
            fetched = await super().fetch(url, **known)
            if url != "https://a.example/p" or any(at > 1e9 + 60.0 for at, _ in self.requests):
                return fetched
            return replace(fetched, beside=(refused.url,), failed_beside=(refused,))

    clock, store = ManualClock(1e9), MemoryStore()
    web = ScriptedWeb(lambda url, now: f"<main><p>{url} at {now}</p></main>", clock)
    engine = Engine(1.0, start=clock.now(), host_spacing=1.0)
    urls = ["https://a.example/p", *(f"https://api.example/{k}" for k in range(20))]
    add_pages(engine, Rules(), urls, clock.now())
    crawler = Crawler(engine, store, web, CrawlOptions(), clock=clock)

    async def run():
        await store.save(rows=engine.rows())
        await clock.drive(crawler.run(until=1e9 + 400.0))

    asyncio.run(run())
    crawler.close()
    scripted = max(at for at, url in web.requests if url == "https://a.example/p" and at <= 1e9 + 60.0)
    after = sorted(at for at, url in web.requests if url.startswith("https://api.") and at > scripted)
    assert after[0] >= scripted + 90.0
    assert len(after) >= 20


def test_hosts_rest_for_one_delay_for_each_request_of_scripts():
    """Scripts of each page ask its own host four times and another host, which has a page too, once."""

    class ScriptedWeb(MemoryWeb):
        async def fetch(self, url, **known):
            fetched = await super().fetch(url, **known)
            if not url.startswith("https://a.example/p"):
                return fetched
            further = (*(f"https://a.example/data/{k}" for k in range(4)), "https://api.example/data")
            return replace(fetched, beside=further)

    clock, store, delay = ManualClock(1e9), MemoryStore(), 2.0
    web = ScriptedWeb(lambda url, now: f"<main><p>{url} at {now}</p></main>", clock)
    engine = Engine(100.0, start=clock.now(), host_spacing=delay)
    urls = [*(f"https://a.example/p{k}" for k in range(5)), *(f"https://api.example/{k}" for k in range(50))]
    add_pages(engine, Rules(), urls, clock.now())
    crawler = Crawler(engine, store, web, CrawlOptions(), clock=clock)

    async def run():
        await store.save(rows=engine.rows())
        await clock.drive(crawler.run(until=1e9 + 200.0))
        return [one async for one in store.observations()]

    outcomes = asyncio.run(run())
    crawler.close()
    scripted = sorted(one.began_at for one in outcomes if one.url.startswith("https://a."))
    others = sorted(one.began_at for one in outcomes if one.url.startswith("https://api."))
    assert min(b - a for a, b in pairwise(scripted)) >= 5 * delay
    assert len(scripted) >= 15, "and it does not rest for longer"
    spent = len(others) + len(scripted)
    assert spent <= 200.0 / delay + 1
    assert len(others) >= 50
