"""Addresses that are not of the public internet are refused, however they are written or come to be connected to."""

import asyncio
import socket

import pytest
from aiohttp import web

from crawl.servers import Names, fetching, serving
from recrawl.crawl.http.connect import ForbiddenAddress, SystemResolver, public_socket
from recrawl.crawl.http.ip_filter import is_public

PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "8.8.8.8",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
    "64:ff9b::808:808",
    "2002:808:808::1",
]
OTHERS = [
    "127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1",
    "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "192.88.99.1",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1",
    "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "3fff::1", "5f00::1", "4000::1",
    "localhost", "", "1.2.3", "2130706433",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address):
    assert is_public(address)


@pytest.mark.parametrize("address", OTHERS)
def test_not_public(address):
    assert not is_public(address)


def fetched(url, **options):
    async def main():
        async with fetching(allow_private=False, **options) as fetcher:
            return await fetcher.fetch(url)

    return asyncio.run(main())


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1", "017700000001", "127.0.0.1.", "0",
        "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]",
        "１２７.0.0.1", "169.254.169.254", "10.0.0.1", "[fd00:ec2::254]", "127。0。0。1",
    ],
)  # fmt: skip
def test_addresses_in_the_url(host):
    assert fetched(f"http://{host}/").failure == "forbidden-address"


def test_the_machines_own_name():
    assert fetched("http://localhost/").failure == "forbidden-address"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1"])
def test_names_of_such_addresses(address):
    assert fetched("http://a.example/", resolver=Names(a_example=[[address]])).failure == "forbidden-address"


def redirecting(goal, resolver, **options):
    """Fetch from a public name, here on loopback, that redirects; the goal may name the port of the server."""
    requests = []

    async def answer(request):
        requests.append((request.host, request.path))
        if request.path == "/":
            raise web.HTTPFound(goal.format(port=request.url.port))
        return web.Response(text="inside")

    async def main():
        async with serving(answer) as origin, fetching(resolver=resolver, **options) as fetcher:
            return await fetcher.fetch(origin.replace("127.0.0.1", "a.example"))

    return asyncio.run(main()), requests


@pytest.fixture
def loopback_is_public(monkeypatch):
    """Lets 127.0.0.1 alone stand for the public internet, so that a first hop succeeds."""

    def public(address):
        return address == "127.0.0.1" or is_public(address)

    monkeypatch.setattr("recrawl.crawl.http.connect.is_public", public)


@pytest.mark.usefixtures("loopback_is_public")
@pytest.mark.parametrize(
    "goal",
    [
        "http://127.0.0.2:{port}/in",
        "http://inside.example:{port}/in",
        "http://[::ffff:7f00:2]:{port}/in",
        "//0x7f000002:{port}/in",
    ],
)
def test_a_redirect_to_the_inside(goal):
    names = Names(a_example=[["127.0.0.1"]], inside_example=[["127.0.0.2"]])
    result, requests = redirecting(goal, names, allow_private=False)
    assert (result.failure, result.body) == ("forbidden-address", b"")
    assert len(result.redirects) == 1
    assert [path for _, path in requests] == ["/"]


def test_a_redirect_to_the_inside_where_that_is_allowed():
    result, requests = redirecting("http://127.0.0.1:{port}/in", Names(a_example=[["127.0.0.1"]]))
    assert result.text() == "inside"
    assert [path for _, path in requests] == ["/", "/in"]


@pytest.mark.usefixtures("loopback_is_public")
def test_a_name_that_changes_its_answer():
    names = Names(a_example=[["127.0.0.1"], ["127.0.0.2"]])

    async def answer(request):
        return web.Response(text="x", headers={"Connection": "close"})

    async def main():
        async with serving(answer) as origin, fetching(allow_private=False, resolver=names) as fetcher:
            url = origin.replace("127.0.0.1", "a.example")
            first = await fetcher.fetch(url)
            fetcher._session.connector.clear_dns_cache()
            return first, await fetcher.fetch(url)

    first, second = asyncio.run(main())
    assert (first.status, second.failure) == (200, "forbidden-address")
    assert names.asked == ["a.example", "a.example"]


@pytest.mark.usefixtures("loopback_is_public")
def test_of_several_addresses_only_the_allowed_ones_are_used():
    names = Names(a_example=[["10.0.0.1", "127.0.0.1", "::1"]])

    async def answer(request):
        return web.Response(text=request.transport.get_extra_info("sockname")[0])

    async def main():
        async with serving(answer) as origin, fetching(allow_private=False, resolver=names) as fetcher:
            return await fetcher.fetch(origin.replace("127.0.0.1", "a.example"))

    assert asyncio.run(main()).text() == "127.0.0.1"


def test_the_last_check_is_on_the_socket():
    info = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))
    with pytest.raises(ForbiddenAddress):
        public_socket(info)
    public_socket((*info[:4], ("93.184.216.34", 80))).close()


def test_a_resolver_that_slips_something_past_is_stopped_at_the_socket(monkeypatch):
    answers = iter([True, False])
    monkeypatch.setattr("recrawl.crawl.http.connect.is_public", lambda address: next(answers))
    assert fetched("http://a.example:9/", resolver=Names(a_example=[["127.0.0.1"]])).failure == "forbidden-address"


def test_the_systems_resolver():
    async def main():
        resolver = SystemResolver()
        found = await resolver.resolve("localhost", 80)
        await resolver.close()
        return {one["host"] for one in found}

    assert asyncio.run(main()) <= {"127.0.0.1", "::1"}


def test_names_under_localhost_are_this_machine():
    async def main():
        resolver = SystemResolver()
        found = await resolver.resolve("news.localhost", 80)
        await resolver.close()
        return [one["host"] for one in found]

    assert asyncio.run(main()) == ["127.0.0.1"]
    assert fetched("http://news.localhost:9/").failure == "forbidden-address"


def test_ipv6():
    async def answer(request):
        return web.Response(text="six")

    async def main():
        app = web.Application()
        app.router.add_get("/", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "::1", 0).start()
        except OSError:
            await runner.cleanup()
            pytest.skip("this machine has no IPv6")
        async with fetching() as fetcher:
            fetched = await fetcher.fetch(f"http://[::1]:{runner.addresses[0][1]}/")
        await runner.cleanup()
        return fetched.text()

    assert asyncio.run(main()) == "six"
