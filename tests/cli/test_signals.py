"""``recrawl signals``: sources by name, what they are worth on each host; what why and status say of them."""

import json
import time

import numpy as np
import pytest

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.opening import partial
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.engine.views.sources import source_facts
from recrawl.store import BlockingStore, Outcome, SqliteStore

DAY = 86400.0
START = time.time() - 55 * DAY  # the commands are run soon after the last signal
HOSTS = ("good.example", "turned.example")
PAGES = 15
URLS = [f"https://{host}/{k}" for host in HOSTS for k in range(PAGES)]
COUNTS = ["pages", "signals", "crawls", "changes", "caused", "found"]
TURNS = [(START + 10 * DAY, True), (START + 40 * DAY, False)]
NOTES = {"sources": ["sitemap", "webhook:cms"], "signals": {"sitemap": {"accepted": 200, "repeated": 3}}}
NOTES["signal_effects"] = [
    ["sitemap", HOSTS[1], {"caused": 30, "found": 12, "delays": [0] * 9 + [8, 10, 2] + [0] * 14, "turns": TURNS}]
]


def lived_in(path):
    """A database whose sitemap is right on one host and was right on the other until it turned; a hook guesses."""
    rng = np.random.default_rng(0)
    with BlockingStore(SqliteStore(path)) as store:
        options = {"budget": 1.0, "sources": 4, "min_change_probability": 0.0}
        engine = store.run(open_engine(store.store, START, **options))
        ids, now = add_pages(engine, Rules(), URLS, START), START + DAY
        engine.record(ids, now)
        for k in range(26):
            changed = rng.random(len(ids)) < 0.45
            signalled = changed.copy()
            if k >= 10:
                signalled[PAGES:] = rng.permutation(changed[PAGES:])
            engine.signal(ids[signalled], now + DAY, source=0)
            engine.signal(rng.choice(ids, 5, replace=False), now + DAY, source=1)
            now += 2 * DAY
            engine.record(ids, now, changed=changed)
        engine.signal(ids[:1], now + DAY, source=0)
        store.run(save_pages(engine, store.store, ids, notes=NOTES))
        store.save([Outcome(url, now, status=200, digest="d", changed=True) for url in URLS])
    return engine


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """The engine of the database, which is beside it."""
    folder = tmp_path_factory.mktemp("signals")
    return lived_in(folder / "recrawl.db"), folder


@pytest.fixture
def here(engine, monkeypatch):
    monkeypatch.chdir(engine[1])
    return engine[0]


def test_what_was_saved_is_what_was_learned(run, here):
    learned = {(NOTES["sources"][one.source], one.host): one for one in source_facts(here)}
    rows = rows_of(json.loads(run("signals", "--json").out))
    assert rows.keys() == learned.keys()
    for key, one in learned.items():
        for name in ("pages", "signals", "crawls", "changes", "counts", "lost_at", "score"):
            assert rows[key][name] == pytest.approx(getattr(one, name)), (key, name)


def rows_of(found):
    return {(one["source"], one["host"]): one for one in found["hosts"]}


def test_each_source_is_judged_on_each_host(run, here):
    found = json.loads(run("signals", "--json").out)
    rows = rows_of(found)
    assert len(rows) == found["total"] == 4
    good, turned = (rows["sitemap", host] for host in HOSTS)
    assert good["pages"] == PAGES
    assert (good["counts"], good["lost_at"], good["waiting"]) == (True, None, 1)
    assert good["changes"] == pytest.approx(good["crawls"], rel=0.01)
    assert good["precision"]["low"] < good["precision"]["mean"] < good["precision"]["high"]
    assert good["precision"]["mean"] > 0.85
    assert good["recall"]["mean"] > 0.7
    assert not turned["counts"]
    assert START < turned["lost_at"] < START + 60 * DAY
    assert not rows["webhook:cms", HOSTS[0]]["counts"]
    assert rows["webhook:cms", HOSTS[0]]["precision"]["mean"] < 0.5
    assert found["sources"][0]["taken"] == {"accepted": 200, "repeated": 3}


def test_the_table_is_bounded_and_has_a_summary(run, here):
    result = run("signals", "--top", "1")
    lines = result.out.splitlines()
    assert lines[0].startswith("2 sources on 2 hosts, ")
    assert lines[1].split() == ["source", "host", *COUNTS, "precision", "recall", "delay", "trust"]
    assert lines[3] == "and 3 more (--top); --json lists up to 1000"
    assert "taken from sitemap: 200 accepted, 3 repeated" in lines
    text = run("signals").out
    assert "lost its trust on 20" in text
    assert "not proven; score" in text


def test_a_plot_is_drawn(run, here, tmp_path):
    assert run("signals", "--plot", tmp_path / "signals.svg").code == 0
    drawn = (tmp_path / "signals.svg").read_text()
    assert drawn.count('<g id="axes_') == 3, "precision, recall, and when signals counted"


def test_effects_of_signals_are_shown(run, here):
    one = rows_of(json.loads(run("signals", "--json").out))["sitemap", HOSTS[1]]
    assert (one["caused"], one["found"]) == (30, 12)
    assert one["delay"] == {"n": 20, "median": 1536.0, "low": 768.0, "high": 3072.0}
    assert [turn["counts"] for turn in one["turns"]] == [True, False]
    assert "25.6 min (12.8 min to 51.2 min)" in run("signals").out


def test_why_names_the_sources(run, here):
    text = run("why", URLS[0]).out
    assert "since then 1 signal of sitemap (right " in text
    assert "% of the time on this host)" in text
    found = json.loads(run("why", URLS[0], "--json").out)
    shown = {one["name"]: one for one in found["signals"]}
    mine = rows_of(json.loads(run("signals", "--json").out))["sitemap", HOSTS[0]]
    assert shown["sitemap"]["host_precision"] == pytest.approx(mine["precision"]["mean"], abs=1e-4)
    assert shown["sitemap"]["host_pages"] == PAGES


def test_why_names_sources_that_are_silent_since_the_copy(run, here):
    assert "no signal of sitemap since its copy (right " in run("why", URLS[1]).out


def test_status_names_sources_that_lost_their_trust(run, here):
    text = run("status").out
    assert "sources that lost their trust: " in text
    assert "  sitemap of turned.example: not counted since 20" in text
    assert "sitemap of good.example" not in text
    lost = json.loads(run("status", "--json").out)["lost_trust"]
    assert {"sitemap"} == {one["source"] for one in lost["sources"]}


def test_of_many_pages_a_sample_is_shown_and_no_lost_trust_is_missed(run, here, monkeypatch):
    monkeypatch.setattr(partial, "WHOLE", 10)
    monkeypatch.setattr(partial, "SAMPLED", 20)
    text = run("signals").out
    assert text.splitlines()[0].endswith("; of a sample of 20 of 30 pages")
    assert "  sitemap of turned.example: not counted since 20" in text
    found = json.loads(run("signals", "--json").out)
    assert found["sample"] == {"pages": 20, "of": 30}
    assert sum(one["pages"] for one in found["hosts"] if one["source"] == "sitemap") == 20


def test_a_database_without_signals(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with BlockingStore(SqliteStore(tmp_path / "recrawl.db")) as store:
        engine = store.run(open_engine(store.store, START, budget=1.0))
        store.run(save_pages(engine, store.store, add_pages(engine, Rules(), URLS, START)))
    assert run("signals").out == "no page has had a signal\n"
    found = json.loads(run("signals", "--json").out)
    assert (found["hosts"], found["sources"], found["lost_trust"]["total"]) == ([], [], 0)
    refused = run("signals", "--plot", "a.png")
    assert (refused.code, refused.out) == (2, "")
    assert "there is nothing to draw" in refused.err
    assert "lost their trust" not in run("status").out


def test_import_takes_over_the_signals_of_a_log(run, tmp_path, monkeypatch):
    """The sitemap of one host is right, that of the other says every time that pages changed."""
    monkeypatch.chdir(tmp_path)
    rng, lines = np.random.default_rng(1), ["url,time,changed,signals_sitemap,signals_cms"]
    for k in range(26):
        for url in URLS:
            changed = int(rng.random() < 0.4)
            said = changed if HOSTS[0] in url else 1
            lines.append(f"{url},{START + 2 * DAY * k:.0f},{changed if k else ''},{said if k else 0},0")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    found = json.loads(run("import", "log.csv", "--json").out)
    assert (found["signals"] > 500, found["signals_left_out"]) == (True, False)
    rows = rows_of(json.loads(run("signals", "--json").out))
    good, stamped = (rows["sitemap", host] for host in HOSTS)
    assert good["changes"] == pytest.approx(good["crawls"], rel=0.01)
    assert good["counts"]
    assert good["precision"]["mean"] > 0.8 > stamped["precision"]["mean"]
    assert stamped["changes"] < 0.6 * stamped["crawls"]
    again = json.loads(run("import", "log.csv", "--json").out)
    assert (again["added"], again["signals"], again["signals_left_out"]) == (0, 0.0, True)
