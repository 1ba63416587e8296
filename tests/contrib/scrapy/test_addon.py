"""The Scrapy add-on against a real server: what is recorded is what the server saw."""

import re

import pytest

from contrib.scrapy.worlds import Run, Site, recorded, stored

PAGES = [f"/page/{k}" for k in range(6)]
ODD = ["/moved", "/circle", "/gone", "/broken", "/trouble", "/private/1"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """One crawl with every kind of page, ended by SIGINT after changes and 304 answers."""
    folder, site = tmp_path_factory.mktemp("scrapy"), Site()
    with site.serving():
        run = Run(folder, site, PAGES + ODD, ROBOTSTXT_OBEY=True, RECRAWL_LINKS=True, CONCURRENT_REQUESTS=4)
        run.until(lambda: all(site.served(304)[path] for path in [*PAGES, "/page/found"]))
        n, site.version = len(site.log), 2
        run.until(lambda: all(any(one[:2] == (path, 200) for one in site.log[n:]) for path in PAGES))
        run.interrupt()
        stats = run.end()
    outcomes, leases = stored(run.database)
    return site, stats, outcomes, leases, run.errors


def test_every_request_is_recorded_once(crawl):
    site, stats, outcomes, leases, _ = crawl
    counts, served = recorded(outcomes, site.origin), site.served()
    for path in [*PAGES[1:], "/trouble", "/page/found"]:
        assert counts[path] == served[path] > 0
    assert counts["/page/0"] + counts["/moved"] == served["/page/0"], "a redirect ends at its target"
    assert stats["recrawl/recorded"] == len(outcomes)
    assert stats["recrawl/picked"] == len(outcomes) + stats.get("recrawl/released", 0)
    assert leases == [], "all leases have been given back"


def test_validators_are_sent_and_changes_found(crawl):
    site, stats, outcomes, _, _ = crawl
    of_page = [one for one in outcomes if one.url == site.origin + "/page/3"]
    assert {one.status for one in of_page} == {200, 304}
    assert sum(one.changed is True for one in of_page) == 1
    assert stats["recrawl/not_modified"] == sum(one.status == 304 for one in outcomes)


def test_a_304_reaches_no_callback_and_logs_no_error(crawl):
    site, stats, _, _, log = crawl
    fetched = sum(site.served(200)[path] for path in [*PAGES, "/page/found"])
    assert stats["item_scraped_count"] == fetched
    errors = [line for line in log.splitlines() if " ERROR: " in line]
    assert all("/trouble" in line or "/broken" in line for line in errors), errors


def test_odd_answers_are_recorded_as_what_they_are(crawl):
    site, _, outcomes, _, _ = crawl
    found = {path: [one for one in outcomes if one.url == site.origin + path] for path in ODD}
    assert {one.failure for one in found["/circle"]} == {"redirects"}
    assert {one.failure for one in found["/private/1"]} == {"robots"}
    assert {one.status for one in found["/gone"]} == {404}
    assert {one.status for one in found["/broken"]} == {500}
    assert site.served()["/broken"] == 2 * len(found["/broken"]), "a retry is not a crawl of its own"
    assert {one.final_url for one in found["/moved"]} == {site.origin + "/page/0"}
    assert site.served()["/private/1"] == 0


def test_the_log_says_when_the_database_is_opened_and_ready(crawl):
    said = [line.partition(" INFO: recrawl: ")[2] for line in crawl[-1].splitlines()]
    said = [line for line in said if line]
    assert re.fullmatch(r"scrapy\.opening source=\S+/pages\.db", said[0])
    assert len([line for line in said if re.fullmatch(r"scrapy\.ready seconds=[0-9.]+ pages=0", line)]) == 1
    assert len([line for line in said if line.startswith("run.started")]) == 1, "that of the rehearsal is silent"


def test_links_are_added_and_keep_their_callback(crawl):
    site, stats, outcomes, _, _ = crawl
    assert stats["recrawl/added"] == len(PAGES + ODD) + 1
    assert recorded(outcomes, site.origin)["/page/found"] > 0
    assert stats["found on 0"] == site.served(200)["/page/found"]


def test_an_errback_gets_failures_but_no_304(crawl):
    """That of a redirect without end fails in a middleware, after the last that the add-on sees of the answer."""
    site, stats, outcomes, _, _ = crawl
    assert site.served(304)["/page/2"] > 0
    given = {name: n for name, n in stats.items() if name.startswith("errback/")}
    assert given == {"errback/IgnoreRequest": recorded(outcomes, site.origin)["/circle"]}


@pytest.mark.full
@pytest.mark.parametrize("inside", [False, True])
def test_items_are_what_counts(tmp_path, inside):
    """Items differ by the time of the fetch, which is an ignored field; a change is one of the text of an item."""
    site = Site()
    site.tags = False
    settings = {"RECRAWL_CHANGE": "items", "RECRAWL_IGNORED_FIELDS": ["at"], "RECRAWL_PROCESS": not inside}
    with site.serving():
        run = Run(tmp_path, site, PAGES, CONCURRENT_REQUESTS=4, **settings)
        run.until(lambda: all(site.served(200)[path] > 2 for path in PAGES))
        n, site.version = len(site.log), 2
        run.until(lambda: all([one[0] for one in site.log[n:]].count(path) > 2 for path in PAGES))
        run.interrupt()
        run.end()
    outcomes, leases = stored(run.database)
    for path in PAGES:
        mine = [one.changed for one in outcomes if one.url == site.origin + path]
        assert (mine[0], mine.count(True)) == (None, 1)
        assert len(mine) == site.served()[path]
    assert leases == []
