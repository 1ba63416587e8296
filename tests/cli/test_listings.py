"""Listings and discovery from the command line, on servers on loopback."""

import json

import pytest
from aiohttp import web

from recrawl.crawl.listings.listing import Listing
from recrawl.store import BlockingStore, SqliteStore

from .test_crawl import here, refused  # noqa: F401
from .web import SmallWeb

RUN = ("run", "--allow-private", "--contact", "a@example.org", "--budget", "200/s", "--delay", "0.01", "--json")
A = "https://a.example"


class DocsSite(SmallWeb):
    """A site on loopback: a front page, a feed, and a sitemap that robots.txt names."""

    async def _answer(self, request):
        self.asked.append(request.path)
        bodies = {
            "/robots.txt": (f"User-agent: *\nSitemap: {self.url}/map.xml\n", "text/plain"),
            "/map.xml": (f"<urlset><url><loc>{self.url}/listed</loc></url></urlset>", "application/xml"),
            "/feed": (f"<rss><item><link>{self.url}/item</link></item></rss>", "application/rss+xml"),
            "/": ("<link rel=alternate type=application/rss+xml href=/feed><a href=/linked>x</a>", "text/html"),
        }
        text, kind = bodies.get(request.path, (f"<p>{request.path}</p>", "text/html"))
        return web.Response(text=text, content_type=kind)


@pytest.fixture
def docs():
    site = DocsSite()
    yield site
    site.close()


def stored():
    with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
        return {one.url: Listing.restore(one) for one in store.listings()}, set(store.urls())


@pytest.mark.slow
def test_a_site_is_followed_from_its_front_page_alone(run, run_until, here, docs):  # noqa: F811
    result = run("add", f"{docs.url}/", "--discover", "--json")
    assert json.loads(result.out)["followed"] == [f"{docs.url}/*"], result.err
    pages = {f"{docs.url}/{path}" for path in ("", "listed", "item", "linked")}
    run_until(lambda: stored()[1] >= pages, *RUN)
    listings, urls = stored()
    assert urls == pages
    assert set(listings) == {f"{docs.url}/map.xml", f"{docs.url}/feed"}
    assert "127.0.0.1" in listings[f"{docs.url}/map.xml"].names
    status = json.loads(run("status", "--json").out)
    assert status["pages"] == 4
    assert status["listings"]["polled"] == 2
    assert "listings" in run("status").out


def test_what_is_added_is_polled_and_can_be_removed(run, here):  # noqa: F811
    result = run("add", f"{A}/", "--listing", f"{A}/feed", "--listing", f"{A}/news/", "--json")
    assert json.loads(result.out)["listings"] == [f"{A}/feed", f"{A}/news/"], result.err
    assert set(stored()[0]) == {f"{A}/feed", f"{A}/news/"}
    assert run("remove", f"{A}/feed").code == 0
    assert set(stored()[0]) == {f"{A}/news/"}
    assert "no such page" in refused(run, "remove", f"{A}/feed")
    text = run("add", f"{A}/docs/index.html", "--discover", "--importance", 3).out
    assert f"new pages of {A}/docs/* are found" in text


@pytest.mark.slow
def test_a_sitemap_of_the_web_is_read_and_kept(run, here, docs):  # noqa: F811
    result = run("add", "--sitemap", f"{docs.url}/map.xml", "--allow-private", "--contact", "a@example.org")
    assert "1 page added" in result.out, result.err
    assert "1 listing to be polled" in result.out
    assert stored()[0][f"{docs.url}/map.xml"].kind == "sitemap"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--listing", "map.xml"], "listing 'map.xml' is no http or https URL"),
        (["--listing", "http://"], "no http or https URL"),
        (["--discover"], "nothing to add"),
        (["--listing", f"{A}/feed", "--discover"], "--discover goes with the URLs of front pages"),
    ],
)
def test_bad_listings_are_refused(run, here, arguments, line):  # noqa: F811
    assert line in refused(run, "add", *arguments)
    assert not (here / "recrawl.db").exists()
