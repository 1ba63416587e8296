"""WebSub: the hubs that a document names, and signatures of deliveries."""

import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.signals.websub.discovery import Links, discover, header_links, speaks_for
from recrawl.crawl.signals.websub.signature import METHODS, is_signed, sign

from .websub_table import (
    HUB,
    NOW,
    OTHER,
    PAGE,
    fetched,
)

# --- discovery -------------------------------------------------------------------------------------------------------

_LINKS = '<link rel="hub" href="https://hub.example/"><link rel="self" href="/feed">'
_ATOM = '<feed xmlns="http://www.w3.org/2005/Atom">{}<entry><link rel="self" href="/entry"/></entry></feed>'
_RSS = (
    '<rss xmlns:a="http://www.w3.org/2005/Atom"><channel>{}<item><a:link rel="hub" href="/x"/></item></channel></rss>'
)
_XML = '<{0}link rel="hub" href="https://hub.example/"/><{0}link rel="self" href="https://a.example/feed"/>'


@pytest.mark.parametrize(
    ("page", "hubs"),
    [
        (fetched(link=f'<{HUB}>; rel="hub", <{PAGE}>; rel="self"'), (HUB,)),
        (fetched(link=f"<{HUB}>; rel=hub, <{OTHER}>; title=a; REL=Hub, </feed>; rel=self"), (HUB, OTHER)),
        (fetched(link=f'<{HUB}>; rel="preconnect hub", </feed>; rel="self alternate"'), (HUB,)),
        (fetched(f"<head>{_LINKS}</head>", link=f"<{OTHER}>; rel=hub, <{PAGE}>; rel=self"), (OTHER,)),
        (fetched(f"<head>{_LINKS}</head>", link=f"<{OTHER}>; rel=hub"), (HUB,)),
        (fetched(f"<html><head><title>t</title>{_LINKS}</head><body>b</body></html>"), (HUB,)),
        (fetched(f"<html><head></head><body>{_LINKS}</body></html>"), None),
        (
            fetched('<head><base href="/x/"><link rel=hub href="h"><link rel=self href="../feed">'),
            ("https://a.example/x/h",),
        ),
        (fetched(_ATOM.format(_XML.format("")), "application/atom+xml"), (HUB,)),
        (fetched(_ATOM.format(""), "application/atom+xml"), None),
        (fetched(_RSS.format(_XML.format("a:")), "application/rss+xml"), (HUB,)),
        (fetched(_RSS.format(_XML.format("a:")), "text/xml"), (HUB,)),
        (fetched(_RSS.format('<a:link rel="self" href="/feed"/>'), "text/xml"), None),
        (fetched('<!DOCTYPE r [<!ENTITY e "x">]>' + _ATOM.format(_XML.format("")), "text/xml"), None),
        (fetched(link="<ftp://hub.example/>; rel=hub, </feed>; rel=self"), None),
        (fetched(link=f"<{HUB}>; rel=hub, <http://[::1>; rel=self"), None),
        (fetched(f"{_LINKS}", "application/json"), None),
    ],
)
def test_the_hubs_of_a_document(page, hubs):
    found = discover(page)
    assert found == (None if hubs is None else Links(PAGE, hubs))


def test_at_most_five_hubs_are_kept():
    link = ", ".join(f"<https://h{k}.example/>; rel=hub" for k in range(50)) + f", <{PAGE}>; rel=self"
    assert len(discover(fetched(link=link)).hubs) == 5


def test_a_failed_or_unmodified_answer_names_no_hub():
    link = f"<{HUB}>; rel=hub, <{PAGE}>; rel=self"
    for options in ({"failure": "busy"}, {"not_modified": True}):
        assert discover(Fetched(PAGE, PAGE, 304, NOW, 0.1, {"link": link}, **options)) is None


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        (PAGE, True),
        ("https://a.example/feed?page=1", True),
        ("https://a.example/other", False),  # a page of its own
        ("https://b.example/feed", False),
    ],
)
def test_a_page_speaks_for_itself_alone(topic, allowed):
    assert speaks_for(PAGE, PAGE, Links(topic, (HUB,)), lambda url: url == "https://a.example/other") is allowed


@given(st.text(max_size=200))
@settings(max_examples=examples(200))
def test_any_header_is_read(text):
    for rel, _ in header_links(text):
        assert rel


@given(st.binary(max_size=400), st.sampled_from(["text/html", "text/xml", "application/atom+xml", "", "a/b"]))
@settings(max_examples=examples(200))
def test_any_body_is_searched(body, kind):
    body = b'<feed><link rel="hub" href="h"/><link rel="self" href="/s"/>' + body
    discover(Fetched(PAGE, PAGE, 200, NOW, 0.1, {"content-type": kind, "link": body.decode("latin-1")}, body))


# --- signatures ------------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=60), st.binary(max_size=200), st.sampled_from(METHODS), st.binary(min_size=1))
@settings(max_examples=examples(200))
def test_a_signature_is_of_one_secret_and_one_body(secret, body, method, more):
    secret = secret.encode("utf-8", "replace").decode()
    right = method + "=" + hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()
    assert sign(secret, body, method) == right
    assert is_signed(secret, right, body)
    assert is_signed(secret, f" {method.upper()}={right.partition('=')[2].upper()} ", body)
    assert not is_signed(secret, right, body + more)
    assert not is_signed(secret + "x", right, body)
    assert not is_signed(secret, right[:-1], body)


@pytest.mark.parametrize("header", ["", "sha256", "sha256=", "md5=0", "sha1=é", "=x", "new=0", "sha256=" + "0" * 500])
def test_what_is_no_signature(header):
    assert not is_signed("secret", header, b"")
