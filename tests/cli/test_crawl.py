"""``recrawl add``, ``run``, ``status``, ``why``, ``import``, ``export``, ``remove``: a whole crawl by commands."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.feeds.polling import PREFIX, polled
from recrawl.crawl.formats.feed_items import Item
from recrawl.crawl.run.opening.pages import add_pages, open_engine
from recrawl.store import BlockingStore, Outcome, SqliteStore

from .web import SmallWeb

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site():
    web = SmallWeb()
    yield web
    web.close()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RECRAWL_")]:
        monkeypatch.delenv(name)
    return tmp_path


RUN = ("run", "--allow-private", "--contact", "a@example.org", "--budget", "50/s", "--delay", "0.01", "--json")


def added(run, site, n=10):
    result = run("add", *(f"{site.url}/p/{k}" for k in range(n)), "--json")
    assert (result.code, result.err) == (0, ""), result
    return json.loads(result.out)


def refused(run, *argv):
    """What a command says that ends with exit code 2 and one line."""
    result = run(*argv)
    assert (result.code, result.out) == (2, ""), result
    assert result.err.startswith("recrawl: ")
    assert result.err.count("\n") == 1
    return result.err


# --- add ------------------------------------------------------------------------------------------------------------


def test_pages_come_from_everywhere_once(run, site, here, monkeypatch):
    (here / "urls.txt").write_text(f"# mine\n\n{site.url}/p/1\n{site.url}/p/2#part\n")
    (here / "map.xml").write_text(f"<urlset><url><loc>{site.url}/p/3</loc></url></urlset>")
    arguments = [f"HTTP://127.0.0.1:{site.url.rsplit(':')[-1]}/p/./1", "urls.txt", "map.xml"]
    web = ["--sitemap", f"{site.url}/sitemap.xml", "--contact", "a@example.org"]
    monkeypatch.setenv("RECRAWL_ALLOW_PRIVATE", "true")
    result = run("add", *arguments, *web, "--importance", 3, "--json")
    assert result.code == 0, result
    polled = [f"{site.url}/sitemap.xml"]
    assert json.loads(result.out) == {
        "database": "recrawl.db",
        "added": 8,
        "known": 0,
        "pages": 8,
        "listings": polled,
    }
    result = run("add", f"{site.url}/p/1", f"{site.url}/p/99")
    assert result.out == "1 page added, 1 known already, 9 in recrawl.db\n"
    with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
        rows = store.load()
    assert dict(zip(rows["url"], rows["given"], strict=True))[f"{site.url}/p/24"] == 3.0


@pytest.mark.slow
def test_pages_come_from_standard_input(run_apart, here):
    command = [sys.executable, "-m", "recrawl", "add", "-"]
    text = "https://a.example/1\nhttps://a.example/2\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False, cwd=here)
    assert done.stdout == "2 pages added, 0 known already, 2 in recrawl.db\n", done


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "nothing to add"),
        (["nowhere.txt"], "nowhere.txt: neither an http or https URL nor a file\n"),
        (["docs.example.org/a"], "nor a file; did you mean https://docs.example.org/a?"),
        (["ftp://a.example/"], "neither an http or https URL"),
        (["http://"], "no http or https URL"),
        (["http://user:secret@a.example/"], "belong in headers"),
        (["bad.txt"], "bad.txt, line 2: 'no url'"),
        (["--sitemap", "empty.txt"], "empty.txt: no sitemap"),
        (["--sitemap", "index.xml"], "an index of 1 sitemaps"),
        (["--sitemap", "https://a.example/sitemap.xml"], "no contact is given"),
        (["https://a.example/", "--database", "no/such/folder.db"], "there is no such folder"),
        (["https://a.example/", "--importance", "-1"], "importance"),
        (["https://a.example/", "--config", "absent.toml"], "absent.toml: there is no such file"),
    ],
)
def test_bad_pages_are_refused_and_nothing_is_added(run, here, arguments, line):
    (here / "empty.txt").touch()
    (here / "bad.txt").write_text("https://a.example/1\nno url\n")
    (here / "index.xml").write_text("<sitemapindex><sitemap><loc>https://a.example/s</loc></sitemap></sitemapindex>")
    assert line in refused(run, "add", *arguments)
    assert not (here / "recrawl.db").exists()


# --- run ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_crawl_from_beginning_to_end(run, run_until, site, here):
    added(run, site)
    run("add", f"{site.url}/private/1")
    enough = len(site.asked) + 50
    result = run_until(lambda: len(site.asked) > enough, *RUN)
    assert (result.code, result.err) == (0, ""), result
    counts = json.loads(result.out)
    assert counts["acknowledged"] == counts["ended"] + 1 > 20  # and one page that robots.txt forbids
    assert counts["changed"] > 10
    assert 0 < counts["freshness"] <= 1
    assert not any("private" in path for path, _ in site.asked)
    assert site.asked[-1][1]["User-Agent"].endswith("(+a@example.org)")

    status = json.loads(run("status", "--budget", "50/s", "--json").out)
    assert (status["pages"], status["copies"], status["gone"]) == (11, 9, 1)
    assert status["crawls_last_day"] == counts["acknowledged"]
    assert status["forecast"]["low"] <= status["forecast"]["freshness"] <= status["forecast"]["high"]
    assert 0 < status["freshness_so_far"] <= 1
    text = run("status", "--check").out
    assert "freshness now" in text
    assert "freshness so far" in text

    often = Counter(path for path, _ in site.asked if path.startswith("/p/") and path != "/p/9")
    page = f"{site.url}{often.most_common(1)[0][0]}"
    text = run("why", page).out
    assert "changes seen in" in text
    assert "crawl value" in text
    found = json.loads(run("why", page, "--json").out)
    assert found["crawled"] is True
    assert found["n_crawls"] > 0
    assert "not crawled: disallowed by robots.txt" in run("why", f"{site.url}/private/1").out
    assert "not found (404); looked for again in" in run("why", f"{site.url}/p/9").out


def test_what_comes_next_is_printed_and_not_crawled(run, site):
    added(run, site)
    before = len(site.asked)
    found = json.loads(run("run", "--dry-run", 5, "--budget", "2/s", "--json").out)
    assert len({one["url"] for one in found}) == 5
    assert [one["in"] for one in found] == pytest.approx([0, 1, 2, 3, 4], abs=0.01), "one host, a second apart"
    text = run("run", "--dry-run", 3, "--budget", "2/s").out
    assert text.count(site.url) == 3
    assert [line.split()[:2] for line in text.splitlines()] == [["0", "s"], ["1", "s"], ["2", "s"]]
    assert len(site.asked) == before


def test_once_fetches_each_page_one_time(run, site):
    added(run, site)
    before = len(site.asked)
    counts = json.loads(run(*RUN, "--once").out)
    assert counts["ended"] == 10
    assert sorted(path for path, _ in site.asked[before:] if path != "/robots.txt") == [f"/p/{k}" for k in range(10)]


@pytest.mark.slow
def test_sigterm_ends_a_crawl_cleanly_and_pages_can_be_added_meanwhile(run, site, here):
    added(run, site, 5)
    command = [sys.executable, "-m", "recrawl", *RUN, "--budget", "10/s", "--for", "60s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here) as crawl:
        deadline = time.monotonic() + 300.0
        with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
            while store.counts()["observations"] < 5 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert "in use by process" in refused(run, *RUN)
            assert f"process {crawl.pid}" in refused(run, *RUN)
            assert "a crawl is running" in refused(run, "import", _log(here, site))
            assert run("add", f"{site.url}/p/50").out == "1 new page queued for the running crawl, 0 known already\n"
            assert "removal of 1 pages queued" in run("remove", f"{site.url}/p/0").out
            while store.commands() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert f"{site.url}/p/50" in store.urls()
            assert f"{site.url}/p/0" not in store.urls()
        crawl.send_signal(signal.SIGTERM)
        out, err = crawl.communicate(timeout=300)
    assert crawl.returncode == 0, err
    counts = json.loads(out)
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        lost = counts["acknowledged"] - store.counts()["observations"]
    removed = sum(path == "/p/0" for path, _ in site.asked)
    assert 0 <= lost <= removed, "only those of the page that was removed"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--contact", "a@example.org"], "there is no such database"),
        ([], "no contact is given"),
        (["--budget", "many", "--contact", "a"], "budget 'many' is not understood"),
        (["--for", "soon", "--contact", "a"], "--for 'soon' is not a span of time"),
        (["--hours", "nights", "--contact", "a"], "hours 'nights' are not understood"),
        (["--delay", "-1", "--contact", "a"], "delay '-1'"),
        (["--concurrency", "0", "--contact", "a"], "concurrency is 0"),
        (["--dry-run", "0"], "--dry-run"),
        (["--dry-run", "3"], "there is no such database"),
    ],
)
def test_bad_runs_are_refused(run, arguments, line):
    assert line in refused(run, "run", *arguments)


def test_a_database_without_pages_is_refused(run):
    BlockingStore(SqliteStore("recrawl.db")).close()
    assert "has no pages" in refused(run, *RUN)
    assert "has no pages" in refused(run, "run", "--dry-run", 3)


# --- settings -------------------------------------------------------------------------------------------------------


def test_flags_win_over_the_environment_and_that_over_the_file(run, site, here, monkeypatch):
    (here / "recrawl.toml").write_text('database = "file.db"\nbudget = "1/day"\n')
    assert json.loads(run("add", f"{site.url}/p/1", "--json").out)["database"] == "file.db"
    monkeypatch.setenv("RECRAWL_DATABASE", "environment.db")
    assert json.loads(run("add", f"{site.url}/p/1", "--json").out)["database"] == "environment.db"
    assert json.loads(run("add", f"{site.url}/p/1", "--database", "flag.db", "--json").out)["database"] == "flag.db"
    assert json.loads(run("status", "--json").out)["budget"] == "1/day"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('budgett = "1/s"', "'budgett' is not one of"),
        ("budget = ", "recrawl.toml"),
        ("concurrency = 1.5", "1.5 is not a whole number"),
        ('robots = "yes"', "'yes' is not true or false"),
        ('budget = "5/fortnight"', "fortnight"),
        ('rule = "x"', "[[rule]]"),
        ("[[rule]]\nimportance = 2", "rule 1: match is missing"),
        ('[[rule]]\nmatch = "*"\nimportanse = 2', "did you mean importance"),
        ('[[rule]]\nmatch = "*"\nimportance = -2', "importance is -2"),
        ('[[rule]]\nmatch = "*"\nmin_interval = "2 h"\nmax_interval = "1 h"', "min_interval is longer"),
        ('[[rule]]\nmatch = "*"\nheaders = { "X" = 5 }', "must be a line of text"),
        ('[[rule]]\nmatch = "*"\nevery = "often"', "rule 1: every 'often'"),
    ],
)
def test_bad_settings_are_refused_by_name(run, here, text, line):
    (here / "recrawl.toml").write_text(text)
    assert line in refused(run, "add", "https://a.example/")


def test_strange_variables_of_the_environment_are_refused(run, monkeypatch):
    monkeypatch.setenv("RECRAWL_BUGDET", "1/s")
    assert "did you mean RECRAWL_BUDGET" in refused(run, "status")
    monkeypatch.delenv("RECRAWL_BUGDET")
    monkeypatch.setenv("RECRAWL_KEEP", "few")
    assert "RECRAWL_KEEP: 'few' is not a whole number" in refused(run, "status")


def test_secrets_are_sent_and_shown_nowhere(run, site, here):
    rule = f'[[rule]]\nmatch = "{site.url}/*"\nheaders = {{ X-Key = "hush-1" }}\ncookies = {{ c = "hush-2" }}\n'
    (here / "recrawl.toml").write_text(rule)
    added(run, site, 3)
    shown = run(*RUN, "--once")
    assert shown.code == 0
    headers = [headers for path, headers in site.asked if path == "/p/1"][-1]
    assert (headers["X-Key"], headers["Cookie"]) == ("hush-1", "c=hush-2")
    more = [run("status"), run("why", f"{site.url}/p/1"), run("export", "--observations", "o.csv")]
    for result in (shown, *more):
        assert "hush" not in result.out + result.err
    assert "hush" not in (here / "o.csv").read_text()
    for file in here.glob("recrawl.db*"):
        assert b"hush" not in file.read_bytes()


# --- import, export, remove -----------------------------------------------------------------------------------------


def _log(here, site, n=40):
    rows = [(f"{site.url}/p/{k}", 1.6e9 + 3600 * j, j % (k + 1) == 0) for j in range(n) for k in range(4)]
    path = here / "log.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("url", "time", "changed"), *rows])
    return path


def test_a_log_of_another_crawler_is_a_warm_start(run, site, here):
    result = run("import", _log(here, site), "--json")
    assert result.code == 0, result
    found = json.loads(result.out)
    assert (found["pages"], found["added"], found["rows"]) == (4, 4, 160)
    rates = [json.loads(run("why", f"{site.url}/p/{k}", "--json").out) for k in range(4)]
    assert [one["n_crawls"] for one in rates] == [39] * 4
    assert [one["n_changes"] for one in rates] == [39, 19, 13, 9]
    assert rates[0]["change_rate"] > 2 * rates[1]["change_rate"] > 2 * rates[3]["change_rate"]
    assert rates[0]["fetched_at"] == 1.6e9 + 3600 * 39


def test_a_log_adds_its_pages_to_a_database_that_has_others(run, site, here):
    added(run, site, 2)
    found = json.loads(run("import", _log(here, site), "--json").out)
    assert (found["added"], found["known"]) == (2, 2)
    quick, slow = (json.loads(run("why", f"{site.url}/p/{k}", "--json").out)["change_rate"] for k in (2, 3))
    assert quick > slow


def test_bad_logs_are_refused(run, here):
    (here / "log.csv").write_text("url,time,changed\nhttps://a.example/,0,no\nhttps://a.example/,x,no\n")
    assert "row 2" in refused(run, "import", "log.csv")
    (here / "log.csv").write_text("url,time,changed\nnot a url,0,no\nnot a url,10,no\n")
    assert "not a url" in refused(run, "import", "log.csv")
    assert "absent.csv" in refused(run, "import", "absent.csv")
    assert not (here / "recrawl.db").exists()


def test_what_is_exported_can_be_read_by_others_and_by_recrawl(run, run_until, site, here):
    import pyarrow.parquet as pq
    from warcio.archiveiterator import ArchiveIterator

    added(run, site, 4)
    enough = len(site.asked) + 20
    counts = json.loads(run_until(lambda: len(site.asked) > enough, *RUN).out)
    files = ["--pages", "pages.csv", "--observations", "crawls.parquet", "--bodies", "bodies.warc.gz"]
    found = json.loads(run("export", *files, "--json").out)
    assert (found["n_pages"], found["n_observations"]) == (4, counts["acknowledged"])
    table = pq.read_table("crawls.parquet").to_pylist()
    changes = Counter(row["url"] for row in table if row["changed"])
    assert found["n_bodies"] == sum(min(1 + changes[f"{site.url}/p/{k}"], 2) for k in range(4)), "two of a page"
    assert len(table) == counts["acknowledged"]
    assert sum(bool(row["changed"]) for row in table) == counts["changed"]
    with (here / "bodies.warc.gz").open("rb") as file:
        records = {r.rec_headers["WARC-Target-URI"]: r.content_stream().read() for r in ArchiveIterator(file)}
    assert records[f"{site.url}/p/2"].startswith(b"<p>/p/2 ")
    with (here / "pages.csv").open() as file:
        assert [row["url"] for row in csv.DictReader(file)] == [f"{site.url}/p/{k}" for k in range(4)]
    run("export", "--observations", "crawls.csv")
    again = run("import", "crawls.csv", "--database", "other.db", "--lenient")
    assert again.code == 0, again
    assert sorted(here.glob(".*")) == [], "nothing half written is left"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "nothing to export"),
        (["--pages", "a.xls"], "suffix"),
        (["--bodies", "a.zip"], ".warc"),
        (["--observations", "no/such/a.csv"], "the folder no/such does not exist"),
    ],
)
def test_bad_exports_are_refused(run, arguments, line):
    BlockingStore(SqliteStore("recrawl.db")).close()
    assert line in refused(run, "export", *arguments)


def test_pages_are_removed_with_all_that_is_known_of_them(run, site, here):
    added(run, site, 6)
    run(*RUN, "--once")
    assert run("remove", f"{site.url}/p/1", f"{site.url}/p/2").out == "2 pages removed\n"
    assert "no such page" in refused(run, "remove", f"{site.url}/p/1")
    assert json.loads(run("remove", "http://*/p/*", "--json").out)["removed"] == 4
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        assert set(store.counts().values()) == {0}
        assert store.check() == []
    assert "is not among the pages" in refused(run, "why", f"{site.url}/p/1")


def test_a_damaged_database_is_reported_in_one_line(run, here):
    (here / "recrawl.db").write_bytes(b"no database at all" * 100)
    for arguments in (["status"], ["why", "https://a.example/"], [*RUN], ["add", "https://a.example/"]):
        assert "recrawl.db" in refused(run, *arguments)


# --- what was noticed -----------------------------------------------------------------------------------------------


def write_noticed(path):
    """A database with a page that flaps, one in which nothing was found, and a feed."""
    urls = {name: f"https://a.example/{name}" for name in ("flapping", "nothing", "feed")}
    now, store = time.time(), BlockingStore(SqliteStore(path))
    engine = store.run(open_engine(store.store, now - 50.0, budget=1.0))
    add_pages(engine, Rules(), list(urls.values()), now - 50.0)
    items = [[Item(k, "", None) for k in range(3 * j, 3 * j + 3)] for j in range(2)]
    feed, _ = polled(polled(None, items[0], now - 4000.0, 300.0)[0], items[1], now - 40.0, 300.0)
    digests = ["main-1:a", "main-1:b", "main-1:a", "main-1:b"]
    turns = [Outcome(urls["flapping"], now - 40.0 + k, digest=digests[k], flapping=k > 1) for k in range(4)]
    others = [
        Outcome(urls["nothing"], now - 30.0, status=200, digest="css-1+1:nothing"),
        Outcome(urls["feed"], now - 30.0, status=200, digest="main-1:c", rolled_off=True),
    ]
    store.save([*turns, *others], engine.rows(), notes={PREFIX + urls["feed"]: feed.as_note()})
    store.close()
    return urls


def test_status_and_why_tell_of_flapping_feeds_and_what_was_not_found(run, here):
    urls = write_noticed(here / "recrawl.db")
    found = json.loads(run("status", "--json").out)
    assert (found["flapping_last_day"], found["rolled_off_last_day"]) == (2, 1)
    assert found["feeds"] == {"pages": 1, "hurried": 1, "rolled_off": 1}
    text = run("status").out
    assert "2 returns to content seen before" in text
    assert (
        "feeds                     1, 1 polled in time for their items; items rolled off in 1, in the last day 1 times"
        in text
    )
    said = run("why", urls["flapping"]).out
    assert "flapping: returned 2 times to content seen before, which is not counted as a change" in said
    assert "the selector of its rule (select) matched nothing in the last copy" in run("why", urls["nothing"]).out
    feed = run("why", urls["feed"]).out
    assert "a feed of 3 items, a new one about every" in feed
    assert "items rolled off between polls 1 times; polled at least every" in feed
    shown = json.loads(run("why", urls["feed"], "--json").out)
    assert (shown["flaps"], shown["found"], shown["feed"]["rolled"]) == (0, True, 1)
    assert json.loads(run("why", urls["nothing"], "--json").out)["found"] is False
