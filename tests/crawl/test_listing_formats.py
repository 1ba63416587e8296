"""What listings say: dates with their resolution, news dates, indexes, feed links, index pages, tables."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.formats.dates import Moment, moment
from recrawl.crawl.formats.feed_items import read_feed
from recrawl.crawl.formats.links import read_links
from recrawl.crawl.formats.sitemaps import ENTRIES, read_sitemap
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.listings.reading import Listed, read_listing
from recrawl.crawl.listings.table import Table, fingerprints
from recrawl.errors import StoreError

DAY = 86400.0


def page(body, kind="text/html", url="https://a.example/x/"):
    return Fetched(url, url, 200, 0.0, 0.0, {"content-type": kind}, body)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1970-01-01", Moment(0.0, DAY)),
        ("1970-02", Moment(31 * DAY, 59 * DAY)),
        ("1970-12", Moment(334 * DAY, 365 * DAY)),
        ("1972", Moment(730 * DAY, 1096 * DAY)),
        ("1970-01-01T01:00Z", Moment(3600.0, 3660.0)),
        ("1970-01-01T01:00:00Z", Moment(3600.0, 3600.0)),
        ("1970-01-01T01:00:00+01:00", Moment(0.0, 0.0)),
        ("Thu, 01 Jan 1970 01:00:00 +0100", Moment(0.0, 0.0)),
        ("0000-01-01", None),
        ("1970-00", None),
        ("9999-12-31", None),
        ("x" * 200, None),
    ],
)
def test_dates_keep_their_resolution(text, found):
    assert moment(text) == found


def test_news_dates_count_where_there_is_no_lastmod():
    news = "<n:news><n:publication_date>1970-01-02T00:00:05Z</n:publication_date></n:news>"
    data = (
        "<urlset xmlns:n='news'>"
        f"<url><loc>https://a.example/1</loc>{news}</url>"
        f"<url><loc>https://a.example/2</loc><lastmod>1970-01-03</lastmod>{news}</url>"
        "<url><loc>https://a.example/3</loc><publication_date>1970-01-02</publication_date></url></urlset>"
    ).encode()
    assert [(one.lastmod, one.latest) for one in read_sitemap(data)] == [
        (DAY + 5, DAY + 5),
        (2 * DAY, 3 * DAY),
        (None, None),
    ]


def test_an_index_keeps_the_dates_of_its_parts():
    data = (
        b"<sitemapindex><sitemap><loc>https://a.example/s1</loc><lastmod>1970-01-02</lastmod></sitemap></sitemapindex>"
    )
    reading = read_listing(page(data, "text/xml"))
    assert (reading.pages, reading.parts) == ([], [Listed("https://a.example/s1", DAY, 2 * DAY)])


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_pieces_of_any_size_give_the_same_entries(size, pack):
    text = b"\n".join(b"https://a.example/%d" % k for k in range(40))
    xml = b"<urlset>" + b"".join(b"<url><loc>https://a.example/%d</loc></url>" % k for k in range(40)) + b"</urlset>"
    for data in (text, xml, b"https://a.example/", b""):
        packed = pack(data)
        pieces = [packed[k : k + size] for k in range(0, len(packed), size)]
        assert list(read_sitemap(iter(pieces))) == list(read_sitemap(packed))
    assert len(list(read_sitemap(pack(text)))) == len(list(read_sitemap(pack(xml)))) == 40


def test_a_sitemap_that_declares_entities_is_refused():
    head = b'<!DOCTYPE urlset [<!ENTITY x "y">]>'
    body = b"<urlset><url><loc>https://a.example/</loc></url></urlset>"
    assert list(read_sitemap(head + body)) == []
    assert list(read_sitemap((head + body).decode().encode("utf-16"))) == []
    split = b" " * 250 + head
    assert list(read_sitemap([split[:270], split[270:] + body])) == []
    assert len(list(read_sitemap(b"<!DOCTYPE urlset>" + body))) == 1


def test_items_of_feeds_keep_their_links_and_updates():
    atom = (
        b"<feed xmlns='http://www.w3.org/2005/Atom'>"
        b"<entry><id>tag:1</id><link rel='edit' href='https://a.example/edit'/><link href='/1'/>"
        b"<published>1970-01-01T00:00:01Z</published><updated>1970-01-02T00:00:00Z</updated></entry></feed>"
    )
    (item,) = read_feed(atom)
    assert (item.link, item.published, item.updated) == ("/1", 1.0, Moment(DAY, DAY))
    rss = (
        b"<rss><channel><item><guid>https://a.example/g</guid><pubDate>Fri, 02 Jan 1970 00:00:00 GMT</pubDate></item>"
        b"<item><guid isPermaLink='false'>https://a.example/no</guid><title>t</title></item>"
        b"<item><link> https://a.example/l </link><guid>https://a.example/g</guid></item></channel></rss>"
    )
    assert [item.link for item in read_feed(rss)] == ["https://a.example/g", "", "https://a.example/l"]
    reading = read_listing(page(atom, "application/atom+xml"))
    assert reading == ("feed", [Listed("https://a.example/1", DAY, DAY)], [], True)


def test_links_of_a_page():
    html = (
        b"<base href='https://a.example/b/'><a href=one>1</a><A HREF='/two?x=1&amp;y=2#z'>2</A><a href='one'>again</a>"
        b"<a rel='external nofollow' href=three>3</a><a href='mailto:x@a.example'>m</a><a href='http://['>bad</a>"
        b"<!-- <a href='/hidden'>h</a> --><a href='https://b.example/'>other</a><a name=top>"
        b"<link rel='alternate' type='application/rss+xml' href='/feed'><link rel=stylesheet href='/style'>"
    )
    links = read_links(page(html))
    assert links.pages == ["https://a.example/b/one", "https://a.example/two?x=1&y=2", "https://b.example/"]
    assert links.feeds == ["https://a.example/feed"]
    reading = read_listing(page(html))
    assert reading.kind == "listing"
    assert [one.url for one in reading.pages] == links.pages[:2], "an index page lists pages of its own host"


@pytest.mark.parametrize("piece", [b"<a ", b"<a href='", b"<a href=x ", b"<!--", b"<link rel=", b"<a ="])
def test_links_are_found_in_linear_time(piece):
    assert len(read_links(page(piece * 300_000)).pages) <= 1


def test_what_is_no_listing():
    assert read_listing(page(b"{}", "application/json")) is None
    assert read_listing(page(b"https://a.example/", "text/plain")) is None
    assert read_listing(page(b"<p>not found", "text/html"), "sitemap") is None
    assert read_listing(page(b"<p>not found", "text/html"), "feed") is None
    assert read_listing(page(b"<urlset></urlset>", "text/html"), "sitemap") == ("sitemap", [], [], True)
    assert not read_listing(page(b"<urlset><url>", "text/xml"), "sitemap").is_whole
    assert read_listing(page(b"nothing here", "text/plain"), "sitemap") is None


# --- tables ---------------------------------------------------------------------------------------------------------

DATED = st.lists(
    st.tuples(st.integers(0, 30), st.none() | st.integers(0, 3)).map(
        lambda one: Listed(f"https://a.example/{one[0]}", None if one[1] is None else float(one[1]))
    ),
    unique_by=lambda one: one.url,
    max_size=30,
)


@given(DATED, DATED)
def test_the_difference_of_two_polls(before, after):
    table = Table.unpack(Table.of(before).pack())
    found = table.difference(after)
    known = {one.url: one.at for one in before}
    assert [after[k].url for k in found.new] == [one.url for one in after if one.url not in known]
    moved = [one.url for one in after if one.url in known and one.at is not None and one.at != known[one.url]]
    assert [after[k].url for k in found.moved] == moved
    gone = fingerprints(sorted(known.keys() - {one.url for one in after}))
    assert sorted(found.vanished.tolist()) == sorted(gone.tolist())
    for one in before:
        assert np.array_equal([table.date(one.url)], [np.nan if one.at is None else one.at], equal_nan=True)
    assert table.date("https://b.example/") is None


def test_a_table_is_small_and_bounded():
    entries = [Listed(f"https://a.example/some/longer/path/{k}", 1e9 + k) for k in range(ENTRIES + 5)]
    table = Table.of(entries)
    assert len(table) == ENTRIES
    assert len(table.pack()) <= 16 * ENTRIES + 1000
    assert len(Table.unpack(b"")) == 0
    for bad in (b"x", b"\x01x", b"\x02"):
        with pytest.raises(StoreError, match="cannot be read"):
            Table.unpack(bad)
