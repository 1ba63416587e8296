"""``recrawl audit`` on loopback: honest servers, servers that lie, and what ``recrawl status`` says of them."""

import json
import os
import time

import pytest
from aiohttp import web

from recrawl.crawl.audit.open_audit import ENDED, saved_audits
from recrawl.estimate.audit import share_interval
from recrawl.store import BlockingStore, SqliteStore

from .web import SmallWeb

pytestmark = pytest.mark.slow

QUICK = ("--allow-private", "--contact", "a@example.org", "--budget", "100/s", "--delay", "0.01")
N = 15
SURE = 0.999999  # the draws of a command are random: an interval of 90% would fail one run in ten


class Versions(SmallWeb):
    """Pages of a version that the test sets; a server that lies answers 304 to whoever sends its only ETag."""

    def __init__(self, lies):
        self.version, self.lies = 0, lies
        super().__init__()

    async def _answer(self, request):
        self.asked.append((request.path, dict(request.headers)))
        if request.path == "/robots.txt":
            return web.Response(text="")
        if self.lies and "If-None-Match" in request.headers:
            return web.Response(status=304)
        body = f"<p>{request.path} in version {self.version}</p>"
        return web.Response(text=body, content_type="text/html", headers={"ETag": '"1"'} if self.lies else {})


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RECRAWL_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def sites(request):
    made = [Versions(request.param) for _ in range(4)]
    yield made
    for site in made:
        site.close()


def crawled(run, sites):
    """Every page of every site has a copy."""
    assert run("add", *(f"{site.url}/p/{k}" for site in sites for k in range(N))).code == 0
    assert run("run", *QUICK, "--once", "--json").code == 0


def audited(run, *more):
    result = run("audit", *QUICK, "--requests", 60, "--json", *more)
    assert (result.code, result.err) == (0, ""), result
    return json.loads(result.out)


def asked(sites):
    return sum(len(site.asked) for site in sites)


def is_audited():
    """Whether the database holds an audit."""
    with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
        return bool(saved_audits(store.notes(ENDED)))


def status(run):
    return json.loads(run("status", "--json").out), run("status").out


@pytest.mark.parametrize("sites", [False], indirect=True)
def test_honest_servers_agree_with_the_forecast(run, sites, here):
    crawled(run, sites)
    for site in sites:
        site.asked.clear()
    found = audited(run)
    assert found["audit"]["draws"] == 60
    assert found["audit"]["freshness"] == 1.0
    requests = sum(path != "/robots.txt" for site in sites for path, _ in site.asked)
    assert requests == found["audit"]["requests"] <= 60
    assert found["verdict"]["agree"] is True
    figures, text = status(run)
    assert figures["audit"] == found["audit"]
    assert figures["verdict"]["agree"] is True
    assert "audit and forecast        agree" in text
    result = run("audit", "--list", "--plot", here / "audits.png")
    assert result.code == 0
    assert "60 of 60 draws were fresh" in result.out
    assert (here / "audits.png").stat().st_size > 5000


@pytest.mark.parametrize("sites", [True], indirect=True)
def test_servers_that_lie_are_found_out_and_status_says_so(run, sites, monkeypatch):
    """All pages change, a second crawl hears "not modified" of most of them; the audit asks without validators.

    A day lies between the crawls, beside which the seconds before the audit do not count.
    """
    crawled(run, sites)
    for site in sites:
        site.version = 1
    today = time.time
    monkeypatch.setattr(time, "time", lambda: today() + 86400.0)
    assert run("run", *QUICK, "--once", "--json").code == 0
    with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
        said = [outcome.changed for outcome in store.observations() if outcome.changed is not None]
        pages = [store.body(store.versions(url)[0].key) for url in store.urls()]
    fresh = sum(b"version 1" in page for page in pages) / len(pages)
    assert sum(said) < 30, "most crawls found nothing"
    for site in sites:
        site.asked.clear()
    found = audited(run)
    assert not any("If-None-Match" in headers for site in sites for _, headers in site.asked)
    low, high = share_interval(found["audit"]["fresh"], found["audit"]["draws"], SURE)
    assert low <= fresh <= high
    assert found["audit"]["forecast"] > found["audit"]["high"]
    figures, text = status(run)
    assert figures["verdict"]["agree"] is False
    assert figures["verdict"]["direction"] == "staler"
    assert "DISAGREE" in text
    assert "believe the audit" in text


@pytest.mark.parametrize("sites", [False], indirect=True)
def test_a_share_of_a_crawl_goes_to_audits(run, run_until, sites):
    crawled(run, sites)
    again = ("--min-change-probability", "0")  # else pages that were just crawled wait for hours
    enough = asked(sites) + 100
    shared = ("run", *QUICK, *again, "--audit-share", "50%", "--json")
    assert run_until(lambda: asked(sites) > enough, *shared).code == 0
    assert asked(sites) > enough, "it ended before its time"
    figures, _ = status(run)
    with BlockingStore(SqliteStore("recrawl.db", exclusive=False)) as store:
        unended = store.notes("audit_unended").get("audit_unended")
    assert figures["audits"] or unended["drawn"] > 0


@pytest.mark.parametrize("sites", [False], indirect=True)
def test_a_running_crawl_gets_a_command_and_makes_the_audit(run, run_until, sites):
    crawled(run, sites)
    with BlockingStore(SqliteStore("recrawl.db")):  # as a crawl would have it
        result = run("audit", *QUICK, "--requests", 20)
        assert result.out.startswith("a crawl is running: it audits 20 pages"), result
    assert run_until(is_audited, "run", *QUICK, "--quiet").code == 0
    figures, _ = status(run)
    assert (figures["audits"], figures["audit"]["draws"]) == (1, 20)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--level", "1"), "--level is 1.0"),
        (("--requests", "0"), "'--requests'"),
        (("--requests", "1000000000"), "an audit of 1000000000 draws: must be from 1 to 100000"),
        (("--plot", "a.txt"), "the suffix of a plot"),
        (("--budget", "much"), "is not understood"),
        ((), "there is no such database"),
    ],
)
def test_bad_input_is_one_line(run, arguments, line):
    result = run("audit", "--contact", "a@example.org", *arguments)
    assert (result.code, result.out) == (2, "")
    assert line in result.err
    assert result.err.count("\n") == 1


def test_without_a_contact_nothing_is_fetched(run):
    run("add", "https://a.example/1")
    result = run("audit")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "no contact is given" in result.err


def test_a_share_that_is_none_is_refused(run):
    run("add", "https://a.example/1")
    result = run("run", "--audit-share", "150%", "--contact", "a@example.org")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "audit_share is '150%'" in result.err


def test_an_audit_of_pages_without_copies_says_that_nothing_is_fresh(run):
    run("add", "https://a.example/1")
    result = run("audit", *QUICK, "--requests", 5, "--json")
    assert result.code == 0, result
    found = json.loads(result.out)["audit"]
    assert (found["fresh"], found["draws"], found["requests"]) == (0, 5, 0)
