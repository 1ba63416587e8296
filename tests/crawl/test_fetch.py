"""What a fetch brings back from a server that answers."""

import asyncio
import gzip
import time

import pytest
from aiohttp import web

from crawl.servers import AGENT, Names, fetching, serving, speaking
from recrawl.crawl.http.fetcher import HttpFetcher, Limits
from recrawl.crawl.http.memory import ManualClock
from recrawl.errors import ParameterError


def get(answer, path="/", *, limits=None, **options):
    """Fetch a path from a server that answers by a function."""

    async def main():
        async with serving(answer) as origin, fetching(limits=limits or Limits(total=60.0)) as fetcher:
            return await fetcher.fetch(origin + path, **options)

    return asyncio.run(main())


def always(**response):
    async def answer(request):
        return web.Response(**response)

    return answer


def test_a_page():
    began = time.monotonic()
    fetched = get(always(text="héllo", headers={"X-Twice": "a", "Set-Cookie": "id=1"}), "/a?b=c")
    assert (fetched.status, fetched.body, fetched.text()) == (200, "héllo".encode(), "héllo")
    assert fetched.failure is None
    assert not fetched.not_modified
    assert not fetched.gone
    assert fetched.headers["x-twice"] == "a"
    assert "set-cookie" not in fetched.headers
    assert fetched.url == fetched.final_url
    assert 0 < fetched.took < time.monotonic() - began


def test_headers_that_come_twice_are_joined():
    async def answer(request):
        response = web.Response(text="x")
        response.headers.add("Vary", "Accept")
        response.headers.add("Vary", "Cookie")
        return response

    assert get(answer).headers["vary"] == "Accept, Cookie"


def test_what_is_sent():
    async def answer(request):
        return web.json_response(dict(request.headers))

    sent = get(answer, headers={"X-Rule": "one"}, etag='"e"', last_modified="Thu, 01 Jan 1970 00:00:00 GMT").text()
    for part in (
        AGENT,
        '"X-Rule": "one"',
        '"If-None-Match": "\\"e\\""',
        "If-Modified-Since",
        "gzip, deflate, br, zstd",
    ):
        assert part in sent


def test_a_rule_may_replace_the_user_agent():
    async def answer(request):
        return web.Response(text=request.headers["User-Agent"])

    assert get(answer, headers={"User-Agent": "other/2"}).text() == "other/2"


def test_not_modified():
    async def answer(request):
        status = 304 if request.headers.get("If-None-Match") == '"a"' else 200
        return web.Response(status=status, headers={"ETag": '"a"'})

    fetched = get(answer, etag='"a"')
    assert (fetched.status, fetched.not_modified, fetched.failure, fetched.body) == (304, True, None, b"")
    assert fetched.headers["etag"] == '"a"'
    assert not get(answer, etag='"b"').not_modified


def test_validators_that_cannot_be_sent_are_left_out():
    async def answer(request):
        return web.Response(text=request.headers.get("If-None-Match", "none"))

    assert get(answer, etag='"a\r\nX: y"').text() == "none"


def test_cookies_are_not_kept():
    async def answer(request):
        return web.Response(text=request.headers.get("Cookie", "none"), headers={"Set-Cookie": "id=1"})

    async def main():
        async with serving(answer) as origin, fetching() as fetcher:
            await fetcher.fetch(origin)
            return (await fetcher.fetch(origin)).text()

    assert asyncio.run(main()) == "none"


def hops(request):
    n = int(request.path[1:] or 0)
    if n == 0:
        return web.Response(text="there")
    raise web.HTTPFound(f"/{n - 1}#part")


async def answer_hops(request):
    return hops(request)


def test_redirects_are_followed_and_recorded():
    fetched = get(answer_hops, "/3")
    assert fetched.text() == "there"
    assert [url.rpartition("/")[2] for url in fetched.redirects] == ["3", "2", "1"]
    assert fetched.final_url.endswith("/0")


@pytest.mark.parametrize(("n", "failure"), [(5, None), (6, "redirects")])
def test_redirects_are_counted(n, failure):
    assert get(answer_hops, f"/{n}").failure == failure


@pytest.mark.parametrize(
    ("location", "path"),
    [("/straße", "/stra%C3%9Fe"), ("?q=ä b", "/?q=%C3%A4%20b"), ("a/../b/./c", "/b/c"), ("/%7Euser", "/~user")],
)
def test_locations_as_they_come(location, path):
    async def answer(request):
        if request.query_string or request.path != "/":
            return web.Response(text="there")
        return web.Response(status=301, headers={"Location": location})

    fetched = get(answer)
    assert fetched.text() == "there"
    assert fetched.final_url.endswith(path)


@pytest.mark.parametrize("status", [300, 304, 305, 306, 206, 302])
def test_statuses_that_make_no_sense_here(status):
    assert get(always(status=status)).failure == "bad-response"


def test_an_empty_page_is_a_page():
    fetched = get(always(status=204))
    assert (fetched.status, fetched.body, fetched.failure) == (204, b"", None)


def test_retry_after_in_both_forms():
    assert get(always(status=503, headers={"Retry-After": "7"})).retry_after == 7.0
    assert get(always(status=503, headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"})).retry_after == 0.0
    assert get(always(status=503, headers={"Retry-After": "9" * 400})).retry_after == 7 * 86400
    assert get(always(status=503, headers={"Retry-After": "soon"})).retry_after is None


def test_times_are_by_the_clock_given():
    clock = ManualClock(1000.0)

    async def answer(request):
        await clock.advance(5.0)
        return web.Response(status=429, headers={"Retry-After": "Thu, 01 Jan 1970 00:17:45 GMT"})

    async def main():
        async with serving(answer) as origin, fetching(clock=clock) as fetcher:
            return await fetcher.fetch(origin)

    fetched = asyncio.run(main())
    assert (fetched.began_at, fetched.took, fetched.retry_after) == (1000.0, 5.0, 60.0)


def seen_headers(where):
    """The headers that a second server sees after a redirect from a first, which saw them."""
    secret = {"Authorization": "Bearer x", "Cookie": "id=1", "X-Key": "k", "Accept-Language": "de"}

    async def echo(request):
        return web.json_response({name.lower(): value for name, value in request.headers.items()})

    async def main():
        async with serving(echo) as other:

            async def first(request):
                if request.path == "/there":
                    return await echo(request)
                raise web.HTTPFound("/there" if where == "same" else other)

            async with serving(first) as origin, fetching() as fetcher:
                return await fetcher.fetch(origin, headers=secret, etag='"e"')

    return asyncio.run(main()).text()


def test_headers_meant_for_one_host_are_not_shown_to_another():
    same, other = seen_headers("same"), seen_headers("other")
    for name in ("authorization", "cookie", "x-key"):
        assert name in same
        assert name not in other
    assert "accept-language" in same
    assert "accept-language" in other


def test_validators_are_not_sent_to_another_page():
    assert "if-none-match" not in seen_headers("same")


def test_names_are_looked_up_once():
    async def main():
        names = Names(a_example=[["127.0.0.1"]])
        async with serving(always(text="x")) as origin, fetching(resolver=names) as fetcher:
            for _ in range(3):
                assert (await fetcher.fetch(origin.replace("127.0.0.1", "a.example"))).status == 200
        return names.asked

    assert asyncio.run(main()) == ["a.example"]


def test_a_connection_is_used_again_after_a_page_that_is_not_there():
    ports = set()

    async def answer(request):
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.Response(status=404, body=b"x" * 3000)

    async def main():
        async with serving(answer) as origin, fetching() as fetcher:
            for _ in range(3):
                await fetcher.fetch(origin)

    asyncio.run(main())
    assert len(ports) == 1


def test_a_page_is_asked_for_once_where_a_used_connection_ends():
    asked = []

    async def talk(reader, writer):
        asked.append("first")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        await writer.drain()
        if await reader.read(1 << 16):
            asked.append("second")

    async def main():
        async with speaking(talk) as origin, fetching() as fetcher:
            return [(await fetcher.fetch(origin)).failure for _ in range(2)]

    assert asyncio.run(main()) == [None, "reset"]
    assert asked == ["first", "second"]


def test_content_codings_end_to_end():
    body = b"<p>" + b"text " * 1000
    fetched = get(always(body=gzip.compress(body), headers={"Content-Encoding": "gzip"}))
    assert fetched.body == body


def test_a_fetch_can_be_cancelled():
    async def silence(reader, writer):
        await asyncio.sleep(20)

    async def main():
        async with speaking(silence) as origin, fetching() as fetcher:
            task = asyncio.create_task(fetcher.fetch(origin))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_closing_twice_and_fetching_again():
    async def main():
        async with serving(always(text="x")) as origin, fetching() as fetcher:
            await fetcher.fetch(origin)
            await fetcher.close()
            await fetcher.close()
            return (await fetcher.fetch(origin)).status

    assert asyncio.run(main()) == 200


@pytest.mark.parametrize("agent", ["", "  ", "a\nb"])
def test_user_agents_that_cannot_be_sent(agent):
    with pytest.raises(ParameterError):
        HttpFetcher(agent)


@pytest.mark.parametrize("headers", [{"X-A": "a\r\nB: c"}, {"": "x"}, {"a b": "x"}, {"ä": "x"}])
def test_headers_that_cannot_be_sent(headers):
    with pytest.raises(ParameterError, match="header"):
        asyncio.run(HttpFetcher(AGENT).fetch("http://a.example/", headers=headers))


@pytest.mark.parametrize("bad", [{"body": 0}, {"total": -1.0}, {"redirects": -1}, {"connect": float("nan")}])
def test_limits_must_be_positive(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Limits(**bad)
