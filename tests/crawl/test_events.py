"""Events: subscribers end with what the crawler has, whatever happens in between; limits hold and are reported."""

import asyncio
import random
from collections import defaultdict

import numpy as np
import pytest

from recrawl.crawl.deliver.subscribers import FIRST_WAIT, LONGEST_WAIT, Delivery, NotDelivered, backoff
from recrawl.crawl.http.memory import Answer, ManualClock
from recrawl.crawl.run.commands import remove_command
from recrawl.crawl.run.pages import add_pages
from recrawl.store import BlockingStore, EventLimits, MemoryStore, Outcome, SqliteStore
from recrawl.store.testing.rows import example_rows

from .driving import START, World
from .test_crawler import URLS


def busy(url, now):
    """Pages that change, go, come back and lead elsewhere."""
    if url.endswith("/robots.txt"):
        return None
    k = int(url.rsplit("/", 1)[1])
    hour = int((now + 113 * k) / 3600.0)
    if k % 7 == 3 and hour % 3 == 1:
        return Answer(status=404)
    if k % 7 == 5 and hour % 4 == 2 and "/moved/" not in url:
        return Answer(status=302, headers={"location": f"/moved/{hour}/{k}"})
    return f"<p>page {k}: {int((now + 37 * k) / (1200.0 * (k % 20 + 1)))}</p>"


class Index:
    """A subscriber: a search index that applies events, each id once."""

    def __init__(self, fails=0.0, seed=0):
        self.documents, self.seen, self.heard, self.missed = {}, {}, [], 0
        self._fails, self._rng = fails, random.Random(seed)

    def __call__(self, events, missed):
        self.missed += missed
        cut = self._rng.randrange(len(events) + 1) if self._rng.random() < self._fails else len(events)
        for event in events[:cut]:
            self._apply(event)
        if cut < len(events) or self._rng.random() < self._fails:
            raise RuntimeError("it died before it could say that it has them")

    def _apply(self, event):
        self.heard.append(event)
        assert self.seen.setdefault(event.id, event) == event, "an id has one content"
        if event.kind == "gone":
            self.documents.pop(event.url, None)
        else:
            self.documents[event.url] = (event.new_digest, event.new_final_url)

    def in_order(self):
        """Whether the first time that each event was heard, it came after all before it of its page."""
        last = defaultdict(int)
        firsts = {event.id: event for event in reversed(self.heard)}
        for event in sorted(firsts.values(), key=lambda event: self.heard.index(event)):
            if event.number <= last[event.url]:
                return False
            last[event.url] = event.number
        return True


def existing(store):
    return {event.url: (event.new_digest, event.new_final_url) for event in store.snapshot()}


def every_event(store):
    found, after = [], 0
    while some := store.events(after):
        found, after = found + some, some[-1].number
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_index_that_subscribes_has_what_the_crawler_has(tmp_path, kind):
    store = BlockingStore(MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "a.db"))
    world, index = World(busy, URLS[:70], store=store, budget=0.1), Index()
    for _ in range(3):
        world.run(3 * 3600.0, subscribers={"index": index}, commit_delay=600.0)
    assert index.documents == existing(store)
    assert len(index.documents) > 40
    events = every_event(store)
    assert index.heard == events, "each once, in order"
    kinds = [event.kind for event in events]
    assert min(kinds.count(kind) for kind in ("new", "changed", "redirected", "gone")) > 5, kinds
    copies = store.copies(list(index.documents))
    assert {url: copy.digest for url, copy in copies.items()} == {url: d for url, (d, _) in index.documents.items()}
    store.close()


@pytest.mark.slow
def test_every_change_that_was_observed_is_an_event():
    world = World(lambda url, now: None if "robots" in url else f"<p>{int(now / 4000)} {url}", URLS[:40], budget=0.1)
    world.run(4 * 3600.0)
    observed = [(o.url, o.began_at) for o in world.store.observations() if o.changed or o.changed is None]
    assert sorted((event.url, event.at) for event in every_event(world.store)) == sorted(observed)
    for url in URLS[:40]:
        mine = [event for event in every_event(world.store) if event.url == url]
        assert [event.kind for event in mine] == ["new"] + ["changed"] * (len(mine) - 1)
        assert [event.old_digest for event in mine[1:]] == [event.new_digest for event in mine[:-1]], "a chain"


@pytest.mark.slow
def test_a_subscriber_that_fails_half_the_time_misses_nothing_and_keeps_the_order():
    world, index = World(busy, URLS[:70], budget=0.1), Index(fails=0.5)
    for _ in range(4):
        world.run(2 * 3600.0, subscribers={"index": index})
    index._fails = 0.0
    world.run(60.0, subscribers={"index": index})
    assert index.documents == existing(world.store)
    assert {event.id for event in index.heard} == {event.id for event in every_event(world.store)}
    assert len(index.heard) > len(index.seen), "some came twice"
    assert index.in_order()


@pytest.mark.slow
def test_killed_again_and_again_nothing_is_missing(tmp_path):
    world = World(busy, URLS[:70], store=BlockingStore(SqliteStore(tmp_path / "a.db")), budget=0.1)
    index = Index(fails=0.3)
    for k in range(12):
        (world.run if k % 4 == 3 else world.killed_after)(
            1800.0 + 77 * k, subscribers={"index": index}, commit_delay=60.0
        )
        world.store.close()
        world.store = BlockingStore(SqliteStore(tmp_path / "a.db"))
        kept = {event.id: event for event in every_event(world.store)}
        assert all(kept[one] == event for one, event in index.seen.items()), "what was heard is what is kept"
    index._fails = 0.0
    world.run(10.0, subscribers={"index": index})
    assert set(index.seen) == {event.id for event in every_event(world.store)}
    assert index.documents == existing(world.store)
    assert index.in_order()
    assert world.store.check() == []
    world.store.close()


@pytest.mark.slow
def test_two_subscribers_are_independent():
    world, good, bad = World(busy, URLS[:30], budget=0.1), Index(), Index(fails=1.0)
    world.run(2 * 3600.0, subscribers={"good": good, "bad": bad})
    assert good.documents == existing(world.store)
    by_name = {one.name: one for one in world.store.subscribers()}
    last = world.store.event_counts()["last"]
    assert (by_name["good"].cursor, by_name["good"].failures) == (last, 0)
    assert by_name["bad"].cursor == 0
    assert by_name["bad"].failure == "RuntimeError"
    told = [fields for name, fields in world.events if name == "not delivered"]
    assert {one["subscriber"] for one in told} == {"bad"}


# --- backing off, and limits ------------------------------------------------------------------------------------------


def test_backing_off_is_bounded():
    rng = random.Random(3)
    waits = [[backoff(n, rng) for _ in range(200)] for n in range(1, 40)]
    for n, some in enumerate(waits, 1):
        whole = min(FIRST_WAIT * 2 ** (n - 1), LONGEST_WAIT)
        assert 0.5 * whole <= min(some) < max(some) <= whole, "from its upper half"
    assert backoff(1, rng, asked=50.0) == 50.0
    assert backoff(1, rng, asked=1e9) == LONGEST_WAIT


@pytest.mark.slow
def test_a_subscriber_that_is_down_for_hours_is_tried_no_more_often_than_that_and_disk_is_bounded(tmp_path):
    limits = EventLimits(rows=100, size=50_000)
    world = World(busy, URLS[:70], store=BlockingStore(SqliteStore(tmp_path / "a.db", events=limits)), budget=0.1)
    tries = []

    def down(events, missed):
        tries.append(world.clock.now())
        raise NotDelivered("down")

    world.run(6 * 3600.0, subscribers={"index": down}, commit_delay=300.0)
    counts = world.store.event_counts()
    assert counts["last"] > 250
    assert counts["rows"] <= 100
    assert counts["size"] <= 50_000
    gaps = np.diff(tries)
    assert gaps.max() <= LONGEST_WAIT + 1.0
    assert gaps[20:-1].min() >= LONGEST_WAIT / 2 - 1.0
    (subscriber,) = world.store.subscribers()
    assert subscriber.dropped == counts["first"] - 1 > 0
    assert max(fields["n"] for name, fields in world.events if name == "dropped") > 0, "and it is reported"

    index = Index()
    world.run(60.0, subscribers={"index": index})
    assert index.missed == counts["first"] - 1, "and the subscriber gets the number it missed"
    assert index.heard[0].number == counts["first"]
    assert world.store.subscribers()[0].dropped == subscriber.dropped
    assert world.store.check() == []
    world.store.close()


@pytest.mark.slow
def test_with_no_limit_reached_hours_down_lose_nothing():
    world, index = World(busy, URLS[:70], budget=0.1), Index(fails=1.0)
    world.run(5 * 3600.0, subscribers={"index": index})
    index._fails = 0.0
    world.run(60.0, subscribers={"index": index})
    assert index.missed == 0
    assert index.documents == existing(world.store)


@pytest.mark.slow
def test_a_slow_subscriber_holds_up_nothing_but_itself():
    slow, quick = World(busy, URLS[:70], budget=0.1), World(busy, URLS[:70], budget=0.1)
    heard = []

    async def take(events, missed):
        await slow.clock.sleep(1200.0)
        heard.extend(events)

    counts = slow.run(3 * 3600.0, subscribers={"slow": take})
    assert abs(counts.ended - quick.run(3 * 3600.0).ended) <= 3
    assert [event.number for event in heard] == list(range(1, len(heard) + 1))
    assert len(heard) > 50


@pytest.mark.parametrize("said", [0, -3, 10**6])
def test_a_subscriber_that_says_nonsense_has_taken_nothing(said):
    world = World(busy, URLS[:5], budget=0.1)
    world.run(600.0, subscribers={"odd": lambda events, missed: said})
    assert world.store.subscribers()[0].cursor == 0
    assert world.store.subscribers()[0].failures > 1


def test_a_subscriber_may_take_the_first_few():
    world, heard = World(busy, URLS[:40], budget=0.1), []

    def take(events, missed):
        heard.append(events[0].number)
        return 1

    world.run(3600.0, subscribers={"one": take})
    assert heard == list(range(1, world.store.event_counts()["last"] + 1))


# --- what events hold -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_texts_go_with_events_where_they_are_wanted():
    def page(url, now):
        return None if "robots" in url else f"<title>t</title><p>at {int(now - START) // 3600}<script>{now}</script>"

    world = World(page, URLS[:3], budget=0.1)
    world.run(4 * 3600.0, texts=True)
    events = [event for event in every_event(world.store) if event.url == URLS[0]]
    assert [event.kind for event in events[:2]] == ["new", "changed"]
    assert (events[1].old_text, events[1].new_text) == (events[0].new_text, events[1].new_text)
    assert "at 0" in events[0].new_text
    assert "script" not in events[0].new_text
    without = World(page, URLS[:3], budget=0.1)
    without.run(3600.0)
    assert all(event.new_text is None for event in every_event(without.store))


def test_texts_that_are_too_long_or_no_text_are_left_out():
    def page(url, now):
        if "robots" in url:
            return None
        kind = "image/png" if url.endswith("/1") else "text/plain"
        return Answer(b"x" * (300_000 if url.endswith("/2") else 100), headers={"content-type": kind})

    world = World(page, URLS[:3], budget=1.0)
    world.run(30.0, texts=True)
    lengths = {event.url[-1]: event.new_text and len(event.new_text) for event in every_event(world.store)}
    assert lengths == {"0": 100, "1": None, "2": None}


def test_pages_that_are_removed_are_gone_for_subscribers():
    world, index = World(busy, URLS[:10], budget=1.0), Index()
    world.run(60.0, subscribers={"index": index})
    assert URLS[0] in index.documents
    world.store.queue([remove_command([URLS[0]])])
    world.run(90.0, subscribers={"index": index})
    assert URLS[0] not in index.documents
    last = [event for event in index.heard if event.url == URLS[0]][-1]
    assert (last.kind, last.reason) == ("gone", "removed")
    assert START < last.at <= world.clock.now()


def test_a_page_that_moves_for_good_to_another_page_is_gone():
    def page(url, now):
        if "robots" in url:
            return None
        if url == URLS[0] and now > START + 600.0:
            return Answer(status=301, headers={"location": URLS[1]})
        return f"<p>{url}"

    world = World(page, URLS[:2], budget=0.1)
    world.run(1800.0)
    event = [event for event in every_event(world.store) if event.url == URLS[0]][-1]
    assert (event.kind, event.reason, event.new_final_url) == ("gone", "moved", URLS[1])


def test_a_database_from_before_events_has_only_new_events(tmp_path):
    from recrawl.store.sqlite import migrate as migrating

    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        store.save([Outcome(URLS[0], START, status=200, digest="d1")], example_rows(URLS[:2]))
        for table in ("event", "told", "follower", "event_total"):
            store.store._database.writer.execute(f"DROP TABLE {table}")
        store.store._database.writer.execute("PRAGMA user_version = 3")
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        assert migrating.version_of(store.store._database.writer) >= 4
        store.save([Outcome(URLS[0], START + 1, status=200, digest="d2", changed=True)])
        (event,) = store.events()
        assert (event.kind, event.old_digest, event.new_digest) == ("changed", "d1", "d2")


@pytest.mark.slow
def test_a_second_run_of_one_crawler_goes_on_delivering():
    world, index = World(busy, URLS[:10], budget=0.5), Index()
    crawler = world.crawler(subscribers={"index": index})
    for _ in range(2):
        asyncio.run(world.clock.drive(crawler.run(world.clock.now() + 1800.0)))
        assert index.documents == existing(world.store)
    crawler.close()


def test_a_store_that_breaks_ends_the_delivery():
    from recrawl.errors import StoreError

    class Broken(MemoryStore):
        async def save_subscriber(self, subscriber):
            if subscriber.cursor:
                raise StoreError("broken")
            await super().save_subscriber(subscriber)

    world = World(busy, URLS[:10], store=Broken(), budget=1.0)
    with pytest.raises(StoreError, match="broken"):
        world.run(60.0, subscribers={"index": Index()})


def test_delivery_by_itself():
    async def main():
        store, clock, heard = MemoryStore(), ManualClock(START), []
        await store.save(rows=example_rows(URLS[:1]))
        delivery = Delivery("one", lambda events, missed: heard.extend(events), store, clock, lambda *a, **k: None)
        await delivery.resume()
        assert await delivery.step() == 0.0
        await store.save([Outcome(URLS[0], START, status=200, digest="d")])
        assert await delivery.step() is None
        assert [event.kind for event in heard] == ["new"]
        assert (await store.subscribers())[0].taken_at == START

    asyncio.run(main())


def test_new_pages_are_events_when_they_are_fetched_and_not_before():
    world, index = World(busy, URLS[:3], budget=1.0), Index()
    engine = world.opened()
    add_pages(engine, world.rules, [URLS[5]], world.clock.now())
    assert every_event(world.store) == []
    world.run(60.0, subscribers={"index": index})
    assert {event.kind for event in index.heard} == {"new"}
