"""/changes.xml: a feed that any reader can parse, whatever pages say."""

import asyncio
import base64
from dataclasses import replace
from email.utils import parsedate_to_datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from recrawl import Engine
from recrawl.crawl.config.rules import pattern
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.deliver.notify.message import item_of
from recrawl.crawl.formats.feed_items import read_feed
from recrawl.serve.feed import MEDIA_TYPE, Changes, feed_of, fits
from recrawl.serve.kept_texts import with_texts
from recrawl.serve.problems import ProblemError
from recrawl.store import Event, MemoryStore, Outcome

from .serving import URLS, with_interface

HOSTILE = "<script>alert(1)</script>]]>&amp;\x00\x0b\ud800\ufffe\u202e<b>"
EVENT = Event(3, "s.3", URLS[0], "changed", 1.7e9, old_text="Tea\n3.00", new_text="Tea\n3.20")
ELEMENTS = {"rss", "channel", "title", "link", "description", "generator", "lastBuildDate", "item", "guid", "pubDate"}


def written(*events):
    """The feed of events, and what a strict parser makes of it."""
    text = feed_of(events, [item_of(event) for event in events], "http://127.0.0.1:8321/")
    return text, etree.fromstring(text, etree.XMLParser(resolve_entities=False, recover=False))


def test_items_have_links_times_and_differences():
    text, rss = written(EVENT, replace(EVENT, id="s.2", kind="gone", new_text=None))
    assert (rss.tag, rss.get("version"), len(rss.findall("channel"))) == ("rss", "2.0", 1)
    channel = rss.find("channel")
    assert all(channel.findtext(name) for name in ("title", "link", "description"))
    first, second = channel.findall("item")
    assert (first.findtext("title"), first.findtext("link")) == ("changed: Tea", URLS[0])
    assert parsedate_to_datetime(first.findtext("pubDate")).timestamp() == 1.7e9
    assert first.findtext("pubDate") == channel.findtext("lastBuildDate") == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert (first.find("guid").get("isPermaLink"), first.findtext("guid")) == ("false", "urn:recrawl:s.3")
    assert "+ 3.20</div>" in first.findtext("description")
    assert second.findtext("title") == "gone: Tea"
    items = read_feed(text)
    assert [(item.link, item.published) for item in items] == [(URLS[0], 1.7e9)] * 2
    assert written()[1].findall(".//item") == []


@pytest.mark.parametrize("place", ["url", "old_text", "new_text"])
def test_what_a_page_says_is_text(place):
    event = replace(EVENT, **{place: f"https://a.example/{HOSTILE}" if place == "url" else f"{HOSTILE}\nx"})
    _, rss = written(event)
    assert {one.tag for one in rss.iter()} <= ELEMENTS
    html = etree.HTML(rss.findtext(".//item/description"))
    assert html.findall(".//script") == html.findall(".//b") == []


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_patterns_match_as_in_rules(match, url):
    assert fits(match, url) is (pattern(match).fullmatch(url) is not None)


def test_a_difference_comes_from_bodies_where_events_carry_no_text():
    async def run(keep):
        store, engine = MemoryStore(keep=keep), Engine(1.0)
        engine.add(URLS[:1], 0.0)
        await store.save(rows=engine.rows())
        for k in range(3):
            found = {"status": 200, "digest": f"d{k}", "content_type": "text/html", "body": b"<p>Tea</p><p>%d</p>" % k}
            await store.save([Outcome(URLS[0], float(k), changed=True if k else None, **found)])
        events = await store.newest_events(kinds=("changed",))
        return [await with_texts(store, event) for event in events]

    newest, before = asyncio.run(run(2))
    assert (newest.old_text, newest.new_text) == ("Tea\n1", "Tea\n2")
    assert before.old_text is before.new_text is None
    assert all(one.new_text is None for one in asyncio.run(run(1)))


def test_a_notification_chooses_the_events_of_its_feed():
    table = {"name": "team", "match": f"{URLS[1]}*", "kinds": ["changed", "new"], "webhook": "https://chat.example/x"}

    async def run():
        store, engine = MemoryStore(keep=2), Engine(1.0)
        engine.add(URLS[:3], 0.0)
        await store.save(rows=engine.rows())
        for k in range(2):
            found = {"status": 200, "digest": f"d{k}", "content_type": "text/html", "body": b"<p>Tea</p><p>%d</p>" % k}
            await store.save([Outcome(url, float(k), changed=True if k else None, **found) for url in URLS[:3]])
        changes = Changes(store, SimpleNamespace(settings=Settings(notify=(table,)), store_of=lambda url: store))
        with pytest.raises(ProblemError):
            changes.choice("nobody", "")
        feeds = [await changes.feed(changes.choice(name, ""), "http://a/") for name in ("", "team")]
        again = await changes.feed(changes.choice("team", ""), "http://a/")
        return [*feeds, again]

    (every, all_of_them), (some, chosen), again = asyncio.run(run())
    assert every != some
    assert again == (some, chosen)
    assert len(etree.fromstring(all_of_them).findall(".//item")) == 3
    (item,) = etree.fromstring(chosen).findall(".//item")
    assert item.findtext("link") == URLS[1]
    assert "- 0</div>" in item.findtext("description")
    assert "+ 1</div>" in item.findtext("description")


def basic(token):
    return "Basic " + base64.b64encode(f"anyone:{token}".encode()).decode()


@pytest.mark.slow
def test_the_feed_of_a_crawl():
    async def test(one):
        kept = one.tokens.find(one.token)
        one.tokens.set("cms", replace(kept, scopes=("read",)))

        async def get(authorization, query="", **headers):
            sent = {} if authorization is None else {"authorization": authorization}
            async with one.client.get(f"{one.url}/changes.xml{query}", headers={**sent, **headers}) as answer:
                return answer.status, answer.headers, await answer.read()

        for wrong in (None, "Bearer x", basic("x"), basic(""), "Basic %%%", "Basic " + "é".encode().hex()):
            status, headers, _ = await get(wrong)
            assert status == 401
            assert "www-authenticate" in headers
        assert (await get(basic(one.other)))[0] == (await get(f"Bearer {one.other}"))[0] == 403
        first = Outcome(URLS[0], 1.7e9, status=200, digest="d1", text="Tea\n3.00")
        await one.store.save([first, replace(first, began_at=1.7e9 + 1, digest="d2", changed=True, text="Tea\n3.20")])
        status, headers, body = await get(basic(one.token))
        assert (status, headers["content-type"]) == (200, MEDIA_TYPE)
        assert len(etree.fromstring(body).findall(".//item")) == 1, "a new page is no change"
        assert b"3.20" in body
        assert (await get(f"Bearer {one.token}", **{"if-none-match": headers["etag"]}))[0] == 304
        for query, items in (("?match=https://a.example/*", 1), ("?match=https://b.example/*", 0), ("?match=*z*", 0)):
            assert len(etree.fromstring((await get(basic(one.token), query))[2]).findall(".//item")) == items
        assert (await get(basic(one.token), "?notify=nobody"))[0] == 404
        await one.store.save([replace(first, began_at=1.7e9 + 2, digest="d3", changed=True, text="Tea\n3.40")])
        many = await asyncio.gather(*(get(basic(one.token)) for _ in range(5)))
        assert {body for _, _, body in many} == {many[0][2]}
        assert b"3.40" in many[0][2]
        assert many[0][1]["etag"] != headers["etag"]

    with_interface(test)
