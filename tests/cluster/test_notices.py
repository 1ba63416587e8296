"""Notifications of a cluster: each event once, whichever worker has its shard and whoever sends."""

import asyncio
from collections import Counter

import pytest

from recrawl.cluster import tables
from recrawl.cluster.notices import events, notices, rule
from recrawl.cluster.overview import overview
from recrawl.cluster.ownership import keeper
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.crawl.deliver.subscribers import NotDelivered

from .clusters import Asked, Worker, cluster_of, made, settings_of, until

pytestmark = pytest.mark.slow

URLS = [f"https://h{host}.example/{k}" for host in range(6) for k in range(2)]
TEAM = {"name": "team", "webhook": "https://example.org/hook", "kinds": ["new", "changed"], "diff": False}


class Sent:
    """What was sent by any worker; the first messages are refused."""

    def __init__(self, refused=0):
        self.messages, self.refused = [], refused

    async def __call__(self, message):
        if self.refused:
            self.refused -= 1
            raise NotDelivered("not now", 0.0)
        self.messages.append(message)

    async def close(self):
        pass

    @property
    def items(self):
        return Counter((item.url, round(item.at, 6)) for message in self.messages for item in message.items)


@pytest.fixture
def sent(monkeypatch):
    monkeypatch.setattr(rule, "LOOK", 0.05)
    monkeypatch.setattr(keeper, "NOTICES_EVERY", 0.0)
    monkeypatch.setattr(events, "_MANY", 10)  # so that a message shows all of its events
    found = Sent()
    monkeypatch.setattr(notices, "sender_of", lambda *_: found)
    return found


def events_of(database):
    cluster, found = cluster_of(database), Counter()
    with ShardStores(cluster) as stores:
        for shard in range(cluster.shards):
            for one in stores.shared(shard).events(0, 10_000):
                found[one.url, round(one.at, 6)] += 1
    return found


def test_each_event_is_sent_once_while_workers_come_and_go(postgres, sent):
    database = made(postgres, URLS, shards=3, budget="40/s")
    cluster, web, settings = cluster_of(database), Asked(), settings_of(database, notify=(TEAM,))
    sent.refused = 2

    async def main():
        connection = await tables.connect(cluster.address)
        add = "INSERT INTO notice VALUES ('notify:team', '{\"cursors\": [0, 0, 0]}')"  # else events count from now on
        await connection.execute(add)
        await connection.close()
        one = Worker(cluster, settings, "one", web.of("one"))
        first = asyncio.create_task(one.run())
        await until(lambda: len(sent.items) > 10)
        two = Worker(cluster, settings, "two", web.of("two"))
        second = asyncio.create_task(two.run())
        await until(lambda: two.shards)
        assert [worker._notices is not None for worker in (one, two)] == [True, False], "one of them sends"
        await _check_marks(cluster, database)
        one.stop()
        await first
        n = sum(sent.items.values())
        await until(lambda: two._notices is not None and sum(sent.items.values()) > n + 10)
        # it stands still: another takes over, and it sends nothing when it goes on
        keep, two._keeper._keep = two._keeper._keep, _stand_still
        three = Worker(cluster, settings, "three", web.of("three"))
        third = asyncio.create_task(three.run())
        await until(lambda: three._notices is not None and len(three.shards) == 3)
        two._keeper._keep = keep
        n = sum(sent.items.values())
        await until(lambda: two._notices is None and sum(sent.items.values()) > n + 10)
        two.stop()
        await second
        three.stop()
        await third  # what is left is sent before

    asyncio.run(main())
    assert sent.items == events_of(database)


async def _stand_still(connection):
    await asyncio.sleep(3600.0)


async def _check_marks(cluster, database):
    """In the shards the notification is a subscriber, so that their events are kept for it."""
    connection = await tables.connect(cluster.address)

    async def marked():
        found = [
            await connection.fetchval(f"SELECT cursor FROM {cluster.shard_address(k).schema}.subscriber")
            for k in range(3)
        ]
        return None not in found and max(found) > 0

    for _ in range(1000):
        if await marked():
            break
        await asyncio.sleep(0.02)
    assert await marked()
    await connection.close()


def test_a_digest_is_one_message_about_all_shards_and_survives_its_worker(postgres, sent):
    database = made(postgres, URLS, shards=3, budget="20/s")
    digest = TEAM | {"digest": "3s", "kinds": ["new"]}
    cluster, web = cluster_of(database), Asked(lambda url, now: url)
    settings = settings_of(database, notify=(digest,))

    async def main():
        one = Worker(cluster, settings, "one", web.of("one"))
        first = asyncio.create_task(one.run())
        await until(
            lambda: one._notices is not None and any(r.notifier.n_waiting for r in one._notices._rules.values())
        )
        one.stop()
        await first
        assert sent.messages == []
        two = Worker(cluster, settings, "two", web.of("two"))
        second = asyncio.create_task(two.run())
        await until(lambda: len(sent.items) == len(URLS))
        two.stop()
        await second

    asyncio.run(main())
    assert {url for url, _ in sent.items} == set(URLS)
    assert set(sent.items.values()) == {1}
    assert len(sent.messages) <= 3, "not one for each shard and event"


def test_rules_that_are_left_out_are_forgotten_and_new_ones_begin_now(postgres, sent):
    database = made(postgres, URLS[:4], shards=2)
    cluster, web = cluster_of(database), Asked()
    settings = settings_of(database, notify=(TEAM,))
    files = [settings]

    async def main():
        worker = Worker(cluster, settings, "one", web.of("one"), read=lambda: files[-1])
        running = asyncio.create_task(worker.run())
        await until(lambda: len(sent.items) > 4)
        files.append(settings_of(database))
        assert (await worker.reload()).changed == ("notify",)
        await until(lambda: worker._keeper._notices is None and not worker._leaving)
        n = len(sent.messages)
        asked = len(web.asked)
        await until(lambda: len(web.asked) > asked + 50)
        assert len(sent.messages) == n
        files.append(settings_of(database, notify=(TEAM | {"name": "other"},)))
        await worker.reload()
        await until(lambda: len(sent.messages) > n + 2)
        assert set(sent.items.values()) == {1}, "not what happened before"
        connection = await tables.connect(cluster.address)
        assert [row["name"] for row in await connection.fetch("SELECT name FROM notice")] == ["notify:other"]
        await connection.close()
        worker.stop()
        await running
        assert (await overview(cluster))["workers"] == []

    asyncio.run(main())
