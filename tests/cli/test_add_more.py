"""``recrawl add`` from tables, beside a running crawl, and politely; settings are checked as ``run`` checks them."""

import asyncio
import json
import time

import numpy as np
import pytest

from recrawl.cli.shared.options.polite_fetch import PoliteFetcher, known_hosts
from recrawl.crawl import Answer, ManualClock, MemoryWeb, Settings
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.polite.host_budgets import PREFIX as HOST_PACED
from recrawl.crawl.polite.host_limiter import DELAY
from recrawl.crawl.run.commands import CommandHooks, CommandQueue
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.engine.names.addresses import host_of
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, SqliteStore

from .test_crawl import here, refused, site  # noqa: F401
from .test_set import given

A = "https://a.example"


def test_a_table_gives_the_importance_of_pages(run, here):  # noqa: F811
    text = f'url,title,importance\n{A}/1,"One, two",5\n# a remark\n\n{A}/2,,\n{A}/1#part,again,5.0\n'
    (here / "urls.csv").write_text("\ufeff" + text, encoding="utf-8")
    result = run("add", "urls.csv", f"{A}/3", "--importance", 2)
    assert result.out == "3 pages added, 0 known already, 3 in recrawl.db\n", result.err
    assert given() == {f"{A}/1": 5.0, f"{A}/2": 2.0, f"{A}/3": 2.0}


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (f"{A}/1,much", "urls.csv, line 2: importance is 'much'"),
        (f"{A}/1,-1", "line 2: importance is '-1'"),
        (f"{A}/1,inf", "line 2: importance is 'inf'"),
        (f"{A}/1,nan", "line 2: importance is 'nan'"),
        (f"{A}/1,1,1", "line 2: has 3 cells, the header has 2"),
        (f"{A}/1,1\n{A}/1,2", "line 3: another importance of https://a.example/1 than in line 2"),
        (f'{A}/1,"1', "line 2: is not CSV"),
        ("no url,1", "line 2: 'no url'"),
        (",1", "line 2: "),
        ("https://a.example/\udcff,1", "line 2: is not UTF-8 text"),
    ],
)
def test_a_hostile_row_is_one_line_with_its_number(run, here, rows, line):  # noqa: F811
    (here / "urls.csv").write_bytes(f"url,importance\n{rows}\n".encode("utf-8", "surrogateescape"))
    assert line in refused(run, "add", "urls.csv")
    assert not (here / "recrawl.db").exists()


def test_a_misspelt_column_is_not_left_out_in_silence(run, here):  # noqa: F811
    (here / "urls.csv").write_text(f"url,importanse\n{A}/1,5\n")
    assert "did you mean importance" in refused(run, "add", "urls.csv")


def test_beside_a_running_crawl_it_says_how_many_pages_are_new(run, here):  # noqa: F811
    run("add", f"{A}/1", f"{A}/2")
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        engine = store.run(open_engine(store.store, 1.7e9))
        (here / "urls.csv").write_text(f"url,importance\n{A}/1,9\n{A}/3,4\n{A}/4,\n")
        result = run("add", "urls.csv")
        assert result.out == "2 new pages queued for the running crawl, 1 known already\n"
        found = json.loads(run("add", f"{A}/3", f"{A}/5", "--json").out)
        assert found == {"database": "recrawl.db", "posted": 1, "known": 1}, "queued pages are known too"
        run("remove", f"{A}/2")
        assert "1 new page queued" in run("add", f"{A}/2").out, "it is removed before"
        store.run(CommandQueue(engine, store.store, Rules(), CommandHooks()).apply(1.7e9))
    assert given() == {f"{A}/1": 1.0, f"{A}/3": 4.0, f"{A}/4": 1.0, f"{A}/5": 1.0, f"{A}/2": 1.0}


def test_sitemaps_are_fetched_with_the_delay_of_their_host():
    clock = ManualClock(0.0)

    def page(url, at):
        moved = {"Location": "https://b.example/map"}
        return Answer(status=302, headers=moved) if url == f"{A}/moved" else Answer(body=b"<urlset/>")

    web = MemoryWeb(page, clock, max_redirects=0)
    polite = PoliteFetcher(web, 1.0, {"b.example": 5.0}, {"c.example": 30.0, "d.example": 999.0}, clock)

    async def main():
        for url in (f"{A}/1", f"{A}/2", f"{A}/moved", "https://b.example/1", "https://c.example/1"):
            await polite.fetch(url)
        with pytest.raises(ParameterError, match="is not asked until"):
            await polite.fetch("https://d.example/1")

    asyncio.run(clock.drive(main()))
    times = {host: [at for at, url in web.requests if host_of(url) == host] for host in ("a.example", "b.example")}
    assert np.diff(times["a.example"]).tolist() == [1.0, 1.0]
    assert np.diff(times["b.example"]).tolist() == [5.0], "the redirect was a request to it"
    assert next(at for at, url in web.requests if "//c." in url) >= 30.0
    assert set(polite.asked) == {"a.example", "b.example", "c.example"}


def test_the_crawl_knows_which_hosts_were_asked_and_add_what_the_crawl_learned(run, site, here):  # noqa: F811
    web = ["--sitemap", f"{site.url}/sitemap.xml", "--contact", "a@example.org", "--allow-private"]
    assert run("add", *web, "--json").code == 0
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        until = store.load()["hosts"]["127.0.0.1"][2]
        assert until > 1.7e9, "the host rests after the request"
        store.save(notes={f"{DELAY}127.0.0.1": 0.2})
        run("add", *web)
        command = store.commands()[0][1]
        assert command["rest"]["127.0.0.1"] > until
        engine = store.run(open_engine(store.store, 1.7e9))
        store.run(CommandQueue(engine, store.store, Rules(), CommandHooks()).apply(1.7e9))
        assert engine.held_until("127.0.0.1") == command["rest"]["127.0.0.1"]
    assert known_hosts(Settings())[0] == {"127.0.0.1": 0.2}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('detector = "mian"', "did you mean main"),
        ('webhook = "ftp://a.example/"', "webhook is no http"),
        ('webhook = "https://a.example/"', "the secret of the webhook"),
        ('webhook = "https://["', "webhook is no http"),
        ('contact = "a\\nb"', "user-agent"),
        ('[[rule]]\nmatch = "https://a.example/x*"\nbudget = "1/s"', "whole hosts"),
    ],
)
def test_settings_are_checked_alike_by_add_run_and_dry_run(run, here, text, line):  # noqa: F811
    run("add", f"{A}/1")
    (here / "recrawl.toml").write_text(text)
    lines = [refused(run, *command) for command in (("add", f"{A}/2"), ("run", "--dry-run", "1"))]
    flags = () if "contact" in text else ("--contact", "a@example.org")
    lines.append(refused(run, "run", *flags))
    assert len(set(lines)) == 1, lines
    assert line in lines[0]


def test_a_dry_run_knows_delays_and_budgets_of_hosts_and_hours(run, here):  # noqa: F811
    run("add", *(f"{A}/{k}" for k in range(3)), *(f"https://b.example/{k}" for k in range(3)))
    (here / "recrawl.toml").write_text('[[rule]]\nmatch = "https://b.example/*"\nbudget = "1/min"\n')
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        store.save(notes={f"{DELAY}a.example": 20.0, f"{HOST_PACED}b.example": time.time() + 90.0})
    found = json.loads(run("run", "--dry-run", 12, "--json").out)
    times = {host: [one["in"] for one in found if host in one["url"]] for host in ("//a.", "//b.")}
    assert np.diff(times["//a."]).min() >= 20.0 - 1e-3
    assert times["//b."][0] > 60.0, "what an earlier run spent counts"
    assert np.diff(times["//b."]).min() >= 60.0 - 1e-3
    hour = (time.localtime().tm_hour + 2) % 24
    later = json.loads(run("run", "--dry-run", 1, "--hours", f"{hour}-{hour + 1}", "--json").out)
    assert later[0]["in"] > 3590.0
