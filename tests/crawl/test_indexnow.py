"""IndexNow without input and output: what requests say, and which keys are verified when."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.crawl.http.memory import ManualClock
from recrawl.crawl.run.receive.indexnow import IndexNow
from recrawl.crawl.signals.indexnow import keys as keys_module
from recrawl.crawl.signals.indexnow.keys import DAY, KeyCheck, Keys, Taken
from recrawl.crawl.signals.indexnow.ping import Ping, Refusal, holds_key, read_body, read_query
from recrawl.errors import StoreError

NOW, KEY = 1.7e9, "0123abcd-EF"
SITE = "https://a.example"
PAGES = {f"{SITE}/{k}" for k in range(100)} | {f"{SITE}/docs/{k}" for k in range(100)}


def new_keys():
    return Keys(lambda urls: [url in PAGES for url in urls])


def posted(**said):
    whole = {"host": "a.example", "key": KEY, "urlList": [f"{SITE}/1"]} | said
    return read_body(json.dumps({name: value for name, value in whole.items() if value is not None}).encode())


def ping(*paths, key=KEY, location=None):
    found = read_query({"url": f"{SITE}{paths[0]}", "key": key, "keyLocation": location or ""})
    return found._replace(urls=tuple(SITE + path for path in paths))


# --- requests --------------------------------------------------------------------------------------------------------


def test_a_ping_in_both_forms():
    right = Ping("a.example", KEY, f"{SITE}/{KEY}.txt", (f"{SITE}/1",))
    assert read_query({"url": f"{SITE}/1", "key": KEY}) == right
    assert read_query({"url": "HTTPS://A.example:443/1#top", "key": KEY, "keyLocation": ""}) == right
    assert posted() == posted(host="A.EXAMPLE") == posted(urlList=[f"{SITE}/1"] * 5) == right
    assert posted(keyLocation=f"{SITE}/docs/k.txt", urlList=[f"{SITE}/docs/1"]).location == f"{SITE}/docs/k.txt"


def test_a_site_with_a_port():
    found = posted(host="127.0.0.1", urlList=["http://127.0.0.1:8080/x"])
    assert (found.site, found.location) == ("127.0.0.1:8080", f"http://127.0.0.1:8080/{KEY}.txt")
    assert posted(host="127.0.0.1:8080", urlList=["http://127.0.0.1:8080/x"]) == found
    assert posted(host="127.0.0.1:9", urlList=["http://127.0.0.1:8080/x"]).status == 422


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"host": None}, 400),
        ({"host": 5}, 400),
        ({"host": "a b"}, 400),
        ({"key": None}, 400),
        ({"key": "short"}, 422),
        ({"key": "x" * 129}, 422),
        ({"key": "under_score_"}, 422),
        ({"key": "0123456\n8"}, 422),
        ({"urlList": None}, 400),
        ({"urlList": []}, 400),
        ({"urlList": f"{SITE}/1"}, 400),
        ({"urlList": [5]}, 400),
        ({"urlList": ["ftp://a.example/"]}, 400),
        ({"urlList": ["/1"]}, 400),
        ({"urlList": [f"{SITE}/1"] * 10_001}, 400),
        ({"urlList": [f"{SITE}/1", "https://b.example/1"]}, 422),
        ({"host": "b.example"}, 422),
        ({"keyLocation": "https://b.example/k.txt"}, 422),
        ({"keyLocation": "https://a.example:8443/k.txt"}, 422),
        ({"keyLocation": "k.txt"}, 400),
        ({"keyLocation": 5}, 400),
        ({"keyLocation": f"{SITE}/docs/k.txt"}, 422),
        ({"keyLocation": f"{SITE}/docs/../docs/k.txt"}, 422),
    ],
)
def test_what_is_refused(said, status):
    assert posted(**said).status == status


def test_ten_thousand_urls():
    assert len(posted(urlList=[f"{SITE}/{k}" for k in range(10_000)]).urls) == 10_000


@pytest.mark.parametrize("body", [b"", b"[]", b"5", b"null", b"{", b"\xff", b"[" * 100_000, b'{"host": "a"'])
def test_bodies_that_are_no_request(body):
    assert read_body(body).status == 400


@pytest.mark.parametrize("query", [{}, {"url": f"{SITE}/1"}, {"key": KEY}, {"url": "", "key": KEY}])
def test_queries_that_are_no_request(query):
    assert read_query(query).status == 400


def test_what_a_key_file_holds():
    assert holds_key(KEY.encode(), KEY)
    assert holds_key(b"\xef\xbb\xbf" + KEY.encode() + b"\r\n", KEY)
    for body in (b"", KEY.encode() + b"x", b"<html>" + KEY.encode(), KEY.encode() + b"\n" + KEY.encode(), b"\xff"):
        assert not holds_key(body, KEY)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.just(KEY) | st.just("a.example"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["host", "key", "urlList"]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["host", "key", "urlList", "keyLocation"]), JSON))
@settings(max_examples=examples(300))
def test_any_json_is_read_or_refused(said):
    found = read_body(json.dumps(said).encode())
    assert isinstance(found, Ping) or (isinstance(found, Refusal) and found.status in (400, 422))


@given(
    st.dictionaries(
        st.sampled_from(["url", "key", "keyLocation"]), st.text(max_size=60) | st.just(f"{SITE}/1") | st.just(KEY)
    )
)
@settings(max_examples=examples(300))
def test_any_query_is_read_or_refused(query):
    found = read_query(query)
    assert isinstance(found, Ping) or (isinstance(found, Refusal) and found.status in (400, 422))


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_ping_waits_until_its_key_is_verified():
    keys = new_keys()
    first = keys.take(ping("/1", "/unknown", "/2"), NOW)
    assert first == Taken(202, (), KeyCheck("a.example", KEY, f"{SITE}/{KEY}.txt"))
    assert keys.take(ping("/3"), NOW + 1) == Taken(202)
    assert keys.waiting(first.check) == [f"{SITE}/1", f"{SITE}/2", f"{SITE}/3"]
    keys.checked(first.check, True)
    assert keys.waiting(first.check) == []
    assert keys.take(ping("/4", "/unknown"), NOW + 2) == Taken(200, (f"{SITE}/4",))
    assert keys.n_waiting == 0


def test_a_repetition_while_waiting_writes_nothing():
    keys = new_keys()
    keys.take(ping("/1"), NOW)
    assert len(keys.pending_notes()) == 1
    assert keys.take(ping("/1"), NOW + 1) == Taken(202)
    assert keys.pending_notes() == {}


def test_a_wrong_key_is_refused_for_a_day_and_its_pings_are_dropped():
    keys = new_keys()
    check = keys.take(ping("/1"), NOW).check
    keys.checked(check, False)
    assert keys.waiting(check) == []
    assert keys.take(ping("/1"), NOW + 1).status == 403
    assert keys.take(ping("/1"), NOW + DAY - 1).status == 403
    assert keys.take(ping("/1"), NOW + DAY).check == check


def test_a_key_is_verified_again_after_a_day():
    keys = new_keys()
    keys.checked(keys.take(ping("/1"), NOW).check, True)
    later = keys.take(ping("/1"), NOW + DAY)
    assert (later.status, later.urls) == (202, ())
    keys.checked(later.check, False)  # the key was replaced by another
    assert keys.take(ping("/1"), NOW + DAY + 1).status == 403
    new = keys.take(ping("/1", key="another-key"), NOW + DAY + 1)
    assert keys.waiting(new.check) == [f"{SITE}/1"]


def test_a_key_file_speaks_for_its_folder():
    keys = new_keys()
    check = keys.take(ping("/docs/1", location=f"{SITE}/docs/k.txt"), NOW).check
    keys.checked(check, True)
    assert keys.take(ping("/docs/2", location=f"{SITE}/docs/k.txt"), NOW + 1).urls == (f"{SITE}/docs/2",)
    assert keys.take(ping("/docs/2"), NOW + 1).status == 200
    assert keys.take(ping("/1"), NOW + 1).status == 403  # once a day per key: no second file is fetched


def test_a_ping_about_no_page_causes_no_request():
    keys = new_keys()
    assert keys.take(read_query({"url": "https://c.example/1", "key": KEY}), NOW) == Taken(200)
    assert keys.take(ping("/unknown"), NOW) == Taken(200)
    assert len(keys) == 0
    keys.checked(keys.take(ping("/1"), NOW).check, False)
    assert keys.take(ping("/unknown"), NOW).status == 403


def test_keys_of_a_site_are_tried_five_times_a_day():
    keys = new_keys()
    found = [keys.take(ping("/1", key=f"random-{k:05d}"), NOW + k) for k in range(100)]
    assert [isinstance(one, Taken) for one in found] == [True] * 5 + [False] * 95
    assert {one.status for one in found[5:]} == {429}
    assert keys.take(ping("/1", key="random-99999"), NOW + DAY - 1).status == 429
    assert keys.take(ping("/1", key="random-99999"), NOW + DAY).status == 202  # the first is a day old
    assert keys.take(ping("/1", key="random-99998"), NOW + DAY).status == 429


def test_tables_are_bounded(monkeypatch):
    monkeypatch.setattr(keys_module, "MOST_WAITING", 30)
    monkeypatch.setattr(keys_module, "CHECKS_OF_SITE", 10**9)
    monkeypatch.setattr(keys_module, "MOST_KEYS", 20)
    keys = new_keys()
    assert keys.take(ping(*(f"/{k}" for k in range(31))), NOW).status == 429
    assert keys.take(ping(*(f"/{k}" for k in range(10))), NOW).status == 202
    assert keys.n_waiting == 10
    checks = [KeyCheck("a.example", KEY, f"{SITE}/{KEY}.txt")]
    checks += [keys.take(ping("/1", key=f"random-{k:05d}"), NOW).check for k in range(19)]
    assert keys.take(ping("/1", key="random-99999"), NOW).status == 429
    assert keys.take(ping("/50", "/51"), NOW).status == 429
    assert keys.n_waiting == 29
    for check in checks:
        keys.checked(check, False)
    assert keys.take(ping("/1", key="random-99999"), NOW + DAY).status == 202
    assert len(keys) == 1
    assert sum(note is None for note in keys.pending_notes().values()) == 20


def test_a_restart_keeps_verdicts_and_what_waits():
    keys = new_keys()
    keys.checked(keys.take(ping("/1"), NOW).check, True)
    check = keys.take(ping("/2", key="another-key"), NOW).check
    after = new_keys()
    assert after.restore(json.loads(json.dumps(keys.pending_notes())), NOW + 5) == [check]
    assert after.pending_notes() == {}
    assert after.take(ping("/3"), NOW + 6) == Taken(200, (f"{SITE}/3",))
    assert after.waiting(check) == [f"{SITE}/2"]
    after.checked(check, True)
    assert after.n_waiting == 0


def test_a_clock_that_was_set_back_keeps_no_verdict_longer_than_a_day():
    keys = new_keys()
    keys.checked(keys.take(ping("/1"), NOW).check, True)
    after = new_keys()
    after.restore(keys.pending_notes(), NOW - 100 * DAY)
    assert after.take(ping("/1"), NOW - 99.5 * DAY).status == 200
    assert after.take(ping("/1"), NOW - 99 * DAY).status == 202


# --- answers ---------------------------------------------------------------------------------------------------------


class SlowStore:
    """Writes notes when it is let; ``broken`` while it cannot."""

    def __init__(self):
        self.may_write, self.broken, self.notes = asyncio.Event(), False, {}

    async def save(self, notes):
        await self.may_write.wait()
        if self.broken:
            raise StoreError("the disk is full")
        self.notes |= notes


def receiving(test):
    async def main():
        store = SlowStore()
        await test(IndexNow(None, None, ManualClock(NOW), store.save, lambda urls: [True] * len(urls)), store)

    asyncio.run(main())


async def begun(indexnow, *paths):
    """A ping whose answer may be awaited."""
    task = asyncio.ensure_future(indexnow.receive(ping(*paths)))
    for _ in range(10):
        await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("paths", [("/1",), ("/1", "/2"), ("/3",)])
def test_a_ping_is_not_answered_before_what_it_repeats_is_stored(paths):
    async def test(indexnow, store):
        first = await begun(indexnow, "/1", "/2")
        again = await begun(indexnow, *paths)
        assert not again.done()
        store.may_write.set()
        assert ((await first).status, (await again).status) == (202, 202)
        (note,) = store.notes.values()
        assert set(note["waiting"]) >= {SITE + path for path in paths}

    receiving(test)


def test_after_a_write_that_failed_the_next_ping_writes_again():
    async def test(indexnow, store):
        store.broken = True
        failed = [await begun(indexnow, "/1"), await begun(indexnow, "/1")]
        store.may_write.set()
        for one in failed:
            with pytest.raises(StoreError):
                await one
        with pytest.raises(StoreError):
            await indexnow.receive(ping("/1"))
        assert store.notes == {}
        assert indexnow.counts == {}
        store.broken = False
        assert (await indexnow.receive(ping("/1"))).status == 202
        (note,) = store.notes.values()
        assert note["waiting"] == (f"{SITE}/1",)
        assert list(indexnow._checks) == [KeyCheck("a.example", KEY, f"{SITE}/{KEY}.txt")]

    receiving(test)
