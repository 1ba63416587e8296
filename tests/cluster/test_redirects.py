"""Redirects to hosts of other shards: the goal becomes a page of its shard, at that shard's pace."""

import asyncio
import itertools
from dataclasses import replace

import pytest

from recrawl.cluster.hosts import shards_of
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.run.receive import handover
from recrawl.crawl.run.receive.handover import Handover
from recrawl.store import Copy

from .clusters import Asked, Worker, cluster_of, made, settings_of, until

N_SHARDS, DELAY = 4, 0.2
HOSTS = [f"h{k}.example" for k in range(40)]
SHARD_OF = dict(zip(HOSTS, shards_of([f"https://{host}/" for host in HOSTS], N_SHARDS).tolist(), strict=True))
FIRST, SECOND, THIRD = (next(host for host in HOSTS if SHARD_OF[host] == shard) for shard in (0, 1, 2))


@pytest.mark.slow
def test_goals_are_crawled_by_the_worker_of_their_shard_at_the_pace_of_their_host(postgres):
    temporary, permanent, chain = (f"https://{FIRST}/{name}" for name in ("t", "p", "c"))
    goals = [f"https://{SECOND}/a", f"https://{SECOND}/b"]
    there = [f"https://{SECOND}/{k}" for k in range(3)]  # pages of the goal's host
    database = made(postgres, [temporary, permanent, chain, *there], shards=N_SHARDS, budget="15/s")
    cluster, n_asked = cluster_of(database), itertools.count()
    leads = {temporary: goals[0]}

    def page(url, now):
        if url in leads:
            return Answer(status=302, headers={"location": leads[url]})
        if url == permanent:
            return Answer(status=301, headers={"location": goals[1]})
        if url == chain:
            return Answer(status=302, headers={"location": f"https://{FIRST}/c2"})
        if url == f"https://{FIRST}/c2":
            return Answer(status=301, headers={"location": f"https://{THIRD}/end"})
        return f"<p>{url} {next(n_asked) // 7}"

    web = Asked(page)
    settings = replace(settings_of(database), delay=f"{DELAY} s", min_change_probability="0")

    async def main():
        workers = [Worker(cluster, settings, name, web.of(name)) for name in ("one", "two")]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        await until(lambda: {*goals, f"https://{THIRD}/end"} <= set(web.urls()))
        leads[temporary] = f"https://{THIRD}/other"
        await until(lambda: f"https://{THIRD}/other" in web.urls())
        n = len(web.urls())
        await until(lambda: web.urls()[n:].count(temporary) >= 2)
        for worker in workers:
            worker.stop()
        for one in running:
            await one

    asyncio.run(main())
    asked = [(at, name, url.split("/")[2]) for at, name, url in web.asked]
    for host in (FIRST, SECOND, THIRD):
        times = sorted(at for at, _, one in asked if one == host)
        assert min(b - a for a, b in itertools.pairwise(times)) >= DELAY - 0.02, host
        names = [name for name, _ in itertools.groupby(name for _, name, one in sorted(asked) if one == host)]
        assert len(names) <= 2, "one worker at a time; shards move once, when the second joins"
    with ShardStores(cluster) as stores:
        of = {shard: stores.shared(shard) for shard in range(N_SHARDS)}
        first = {url: list(of[0].observations(url)) for url in (temporary, permanent, chain)}
        assert {one.failure for some in first.values() for one in some} == {None}
        assert {one.final_url for one in first[temporary]} == {goals[0], f"https://{THIRD}/other"}
        assert [one.changed for one in first[temporary]].count(True) == 1, "its content is where it leads"
        assert {(one.gone, one.final_url) for one in first[permanent]} == {(True, goals[1])}
        ends = {(one.gone, one.final_url, one.requests) for one in first[chain][1:]}
        assert ends <= {(False, f"https://{THIRD}/end", 2)}
        assert set(of[1].urls()) == {*there, *goals}
        assert set(of[2].urls()) == {f"https://{THIRD}/end", f"https://{THIRD}/other"}
        assert sum(len(list(of[1].observations(url))) for url in goals) > 0
        assert [one.failure for one in of[1].observations(goals[0])].count(None) > 0


class Others:
    """Another crawl that keeps what it is sent."""

    def __init__(self):
        self.sent = []

    def has(self, url):
        return "other" in url

    async def send(self, url, command):
        self.sent.append((url, command))


class Clock:
    def __init__(self):
        self.at = 0.0

    def now(self):
        return self.at


def test_goals_are_bounded_by_host_and_day_and_not_added_twice(monkeypatch):
    monkeypatch.setattr(handover, "MOST", 2)
    others, clock = Others(), Clock()
    handing = Handover(others, lambda url: 3.0, clock)

    def copy_of(goal):
        return Copy("https://a.example/", 0.0, 0.0, 302, "d", None, None, None, goal)

    async def add(goal, page="https://a.example/", before=None):
        return await handing.add(goal, page, None if before is None else copy_of(before))

    async def main():
        assert [await add(f"https://other.example/{k}") for k in range(4)] == [True, True, False, False]
        assert await add("https://other.example/5", before="https://other.example/5"), "it is there already"
        assert await add("https://other.example/6", page="https://b.example/"), "a host of its own"
        clock.at += 86400.0
        assert await add("https://other.example/7", before="https://other.example/5")

    asyncio.run(main())
    assert [url for url, _ in others.sent] == [f"https://other.example/{k}" for k in (0, 1, 6, 7)]
    assert {command["importance"] for _, command in others.sent} == {3.0}
    assert handing.is_foreign("https://other.example/")
