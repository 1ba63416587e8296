"""The inbox of signals: sources, limits, repetitions and bounds."""

import asyncio
import json
import tracemalloc

import pytest

from recrawl.crawl.signals.counts import TOTALS
from recrawl.crawl.signals.inbox import Inbox, Taken
from recrawl.crawl.signals.limits import Limit, Limits
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import KINDS, MOST, NOTE, Source, Sources, engine_sources
from recrawl.errors import ParameterError
from recrawl.store import Outcome, SqliteStore
from recrawl.store.signals import PendingSignal

from .driving import START
from .inbox_room import CMS, FEED, URLS, Room

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


def test_a_date_that_crawls_refute_says_nothing_about_when():
    room = Room()

    def crawled(page, changed, at):
        one = Outcome(URLS[page], START + at, status=200, changed=changed, digest="d")
        asyncio.run(room.store.save([one]))
        room.engine.record([page], START + at, changed=[bool(changed)], as_of=[START + at])

    for page in range(5):
        crawled(page, None, 10.0)
        crawled(page, page == 1, 100.0)
    room.clock._now = START + 200.0
    assert room.say(0, changed_at=START + 50.0) == Taken(accepted=1), "the same before and after: it came later"
    assert room.stored() == [PendingSignal(URLS[0], 0, START + 200.0)]
    assert room.say(1, changed_at=START + 50.0) == Taken(outdated=1), "the change was found"
    assert room.say(2, changed_at=START + 5.0) == Taken(outdated=1), "all copies are from after the date"
    assert room.say(3, changed_at=START + 5.0, resolution=50.0) == Taken(outdated=1), "the first copy may have it"
    assert room.say(4, changed_at=START + 50.0, resolution=60.0) == Taken(accepted=1), "it may be after the copy"
    assert [one.changed_at for one in room.stored()] == [None, START + 50.0]


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


@pytest.mark.slow
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
