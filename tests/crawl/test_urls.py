"""One name for a page."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from recrawl import urls
from recrawl.crawl.urls import MOST, canonical
from recrawl.errors import ParameterError

SAME = [
    ("HTTP://Example.ORG", "http://example.org/"),
    ("http://example.org:80/", "http://example.org/"),
    ("https://example.org:443", "https://example.org/"),
    ("https://example.org:80/", "https://example.org:80/"),
    ("http://example.org:/", "http://example.org/"),
    ("http://example.org./a", "http://example.org/a"),
    ("http://example.org/a#b", "http://example.org/a"),
    ("http://example.org/#", "http://example.org/"),
    ("http://example.org?a=b", "http://example.org/?a=b"),
    ("http://example.org/?", "http://example.org/"),
    ("http://example.org/a/./b/../c", "http://example.org/a/c"),
    ("http://example.org/../../a", "http://example.org/a"),
    ("http://example.org/a/..", "http://example.org/"),
    ("http://example.org/a/.", "http://example.org/a/"),
    ("http://example.org/a//b", "http://example.org/a//b"),
    ("http://example.org/%2e%2E/a", "http://example.org/a"),
    ("http://example.org/%7euser", "http://example.org/~user"),
    ("http://example.org/%e4%bd%a0", "http://example.org/%E4%BD%A0"),
    ("http://example.org/你", "http://example.org/%E4%BD%A0"),
    ("http://example.org/a b", "http://example.org/a%20b"),
    ("http://example.org/a%2Fb", "http://example.org/a%2Fb"),
    ("http://example.org/100%", "http://example.org/100%25"),
    ("http://example.org/%zz", "http://example.org/%25zz"),
    ("http://example.org/?b=2&a=1&b=1", "http://example.org/?b=2&a=1&b=1"),
    ("http://example.org/?a=%26", "http://example.org/?a=%26"),
    ("http://example.org/?q=a+b", "http://example.org/?q=a+b"),
    ("http://example.org/\tpa\nth", "http://example.org/path"),
    ("  http://example.org/  ", "http://example.org/"),
    ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
    ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://日本語。jp/", "http://xn--wgv71a119e.jp/"),
    ("http://foo_bar.example/", "http://foo_bar.example/"),
    ("http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"),
    ("http://[::FFFF:1.2.3.4]/", "http://[::ffff:1.2.3.4]/"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://0x7F.0.0.1:8080/", "http://127.0.0.1:8080/"),
    ("http://010.0.0.1/", "http://8.0.0.1/"),
    ("http://3232235777/", "http://192.168.1.1/"),
    ("http://localhost:8000/a", "http://localhost:8000/a"),
]


@pytest.mark.parametrize(("url", "form"), SAME)
def test_forms(url, form):
    assert canonical(url) in (form, form.replace("::ffff:1.2.3.4", "::ffff:102:304"))


BAD = [
    "", " ", "example.org", "/path", "//example.org/", "ftp://example.org/", "javascript:alert(1)",
    "mailto:a@b.example", "http://" + "a" * 64 + ".example/",
    "data:text/html,x", "file:///etc/passwd", "http://", "http:///a", "http://:80/", "http:example.org", "http://user@a.example/",
    "http://a:b@c.example/", "http://a.example:99999/", "http://a.example:-1/", "http://a.example:x/", "http://[::1/", "http://::1/",
    "http://[fe80::1%25eth0]/", "http://[1.2.3.4]/", "http://a..b.example/", "http://.a.example/",
    "http://a b.example/", "http://a%00b.example/", "http://a<b.example/",
    "http://256.1.1.1/", "http://1.2.3.4.5/", "http://0x1ffffffff/", "http://09.1.1.1/",
    "http://1.2.3.x9.08/", "http://" + "a" * 254 + ".example/", "http://a.example/" + "x" * MOST, "http://\ud800.example/",
    "http://\u200b/", "http://xn--a\u0301.example/", "http://*.example/", "https://a.example\\@b.example/", "http://a.example,b.example/",
]  # fmt: skip


@pytest.mark.parametrize("url", BAD)
def test_what_is_no_url(url):
    with pytest.raises(ParameterError) as caught:
        canonical(url)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
PLAIN = st.text(string.ascii_letters + string.digits + "-._~/%=&?+;:@!$'()*,# []|\\^`{}\"<>äß你", max_size=40)
HOSTS = st.one_of(
    st.sampled_from(["a.example", "A.Example.", "127.0.0.1", "[::1]", "bücher.example", "0x7f.1", "localhost"]),
    st.text(string.ascii_letters + string.digits + "-._äß%", min_size=1, max_size=12),
)
SCHEMES = st.sampled_from(["http://", "https://", "HTTPS://"])
PORTS = st.sampled_from(["", ":", ":80", ":443", ":8080"])
URLS = st.builds(lambda *parts: "".join(parts), SCHEMES, HOSTS, PORTS, st.sampled_from(["", "/"]), PLAIN | TEXT)


def form(url):
    try:
        return canonical(url)
    except ParameterError:
        return None


@given(URLS)
@example("http://a.example/%25%32%65")
@example("http://a.example/%252e%252e/")
@example("http://a.example/.%2e/%2e")
@example("http://a.example/?'\"<>")
@example("http://a.example/;a?;b")
@example("http://a.example//..//b")
@example("http://a.example/a%20 b%")
def test_a_form_is_its_own_form(url):
    once = form(url)
    if once is not None:
        assert canonical(once) == once


@given(URLS)
def test_a_form_can_be_sent(url):
    once = form(url)
    if once is not None:
        assert once.isascii()
        assert once.isprintable()
        assert " " not in once
        assert "#" not in once
        parsed = URL(once, encoded=True)
        assert str(parsed) == once
        assert parsed.host


@given(TEXT)
def test_anything_is_a_url_or_an_error(text):
    form(text)
    form(f"http://{text}")
    form(f"http://a.example/{text}")


@given(URLS)
def test_the_short_cut_takes_only_what_it_need_not_change(url):
    if urls._PLAIN.fullmatch(url):
        assert urls._canonical(url) == url


WORDS = st.text(string.ascii_letters + string.digits + "-._~", max_size=6)


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=3))
def test_the_short_cut_agrees_on_ordinary_urls(path, query):
    url = "https://docs.example.org/" + "/".join(path) + ("?" + "&".join(query) if query else "")
    assert canonical(url) == urls._canonical(url)
