"""/changes.xml: a feed that any reader can parse, whatever pages say."""

import asyncio
import base64
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from lxml import etree

from recrawl.serve.feed import feed_of
from recrawl.store import Event, Outcome

from .serving import URLS, with_interface

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "<script>alert(1)</script>]]>&amp;\x00\x0b\ud800\ufffe\u202e<b>"
EVENT = Event(3, "s.3", URLS[0], "changed", 1.7e9, old_text="Tea\n3.00", new_text="Tea\n3.20")


def test_entries_have_links_times_and_differences():
    feed = ElementTree.fromstring(feed_of([EVENT, replace(EVENT, id="s.2", kind="gone", new_text=None)]))
    first, second = feed.findall(f"{ATOM}entry")
    assert first.findtext(f"{ATOM}title") == "changed: Tea"
    assert first.findtext(f"{ATOM}updated") == feed.findtext(f"{ATOM}updated") == "2023-11-14T22:13:20Z"
    assert first.find(f"{ATOM}link").get("href") == URLS[0]
    content = first.find(f"{ATOM}content")
    assert (content.get("type"), "+ 3.20" in content.text) == ("html", True)
    assert second.findtext(f"{ATOM}title") == "gone: Tea"
    assert feed.findtext(f"{ATOM}id") == "urn:recrawl:s"
    assert ElementTree.fromstring(feed_of([])).findall(f"{ATOM}entry") == []


@pytest.mark.parametrize("place", ["url", "old_text", "new_text"])
def test_what_a_page_says_is_text(place):
    event = replace(EVENT, **{place: f"https://a.example/{HOSTILE}" if place == "url" else f"{HOSTILE}\nx"})
    feed = etree.fromstring(feed_of([event]), etree.XMLParser(resolve_entities=False, recover=False))
    assert {one.tag for one in feed.iter()} <= {
        ATOM + name
        for name in ("feed", "id", "title", "updated", "author", "name", "entry", "link", "summary", "content")
    }
    content = feed.findtext(f".//{ATOM}content")
    html = etree.HTML(content)
    assert html.findall(".//script") == html.findall(".//b") == []


def basic(token):
    return "Basic " + base64.b64encode(f"anyone:{token}".encode()).decode()


@pytest.mark.slow
def test_the_feed_of_a_crawl():
    async def test(one):
        kept = one.tokens.find(one.token)
        one.tokens.set("cms", replace(kept, scopes=("read",)))

        async def get(authorization, **headers):
            sent = {} if authorization is None else {"authorization": authorization}
            async with one.client.get(one.url + "/changes.xml", headers={**sent, **headers}) as answer:
                return answer.status, answer.headers, await answer.read()

        for wrong in (None, "Bearer x", basic("x"), basic(""), "Basic %%%", "Basic " + "é".encode().hex()):
            status, headers, _ = await get(wrong)
            assert status == 401
            assert "www-authenticate" in headers
        assert (await get(basic(one.other)))[0] == (await get(f"Bearer {one.other}"))[0] == 403
        first = Outcome(URLS[0], 1.7e9, status=200, digest="d1", text="Tea\n3.00")
        await one.store.save([first, replace(first, began_at=1.7e9 + 1, digest="d2", changed=True, text="Tea\n3.20")])
        status, headers, body = await get(basic(one.token))
        assert (status, headers["content-type"]) == (200, "application/atom+xml; charset=utf-8")
        assert len(ElementTree.fromstring(body).findall(f"{ATOM}entry")) == 1, "a new page is no change"
        assert b"3.20" in body
        assert (await get(f"Bearer {one.token}", **{"if-none-match": headers["etag"]}))[0] == 304
        await one.store.save([replace(first, began_at=1.7e9 + 2, digest="d3", changed=True, text="Tea\n3.40")])
        many = await asyncio.gather(*(get(basic(one.token)) for _ in range(5)))
        assert {body for _, _, body in many} == {many[0][2]}
        assert b"3.40" in many[0][2]
        assert many[0][1]["etag"] != headers["etag"]

    with_interface(test)
