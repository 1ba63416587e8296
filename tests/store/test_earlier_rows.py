"""A database of the version before observations were saved: opened, reported, and crawled further.

``version_4.sql`` was written by that version: ten pages in four folders, ninety crawls, the last page with a given
rate of 0.5 changes a day.
"""

import asyncio
import json
import math
import sqlite3
from collections import defaultdict
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from recrawl import Engine
from recrawl.cli import main
from recrawl.crawl import ManualClock, MemoryWeb, Settings, Web, open_crawl
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.crawl.run.opening.replay import replayed_seen
from recrawl.engine.beliefs.beliefs import estimated_seen
from recrawl.store import BlockingStore, SqliteStore
from recrawl.store.sqlite.migrate import migrate

NOW, DAY = 1700417639.5, 86400.0
GIVEN = "https://b.example/x/9"


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "version_4.sql").read_text())
    connection.execute("PRAGMA user_version = 4")
    migrate(connection, "old.db")  # the tables of today, with the rows of that version
    connection.close()
    return path


def reading(path):
    return BlockingStore(SqliteStore(path, exclusive=False))


def replayed(outcomes, half_life):
    """Observations of pages, crawl by crawl."""
    seen, copied = defaultdict(lambda: np.zeros(3)), {}
    for one in outcomes:
        if one.failure is not None:
            continue
        if one.changed is not None and one.url in copied:
            interval = one.began_at - copied[one.url]
            here = seen[one.url]
            here *= 2.0 ** (-interval / half_life)
            here += [0.0, 1.0, math.log(interval)] if one.changed else [interval, 0.0, 0.0]
        copied[one.url] = one.began_at
    return seen


def command(*argv):
    """What ``recrawl`` prints."""
    out = StringIO()
    with pytest.raises(SystemExit) as ended, redirect_stdout(out):
        main([str(arg) for arg in argv])
    assert not ended.value.code, argv
    return out.getvalue()


@pytest.mark.parametrize("half_life", [730.0, 2.0])
def test_observations_are_rebuilt_from_stored_outcomes(old, half_life):
    with reading(old) as store:
        assert "seen" not in store.load()
        engine = store.run(open_engine(store.store, NOW, half_life=half_life))
        expected = replayed(store.observations(), half_life * DAY)
        some = store.load(list(expected)[:2])
    belief, n = engine.beliefs.belief, 0
    for url, seen in expected.items():
        page = int(engine.id(url)[0])
        if url == GIVEN:
            assert not belief.seen[page].any()
            assert belief.evidence[page].all()
            continue
        n += 1
        assert belief.seen[page] == pytest.approx(seen, rel=1e-9), url
    assert n == 9
    assert len(some["url"]) == 2
    counts = (np.asarray(belief.n_crawls, float), np.asarray(belief.n_changes, float), belief.watched)
    assert not np.allclose(belief.seen[:9], estimated_seen(*counts)[:9], rtol=0.01), "more than the counts say"


def test_beliefs_follow_from_the_outcomes(old):
    with reading(old) as store:
        engine = store.run(open_engine(store.store, NOW))
        saved = store.load()
    assert engine.beliefs.fits == 1
    rate = {url: engine.pages([k]).change_rate[0] * DAY for k, url in enumerate(engine.url(engine.ids()))}
    before = dict(zip(saved["url"], saved["change_rate"] * DAY, strict=True))
    for url in ("https://a.example/x/0", "https://a.example/x/8"):  # 10 of 12 and 7 of 10 crawls found a change
        assert 0.6 < rate[url] / before[url] < 2.0
    for url in ("https://a.example/x/4", "https://b.example/x/5", "https://b.example/y/7"):  # none of 6
        assert 0.0 < rate[url] < before[url] * 1.5
    assert min(rate["https://a.example/x/0"], rate["https://a.example/x/8"]) > 3 * rate["https://a.example/y/6"]
    assert rate[GIVEN] == pytest.approx(before[GIVEN], rel=0.5)
    copy = Engine.restore(engine.rows(), NOW)
    assert copy.rows()["gamma"].tolist() == engine.rows()["gamma"].tolist()


def test_commands_report_it(old, tmp_path):
    status = json.loads(command("status", "--budget", "20/day", "--json", "--database", old))
    assert (status["pages"], status["observations"]) == (10, 90)
    assert 0.0 < status["forecast"]["freshness"] < 1.0
    command("export", "--pages", tmp_path / "pages.csv", "--database", old)
    assert (tmp_path / "pages.csv").read_text().count("\n") == 11
    why = json.loads(command("why", "https://a.example/x/0", "--json", "--database", old))
    assert (why["n_crawls"], why["n_changes"]) == (12, 10)
    assert 1.0 < why["change_rate"] * DAY < 6.0
    with reading(old) as store:
        assert "seen" not in store.load(), "reading wrote nothing"


@pytest.mark.slow
def test_it_is_crawled_further(old):
    clock = ManualClock(NOW + 10.0)
    web = MemoryWeb(lambda url, now: None if "robots" in url else f"<p>{url} {now // 2000}", clock, max_redirects=0)
    settings = Settings(database=str(old), budget="1600/day", delay="1s", contact="me@example.org")

    async def crawl():
        live = await open_crawl(settings, web=Web("recrawl/1", web, web, clock))
        try:
            at_start = await live.store.load()
            await live.crawler.run(NOW + 0.05 * DAY)
            return at_start
        finally:
            await live.close()

    first = asyncio.run(clock.drive(crawl()))
    assert all(row is not None for row in first["seen"]), "saved once, before the first crawl"
    with reading(old) as store:
        saved = store.load()
        assert store.counts()["observations"] > 150
        assert store.check() == []
    assert saved["crawls"] > first["crawls"] + 50
    assert saved["fits"] > first["fits"]
    engine = Engine.restore(saved, NOW + 0.05 * DAY)
    assert np.isfinite(engine.pages().change_rate).all()
    engine.scheduler._check()


# --- counts and outcomes that do not go together ---------------------------------------------------------------------


def counts(n_crawls, n_changes, watched):
    return {
        "n_crawls": np.array([n_crawls], float),
        "n_changes": np.array([n_changes], float),
        "watched": np.array([watched]),
    }


def test_crawls_that_are_not_stored_come_first():
    page, interval, changed = np.zeros(2, np.int64), np.array([10.0, 30.0]), np.array([True, False])
    found = replayed_seen(page, interval, changed, counts(4, 2, 80.0), half_life=40.0)[0]
    unchanged, changes, logs = 20.0 * 0.5, 0.5, 0.5 * math.log(20.0)  # two at equal distances, one of them changed
    fade = 2.0 ** (-30.0 / 40.0)
    assert found == pytest.approx([unchanged + 30.0, changes + fade, logs + fade * math.log(10.0)])


@pytest.mark.parametrize("kept", [(1, 0, 10.0), (2, 0, 40.0), (2, 1, 20.0)])
def test_counts_that_contradict_the_outcomes_stay_alone(kept):
    page, interval, changed = np.zeros(2, np.int64), np.array([10.0, 30.0]), np.array([True, False])
    found = replayed_seen(page, interval, changed, counts(*kept), half_life=1e9)
    assert found.tolist() == estimated_seen(*(np.array([float(one)]) for one in kept)).tolist()


def test_without_outcomes_the_counts_are_used(old):
    with reading(old) as store:
        saved = store.load()
    engine = Engine.restore(saved, NOW)
    given = np.asarray(saved["fixed_rate"], bool)
    columns = (np.asarray(saved[name], float)[~given] for name in ("n_crawls", "n_changes", "watched"))
    assert engine.beliefs.belief.seen[: len(given)][~given] == pytest.approx(estimated_seen(*columns))
