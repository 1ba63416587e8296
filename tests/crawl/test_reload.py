"""Settings and rules that change while a crawl runs, by the manual clock."""

import asyncio
import os

import numpy as np
import pytest

from recrawl.crawl import Answer, Settings
from recrawl.crawl.run.opening import notifiers
from recrawl.crawl.run.opening.reload import LIVE, Reloaded, adopted, compare, reload_settings
from recrawl.store import BlockingStore, SqliteStore
from recrawl.store.holder import Holder
from recrawl.store.sqlite.lock import holder_of

from .driving import START, World

URLS = [f"https://{host}.example/{k}" for host in "abcd" for k in range(5)]


def page(url, at):
    return Answer(body=f"<p>{url} {at}</p>".encode())


def reloaded(world, old, new, *, at=100.0, until=200.0, **options):
    """Run a crawl that gets other settings on its way."""
    crawler = world.crawler(**options)
    found = []

    async def main():
        running = asyncio.ensure_future(crawler.run(world.clock.now() + until))
        await world.clock.sleep(at)
        found.append(await reload_settings(crawler.components, old, new))
        await running

    try:
        asyncio.run(world.clock.drive(main()))
    finally:
        crawler.close()
    return found[0], np.array([at for at, url in world.web.requests]) - START


@pytest.mark.slow
def test_the_budget_changes_from_one_second_to_the_next():
    world = World(page, URLS, budget=1.0, delay=0.0, robots=False)
    done, times = reloaded(world, Settings(budget="1/s", delay="0 s"), Settings(budget="4/s", delay="0 s"))
    assert done.changed == ("budget",)
    assert (times < 100.0).sum() == 100
    assert (times >= 100.0).sum() == pytest.approx(400, abs=2), "and four times as many in as much time"


def test_the_delay_changes_for_all_hosts_that_have_none_of_their_own():
    def answer(url, at):
        if url.endswith("/robots.txt"):
            return Answer(body=b"User-agent: *\nCrawl-delay: 20\n" if "//d." in url else b"")
        return page(url, at)

    world = World(answer, URLS, budget=50.0, delay=10.0)
    _, times = reloaded(world, Settings(delay="10 s"), Settings(delay="5 s"))
    by_host = {host: times[["//" + host in url for _, url in world.web.requests]] for host in "ad"}
    early, late = (np.diff(by_host["a"][part]) for part in (by_host["a"] < 100, by_host["a"] > 111))
    assert early.min() == pytest.approx(10.0)
    assert (late.min(), late.max()) == pytest.approx((5.0, 5.0), abs=0.1)
    assert np.diff(by_host["d"]).min() >= 10.0
    assert np.diff(by_host["d"])[1:].min() == pytest.approx(20.0), "a crawl-delay stays"


def test_notifications_come_change_and_go_while_the_crawl_runs(monkeypatch):
    sent, closed = [], []

    class Sender:
        def __init__(self, notify, settings):
            self.name = notify.name

        async def __call__(self, message):
            sent.extend((self.name, item.url[8], item.at - START, item.diff is not None) for item in message.items)

        async def close(self):
            closed.append(self.name)

    monkeypatch.setattr(notifiers, "sender_of", Sender)
    hook = {"webhook": "https://hook.example/"}
    stays = {"name": "stays", "match": ["https://a.*"], **hook}
    old = Settings(notify=(stays, {"name": "goes", **hook}, {"name": "moves", "match": ["https://b.*"], **hook}))
    new = Settings(notify=(stays, {"name": "moves", "match": ["https://c.*"], **hook}, {"name": "new", **hook}))
    options = {"delay": 0.0, "robots": False, "commit_delay": 0.1}
    # pages change every 30 s: those that change faster than the budget can follow need not be crawled again
    world = World(lambda url, at: f"<p>{url} {at // 30}</p>", URLS, budget=1.0, **options)
    given = asyncio.run(notifiers.open_notifiers(old, world.store.store, world.clock))
    done, _ = reloaded(world, old, new, subscribers=given, texts=notifiers.texts_wanted(old))
    assert done == Reloaded(changed=("notify",))
    assert sorted(closed) == ["goes", "moves"]
    early = {(name, host) for name, host, at, _ in sent if at < 98.0}
    late = {(name, host) for name, host, at, _ in sent if at > 102.0}
    assert early == {("stays", "a"), ("moves", "b"), *(("goes", host) for host in "abcd")}
    assert late == {("stays", "a"), ("moves", "c"), *(("new", host) for host in "abcd")}
    assert all(diff for name, _, at, diff in sent if name == "new" and at > 140), "texts are kept for the new one"
    numbers = [(at, host) for name, host, at, _ in sent if name == "stays"]
    assert len(numbers) == len(set(numbers)), "the one that stays gets each event once"
    assert {one.name for one in world.store.subscribers()} == {"notify:stays", "notify:moves", "notify:new"}


@pytest.mark.slow
def test_rules_change_importance_intervals_and_what_is_never_crawled():
    old = Settings(rule=({"match": "*/1", "max_interval": "5 s"}, {"match": "https://b.*", "never": True}))
    new = Settings(rule=({"match": "https://a.*", "never": True}, {"match": "*/2", "importance": 7.0}))
    world = World(page, URLS, budget=2.0, delay=0.0, robots=False, rules=old.rules())
    done, times = reloaded(world, old, new)
    assert done.changed == ("rule",)
    asked = [(at, url) for at, (_, url) in zip(times, world.web.requests, strict=True)]
    assert not any("//b." in url for at, url in asked if at < 100)
    assert any("//b." in url for at, url in asked if at >= 100)
    assert any("//a." in url for at, url in asked if at <= 100)
    assert not any("//a." in url for at, url in asked if at > 101)
    ids = world.engine.id(URLS)
    assert [world.engine.given[page] for page in ids[2::5]] == [7.0] * 4
    late = [at for at, url in asked if url == "https://c.example/1" and at > 101]
    assert np.diff([101, *late, 200]).max() > 6, "its longest interval is no longer given"


def test_what_a_running_crawl_cannot_take_is_named_and_stays():
    old, new = Settings(), Settings(database="other.db", keep=3, budget="5/s", contact="a@example.org")
    done = compare(old, new)
    assert (done.changed, done.needs_restart) == (("budget",), ("database", "contact", "keep"))
    kept = adopted(old, new)
    assert (kept.database, kept.keep, kept.contact, kept.budget) == ("recrawl.db", 2, "", "5/s")
    assert compare(kept, new).needs_restart == ("database", "contact", "keep"), "and is named again the next time"
    assert set(LIVE) <= set(Settings.__dataclass_fields__)


def test_hosts_without_rules_get_them_and_lose_them_while_a_crawl_runs():
    none, some = Settings(delay=0, host_concurrency=0), Settings(delay="2 s", host_concurrency=3)
    assert none.host_rules() == {"host_spacing": None, "host_concurrency": None}
    assert Settings(delay=0).host_rules() == {"host_spacing": 0.0, "host_concurrency": 1}
    assert Settings(host_concurrency=0).host_rules() == {"host_spacing": 1.0, "host_concurrency": None}
    world = World(page, URLS, budget=2.0, delay=None, robots=False, choices={"host_concurrency": None})
    crawler = world.crawler()
    engine, components = world.engine, crawler.components
    assert engine.hosts() == []
    asyncio.run(reload_settings(components, none, some))
    assert engine.hosts() == [f"{host}.example" for host in "abcd"]
    assert len(engine.pick(START + 9.0, 20)) == 4, "one of each host, then its delay"
    asyncio.run(reload_settings(components, some, none))
    assert len(engine.pick(START + 9.0, 20)) == 0, "their delays go on"
    assert len(engine.pick(START + 12.0, 20)) == 16
    crawler.close()


def test_the_rest_of_the_live_settings_reach_their_parts():
    world = World(page, URLS, budget=2.0, delay=1.0, robots=False)
    crawler = world.crawler()
    new = Settings(
        concurrency=4, longest_hint="5 s", feed_interval="9 s", audit_share="2%", audit_draws=7, host_concurrency=2
    )
    asyncio.run(reload_settings(crawler.components, Settings(), new))
    parts = crawler._components
    assert (parts.pool.free, parts.recorder.longest_hint, parts.feeds.shortest) == (4, 5.0, 9.0)
    assert (parts.audits._share, parts.audits._size, world.engine.settings.host_concurrency) == (0.02, 7, 2)
    crawler.close()


def test_the_lock_says_which_process_has_a_database_and_what_it_takes(tmp_path):
    path = tmp_path / "a.db"
    assert holder_of(path) is None
    with BlockingStore(SqliteStore(path)) as store:
        assert holder_of(path) == Holder(os.getpid())
        store.store.announce("SIGHUP")
        assert holder_of(path) == Holder(os.getpid(), ("SIGHUP",))
    assert holder_of(path) is None, "the file stays, but nobody holds it"
