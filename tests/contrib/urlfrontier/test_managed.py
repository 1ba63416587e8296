"""Managed crawls: what a put teaches, who gets which page, what a restart and another mode do."""

import pytest

from recrawl.contrib.urlfrontier import Modes
from recrawl.contrib.urlfrontier.api.wire import OK, SKIPPED, AnyCrawlID
from recrawl.contrib.urlfrontier.batches import Discovered
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.managed.backlog import Backlog
from recrawl.contrib.urlfrontier.managed.observations import report_of
from recrawl.contrib.urlfrontier.testing.bench import discovered, known
from recrawl.desk import Report
from tests.contrib.urlfrontier.services import World, served
from tests.desk.desks import START

FAR = START + 1e6
MANAGED = Modes.of(managed=["news"])


def metadata(**values):
    """Metadata as they are stored; names are those of StormCrawler."""
    names = {"status": "fetch.statusCode", "cause": "error.cause", "count": "fetch.error.count", "goal": "_redirTo"}
    item = discovered("http://a/", "", metadata={names.get(name, name): [value] for name, value in values.items()})
    item.discovered.info.ClearField("url")
    return item.discovered.info.SerializeToString()


@pytest.mark.parametrize(
    ("date", "given", "report"),
    [
        (9, {"status": "200", "signature": "a"}, Report("x", 200, digest="a")),
        (9, {"signature": "a"}, Report("x", 200, digest="a")),
        (9, {}, Report("x", 200)),
        (0, {"signature": "a"}, Report("x", 200, digest="a")),
        (9, {"status": "304", "signature": "a"}, Report("x", 304)),
        (9, {"status": "301", "goal": "http://b/", "signature": "a"}, Report("x", 200, digest="http://b/")),
        (9, {"status": "404"}, Report("x", 404)),
        (0, {"status": "404", "cause": "HTTP_404"}, Report("x", 404)),
        (0, {"cause": "maxFetchErrors", "status": "500"}, Report("x", 410)),
        (9, {"status": "503", "signature": "a"}, Report("x", 503)),
        (9, {"count": "1", "signature": "a"}, Report("x", error="bad-response")),
        (9, {"cause": "x"}, Report("x", error="bad-response")),
        (9, {"status": "206"}, Report("x", 206)),
        (9, {"status": "٣٠٤"}, Report("x", 200)),
        (9, {"status": "99999"}, Report("x", 200)),
        (9, {"status": "", "signature": ""}, Report("x", 200)),
    ],
)
def test_what_a_put_is_recorded_as(date, given, report):
    found = report_of("x", date, metadata(**given))
    assert found == report
    found.check(0)


async def put(client, *items):
    return [ack.status async for ack in client.PutURLs(iter(items))]


async def get(client, **fields):
    asked = {"crawlID": "news", **fields}
    return [info.url async for info in client.GetURLs(**asked)]


def fetched(url, date=FAR, **values):
    names = {"status": "fetch.statusCode", "cause": "error.cause"}
    return known(url, "news", date, metadata={names.get(name, name): [value] for name, value in values.items()})


def test_a_put_is_an_observation_of_the_last_lease(tmp_path):
    url = "http://a.example/page"

    async def test(world, client):
        await put(client, discovered(url, "news", "example"))
        for day, signature in enumerate(("one", "one", "two")):
            world.clock._now = START + 86400.0 * (day + 1)
            assert await get(client) == [url]
            await put(client, fetched(url, status="200", signature=signature), fetched(url, signature="other"))
        found = [(one.status, one.changed) for one in await world.desks.listed()]
        assert found == [(200, None), (200, False), (200, True)], "a lease teaches once"
        world.clock._now += 86400.0
        assert await get(client) == [url]
        await put(client, fetched(url, date=0, cause="HTTP_410"))
        assert (await world.desks.listed())[-1].gone
        stats = await client.GetStats(crawlID="news")
        assert (stats.size, stats.counts["completed"]) == (0, 1)

    served(test, tmp_path, MANAGED)


def test_without_status_and_signature_a_put_renews_the_copy_and_teaches_nothing(tmp_path):
    url = "http://a.example/"

    async def test(world, client):
        await put(client, discovered(url, "news"))
        for day in range(3):
            world.clock._now = START + 86400.0 * (day + 1)
            assert await get(client) == [url]
            await put(client, fetched(url))
        assert [one.changed for one in await world.desks.listed()] == [None] * 3
        engine = world.desks.crawler.engine
        (fresh,) = engine.fresh(engine.ids(), world.clock.now())
        assert fresh > 0.9, "the copy is of today"

    served(test, tmp_path, MANAGED)


def test_a_url_that_is_gone_and_was_not_served_is_no_page_until_it_is_put_again(tmp_path):
    url = "http://a.example/"

    async def test(world, client):
        engine = world.desks.crawler.engine
        assert await put(client, discovered(url, "news"), fetched("http://b.example/", 0, cause="x")) == [OK, OK]
        assert len(engine) == 1
        assert await put(client, fetched(url, 0, cause="x"), discovered(url, "news")) == [OK, SKIPPED]
        assert len(engine) == 0
        assert await get(client) == []
        assert (await client.GetStats(crawlID="news")).counts["completed"] == 2
        assert await put(client, fetched(url)) == [OK]
        assert await get(client) == [url]
        assert (await client.GetStats(crawlID="news")).counts["completed"] == 1

    served(test, tmp_path, MANAGED)


def test_one_page_whatever_its_spelling_and_queue(tmp_path):
    async def test(world, client):
        first = [discovered("HTTP://A.example:80/x/../y", "news", "domain"), discovered("http://a.example/y", "news")]
        assert await put(client, *first) == [OK, SKIPPED]
        assert await put(client, discovered("ftp://a.example/y", "news")) == [SKIPPED], "no page of the web"
        assert await put(client, discovered("ftp://a.example/y", "other")) == [OK], "a strict crawl takes what it gets"
        assert await get(client) == ["HTTP://A.example:80/x/../y"], "as it was put"
        assert await put(client, known("http://a.example/y", "news", FAR, "moved")) == [OK]
        assert list((await client.ListQueues(crawlID="news")).values) == ["moved"]
        assert len(await world.desks.listed()) == 1, "the lease is found by the page"
        both = [discovered("http://b.example/", "news"), known("http://b.example/", "news", FAR)]
        assert await put(client, *both) == [OK, OK]
        assert (await client.CountURLs(crawlID="news")).value == 2

    served(test, tmp_path, MANAGED)


def test_strict_and_managed_crawls_are_served_together(tmp_path):
    async def test(world, client):
        await put(client, *(discovered(f"http://h{k}.example/", crawl) for k in range(2) for crawl in ("news", "old")))
        found = [(info.crawlID, info.url) async for info in client.GetURLs(anyCrawlID=AnyCrawlID())]
        assert sorted(found) == [(c, f"http://h{k}.example/") for c in ("news", "old") for k in range(2)]
        assert (await client.DeleteCrawl(value="news")).value == 2
        await world.service.crawls.swept()
        assert len(world.desks.crawler.engine) == 0, "no crawl has these pages"

    served(test, tmp_path, MANAGED)


def test_a_page_of_two_managed_crawls_stays_while_one_has_it(tmp_path):
    async def test(world, client):
        await put(client, *(discovered("http://a.example/", crawl) for crawl in ("one", "two")))
        await client.DeleteQueue(crawlID="one", key="a.example")
        await world.service.crawls.swept()
        assert len(world.desks.crawler.engine) == 1
        await client.PurgeURLs(crawlID="two", days=0)
        world.clock._now += 2.0
        assert (await client.PurgeURLs(crawlID="two", days=0)).value == 1
        assert len(world.desks.crawler.engine) == 0

    served(test, tmp_path, Modes.of("managed"))


@pytest.mark.parametrize("by", ["queue", "crawl", "put"])
def test_a_page_that_leaves_while_it_is_served_leaves_no_lease(tmp_path, by):
    """Added again, it is a new page that nobody holds: it is served at once, not when the old lease has ended."""

    async def test(world, client):
        urls, desk = ["http://a.example/1", "http://b.example/2"], world.desks.desk
        await put(client, *(discovered(url, "news") for url in urls))
        assert sorted(await get(client, delay_requestable=600)) == urls
        assert desk.n_held == 2
        if by == "queue":
            await client.DeleteQueue(crawlID="news", key="a.example")
        elif by == "crawl":
            await client.DeleteCrawl(value="news")
        else:
            await put(client, fetched(urls[0], date=0, cause="HTTP_410"))
        await world.service.crawls.swept()
        kept = [] if by == "crawl" else urls[1:]
        assert (desk.n_held, len(desk.leases_of(urls))) == (len(kept), len(kept))
        world.clock._now += 5.0
        await world.service.crawls.swept()
        assert [one.url for one in await world.desks.store.leases()] == kept
        await put(client, discovered(urls[0], "news"))
        assert await get(client) == ([] if by == "put" else urls[:1])

    served(test, tmp_path, MANAGED)


def test_a_strict_crawl_can_become_managed_and_strict_again(tmp_path):
    async def test(world, client):
        await put(client, *(known(f"http://h{k}.example/", "news", FAR) for k in range(3)), known("x://y", "news", 1))
        managed = World(tmp_path, MANAGED)
        await world.close()
        await managed.open()
        try:
            assert len(managed.desks.crawler.engine) == 3
            found = await managed.service.crawls.take("news", _ask())
            assert len(found) == 3, "the client's dates do not decide"
        finally:
            await managed.close()
        again = World(tmp_path)
        await again.open()
        assert [one.row.url for one in await again.service.crawls.take("news", _ask())] == ["x://y"]
        await again.close()

    served(test, tmp_path)


def _ask():
    from recrawl.contrib.urlfrontier.frontier import Ask

    return Ask(100, 100, 30.0)


def test_discovered_urls_are_served_at_once_also_while_many_wait(tmp_path, monkeypatch):
    async def no_lull(backlog):
        """No pages are made but for calls."""

    monkeypatch.setattr(Backlog, "_settle_in_lulls", no_lull)

    async def test(world, client):
        crawls = world.service.crawls
        puts = [Put("news", f"h{k % 4}.example", f"http://h{k % 4}.example/{k}", None, b"") for k in range(3000)]
        assert set(await crawls.arrive(Discovered.of(puts))) == {OK}
        assert len(world.desks.crawler.engine) == 0
        assert len(await get(client, max_urls_per_queue=1)) == 4
        assert 0 < len(world.desks.crawler.engine) < 3000, "some become pages for a call"
        again = [discovered(put.url, "news") for put in puts[2990:]]
        assert set(await put(client, *again)) == {SKIPPED}, "they are known, pages or not"
        assert len(world.desks.crawler.engine) == 3000
        assert (await client.CountURLs(crawlID="news")).value == 3000

    served(test, tmp_path, MANAGED)
