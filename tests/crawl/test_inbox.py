"""The inbox of signals: what is new is stored before it is acknowledged; repetitions, limits and restarts."""

import asyncio
import json
import tracemalloc

import numpy as np
import pytest

from recrawl import Engine
from recrawl.crawl.http.memory import Answer, ManualClock
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.crawl.signals.counts import TOTALS
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.crawl.signals.inbox import Inbox, InboxOptions, Signal, Taken
from recrawl.crawl.signals.limits import Limit, Limits
from recrawl.crawl.signals.sources import KINDS, MOST, NOTE, Source, Sources, engine_sources
from recrawl.errors import ParameterError, StoreError
from recrawl.store import MemoryStore, Outcome, SqliteStore
from recrawl.store.signals import PendingSignal

from .driving import START, World

URLS = [f"https://a.example/{k}" for k in range(20)]
CMS, FEED = Source("webhook", "cms"), Source("feed", "a.example")


class Counting(MemoryStore):
    """Counts the transactions that write signals; with ``broken`` it refuses them."""

    def __init__(self):
        super().__init__()
        self.writes, self.broken = 0, False

    async def save(self, outcomes=(), rows=None, **more):
        self.writes += bool(more.get("signals"))
        if self.broken and more.get("signals"):
            raise StoreError("broken")
        await asyncio.sleep(0)
        await super().save(outcomes, rows, **more)


class Room:
    """An inbox with its engine, store and clock; ``heard`` are the calls of the engine."""

    def __init__(self, store=None, *, sources=1, **options):
        self.clock, self.store = ManualClock(START), store or Counting()
        self.engine, self.heard, self.unknown = Engine(1.0, sources=sources, start=START), [], []
        ids = self.engine.add(URLS, START - 1000.0, fetched_at=START - 100.0)
        asyncio.run(self.store.save(rows=self.engine.rows(ids)))
        signal = self.engine.signal

        def hear(ids, now, *, source=0, changed_at=None):
            self.heard.append((source, np.atleast_1d(ids).tolist()))
            signal(ids, now, source=source, changed_at=changed_at)

        self.engine.signal = hear
        options.setdefault("on_unknown", lambda source, urls: self.unknown.append((source, urls)))
        self.inbox = Inbox(self.engine, self.store, self.clock, InboxOptions(**options))

    def take(self, *signals, whole=False):
        return asyncio.run(self.inbox.take(signals, whole=whole))

    def say(self, page=0, changed_at=None, resolution=0.0, source=CMS):
        return self.take(Signal(URLS[page], source, changed_at, resolution))

    def stored(self):
        return asyncio.run(self.store.signals())


# --- sources --------------------------------------------------------------------------------------------------------


def test_kinds_are_sources_and_token_names_are_sources_while_numbers_last():
    sources = Sources()
    first = [sources.number(Source("webhook", f"t{k}")) for k in range(30)]
    assert first[:10] == list(range(10)), "ten token names beside the six kinds"
    assert set(first[10:]) == {10}
    assert sources.names[10] == "webhook", "others share one"
    assert [sources.number(Source(kind, "any.example")) for kind in KINDS if kind != "webhook"] == [11, 12, 13, 14, 15]
    assert len(sources.names) == MOST
    again = Sources.restore({NOTE: sources.names})
    assert [again.number(Source("webhook", f"t{k}")) for k in range(30)] == first, "numbers never change"
    assert not again.changed


def test_a_source_has_a_known_kind_and_a_speaker():
    with pytest.raises(ParameterError, match="did you mean sitemap"):
        Source("sitemaps", "a.example")
    with pytest.raises(ParameterError, match="speaker"):
        Source("sitemap", "")


@pytest.mark.parametrize(("names", "on", "stored", "n"), [(5, 0, 0, 8), (3, 0, 8, 8), (0, 3, 1, 4), (16, 0, 0, 16)])
def test_the_number_of_sources_is_rounded_up_and_never_shrinks(names, on, stored, n):
    assert engine_sources([f"webhook:{k}" for k in range(names)], KINDS[:on], stored) == n


def test_nothing_is_asked_of_the_engine_without_sources():
    assert engine_sources([], [], 1) is None


# --- limits ---------------------------------------------------------------------------------------------------------


def test_a_speaker_waits_and_others_do_not():
    limits = Limits(Limit(per_second=10.0, per_day=150.0))
    limits.take(CMS, 100, 0.0)
    assert limits.wait(CMS, 1, 0.0) == pytest.approx(0.1)
    assert limits.wait(FEED, 100, 0.0) == 0.0
    limits.take(CMS, 50, 5.0)
    assert limits.wait(CMS, 1, 100.0) > 400.0, "the day's signals are used up"
    assert limits.wait(CMS, 1000, 0.0) == float("inf")
    limits.set(CMS, Limit(per_second=1000.0))
    assert limits.wait(CMS, 1000, 100.0) == 0.0
    limits.set(CMS, None)
    assert limits.wait(CMS, 1000, 100.0) == float("inf")


def test_the_table_of_speakers_is_bounded():
    limits = Limits(Limit(per_second=1.0), most=100)
    for k in range(1000):
        limits.take(Source("feed", f"h{k}.example"), 1, float(k))
        limits.take(CMS, 0, float(k))
    assert len(limits._buckets) == 100
    assert limits.left(Source("feed", "h999.example"), 999.0) == 99


# --- what is new ----------------------------------------------------------------------------------------------------


def test_a_signal_is_stored_and_heard_once():
    room = Room()
    assert room.say(3) == Taken(accepted=1)
    assert room.stored() == [PendingSignal(URLS[3], 0, START)]
    assert asyncio.run(room.store.notes(NOTE)) == {NOTE: ["webhook:cms"]}, "its number is stored with it"
    assert room.heard == [(0, [3])]
    assert room.take(Signal(4, CMS), Signal("https://A.example:443/5", CMS)) == Taken(accepted=2), "ids, other spelling"
    assert room.heard[1:] == [(0, [4, 5])]


def test_repetitions_cost_no_write_and_the_engine_gets_few():
    room = Room()
    for k in range(64):
        assert room.say() == (Taken(repeated=1) if k else Taken(accepted=1))
    assert room.store.writes == 1
    assert len(room.heard) == 7, "the 1st, 2nd, 4th … 64th"
    room.take(*[Signal(URLS[1], CMS)] * 100)
    assert room.store.writes == 2, "within one call, too"
    assert room.inbox.counts[CMS] == {"accepted": 2, "repeated": 63 + 99}
    notes = room.inbox.tally.pending_notes()
    assert notes == {TOTALS: {"webhook:cms": {"accepted": 2, "repeated": 63 + 99}}}
    assert room.inbox.tally.pending_notes() == {}
    asyncio.run(room.store.save(notes=notes))
    again = Inbox(room.engine, room.store, room.clock)
    asyncio.run(again.load())
    assert again.tally.by_source == notes[TOTALS]


def test_a_newer_change_is_no_repetition():
    room = Room()
    assert room.say(changed_at=START - 50.0).accepted
    assert room.say(changed_at=START - 50.0).repeated
    assert room.say(changed_at=START - 60.0).repeated, "an older one is"
    assert room.say().repeated, "nor one without a time"
    assert room.say(changed_at=START - 40.0).accepted
    assert room.stored() == [PendingSignal(URLS[0], 0, START, START - 40.0)]
    assert room.say(source=FEED).accepted, "another source is heard for itself"


def test_changes_before_the_copy_are_dropped_and_dates_mean_any_time_of_the_day():
    room = Room()
    assert room.say(changed_at=START - 101.0) == Taken(outdated=1)
    day = START // 86400 * 86400
    assert day < START - 101.0
    assert room.say(changed_at=day) == Taken(outdated=1)
    assert room.say(changed_at=day, resolution=86400.0) == Taken(accepted=1)
    assert room.say(1, changed_at=START + 1e6) == Taken(accepted=1), "a clock that is wrong"
    assert [one.about() for one in room.stored()] == [START, START]


def test_unknown_urls_are_counted_and_offered():
    room = Room()
    signals = [Signal("https://b.example/", CMS), Signal(URLS[0], CMS), Signal("http://[", CMS), Signal("x", FEED)]
    assert room.take(*signals) == Taken(accepted=1, unknown=3)
    assert room.unknown == [(CMS, ["https://b.example/"]), (FEED, ["x"])]


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_limits_take_what_is_left_or_nothing():
    room = Room()
    room.inbox.limits.set(CMS, Limit(per_second=1.0, per_day=5.0))
    signals = [Signal(url, CMS) for url in URLS[:8]]
    taken = room.take(*signals[:6], whole=True)
    assert (taken.limited, taken.accepted, taken.retry_after) == (6, 0, float("inf"))
    assert not room.stored()
    taken = room.take(*signals)
    assert (taken.accepted, taken.limited) == (5, 3)
    assert room.take(signals[7], whole=True).retry_after == pytest.approx(86400.0 / 5.0)
    assert room.take(signals[7], Signal(URLS[9], FEED)).accepted == 1, "other speakers are heard"
    assert room.inbox.counts[CMS] == {"accepted": 5, "limited": 6 + 3 + 1 + 1}


def test_pending_signals_of_a_source_are_bounded():
    room = Room(most_pending=3)
    assert room.take(*(Signal(url, CMS) for url in URLS[:2])).accepted == 2
    taken = room.take(*(Signal(url, CMS) for url in URLS[2:5]), whole=True)
    assert (taken.limited, taken.retry_after) == (3, 60.0)
    assert len(room.stored()) == 2, "nothing half done"
    taken = room.take(*(Signal(url, CMS) for url in URLS[:5]))
    assert (taken.repeated, taken.accepted, taken.limited) == (2, 1, 2)
    assert room.take(*(Signal(url, FEED) for url in URLS[:3])).accepted == 3
    room.inbox.saved([Outcome(URLS[0], START + 1.0, status=200)])
    assert room.take(Signal(URLS[4], CMS)).accepted == 1, "a crawl makes room"


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_a_million_invented_urls_leave_nothing(n):
    room = Room(on_unknown=None)
    room.inbox.limits.limit = Limit(per_second=1e7, per_day=1e9)

    def invent(first):
        hosts = [f"x{k}.example" for k in range(first, first + 1000)]
        assert room.take(*(Signal(f"https://{host}/", Source("feed", host)) for host in hosts)).unknown == 1000

    for first in range(0, 12_000, 1000):  # the tables of speakers are full then
        invent(first)
    if n > 20_000:
        tracemalloc.start()
    for first in range(12_000, n, 1000):
        invent(first)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 12e6, "the buckets of the 10,000 speakers that were heard last, and no more"
    assert room.store.writes == 0
    assert len(room.inbox.counts) <= 10_001
    assert len(room.inbox.limits._buckets) <= 10_000
    assert room.inbox.sources.names == [], "no number is given to who knows no page"


def test_crawls_that_signals_brought_forward_are_counted_and_saved(tmp_path):
    room = Room(SqliteStore(tmp_path / "a.db"))
    room.take(*(Signal(url, FEED, START - 40.0) for url in URLS[:3]), Signal(URLS[3], FEED, START - 90.0, 86400.0))
    effect = room.inbox.effects.of("feed", "a.example")
    assert effect.delay() == {"n": 3, "median": 48.0, "low": 48.0, "high": 48.0}
    room.inbox.saved([Outcome(URLS[0], START + 1.0, status=200, changed=True)])
    assert (effect.caused, effect.turns) == (0, []), "its signals do not count yet"
    room.engine.beliefs.belief.signals.gate[0, 0] = 1.0
    room.inbox.saved([Outcome(url, START + 2.0, status=200, changed=k > 1) for k, url in enumerate(URLS[:5])])
    assert (effect.caused, effect.found) == (3, 2)
    assert effect.turns == [(START + 2.0, True)]
    notes = room.inbox.effects.pending_notes()
    again = Inbox(room.engine, room.store, room.clock)
    again.effects.restore(json.loads(json.dumps(notes)))
    assert again.effects.of("feed", "a.example") == effect
    assert room.inbox.effects.pending_notes() == {}


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
