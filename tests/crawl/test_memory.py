"""The web in memory answers as the one over HTTP does, and the clock moves as it is set."""

import asyncio
import time

import pytest
from aiohttp import web

from crawl.servers import fetching, serving
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.http.memory import Answer, ManualClock, MemoryWeb

PAGES = {
    "/": Answer("<p>home", headers={"Content-Type": "text/html; charset=utf-8"}),
    "/tag": Answer("tagged", headers={"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    "/weak": Answer("weak", headers={"ETag": 'W/"1"'}),
    "/dated": Answer("dated", headers={"Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    "/gone": Answer(status=410),
    "/missing": Answer(status=404),
    "/busy": Answer(status=503, headers={"Retry-After": "5"}),
    "/late": Answer(status=429, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    "/broken": Answer(status=500),
    "/no": Answer(status=403),
    "/moved": Answer(status=301, headers={"Location": "/tag"}),
    "/far": Answer(status=302, headers={"Location": "/moved#x"}),
    "/circle": Answer(status=302, headers={"Location": "/circle"}),
    "/away": Answer(status=302, headers={"Location": "ftp://a.example/"}),
    "/nowhere": Answer(status=302),
    "/part": Answer("x", status=206),
    "/empty": Answer(status=204),
}
SEEN = ("status", "body", "not_modified", "failure", "gone", "retry_after")


def seen(fetched, origin):
    found = {name: getattr(fetched, name) for name in SEEN}
    return {
        **found,
        "redirects": [url.removeprefix(origin) for url in fetched.redirects],
        "final_url": fetched.final_url.removeprefix(origin),
        "etag": fetched.headers.get("etag"),
    }


async def over_http(path, **validators):
    async def answer(request):
        given = PAGES[request.path]
        response = web.Response(body=given.body, status=given.status, headers=given.headers)
        if given.status == 200:
            asked, had = request.headers.get("If-None-Match"), given.headers.get("ETag")
            if asked and had:
                fresh = asked.removeprefix("W/") == had.removeprefix("W/")
            else:
                date = request.headers.get("If-Modified-Since")
                fresh = date is not None and date == given.headers.get("Last-Modified")
            if fresh:
                response = web.Response(status=304, headers=given.headers)
        return response

    async with serving(answer) as origin, fetching() as fetcher:
        return seen(await fetcher.fetch(origin + path, **validators), origin)


async def in_memory(path, **validators):
    origin = "http://a.example"
    pages = {origin + path: lambda url, now: PAGES[url.removeprefix("http://a.example")] for path in PAGES}
    fetched = await MemoryWeb(pages, ManualClock(1e6)).fetch(origin + path, **validators)
    return seen(fetched, origin)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "validators",
    [{}, {"etag": '"1"'}, {"etag": 'W/"1"'}, {"etag": '"2"'}, {"last_modified": "Thu, 01 Jan 1970 00:00:00 GMT"}],
    ids=["none", "etag", "weak etag", "old etag", "date"],
)
def test_both_webs_answer_alike(path, validators):
    assert asyncio.run(in_memory(path, **validators)) == asyncio.run(over_http(path, **validators))


def fetched(given, **options):
    web = MemoryWeb(lambda url, now: given, ManualClock(10.0))
    return asyncio.run(web.fetch("http://a.example/", **options))


def test_what_a_page_may_return():
    assert fetched("text").text() == "text"
    assert fetched(b"bytes").body == b"bytes"
    assert fetched(None).gone
    assert fetched(Answer(failure="timeout")).failure == "timeout"
    assert fetched("text").began_at == 10.0


def test_unknown_urls_are_not_found():
    web = MemoryWeb({}, ManualClock())
    assert asyncio.run(web.fetch("http://a.example/robots.txt")).status == 404
    assert web.requests == [(0.0, "http://a.example/robots.txt")]


def test_a_url_that_is_none():
    assert fetched_url("nonsense").failure == "bad-url"


def fetched_url(url):
    return asyncio.run(MemoryWeb({}, ManualClock()).fetch(url))


def test_answers_take_their_time():
    clock = ManualClock()
    web = MemoryWeb(lambda url, now: Answer("x", took=3.0), clock)
    found = asyncio.run(clock.drive(web.fetch("http://a.example/")))
    assert (found.began_at, found.took, clock.now()) == (0.0, 3.0, 3.0)


def test_sleepers_wake_in_order_each_at_its_instant():
    clock = ManualClock()
    woken = []

    async def sleeper(name, *naps):
        for nap in naps:
            await clock.sleep(nap)
            woken.append((clock.now(), name))

    async def main():
        tasks = [asyncio.create_task(sleeper(*one)) for one in [("a", 3.0, 3.0), ("b", 1.0, 1.0, 9.0), ("c", 3.0)]]
        await clock.advance(6.0)
        assert clock.now() == 6.0
        for task in tasks:
            task.cancel()

    asyncio.run(main())
    assert woken == [(1.0, "b"), (2.0, "b"), (3.0, "a"), (3.0, "c"), (6.0, "a")]


def test_a_sleeper_that_is_cancelled_holds_up_nobody():
    clock = ManualClock()

    async def main():
        sleeper = asyncio.create_task(clock.sleep(100.0))
        await clock.sleep(1.0)
        sleeper.cancel()
        await clock.sleep(1.0)
        return clock.now()

    assert asyncio.run(clock.drive(main())) == 2.0


def test_the_clock_waits_for_what_is_held():
    clock = ManualClock()

    async def worker():
        with clock.hold():
            await asyncio.to_thread(time.sleep, 0.05)
        return clock.now()

    async def main():
        task = asyncio.create_task(worker())
        await clock.sleep(10.0)
        return await task

    assert asyncio.run(clock.drive(main())) == 0.0


def test_what_is_driven_may_wait_for_a_thread():
    clock = ManualClock()

    async def main():
        await asyncio.to_thread(time.sleep, 0.02)
        await clock.sleep(5.0)
        return clock.now()

    assert asyncio.run(clock.drive(main())) == 5.0


def test_an_error_comes_out_of_drive():
    clock = ManualClock()

    async def main():
        await clock.sleep(1.0)
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(clock.drive(main()))


def test_no_time_at_all():
    clock = ManualClock(5.0)

    async def main():
        await clock.sleep(0.0)
        await clock.sleep(-1.0)
        return clock.now()

    assert asyncio.run(clock.drive(main())) == 5.0


def test_a_long_chain_settles_before_the_clock_moves():
    clock = ManualClock()
    log = []

    async def deep(n):
        if n:
            await asyncio.create_task(deep(n - 1))
        else:
            log.append(clock.now())

    async def main():
        task = asyncio.create_task(clock.sleep(1.0))
        await deep(200)
        await task

    asyncio.run(clock.drive(main()))
    assert log == [0.0]


def test_the_systems_clock(monkeypatch):
    clock = SystemClock()
    earlier, now, later = time.time(), clock.now(), time.time()
    assert earlier - 0.5 < now < later + 0.5
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert clock.now() >= before
    asyncio.run(clock.sleep(-1.0))
