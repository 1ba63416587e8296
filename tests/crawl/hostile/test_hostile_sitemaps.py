"""Sitemaps that lead in circles, never end or name pages without end: ``recrawl add`` says so in a line, or goes on."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web

from crawl.servers import serving
from recrawl.cli.shared.pages import page_sources as add_sources
from recrawl.crawl.config.settings import Settings
from recrawl.errors import ParameterError

SETTINGS = Settings(contact="tests@example.org", allow_private=True, delay="0 s", timeout="30 s")


def index(*names):
    return "<sitemapindex>" + "".join(f"<sitemap><loc>{name}</loc></sitemap>" for name in names) + "</sitemapindex>"


def days(origin, first, n):
    return "<urlset>" + "".join(f"<url><loc>{origin}/day/{first + k}</loc></url>" for k in range(n)) + "</urlset>"


def gathered(answer, settings=SETTINGS):
    """The pages that a server's sitemap leads to, and how often the server was asked."""
    asked = []

    async def main():
        async def serve(request):
            asked.append(request.path)
            return await answer(request, f"http://{request.host}")

        async with serving(serve) as origin:
            return (await add_sources._from_web([f"{origin}/sitemap.xml"], settings, {}, {}))[0]

    return asyncio.run(main()), asked


def test_an_index_that_names_itself_and_others_that_name_it():
    async def answer(request, origin):
        others = [f"{origin}/{k}.xml" for k in range(5)]
        return web.Response(text=index(f"{origin}/sitemap.xml", *others))

    pages, asked = gathered(answer)
    assert pages == []
    assert len(asked) == 7, "the index, and once what it names"


def test_a_calendar_without_end(monkeypatch):
    monkeypatch.setattr(add_sources, "_MOST_PAGES", 5000)

    async def answer(request, origin):
        if request.path == "/sitemap.xml":
            return web.Response(text=index(*(f"{origin}/{k}.xml" for k in range(1000))))
        return web.Response(text=days(origin, 2000 * int(request.path[1:-4]), 2000))

    with pytest.raises(ParameterError, match="more than 5000 pages; give some of its sitemaps instead"):
        gathered(answer)


@pytest.mark.slow
def test_a_sitemap_of_more_entries_than_the_protocol_allows():
    async def answer(request, origin):
        return web.Response(text=days(origin, 0, 60_000))

    pages, _ = gathered(answer)
    assert len(pages) == 50_000


def test_a_sitemap_that_drips():
    async def answer(request, origin):
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"<")
            await asyncio.sleep(0.1)
        return response

    with pytest.raises(ParameterError, match=r"sitemap\.xml: timeout"):
        gathered(answer, replace(SETTINGS, timeout="1 s"))


def test_a_sitemap_index_to_private_addresses_is_not_followed():
    guarded = Settings(contact="tests@example.org", delay="0 s", timeout="1 s")
    with pytest.raises(ParameterError, match="forbidden-address"):
        asyncio.run(add_sources._from_web(["http://127.0.0.1:1/sitemap.xml"], guarded, {}, {}))
