"""The inbox of signals: what is new is stored before it is acknowledged; crawls and restarts."""

import asyncio

import numpy as np
import pytest

from recrawl import Engine
from recrawl.crawl.http.memory import Answer, ManualClock
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.crawl.signals.inbox import Inbox, Taken
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import NOTE
from recrawl.errors import StoreError
from recrawl.store import Outcome, SqliteStore
from recrawl.store.signals import PendingSignal

from .driving import START, World
from .inbox_room import CMS, FEED, URLS, Room

# --- the store ------------------------------------------------------------------------------------------------------


def test_calls_at_the_same_time_share_a_transaction():
    room = Room()

    async def many():
        return await asyncio.gather(*(room.inbox.take([Signal(url, CMS)]) for url in URLS * 2))

    taken = asyncio.run(many())
    assert sum(one.accepted for one in taken) == 20
    assert sum(one.repeated for one in taken) == 20
    assert room.store.writes == 1
    assert len(room.stored()) == 20


def test_a_repetition_is_not_acknowledged_before_what_it_repeats():
    room, order = Room(), []

    async def take(name):
        await room.inbox.take([Signal(URLS[0], CMS)])
        order.append((name, len(await room.store.signals())))

    async def both():
        await asyncio.gather(take("new"), take("repeated"))

    asyncio.run(both())
    assert sorted(order) == [("new", 1), ("repeated", 1)]


def test_what_cannot_be_stored_is_refused_and_taken_the_next_time():
    room = Room()
    room.store.broken = True
    with pytest.raises(StoreError):
        room.say()
    assert room.heard == []
    assert asyncio.run(room.store.notes(NOTE)) == {}
    room.store.broken = False
    assert room.say() == Taken(accepted=1)
    assert asyncio.run(room.store.notes(NOTE)) == {NOTE: ["webhook:cms"]}
    assert room.heard == [(0, [0])]


def test_a_group_waits_for_callers_that_are_coming():
    groups = []

    async def write(rows):
        groups.append(rows)

    async def late(commit, read):
        with commit.coming():
            await read
            written = commit.put(["late"])
        await written

    async def test():
        commit = GroupCommit(write, ManualClock())
        read = asyncio.get_running_loop().create_future()
        coming = asyncio.create_task(late(commit, read))
        broken = asyncio.create_task(late(commit, asyncio.get_running_loop().create_future()))
        await asyncio.sleep(0)
        first = asyncio.create_task(commit.add(["first"]))
        for _ in range(5):
            await asyncio.sleep(0)
        assert groups == []
        read.set_result(None)
        broken.cancel()  # whoever does not come after all keeps nobody waiting
        await asyncio.gather(first, coming)
        assert groups == [["first", "late"]]

    asyncio.run(test())


def test_groups_wait_for_others_by_the_clock():
    written, clock = [], ManualClock(0.0)

    async def write(rows):
        written.append((clock.now(), rows))

    async def main():
        commit = GroupCommit(write, clock, gather=1.0)
        first = asyncio.ensure_future(commit.add(["a"]))
        await clock.advance(0.5)
        second = asyncio.ensure_future(commit.add(["b"]))
        settled = asyncio.ensure_future(commit.settled())
        await clock.advance(0.4)
        assert written == []
        await clock.advance(0.2)
        await asyncio.gather(first, second, settled)
        first = asyncio.ensure_future(commit.add(["c"]))
        await clock.advance(2.0)
        await first

    asyncio.run(main())
    assert [rows for _, rows in written] == [["a", "b"], ["c"]]
    assert written[0][0] == pytest.approx(1.0)


def test_a_caller_that_is_gone_does_not_stop_the_others():
    room = Room()

    async def main():
        gone = asyncio.ensure_future(room.inbox.take([Signal(URLS[0], CMS)]))
        other = asyncio.ensure_future(room.inbox.take([Signal(URLS[1], CMS)]))
        await asyncio.sleep(0)
        gone.cancel()
        await other

    asyncio.run(main())
    assert len(room.stored()) == 2


# --- crawls ---------------------------------------------------------------------------------------------------------


def test_a_signal_while_its_page_is_crawled_counts_for_the_new_copy():
    room = Room()
    room.say()
    room.inbox.began(0)
    room.clock._now += 1.0
    assert room.say() == Taken(accepted=1), "a crawl has begun: this is news"
    assert room.say() == Taken(repeated=1)
    assert len(room.heard) == 2, "given later, but for the repetition"
    room.engine.record([0], START + 2.0, changed=[True], as_of=[START + 0.5])
    asyncio.run(room.store.save([Outcome(URLS[0], START + 0.5, status=200)]))
    room.inbox.ended([0])
    room.inbox.saved([Outcome(URLS[0], START + 0.5, status=200)])
    assert room.heard[-1] == (0, [0])
    assert room.stored() == [PendingSignal(URLS[0], 0, START + 1.0)]
    assert [room.say(), room.say()] == [Taken(accepted=1), Taken(repeated=1)]
    room.inbox.began(0)
    room.inbox.ended([0])
    room.inbox.saved([Outcome(URLS[0], START + 5.0, status=200)])
    assert room.inbox.pending(CMS) == 0


def test_a_repetition_after_the_fetch_began_outlives_the_outcome():
    """A crawl waits before it fetches: a signal before the fetch is over with it, one after it is not."""
    room = Room()
    room.inbox.began(0)
    assert room.say() == Taken(accepted=1)
    room.clock._now += 2.0
    assert room.say() == Taken(repeated=1), "it costs no write"
    outcome = Outcome(URLS[0], START + 1.0, status=200)
    room.engine.record([0], START + 2.0, changed=[True], as_of=[START + 1.0])
    room.inbox.ended([0])
    assert room.heard == [(0, [0]), (0, [0])]
    signals = room.inbox.renewed([(0, outcome)])
    assert signals == [PendingSignal(URLS[0], 0, START + 2.0)]
    asyncio.run(room.store.save([outcome], signals=signals))
    room.inbox.saved([outcome])
    assert room.stored() == signals
    assert [room.say(), room.say()] == [Taken(accepted=1), Taken(repeated=1)], "an outcome was on its way"
    later = Outcome(URLS[0], START + 3.0, status=200)
    assert room.inbox.renewed([(0, later)]) == []
    asyncio.run(room.store.save([later]))
    room.inbox.saved([later])
    assert room.stored() == []
    assert room.inbox.pending(CMS) == 0


def test_a_failed_crawl_leaves_the_signal():
    room = Room()
    room.say()
    room.inbox.began(0)
    room.inbox.ended([0])
    room.inbox.saved([Outcome(URLS[0], START + 5.0, failure="timeout")])
    assert room.inbox.pending(CMS) == 1
    room.inbox.forget([0])
    assert room.inbox.pending(CMS) == 0


def test_an_engine_with_too_few_sources_gets_the_signals_when_it_is_opened_again():
    room = Room()
    room.say(0)
    assert room.say(1, source=FEED) == Taken(accepted=1)
    assert room.heard == [(0, [0])]
    assert [one.source for one in room.stored()] == [0, 1]


def heard_at_opening(store, monkeypatch, now=START + 50.0, **settings):
    """The engine of a store, and the signals that it gets when it is opened."""
    heard, signal = [], Engine.signal

    def hear(self, ids, now, *, source=0, changed_at=None):
        heard.append((source, np.atleast_1d(ids).tolist()))
        signal(self, ids, now, source=source, changed_at=changed_at)

    monkeypatch.setattr(Engine, "signal", hear)
    return asyncio.run(open_engine(store, now, budget=1.0, **settings)), heard


def test_pending_signals_are_heard_once_after_a_restart(monkeypatch):
    room = Room()
    room.say(3)
    room.say(3)
    room.say(4)
    asyncio.run(room.store.save(rows=room.engine.rows([3, 4])))  # the rows count them too
    engine, heard = heard_at_opening(room.store, monkeypatch)
    assert heard == [(0, [3, 4])]
    counts = [sum(facts.heard for facts in engine.explain(page, engine.now).signals) for page in range(20)]
    assert counts == [0] * 3 + [1, 1] + [0] * 15
    again = Inbox(engine, room.store, room.clock)
    asyncio.run(again.load())
    assert asyncio.run(again.take([Signal(URLS[3], CMS), Signal(URLS[5], FEED)])) == Taken(accepted=1, repeated=1)
    assert again.sources.names == ["webhook:cms", "feed"]


@pytest.mark.slow
def test_a_signal_brings_a_crawl_forward_and_is_over_with_it():
    """A source that has signalled every change is trusted: a page that it signals is among the next crawls."""
    version = dict.fromkeys([f"https://a.example/{k}" for k in range(30)], 0)
    world = World(lambda url, now: Answer(f"<p>{url} {version[url]}</p>"), list(version), budget=0.02, robots=False)
    world.run(3600.0)
    crawler, rng = world.crawler(), np.random.default_rng(1)

    async def main():
        run = asyncio.ensure_future(crawler.run(world.clock.now() + 61 * 300.0))
        inbox = crawler.components.inbox
        for _ in range(60):
            await world.clock.advance(300.0)
            begun = len(world.web.requests)
            changed = [f"https://a.example/{k}" for k in rng.choice(30, 2, replace=False)]
            for url in changed:
                version[url] += 1
            taken = await inbox.take([Signal(url, CMS) for url in changed])
            assert taken.accepted + taken.repeated == 2
        assert inbox.pending(CMS) >= 1
        await world.clock.drive(run)
        return changed, [url for _, url in world.web.requests[begun:]], inbox.pending(CMS)

    changed, asked, pending = asyncio.run(main())
    crawler.close()
    assert set(changed) <= set(asked[:4])
    for url in changed:
        *_, last = world.store.observations(url)
        assert last.changed, url
        assert last.signalled == 1, "the outcome names the source that brought it forward"
    assert pending == 0
    assert world.store.signals() == []


def test_removed_pages_take_their_signals_with_them(tmp_path):
    room = Room(SqliteStore(tmp_path / "a.db"))
    room.say(3)
    asyncio.run(room.store.save(removed=[URLS[3]]))
    assert room.stored() == []
    assert asyncio.run(room.store.check()) == []
    asyncio.run(room.store.close())


@pytest.mark.slow
def test_random_signals_and_crawls_leave_memory_and_store_equal():
    """After each step the entries in memory are those of the table."""
    rng = np.random.default_rng(0)
    room = Room(sources=4)
    inbox, crawling, said = room.inbox, {}, {}
    room.take(Signal(URLS[0], CMS), Signal(URLS[0], FEED))  # their numbers
    for _ in range(2000):
        room.clock._now += float(rng.exponential(5.0))
        now, page = room.clock.now(), int(rng.integers(20))
        if rng.random() < 0.6:
            changed_at = None if rng.random() < 0.5 else now - float(rng.exponential(30.0))
            source = int(rng.integers(2))
            if room.take(Signal(URLS[page], [CMS, FEED][source], changed_at)).outdated == 0 and changed_at is None:
                said[page, source] = now
        elif page not in crawling:
            inbox.began(page)
            crawling[page] = now
        else:
            began = crawling.pop(page)
            began, failed = began + float(rng.random()) * (now - began), rng.random() < 0.2  # it waits, then fetches
            room.engine.record([page], now, changed=[rng.random() < 0.5], as_of=[began], failed=[failed])
            outcome = Outcome(URLS[page], began, failure="timeout" if failed else None)
            inbox.ended([page])
            asyncio.run(room.store.save([outcome], signals=inbox.renewed([(page, outcome)])))
            inbox.saved([outcome])
        table = {(one.url, one.source): (one.at, one.changed_at) for one in room.stored()}
        memory = {
            (URLS[page], source): (heard.at, heard.changed_at)
            for page, mine in inbox._heard._pages.items()
            for source, heard in mine.items()
        }
        assert memory == table
        if (page, 0) in said or (page, 1) in said:
            assert all(
                (URLS[page], source) in table or room.engine.fetched_at([page])[0] > said.get((page, source), 0.0)
                for source in (0, 1)
            ), "what was said is pending, or a later fetch answers it"
