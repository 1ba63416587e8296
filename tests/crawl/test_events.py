"""Events: subscribers end with what the crawler has, whatever happens in between; limits hold and are reported."""

import random
from collections import defaultdict

import numpy as np
import pytest

from recrawl.crawl.http.memory import Answer
from recrawl.crawl.run.commands import remove_command
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.store import BlockingStore, MemoryStore, Outcome, SqliteStore
from recrawl.store.testing.rows import example_rows

from .driving import START, URLS, World


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
    world, index = World(busy, URLS[:70], store=store, budget=0.06), Index()
    for _ in range(3):
        world.run(1.5 * 3600.0, subscribers={"index": index}, commit_delay=600.0)
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
    world = World(lambda url, now: None if "robots" in url else f"<p>{int(now / 4000)} {url}", URLS[:40], budget=0.05)
    world.run(2 * 3600.0)
    observed = [(o.url, o.began_at) for o in world.store.observations() if o.changed or o.changed is None]
    assert sorted((event.url, event.at) for event in every_event(world.store)) == sorted(observed)
    for url in URLS[:40]:
        mine = [event for event in every_event(world.store) if event.url == url]
        assert [event.kind for event in mine] == ["new"] + ["changed"] * (len(mine) - 1)
        assert [event.old_digest for event in mine[1:]] == [event.new_digest for event in mine[:-1]], "a chain"


@pytest.mark.slow
def test_texts_go_with_events_where_they_are_wanted():
    def page(url, now):
        return None if "robots" in url else f"<title>t</title><p>at {int(now - START) // 3600}<script>{now}</script>"

    world = World(page, URLS[:3], budget=0.02)
    world.run(2 * 3600.0, texts=True)
    events = [event for event in every_event(world.store) if event.url == URLS[0]]
    assert [event.kind for event in events[:2]] == ["new", "changed"]
    assert (events[1].old_text, events[1].new_text) == (events[0].new_text, events[1].new_text)
    assert "at 0" in events[0].new_text
    assert "script" not in events[0].new_text
    without = World(page, URLS[:3], budget=0.02)
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
        rows = {**example_rows(URLS[:2]), "times_gone": np.zeros(2, np.int64)}
        store.save([Outcome(URLS[0], START, status=200, digest="d1")], rows)
        for table in ("event", "last_event", "subscriber", "event_total", "signal", "listing", "lease", "page_log"):
            store.store._database.writer.execute(f"DROP TABLE {table}")
        store.store._database.writer.execute("ALTER TABLE command RENAME TO post")
        store.store._database.writer.execute("ALTER TABLE page RENAME COLUMN fixed_rate TO told")
        for column in ("seen_time", "seen_changes", "seen_logs", "given_changes", "given_time"):
            store.store._database.writer.execute(f"ALTER TABLE page DROP COLUMN {column}")
        store.store._database.writer.execute("ALTER TABLE observation DROP COLUMN signalled")
        store.store._database.writer.execute("PRAGMA user_version = 3")
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        assert migrating.version_of(store.store._database.writer) >= 4
        store.save([Outcome(URLS[0], START + 1, status=200, digest="d2", changed=True)])
        (event,) = store.events()
        assert (event.kind, event.old_digest, event.new_digest) == ("changed", "d1", "d2")


def test_new_pages_are_events_when_they_are_fetched_and_not_before():
    world, index = World(busy, URLS[:3], budget=1.0), Index()
    engine = world.opened()
    add_pages(engine, world.rules, [URLS[5]], world.clock.now())
    assert every_event(world.store) == []
    world.run(60.0, subscribers={"index": index})
    assert {event.kind for event in index.heard} == {"new"}
