"""Delivery: subscribers miss nothing when they fail, are slow or are killed; retries and limits are bounded."""

import asyncio
import random

import numpy as np
import pytest
from profiles import examples

from recrawl.crawl.deliver.subscribers import FIRST_WAIT, LONGEST_WAIT, Delivery, NotDelivered, backoff
from recrawl.crawl.http.memory import ManualClock
from recrawl.errors import StoreError
from recrawl.store import BlockingStore, EventLimits, MemoryStore, Outcome, SqliteStore
from recrawl.store.testing.rows import example_rows

from .driving import START, URLS, World
from .test_events import Index, busy, every_event, existing


@pytest.mark.slow
def test_a_subscriber_that_fails_half_the_time_misses_nothing_and_keeps_the_order():
    world, index = World(busy, URLS[:30], budget=0.1), Index(fails=0.5)
    for _ in range(4):
        world.run(800.0, subscribers={"index": index})
    index._fails = 0.0
    world.run(60.0, subscribers={"index": index})
    assert index.documents == existing(world.store)
    assert {event.id for event in index.heard} == {event.id for event in every_event(world.store)}
    assert len(index.heard) > len(index.seen), "some came twice"
    assert index.in_order()


@pytest.mark.slow
def test_killed_again_and_again_nothing_is_missing(tmp_path):
    world = World(busy, URLS[:40], store=BlockingStore(SqliteStore(tmp_path / "a.db")), budget=0.1)
    index = Index(fails=0.3)
    for k in range(examples(12, usual=8)):
        (world.run if k % 4 == 3 else world.killed_after)(
            400.0 + 37 * k, subscribers={"index": index}, commit_delay=60.0
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
def test_subscribers_are_independent():
    world, good, bad = World(busy, URLS[:30], budget=0.1), Index(), Index(fails=1.0)
    world.run(3600.0, subscribers={"good": good, "bad": bad})
    assert good.documents == existing(world.store)
    by_name = {one.name: one for one in world.store.subscribers()}
    last = world.store.event_counts()["last"]
    assert (by_name["good"].cursor, by_name["good"].failures) == (last, 0)
    assert by_name["bad"].cursor == 0
    assert by_name["bad"].failure == "RuntimeError"
    reported = [fields for name, fields in world.events if name == "not delivered"]
    assert {one["subscriber"] for one in reported} == {"bad"}


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
    limits = EventLimits(rows=50, size=25_000)
    world = World(busy, URLS[:70], store=BlockingStore(SqliteStore(tmp_path / "a.db", events=limits)), budget=0.05)
    tries = []

    def down(events, missed):
        tries.append(world.clock.now())
        raise NotDelivered("down")

    world.run(6 * 3600.0, subscribers={"index": down}, commit_delay=300.0)
    counts = world.store.event_counts()
    assert counts["last"] > 125
    assert counts["rows"] <= 50
    assert counts["size"] <= 25_000
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
    world.run(1.2 * 3600.0, subscribers={"index": index})
    index._fails = 0.0
    world.run(60.0, subscribers={"index": index})
    assert index.missed == 0
    assert index.documents == existing(world.store)


@pytest.mark.slow
def test_a_slow_subscriber_holds_up_nothing_but_itself():
    slow, quick = World(busy, URLS[:70], budget=0.1), World(busy, URLS[:70], budget=0.1)
    heard = []

    async def take(events, missed):
        await slow.clock.sleep(600.0)
        heard.extend(events)

    counts = slow.run(3600.0, subscribers={"slow": take})
    assert abs(counts.ended - quick.run(3600.0).ended) <= 3
    assert [event.number for event in heard] == list(range(1, len(heard) + 1))
    assert len(heard) > 50


@pytest.mark.parametrize("said", [0, -3, 10**6])
def test_a_subscriber_that_returns_nonsense_has_accepted_nothing(said):
    world = World(busy, URLS[:5], budget=0.1)
    world.run(600.0, subscribers={"odd": lambda events, missed: said})
    assert world.store.subscribers()[0].cursor == 0
    assert world.store.subscribers()[0].failures > 1


@pytest.mark.slow
def test_a_subscriber_may_accept_the_first_few():
    world, heard = World(busy, URLS[:40], budget=0.1), []

    def take(events, missed):
        heard.append(events[0].number)
        return 1

    world.run(3600.0, subscribers={"one": take})
    assert heard == list(range(1, world.store.event_counts()["last"] + 1))


@pytest.mark.slow
def test_a_second_run_of_one_crawler_goes_on_delivering():
    world, index = World(busy, URLS[:10], budget=0.5), Index()
    crawler = world.crawler(subscribers={"index": index})
    for _ in range(2):
        asyncio.run(world.clock.drive(crawler.run(world.clock.now() + 300.0)))
        assert index.documents == existing(world.store)
    crawler.close()


def test_a_store_that_breaks_ends_the_delivery():
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
