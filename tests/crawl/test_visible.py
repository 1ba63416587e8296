"""The text that a reader sees: against a tree builder on ordinary pages, against the clock on hostile ones."""

import pytest
from effort import at_most
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from recrawl.crawl.detect.detector import RawBytes, VisibleText, detector
from recrawl.crawl.detect.visible import visible_text
from recrawl.crawl.http.fetched import Fetched
from recrawl.errors import ParameterError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("<p>a<p>b", "a b"),
        ("a\n\t b\u00a0c", "a b c"),
        ("a&nbsp;b &lt;i&gt; &amp;amp; &#228; &#xe4; &unknown;", "a b <i> &amp; ä ä &unknown;"),
        ("<title>T</title><body>b", "T b"),
        ("a<!-- b -->c", "a c"),
        ("a<!-->b", "a b"),
        ("a<!--->b", "a b"),
        ("a<!-- -- > --!>b", "a b"),
        ("a<!-- b", "a"),
        ("a<script>b</script>c", "a c"),
        ("a<SCRIPT src=x>'</scr'+'ipt>'</Script >c", "a c"),
        ("a<script>b", "a"),
        ("a<scripty>b</scripty>c", "a b c"),
        ("a<style>p{}</style>b", "a b"),
        ("a<svg><text>t</text></svg>b", "a b"),
        ("a<svg/>b", "a b"),
        ("a<svg>b", "a b"),
        ("a<noscript>b</noscript><template>c</template><iframe>d</iframe><object>e</object>f", "a f"),
        ("a<p hidden>b</p>c", "a c"),
        ("a<div hidden>b<div>c</div>d</div>e", "a e"),
        ("a<div HIDDEN=''>b</div>c", "a c"),
        ("a<p hidden>b", "a b"),
        ("a<input hidden>b", "a b"),
        ('a<p style="color:red; display : none">b</p>c', "a c"),
        ("a<p style='visibility:hidden'>b</p>c", "a c"),
        ('a<p class="lg:block hidden">b</p>c', "a b c"),
        ('a<p class="hidden">b</p>c', "a b c"),
        ("a<p data-hidden>b</p>c", "a b c"),
        ("a<p title='not hidden here'>b</p>c", "a b c"),
        ("a<p title='style=\"display:none\"'>b</p>c", "a b c"),
        ("a<p aria-hidden=true>b</p>c", "a b c"),
        ("a<a title='x > y'>b</a>c", "a b c"),
        ('a<a data-json=\'{"k": "<b>v</b>"}\'>b</a>c', "a b c"),
        ('a<a href="x"">b</a>c "d"', 'a b c "d"'),
        ("a<a href=it's>b</a>c it's", "a b c it's"),
        ("a<a b = 'c'>d", "a d"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a<3 b", "a<3 b"),
        ("a</>b</ x>c", "a b c"),
        ("<!doctype html><?php echo 1 ?>a<![CDATA[b]]>", "a"),
        ("a<b", "a"),
        ("a<b c='d", "a"),
        ("İ<SCRIPT>x</SCRIPT>ẞ", "İ ẞ"),
        ("a\x00b", "a\x00b"),
        ("\ud800<p>x", "? x"),
    ],
)
def test_texts(html, text):
    assert visible_text(html) == text


WORD = st.text("abcäß你 \n", min_size=1, max_size=8) | st.sampled_from(
    ["&amp;", "&lt;p&gt;", "&#65;", "hidden", "none", "'", "=", "it's"]
)
NAMES = ["div", "p", "span", "b", "ul", "li", "section", "em", "table"]
ATTRIBUTES = st.sampled_from(
    [
        "",
        " class=x",
        ' title="a > b"',
        " data-x='<i>'",
        " id = y",
        " hidden",
        ' style="display:none"',
        ' class="a hidden b"',
        " disabled",
    ]
)


def element(children):
    return st.builds(
        lambda name, attributes, inside: f"<{name}{attributes}>{''.join(inside)}</{name}>",
        st.sampled_from(["div", "span", "b", "section", "em"]),
        ATTRIBUTES,
        st.lists(children, max_size=4),
    )


LEAVES = st.one_of(
    WORD,
    st.sampled_from(
        ["<br>", "<!-- c -->", "<script>if (a<b) x('</p>')</script>", "<style>p{}</style>", "<img alt=x>", "<hr/>"]
    ),
    st.sampled_from(
        ["<template>t</template>", "<noscript>n</noscript>", "<input type=hidden value=v>", "<SCRIPT>s</SCRIPT>"]
    ),
)
PAGES = st.lists(st.recursive(LEAVES, element, max_leaves=12), max_size=5).map("".join)


def by_tree(html):
    """The same by a tree."""
    tree = LexborHTMLParser(f"<!doctype html><body>{html}")
    unseen = "script, style, noscript, template, svg, iframe, object, [hidden], [style*='display:none']"
    while (node := tree.css_first(unseen)) is not None:
        node.decompose()
    return " ".join(tree.body.text(separator=" ").split())


@given(PAGES)
def test_the_text_is_that_of_the_tree(html):
    assert visible_text(html) == by_tree(html)


@given(st.text())
def test_any_text_is_a_page(html):
    visible_text(html).encode("utf-8")


@given(st.text("<>/!-=\"' abps hidden&;\n"))
def test_what_looks_like_markup(html):
    visible_text(html)


LARGE = 1_000_000
HOSTILE = [
    "<div>", "<div hidden>", "<p a=1 ", "<table>", "<b><i>", "<option>", "<svg>", "<svg/>", "<svg ", "</p>",
    "<script>", "<script ", "<!--", "<", "&", "&amp;", "&#x;", "&#99999999999;", "<![CDATA[", '<a b="', "<a b='",
    "<a b=\"'", "<p hidden></p>", "<x style='display:none'>", "</svg", "hidden", "<a hidden", "=", "<a =", '<a =""',
    "<a = ", "<template><object>", "\t", "<a1 hidden><a2 hidden>", "none <a ", "<a none", "<a \t hidden=", "-->",
    "<!-- --!>", "<template>", "</template",
]  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
def test_no_page_takes_long(part):
    html = part * (LARGE // len(part))
    with at_most(5):
        visible_text(html)


@pytest.mark.parametrize(
    "html",
    [
        "".join(f"<a{n} hidden>" for n in range(100_000)),
        "<p " + " ".join(f"a{n}=1" for n in range(200_000)) + " hidden>x",
        "<p hidden>" * 100_000 + "</p>" * 100_000,
        "<p" + " " * LARGE + "hidden>x</p>",
        "<div>" * 200_000 + "x" + "</div>" * 200_000,
        "<svg>" * 1000 + "</svg " * 300_000,
    ],
    ids=["names", "attributes", "hidden nested", "blanks", "nested", "ends"],
)
def test_no_such_page_either(html):
    with at_most(5):
        visible_text(html)


def page(body, kind="text/html"):
    headers = {"content-type": kind} if kind else {}
    return Fetched("http://a.example/", "http://a.example/", 200, 0.0, 0.0, headers, body)


def test_text_sees_text_only():
    text = VisibleText()
    one = text.digest(page(b"<p class=a>same</p><script>1</script><!-- 1 -->"))
    assert one == text.digest(page(b"<p class=b>  same</p>\n<script>2</script>"))
    assert one != text.digest(page(b"<p class=a>other</p>"))


def test_text_is_the_same_in_another_charset():
    text = VisibleText()
    assert text.digest(page("ä".encode())) == text.digest(page("ä".encode("latin-1"), "text/html; charset=latin-1"))


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "image/png", "application/pdf"])
def test_other_than_html_counts_byte_by_byte(kind):
    one, other = page(b"<p>a</p>", kind), page(b"<p >a</p>", kind)
    assert VisibleText().digest(one) == RawBytes().digest(one) != VisibleText().digest(other)


@pytest.mark.parametrize("kind", ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml", None])
def test_what_counts_as_html(kind):
    one, other = page(b"<!DOCTYPE html><p>a</p>", kind), page(b"<!DOCTYPE html><p >a</p>", kind)
    assert VisibleText().digest(one) == VisibleText().digest(other)
    assert RawBytes().digest(one) != RawBytes().digest(other)


def test_digests_are_the_same_tomorrow():
    assert RawBytes().digest(page(b"abc")) == "06b05ab6733a618578af5f94892f3950"
    assert VisibleText().digest(page(b"<p>abc")) == "06b05ab6733a618578af5f94892f3950"


def test_detectors_by_name():
    for name in ("raw", "text"):
        assert detector(name).name == name
        assert detector(name).version
    with pytest.raises(ParameterError, match="did you mean text"):
        detector("texts")
