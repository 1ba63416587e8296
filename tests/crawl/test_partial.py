"""Engines of a part of the pages say what the engine of all pages says, and read little."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from recrawl import Engine
from recrawl.crawl.audit import freshness
from recrawl.crawl.audit.freshness import reported_freshness
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening import partial
from recrawl.crawl.run.opening.assemble import engine_of
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.crawl.run.opening.partial import explain_page, open_for, open_sampled
from recrawl.crawl.views import status_figures
from recrawl.store import BlockingStore, MemoryStore, SqliteStore

DAY = 86400.0
NOW = 1.75e9
RULES = (
    {"match": "https://h1.example/*", "importance": 3.0},
    {"match": "*/f2/*7", "never": True},
    {"match": "*/f3/*", "max_interval": "2 days"},
)


class Counting(MemoryStore):
    """Notes how many rows were read."""

    read = 0

    async def load(self, urls: Iterable[str] | None = None) -> dict[str, Any] | None:
        found = await super().load(urls)
        self.read += 0 if found is None else len(found["url"])
        return found


def url_of(k: int) -> str:
    return f"https://h{k % 20}.example/a{k % 3}/b/f{k % 5}/page{k}" if k % 50 else f"http://h{k % 20}.example/only{k}"


async def fill(store: Any, n: int, importance: Any = 1.0, *, asked: bool = True) -> None:
    """Pages on twenty hosts, most of them crawled a few times; some fail, are gone, heard of or asked for."""
    rng = np.random.default_rng(3)
    engine = Engine(n / (5 * DAY), start=NOW - 30 * DAY, host_spacing=1.0)
    settings = Settings(rule=RULES)
    ids = add_pages(engine, settings.rules(), [url_of(k) for k in range(n)], NOW - 30 * DAY, importance=importance)
    rate = rng.gamma(1.0, 0.2 / DAY, n)
    for day in range(30):
        some = rng.choice(ids[: 4 * n // 5], n // 8, replace=False)
        kind, now = rng.random(len(some)), NOW - (30 - day) * DAY
        engine.record(
            some, now, changed=rng.random(len(some)) < rate[some] * 5 * DAY, failed=kind < 0.04, gone=kind > 0.99
        )
    engine.signal(rng.choice(ids, n // 20), NOW - DAY)
    if asked:
        engine.request(rng.choice(ids, n // 20), NOW - DAY)
    engine.hold("h4.example", NOW + 500.0)
    await store.save(rows=engine.rows())
    await store.save(notes={"feed:" + url_of(8): {"interval": 3600.0, "rolled": 0}})


@pytest.fixture(scope="module")
def filled() -> Counting:
    store = Counting()
    asyncio.run(fill(store, 2000))
    return store


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial, "WHOLE", 1000)
    monkeypatch.setattr(partial, "SAMPLED", 500)


def as_known(found: Any) -> dict[str, Any]:
    """An explanation without how often sources were right: a part of the pages knows that of its own pages alone."""
    signals = [(facts.source, facts.heard, facts.counts) for facts in found.signals]
    return {**found.as_dict(), "signals": signals}


@pytest.mark.slow
@pytest.mark.parametrize("rules", [(), RULES], ids=["no rules", "rules"])
def test_a_page_is_explained_as_by_the_engine_of_all_pages(filled: Counting, rules: Any) -> None:
    settings = Settings(budget="200/day", rule=rules)

    async def compare() -> None:
        whole = await engine_of(filled, settings, NOW)
        fates = {whole.explain(k, NOW).state.split()[0]: k for k in range(2000)}
        assert len(fates) > 2 if rules else len(fates) > 1
        before, reads = filled.read, []
        for k in [0, 8, 15, 50, 123, 499, 1700, 1950, 1999, *range(600, 660, 7), *fates.values()]:
            found = await explain_page(filled, settings, url_of(k), NOW)
            reads.append(filled.read - before)
            before = filled.read
            assert as_known(found) == as_known(whole.explain(k, NOW)), url_of(k)
        assert rules or max(reads) == 1, "the page alone"

    asyncio.run(compare())


def test_without_siblings_a_page_is_explained_as_well() -> None:
    settings, store = Settings(budget="200/day", siblings=False), Counting()
    asyncio.run(fill(store, 2000))
    whole = asyncio.run(engine_of(store, settings, NOW))
    store.read = 0
    for k in (3, 50, 1999):
        found = asyncio.run(explain_page(store, settings, url_of(k), NOW))
        assert as_known(found) == as_known(whole.explain(k, NOW))
    assert store.read == 3


def test_a_clock_that_was_set_back_moves_the_times_of_parts_too(filled: Counting) -> None:
    settings, now = Settings(), NOW - 10 * DAY
    whole = asyncio.run(engine_of(filled, settings, now))
    found = asyncio.run(explain_page(filled, settings, url_of(3), now))
    assert as_known(found) == as_known(whole.explain(3, now))


@pytest.mark.slow
@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("importance", ["equal", "heavy tail", "half nothing"])
def test_figures_of_a_sample_lie_within_its_error(importance: str) -> None:
    n, settings = 4000, Settings(budget="500/day", rule=RULES)
    drawn = np.random.default_rng(5).pareto(1.0, n) + 0.01
    weight = {"equal": np.ones(n), "heavy tail": drawn, "half nothing": np.arange(n) % 2.0}[importance]
    store = Counting()
    asyncio.run(fill(store, n, weight))
    whole = asyncio.run(engine_of(store, settings, NOW))
    store.read = 0
    sampled = asyncio.run(open_sampled(store, settings, NOW))
    assert store.read == len(sampled.engine)
    assert abs(store.read - 500) <= 1
    assert sampled.error is not None
    assert sampled.error < 0.03
    found, all_of = (reported_freshness(engine, NOW) for engine in (sampled.engine, whole))
    assert found.now == pytest.approx(all_of.now, abs=3 * sampled.error)
    assert found.so_far == pytest.approx(all_of.so_far, abs=3 * sampled.error)
    budget = settings.rates(n)[1]
    planned, sample = whole.forecast(budget).freshness, sampled.engine.forecast(budget).freshness
    assert sample == pytest.approx(planned, abs=3 * sampled.error)
    assert (sampled.totals.failing, sampled.totals.gone) == (whole.stats["failing"], whole.stats["away"])


def test_freshness_is_the_same_in_pieces_and_pages_may_go_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    n, store = 200, MemoryStore()
    asyncio.run(fill(store, n, np.arange(n) % 7.0))
    engine = asyncio.run(engine_of(store, Settings(rule=RULES), NOW))
    whole = reported_freshness(engine, NOW)
    monkeypatch.setattr(freshness, "_PIECE", 30)
    assert reported_freshness(engine, NOW) == pytest.approx(whole)
    notes = freshness.FreshnessNotes(engine)
    assert notes.pending_notes(NOW) == {}  # too many pages for one go
    assert notes.are_due(NOW)
    assert not notes.are_due(NOW + 1e6)  # they are being made
    made = asyncio.run(notes.renewed_notes(NOW))[freshness.NOTE]
    assert made["now"] == pytest.approx(whole.now)
    assert made["so_far"] == pytest.approx(whole.so_far)
    assert not notes.are_due(NOW)
    steps = freshness.freshness_steps(engine, NOW)
    next(steps)
    engine.remove(engine.ids()[20:])
    with pytest.raises(StopIteration):
        next(steps)


@pytest.mark.usefixtures("small_samples")
def test_status_tells_of_its_sample(tmp_path: Any) -> None:
    from recrawl.cli.views.status_report import status_lines

    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        store.run(fill(store.store, 1500))
        found = status_figures.figures(store, Settings(), NOW)
    assert abs(found["sample"]["pages"] - 500) <= 1
    assert 0.0 < found["sample"]["error"] < 0.06
    assert found["forecast"]["high"] - found["forecast"]["low"] > found["sample"]["error"]
    assert any("of 1500 pages" in line for line in status_lines(found))


def test_small_databases_are_read_as_a_whole(filled: Counting) -> None:
    sampled = asyncio.run(open_sampled(filled, Settings(), NOW))
    assert len(sampled.engine) == sampled.totals.pages == 2000
    assert sampled.error is None
    assert sampled.engine.stands_for is None


@pytest.mark.parametrize("asked", [False, True], ids=["", "requests"])
@pytest.mark.parametrize("effects", [{}, {"siblings": False}], ids=["siblings", "alone"])
def test_added_pages_have_the_rows_that_all_pages_give_them(effects: Any, asked: bool) -> None:
    settings = Settings(budget="200/day", rule=RULES, **effects)
    new = [url_of(3), "https://h4.example/a/new", "https://new.example/", "https://h1.example/a1/b/f1/new"]
    saved = []
    for whole in (True, False):
        store = Counting()
        asyncio.run(fill(store, 200, asked=asked))
        store.read = 0
        opened = engine_of(store, settings, NOW) if whole else open_for(store, settings, new, NOW)
        engine = asyncio.run(opened)
        assert whole or store.read == (200 if asked else 1)
        ids = add_pages(engine, settings.rules(), new, NOW)
        assert len(ids) == 3
        asyncio.run(store.save(rows=engine.rows(ids)))
        found = asyncio.run(store.load())
        assert found is not None
        saved.append(found)
    assert saved[0]["url"] == saved[1]["url"]
    believed = ("gamma", "change_rate", "evidence")  # by folder where all pages are known, else by all pages
    tables = [np.array(rows.pop("table")) for rows in saved]
    assert np.abs(tables[1] - tables[0]).sum() < 0.2 * tables[0].sum(), "counted again where all pages are known"
    for rows in saved:
        rows["signal_tables"].pop("mean_rate")  # fitted again where all pages are known
    for name, value in saved[0].items():
        if asked or name not in believed:
            np.testing.assert_equal(saved[1][name], value, err_msg=name)


def test_a_page_that_was_added_alone_is_like_its_folder_once_it_has_a_copy() -> None:
    settings, new = Settings(budget="200/day"), "https://h1.example/a1/b/f1/new"
    beliefs = []
    for whole in (True, False):
        store = Counting()
        asyncio.run(fill(store, 200, asked=False))
        engine = asyncio.run(engine_of(store, settings, NOW) if whole else open_for(store, settings, [new], NOW))
        asyncio.run(store.save(rows=engine.rows(add_pages(engine, settings.rules(), [new], NOW))))
        crawling = asyncio.run(engine_of(store, settings, NOW))
        page = crawling.id([new])
        first = crawling.pages(page).change_rate[0]
        crawling.record(page, NOW, changed=[True])
        beliefs.append((first, crawling.pages(page).change_rate[0]))
    assert beliefs[0][0] != beliefs[1][0]
    assert beliefs[0][1] == pytest.approx(beliefs[1][1], rel=0.1)


def test_effects_can_be_enabled_for_a_database_that_was_made_without_them() -> None:
    store = Counting()
    asyncio.run(fill(store, 100))
    for settings in (Settings(siblings=False), Settings(), Settings(siblings=False)):
        engine = asyncio.run(engine_of(store, settings, NOW))
        engine.record(engine.pick(NOW, 5), NOW, changed=True)
        asyncio.run(store.save(rows=engine.rows()))
