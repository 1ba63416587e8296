"""What is exported can be imported and gives the same database; rates mean the same in every command."""

import csv
import json
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl import Engine
from recrawl.cli import main
from recrawl.store import BlockingStore, Outcome, SqliteStore

T0 = 1.6e9
_TEXT = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8).map(
    lambda text: text.strip() or None
)


def call(*argv):
    """Run ``recrawl`` in this process; what it prints is not looked at."""
    with pytest.raises(SystemExit) as ended, redirect_stdout(StringIO()):
        main([str(arg) for arg in argv])
    assert not ended.value.code, argv


@st.composite
def crawls(draw, n_pages):
    """Outcomes of crawls, each page's in order of time, with every field that an export has."""
    found, now = [], T0
    for _ in range(draw(st.integers(0, 14))):
        now += draw(st.floats(0.0, 2e5))
        url = f"https://h{draw(st.integers(0, n_pages - 1))}.example/d/"
        fate = draw(st.sampled_from(["fetched", "fetched", "fetched", "failed", "gone", "robots"]))
        rest = {name: draw(_TEXT) for name in ("final_url", "etag", "last_modified", "content_type")}
        one = Outcome(url, now, draw(st.floats(0.0, 30.0)), requests=draw(st.integers(0, 3)), **rest)
        if fate == "fetched":
            changed, status = draw(st.sampled_from([None, True, False])), draw(st.sampled_from([200, 203, 304]))
            digest = draw(st.none() | st.sampled_from(["main-1:aa", "main-1:bb", "main-2:aa"]))
            flags = {"flapping": draw(st.booleans()), "rolled_off": draw(st.booleans())}
            found.append(replace(one, status=status, changed=changed, digest=digest, **flags))
        elif fate == "gone":
            found.append(replace(one, status=draw(st.sampled_from([404, 410, 301])), gone=True))
        else:
            failure = "robots" if fate == "robots" else draw(st.sampled_from(["timeout", "busy", "http-5xx"]))
            found.append(replace(one, status=draw(st.sampled_from([None, 500, 503])), failure=failure))
    return found


@st.composite
def databases(draw):
    n = draw(st.integers(1, 5))
    weights = draw(st.lists(st.floats(0.01, 1e6), min_size=n, max_size=n))
    known = draw(st.sets(st.integers(0, n - 1)))
    return n, weights, known, draw(crawls(n))


def fill(path, database):
    """Write a database as a crawler does: outcomes to the engine and to the store."""
    n, weights, known, outcomes = database
    urls = [f"https://h{k}.example/d/" for k in range(n)]
    engine = Engine(1.0, start=T0, host_spacing=1.0)
    for k, url in enumerate(urls):
        rate = {"change_rate": 1e-6 * (k + 1), "evidence": 1.5 + k} if k in known else {}
        engine.add([url], T0, importance=weights[k], **rate)
    with BlockingStore(SqliteStore(path)) as store:
        store.save(rows=engine.rows())
        for one in outcomes:
            ids = engine.id([one.url])
            changed = None if one.changed is None else [one.changed]
            at, failed = one.began_at, [one.failure is not None]
            engine.record(ids, at, changed=changed, as_of=at, failed=failed, gone=[one.gone])
            store.save([one], engine.rows(ids))


def contents(path):
    with BlockingStore(SqliteStore(path, exclusive=False)) as store:
        urls = store.urls()
        return urls, list(store.observations()), store.copies(urls), store.check()


def table(path):
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pylist()


_ROUNDED = ("change_rate", "evidence", "watched")


def assert_same_tables(a, b):
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert {k: v for k, v in one.items() if k not in _ROUNDED} == {
            k: v for k, v in other.items() if k not in _ROUNDED
        }
        for name in set(_ROUNDED) & set(one):
            assert float(one[name]) == pytest.approx(float(other[name]), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@settings(max_examples=examples(40, usual=5))
@given(databases())
@example((2, [1.0, 3.5], {1}, []))
def test_pages_and_observations_give_the_same_database(tmp_path_factory, suffix, database):
    here = tmp_path_factory.mktemp("trip")
    a, b = here / "a.db", here / "b.db"
    fill(a, database)
    files = [(here / f"{name}{k}{suffix}") for k in range(2) for name in ("pages", "crawls")]
    call("export", "--pages", files[0], "--observations", files[1], "--database", a)
    log = [files[1]] if database[3] else []
    call("import", *log, "--pages", files[0], "--database", b)
    assert contents(a) == contents(b)
    assert contents(b)[3] == []
    call("export", "--pages", files[2], "--observations", files[3], "--database", b)
    assert_same_tables(table(files[0]), table(files[2]))
    assert table(files[1]) == table(files[3])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@settings(max_examples=examples(40, usual=5))
@given(databases())
def test_observations_alone_give_the_crawled_pages(tmp_path_factory, suffix, database):
    if not database[3]:
        return
    here = tmp_path_factory.mktemp("trip")
    a, b, files = here / "a.db", here / "b.db", [here / f"crawls{k}{suffix}" for k in range(2)]
    fill(a, database)
    call("export", "--observations", files[0], "--database", a)
    call("import", files[0], "--database", b)
    (_, seen, copies, _), (urls, again, others, problems) = contents(a), contents(b)
    assert (again, others, problems) == (seen, copies, [])
    assert set(urls) == {one.url for one in seen}
    call("export", "--observations", files[1], "--database", b)
    assert table(files[0]) == table(files[1])


@pytest.mark.slow
@settings(max_examples=examples(20, usual=5))
@given(databases())
def test_pages_alone_keep_what_is_known_of_them(tmp_path_factory, database):
    here = tmp_path_factory.mktemp("trip")
    a, b, files = here / "a.db", here / "b.db", [here / f"pages{k}.csv" for k in range(2)]
    fill(a, database)
    for path, file in ((a, files[0]), (b, files[1])):
        if path is b:
            call("import", "--pages", files[0], "--database", b)
        call("export", "--pages", file, "--database", path)
    assert_same_tables(table(files[0]), table(files[1]))


def test_bodies_come_back(run, tmp_path):
    pytest.importorskip("warcio")
    a, b, crawls, bodies = (tmp_path / name for name in ("a.db", "b.db", "crawls.csv", "bodies.warc.gz"))
    url = "https://h0.example/d/"
    pages = [Outcome(url, T0 + 0.5 + k / 8, status=200, digest=f"d:{k}", body=b"<p>%d" % k) for k in range(3)]
    fill(a, (2, [1.0, 1.0], set(), pages))
    call("export", "--observations", crawls, "--bodies", bodies, "--database", a)
    call("import", crawls, "--bodies", bodies, "--database", b)
    found = []
    for path in (a, b):
        with BlockingStore(SqliteStore(path, exclusive=False)) as store:
            found.append([(one, store.body(one.key)) for one in store.versions(url)])
    assert found[0] == found[1]
    assert found[0][0][1] == b"<p>2"
    bodies.write_bytes(b"no archive")
    for arguments in ([crawls, "--bodies", bodies], ["--pages", crawls, "--bodies", bodies]):
        result = run("import", *arguments, "--database", tmp_path / "c.db")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result


# --- rates ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A database of 60 pages in folders that change together; rows were saved under many priors."""
    path = tmp_path_factory.mktemp("rates") / "a.db"
    rng = np.random.default_rng(7)
    n, step = 60, 2400.0
    urls = [f"https://h{k % 3}.example/d{k % 6}/{k}" for k in range(n)]
    rate = rng.gamma(0.7, 3.0, n) / 86400.0
    engine = Engine(n / 43200.0, start=T0, host_spacing=0.0)
    ids = engine.add(urls, T0)
    with BlockingStore(SqliteStore(path)) as store:
        store.save(rows=engine.rows())
        seen = np.full(n, -np.inf)
        for now in (T0 + step * np.arange(1, 200)).tolist():
            picked = engine.pick(now, 3)
            for compared in (True, False):
                some = picked[np.isfinite(seen[picked]) == compared]
                if len(some):
                    changed = rng.random(len(some)) < -np.expm1(-rate[some] * (now - seen[some])) if compared else None
                    engine.record(some, now, changed=changed)
                    flags = [None] * len(some) if changed is None else changed.tolist()
                    store.save([Outcome(urls[i], now, changed=f, status=200) for i, f in zip(some, flags, strict=True)])
            seen[picked] = now
            store.save(rows=engine.rows(picked))
        assert engine.stats["refits"] > 5
        assert len(ids) == n
    return path


@pytest.mark.slow
def test_export_and_why_state_the_same_rates(run, crawled, tmp_path):
    call("export", "--pages", tmp_path / "pages.csv", "--database", crawled)
    for row in table(tmp_path / "pages.csv")[::6]:
        found = json.loads(run("why", row["url"], "--json", "--database", crawled).out)
        assert row["unit"] == "day"
        assert float(row["change_rate"]) == pytest.approx(found["change_rate"] * 86400.0, rel=1e-6)
        assert int(row["n_crawls"]) == found["n_crawls"]


@pytest.mark.parametrize("budget", ["20/day", "120/day", "2/min"])
def test_solve_on_an_export_gives_what_status_says(run, crawled, tmp_path, budget):
    pages = tmp_path / "pages.csv"
    call("export", "--pages", pages, "--database", crawled)
    forecast = json.loads(run("status", "--budget", budget, "--database", crawled, "--json").out)["forecast"]
    plan = json.loads(run("solve", pages, "--budget", budget, "--json").out)
    assert plan["unit"] == "day"
    assert plan["freshness"] == pytest.approx(forecast["freshness"], abs=0.01)


@pytest.mark.slow
def test_an_imported_database_states_the_same(run, crawled, tmp_path):
    files = ["--pages", tmp_path / "pages.parquet", "--observations", tmp_path / "crawls.parquet"]
    call("export", *files, "--database", crawled)
    call("import", tmp_path / "crawls.parquet", *files[:2], "--database", tmp_path / "b.db")
    first, second = (
        json.loads(run("status", "--budget", "120/day", "--json", "--database", path).out)
        for path in (crawled, tmp_path / "b.db")
    )
    for name in ("pages", "copies", "observations", "last_crawl", "failing", "gone"):
        assert first[name] == second[name]
    assert first["forecast"]["freshness"] == pytest.approx(second["forecast"]["freshness"], abs=0.01)


@pytest.mark.slow
def test_plan_and_estimate_read_an_export(run, crawled, tmp_path):
    call("export", "--observations", tmp_path / "crawls.csv", "--database", crawled)
    n = len(table(tmp_path / "crawls.csv"))
    for command in ("plan", "estimate"):
        found = json.loads(run(command, tmp_path / "crawls.csv", "--json").out)
        assert (found["pages"], found["crawls"]) == (60, n - 60)


# --- units ------------------------------------------------------------------------------------------------------------


def test_rates_carry_their_unit(run, table, tmp_path):
    log = table("url,time,changed\n" + "".join(f"a,{3600 * k},{k % 2}\n" for k in range(20)), "log.csv")
    figures = []
    for unit in ("hour", "day"):
        rates = tmp_path / f"{unit}.csv"
        call("estimate", log, "--unit", unit, "--output", rates)
        figures.append(json.loads(run("solve", rates, "--budget", "30/day", "--json").out))
    assert [one["unit"] for one in figures] == ["h", "day"]
    assert figures[0]["freshness"] == pytest.approx(figures[1]["freshness"], rel=1e-6)
    result = run("solve", tmp_path / "hour.csv", "--unit", "day", "--budget", "30/day")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "column unit says h, but --unit says day" in result.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("change_rate,unit\n1,day\n1,hour\n", "column unit, row 2: 'hour' is not 'day'"),
        ("change_rate,unit\n1,moon\n", "column unit, row 1"),
    ],
)
def test_bad_units_are_one_line(run, table, text, line):
    result = run("solve", table(text), "--budget", "3/day")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert line in result.err


# --- tables of pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("importance\n1\n", "column url is missing"),
        ("url\nnot a url\n", "column url, row 1"),
        ("url\nhttps://a.example\nhttps://a.example/\n", "row 2: https://a.example/ is the same page as in row 1"),
        ("url,change_rate\nhttps://a.example/,-1\n", "column change_rate, row 1: -1"),
        ("url,change_rate,evidence\nhttps://a.example/,1,0\n", "column evidence, row 1: must be above 0"),
        ("url,n_crawls\nhttps://a.example/,1.5\n", "column n_crawls, row 1: 1.5 must be a whole number"),
        ("url,fetched_at\nhttps://a.example/,9e9\n", "column fetched_at, row 1: lies in the future"),
        ("url,paused\nhttps://a.example/,perhaps\n", "column paused, row 1: 'perhaps'"),
        ("url,importance\nhttps://a.example/,inf\n", "column importance, row 1"),
    ],
)
def test_bad_tables_of_pages_are_one_line(run, table, tmp_path, text, line):
    result = run("import", "--pages", table(text), "--database", tmp_path / "a.db")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    assert line in result.err
    assert not (tmp_path / "a.db").exists()


def test_nothing_to_import_is_one_line(run, tmp_path):
    result = run("import", "--database", tmp_path / "a.db")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "nothing to import" in result.err
