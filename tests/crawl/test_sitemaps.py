"""Sitemaps, good and bad."""

import gzip
import tracemalloc

import pytest
from effort import at_most
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.formats.sitemaps import ENTRIES, Entry, instant, read_sitemap

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*entries, head='<?xml version="1.0" encoding="UTF-8"?>'):
    return f"{head}<urlset {NS}>{''.join(entries)}</urlset>".encode()


def url(loc, lastmod=None):
    return f"<url><loc>{loc}</loc>{f'<lastmod>{lastmod}</lastmod>' if lastmod else ''}</url>"


def read(data):
    return list(read_sitemap(data))


def test_pages():
    data = urlset(url("https://a.example/", "1970-01-02"), url(" https://a.example/?a=1&amp;b=2\n"))
    assert read(data) == [
        Entry("https://a.example/", 86400.0, False, 2 * 86400.0),
        Entry("https://a.example/?a=1&b=2", None, False),
    ]


def test_an_index():
    data = f"<sitemapindex {NS}><sitemap><loc>http://a.example/s.xml</loc></sitemap></sitemapindex>".encode()
    assert read(data) == [Entry("http://a.example/s.xml", None, True)]


def test_other_elements_are_passed_over():
    more = (
        '<url xmlns:image="i" xmlns:x="h"><image:image><image:loc>http://a.example/i.png</image:loc></image:image>'
        '<x:link rel="alternate" href="http://a.example/de"/><loc>http://a.example/1</loc><priority>1</priority></url>'
    )
    assert [entry.url for entry in read(urlset(more))] == ["http://a.example/1"]


@pytest.mark.parametrize("head", ["", '<?xml version="1.0"?>', "\ufeff", "\n  "])
def test_heads(head):
    assert len(read(urlset(url("http://a.example/"), head=head))) == 1


def test_without_namespace_and_in_other_charsets():
    text = "<urlset><url><loc>http://a.example/ä</loc></url></urlset>"
    expected = [Entry("http://a.example/ä", None, False)]
    assert read(text.encode()) == expected
    assert read(('<?xml version="1.0" encoding="ISO-8859-1"?>' + text).encode("latin-1")) == expected
    assert read(text.encode("utf-16")) == expected


def test_cdata():
    assert read(urlset(url("<![CDATA[http://a.example/?a&b]]>")))[0].url == "http://a.example/?a&b"


def test_plain_text():
    data = "\ufeffhttp://a.example/1\r\n\r\nnot a url\n  https://a.example/2  \nhttp://a.example/3".encode()
    assert [entry.url for entry in read(data)] == ["http://a.example/1", "https://a.example/2", "http://a.example/3"]


def test_gzip():
    data = urlset(url("http://a.example/"))
    assert read(gzip.compress(data)) == read(data)


def test_what_breaks_off_gives_what_came_before():
    data = urlset(*[url(f"http://a.example/{n}") for n in range(5000)])
    assert len(read(data[:-100])) > 4900
    assert len(read(gzip.compress(data)[:-20])) > 3000
    assert len(read(urlset(url("http://a.example/1"), "<bad", url("http://a.example/2")))) == 1


@pytest.mark.parametrize("loc", ["ftp://a.example/", "javascript:x", "/relative", "", "http://a.example/" + "x" * 5000])
def test_what_is_no_url_is_left_out(loc):
    assert [entry.url for entry in read(urlset(url(loc), url("http://a.example/")))] == ["http://a.example/"]


@pytest.mark.slow
def test_the_number_of_entries_is_bounded():
    lines = b"http://a.example/\n" * (ENTRIES + 10)
    assert len(read(lines)) == ENTRIES
    assert len(read(urlset(*[url("http://a.example/")] * (ENTRIES + 10)))) == ENTRIES


def laughs(place):
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "http://a.example/"}">' for n in range(10))
    return f"<!DOCTYPE l [{entities}]><urlset {place}><url><loc>http://b.example/</loc></url></urlset>".encode()


HOSTILE = {
    "entities in text": lambda: laughs("").replace(b"http://b.example/", b"http://b.example/&a9;"),
    "entities in attributes": lambda: laughs('x="&a9;"'),
    "siblings": lambda: b"<urlset>" + b"<a/>" * 1_000_000,
    "nested": lambda: b"<a>" * 1_000_000,
    "text": lambda: b"<urlset><url><loc>" + b"a" * 10_000_000,
    "attributes": lambda: b"<urlset " + b" ".join(b"a%d='1'" % n for n in range(200_000)) + b">",
    "declarations": lambda: (
        b"<!DOCTYPE l [" + b"".join(b'<!ENTITY a%d "x">' % n for n in range(100_000)) + b"]><urlset/>"
    ),
    "a long line": lambda: b"http://a.example/" + b"x" * 10_000_000,
    "many lines": lambda: b"\n" * 1_000_000,
    "bomb": lambda: gzip.compress(b"http://a.example/\n" + b"x" * 200_000_000, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_read_in_little_time_and_memory(kind):
    data = HOSTILE[kind]()
    tracemalloc.start()
    try:
        with at_most(20):
            entries = read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(entries) <= 1
    assert peak < 170 << 20


def test_nothing_is_loaded(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("http://secret.example/")
    head = f'<!DOCTYPE l [<!ENTITY a SYSTEM "file://{secret}">]>'
    assert [entry.url for entry in read(urlset(url("http://a.example/&a;"), head=head))] in (["http://a.example/"], [])
    assert read(urlset(url("&a;"), head=head)) == []


@given(st.binary(max_size=300))
def test_any_bytes_are_a_sitemap(data):
    read(data)
    read(b"<urlset>" + data)
    read(b"\x1f\x8b" + data)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01", 0.0),
        ("1970-02", 31 * 86400.0),
        ("1970", 0.0),
        ("1970-01-01T00:00Z", 0.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T02:00:00+02:00", 0.0),
        ("1970-01-01T00:00:05", 5.0),
        ("1970-01-01 00:00:05", 5.0),
        ("1969-12-31", -86400.0),
        ("", None),
        ("never", None),
        ("2020-13-01", None),
        ("0000-01-01", None),
        ("99999-01-01", None),
    ],
)
def test_instants(text, at):
    assert instant(text) == at
