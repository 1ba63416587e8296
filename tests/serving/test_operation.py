"""Metrics and health of a crawl, by real requests on loopback."""

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from crawl.driving import URLS, World, changing
from prometheus_client.parser import text_string_to_metric_families

from recrawl._compile import compiling
from recrawl.crawl.signals.tokens import new_token
from recrawl.serve import Context, Front, HttpServer, build_app
from recrawl.serve.metrics import MOST_HOSTS, CrawlCollector, metric_names
from recrawl.store import Subscriber

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
MANY = [f"https://h{k % 25}.example/{k}" for k in range(75)]


class Scraped:
    """A crawl that has run, and its HTTP interface."""

    def __init__(self, world, crawler, client, server):
        self.world, self.crawler, self.client, self.server = world, crawler, client, server

    async def get(self, path, token=None):
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        async with self.client.get(self.server.url + path, headers=headers) as answer:
            return answer.status, answer.headers, await answer.text()

    async def metrics(self):
        """Samples by name and labels."""
        status, headers, text = await self.get("/metrics", self.token)
        assert status == 200
        assert headers["content-type"].startswith("text/plain; version=")
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        return {(one.name, *one.labels.values()): one.value for one in samples}, text


@asynccontextmanager
async def crawled(urls, n, **options):
    """A crawl of n pages by the manual clock, then its interface."""
    world = World(changing, budget=5.0, delay=0.1, robots=False)
    from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages

    settings = {"budget": 5.0, "host_spacing": 0.1, "min_change_probability": 0.0}
    store = world.store.store
    engine = await open_engine(store, world.clock.now(), rules=world.rules, **settings)
    await save_pages(engine, store, add_pages(engine, world.rules, list(urls), world.clock.now()))
    from recrawl.crawl.config.options import CrawlOptions
    from recrawl.crawl.run.crawler import Crawler

    crawler = Crawler(engine, store, world.web, CrawlOptions(**options), clock=world.clock)
    await world.clock.drive(crawler.run(n=n))
    parts = crawler.components
    text, token = new_token("prometheus", ["signal"], 0.0)
    parts.tokens.set("prometheus", replace(token, scopes=("read",)))
    context = Context(
        store, parts.inbox, parts.tokens, metrics=CrawlCollector(parts), why_not_ready=parts.why_not_ready
    )
    server = HttpServer(build_app(context), "127.0.0.1:0")
    await server.start()
    try:
        async with aiohttp.ClientSession() as client:
            one = Scraped(world, crawler, client, server)
            one.token = text
            yield one
    finally:
        await server.close()
        crawler.close()


def with_crawl(test, urls=MANY, n=100, **options):
    async def main():
        async with crawled(urls, n, **options) as one:
            await test(one)

    asyncio.run(main())


def test_metrics_are_the_counters_of_the_crawl():
    async def test(one):
        found, text = await one.metrics()
        counters, budget = one.crawler.counters, one.crawler.budget
        assert found["recrawl_crawls_started_total",] == counters.started == 100
        by_outcome = {name: found["recrawl_crawls_total", name] for name in ("changed", "unchanged", "new")}
        assert by_outcome == {name: getattr(counters, name) for name in by_outcome}
        assert sum(by_outcome.values()) == 100
        assert found["recrawl_requests_total",] == found["recrawl_budget_used_total",] == budget.used
        assert found["recrawl_pages",] == 75
        assert found["recrawl_outcomes_committed_total",] == 100
        assert found["recrawl_outcomes_pending",] == found["recrawl_store_lag_seconds",] == 0
        assert found["recrawl_events_total",] == found["recrawl_events_kept",] == 75 + counters.changed
        assert found["recrawl_budget_rate",] == 5.0
        hosts = [key for key in found if key[0] == "recrawl_host_crawls_total"]
        assert len(hosts) == MOST_HOSTS < 25
        assert "example/" not in text, "no label per URL"
        assert one.token not in text

    with_crawl(test)


def test_deliveries_are_measured():
    async def refuse(events, missed):
        raise RuntimeError("down")

    async def test(one):
        found, _ = await one.metrics()
        assert found["recrawl_subscriber_failures", "index"] >= 1
        assert found["recrawl_subscriber_behind", "index"] == found["recrawl_events_total",] > 0
        delivery = one.crawler.components.deliveries._all[0]
        delivery.subscriber = Subscriber("index", cursor=int(found["recrawl_events_total",]))
        found, _ = await one.metrics()
        assert found["recrawl_subscriber_behind", "index"] == 0

    with_crawl(test, MANY[:5], 5, subscribers={"index": refuse})


def test_every_metric_is_documented_and_exists():
    async def test(one):
        _, text = await one.metrics()
        served = set(re.findall(r"^# TYPE (\S+)", text, re.M))
        documented = re.findall(r"^\| `(\w+)` \|", DOCS.read_text(encoding="utf-8"), re.M)
        assert sorted(documented) == sorted(set(documented)), "each once"
        assert {name for name in documented if name.startswith("recrawl_")} == set(metric_names())
        assert served == set(documented)

    with_crawl(test, MANY[:3], 3)


def test_a_scrape_costs_the_same_whatever_the_number_of_pages():
    """No page is visited, no forecast and no ledger is computed: as many calls for 50 pages as for 2000."""
    calls = []

    async def test(one):
        await one.metrics()
        names = []
        sys.setprofile(lambda frame, kind, _: names.append(frame.f_code.co_qualname) if kind == "call" else None)
        try:
            await one.get("/metrics", one.token)
        finally:
            sys.setprofile(None)
        assert not [name for name in names if re.search("forecast|ledger|reported_freshness|expected", name)]
        calls.append(len(names))

    for n in (50, 2000):
        with_crawl(test, [f"https://h{k % 25}.example/{k}" for k in range(n)], 50)
    assert calls[1] < 1.5 * calls[0], calls


def test_health_and_readiness():
    async def test(one):
        assert (await one.get("/healthz"))[::2] == (200, "ok\n")
        assert (await one.get("/readyz"))[::2] == (200, "ready\n")
        one.crawler.stop()
        status, headers, text = await one.get("/readyz")
        assert (status, "the crawl is ending" in text) == (503, True)
        assert int(headers["retry-after"]) > 0
        assert (await one.get("/healthz"))[0] == 200
        assert (await one.get("/metrics"))[0] == 401
        assert (await one.get("/metrics", "wrong"))[0] == 401

    with_crawl(test, URLS[:2], 2)


def test_the_front_answers_until_the_socket_is_handed_over():
    async def main():
        front = Front("127.0.0.1:0")
        url = f"http://127.0.0.1:{front.port}"
        async with aiohttp.ClientSession() as client:

            async def status(path, method="GET"):
                async with client.request(method, url + path) as answer:
                    return answer.status

            assert [await status(path) for path in ("/healthz", "/readyz", "/metrics")] == [200, 503, 503]
            assert await status("/v1/signals", "POST") == 503
            async with client.get(url + "/readyz", headers={"host": "evil.example"}) as answer:
                assert answer.status == 421
            listening = front.handed_over()
            waiting = asyncio.ensure_future(status("/healthz"))  # comes between the two servers
            await asyncio.sleep(0)
            server = HttpServer(build_starting(), listening)
            await server.start()
            assert await waiting == 200
            assert server.url == url
            await server.close()

    from recrawl.serve.health import starting_app as build_starting

    asyncio.run(main())


def test_people_see_what_is_being_prepared(monkeypatch):
    async def look(url, path, **headers):
        async with aiohttp.ClientSession() as client, client.get(url + path, headers=headers) as answer:
            return answer.status, answer.headers, await answer.text()

    front = Front("127.0.0.1:0")
    url, browser = f"http://127.0.0.1:{front.port}", {"accept": "text/html,*/*;q=0.8"}
    try:
        status, headers, text = asyncio.run(look(url, "/sign-in", **browser))
        assert (status, headers["refresh"], headers["retry-after"]) == (503, "2", "2")
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert "the engine is being loaded" in text
        assert asyncio.run(look(url, "/static/dashboard.css"))[0] == 200
        under_way = compiling.Progress(done=3, left=40, now="picking.pick", kept=True)
        monkeypatch.setattr(compiling, "progress", lambda: under_way)
        for path, sent in (("/", browser), ("/readyz", {}), ("/v1/status", {})):
            status, headers, text = asyncio.run(look(url, path, **sent))
            assert (status, str(under_way) in text) == (503, True), path
        assert headers["content-type"] == "application/problem+json"
    finally:
        front.close()


def test_the_front_ends_where_nothing_is_loaded():
    front = Front("127.0.0.1:0")
    port = front.port
    front.close()
    again = Front(f"127.0.0.1:{port}")
    assert again.port == port
    again.close()
