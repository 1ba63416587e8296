"""Requests beside crawls: as polite as crawls, counted, and to public addresses only."""

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from aiohttp import web

from crawl.driving import World
from crawl.servers import AGENT, Names, fetching, serving
from recrawl.crawl.http import connect
from recrawl.crawl.http.fetcher import HttpFetcher, Limits
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.listings.streaming import ListingBody
from recrawl.crawl.polite.side_requests import SideRequests

FILE = "https://a.example/key.txt"


def asked(pages, url=FILE, **options):
    """What a side request gets in a world that crawls one page of the same host, and the world."""
    world = World(lambda at, now: pages.get(at), [f"https://{host}.example/page" for host in "ab"], **options)
    crawler, found = world.crawler(), []

    async def main():
        components, counted = crawler.components, []
        side = SideRequests(world.web, components.gate, components.clock, counted.append)

        async def ask():
            found.append(await side.get(url))
            found.append(sum(counted))
            crawler.stop()

        task = asyncio.create_task(ask())
        await world.clock.drive(crawler.run(world.clock.now() + 3600.0))
        await task

    asyncio.run(main())
    crawler.close()
    return found[0], found[1], world


def times(world, *urls):
    return [at for at, url in world.web.requests if url in urls]


def test_a_file_is_fetched_after_robots_txt_within_delay_and_budget():
    fetched, n, world = asked({FILE: "key", "https://a.example/page": "x", "https://b.example/page": "x"}, delay=5.0)
    assert fetched.body == b"key"
    of_host = sorted(at for at, url in world.web.requests if url.startswith("https://a.example/"))
    assert all(after - before >= 5.0 for before, after in pairwise(of_host))
    assert len(times(world, "https://a.example/robots.txt")) == 1
    assert n in (1, 2)  # robots.txt is read by whoever comes first


def test_robots_txt_is_obeyed():
    robots = "User-agent: *\nDisallow: /key.txt"
    fetched, _, world = asked({FILE: "key", "https://a.example/robots.txt": robots})
    assert fetched.failure == "robots"
    assert times(world, FILE) == []


@pytest.mark.parametrize(
    ("goal", "body"), [("/moved.txt", b"key"), ("https://b.example/key.txt", b""), ("/key.txt", b"")]
)
def test_redirects_are_followed_within_the_host(goal, body):
    pages = {FILE: Answer(status=302, headers={"location": goal}), "https://a.example/moved.txt": "key"}
    pages["https://b.example/key.txt"] = "key"
    fetched, _, world = asked(pages)
    assert fetched.body == body
    assert times(world, "https://b.example/key.txt") == []


@asynccontextmanager
async def posting(answers, **options):
    """A fetcher and the forms that a server got, whose paths answer with (status, location)."""
    got = []

    async def answer(request):
        got.append((request.path, dict(await request.post())))
        status, location = answers.get(request.path, (202, None))
        return web.Response(status=status, headers={"location": location} if location else {})

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fetcher = HttpFetcher(AGENT, **{"allow_private": True, "limits": Limits(total=60.0), **options})
    try:
        yield fetcher, f"http://127.0.0.1:{runner.addresses[0][1]}", got
    finally:
        await fetcher.close()
        await runner.cleanup()


def test_a_form_is_sent_also_after_redirects_that_keep_the_method():
    async def main():
        async with posting({"/old": (307, "/older"), "/older": (308, "/new"), "/see": (302, "/new")}) as (
            http,
            at,
            got,
        ):
            sent = await http.post(f"{at}/old", {"hub.mode": "subscribe", "hub.topic": "https://ä.example/?a=b&c"})
            assert (sent.status, sent.failure) == (202, None)
            assert got[-1] == ("/new", {"hub.mode": "subscribe", "hub.topic": "https://ä.example/?a=b&c"})
            assert (await http.post(f"{at}/see", {})).failure == "bad-response"
            assert len(got) == 4

    asyncio.run(main())


def test_forms_are_sent_to_public_addresses_only():
    async def main():
        async with posting({}, allow_private=False, resolver=Names(hub_example=[["127.0.0.1"]])) as (http, at, got):
            port = at.rpartition(":")[2]
            for host in ("127.0.0.1", "[::1]", "2130706433", "hub.example", "169.254.169.254"):
                assert (await http.post(f"http://{host}:{port}/", {"a": "b"})).failure == "forbidden-address"
            assert got == []

    asyncio.run(main())


def test_a_hub_at_a_private_address_after_a_redirect_or_another_lookup(monkeypatch):
    monkeypatch.setattr(connect, "is_public", lambda address: address == "127.0.0.1")  # 127.0.0.2 stands for private

    async def main():
        names = Names(hub_example=[["127.0.0.1"], ["127.0.0.2"]])
        answers = {"/away": (307, "http://127.0.0.2/"), "/named": (307, "http://two.example/")}
        limits = Limits(total=5.0, dns=0)
        names._names["two.example"] = [["127.0.0.2"]]
        async with posting(answers, allow_private=False, resolver=names, limits=limits) as (http, at, got):
            hub = f"http://hub.example:{at.rpartition(':')[2]}"
            assert (await http.post(f"{hub}/", {"n": "1"})).status == 202
            assert (await http.post(f"{at}/away", {"n": "2"})).failure == "forbidden-address"
            assert (await http.post(f"{at}/named", {"n": "3"})).failure == "forbidden-address"
            await http._session.close()  # its connection would be used again
            http._session = None
            assert (await http.post(f"{hub}/", {"n": "4"})).failure == "forbidden-address"
            assert [form["n"] for _, form in got] == ["1", "2", "3"]

    asyncio.run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_key_files_and_listings_at_private_addresses_after_a_redirect_or_another_lookup(monkeypatch, streamed):
    monkeypatch.setattr(connect, "is_public", lambda address: address == "127.0.0.1")  # 127.0.0.2 stands for private
    asked = []

    async def answer(request):
        asked.append(request.path)
        goals = {"/away": "http://127.0.0.2/", "/named": "http://two.example/"}
        if request.path in goals:
            return web.Response(status=302, headers={"location": goals[request.path]})
        return web.Response(text="https://a.example/1", headers={"connection": "close"})

    async def main():
        names = Names(one_example=[["127.0.0.1"], ["127.0.0.2"]], two_example=[["127.0.0.2"]])
        limits = Limits(total=5.0, dns=0)
        async with serving(answer) as at, fetching(allow_private=False, resolver=names, limits=limits) as http:

            async def get(url):
                return await (http.stream(url, ListingBody("sitemap", 1 << 20)) if streamed else http.fetch(url))

            one = f"http://one.example:{at.rpartition(':')[2]}/file"
            assert (await get(one)).body == b"https://a.example/1"
            found = [(await get(url)).failure for url in (f"{at}/away", f"{at}/named", one, "http://10.0.0.1/")]
            assert found == ["forbidden-address"] * 4

    asyncio.run(main())
    assert asked == ["/file", "/away", "/named"]
