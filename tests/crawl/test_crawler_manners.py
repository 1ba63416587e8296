"""Manners of the crawler: delays of hosts, hints of servers, robots.txt, hosts that fail or ask to wait."""

import numpy as np
import pytest

from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.http.memory import Answer

from .driving import DAY, START, URLS, World, changing, gaps_by_host


@pytest.mark.slow
def test_hosts_are_asked_no_sooner_than_their_delay():
    world = World(
        lambda url, now: Answer(changing(url, now) or b"", 200 if "robots" not in url else 404, took=0.3), URLS
    )
    world.budget = 8.0
    world.run(60.0)
    assert len(world.asked()) > 250
    assert min(gaps_by_host(world.web.requests).values()) >= 1.3 - 1e-6, "the delay counts from the answer's end"


def test_a_host_s_own_delay_is_kept_across_restarts():
    def page(url, now):
        return "User-agent: *\nCrawl-delay: 7\n" if url.endswith("robots.txt") else "<p>x"

    world = World(page, ["https://a.example/1", "https://a.example/2", "https://a.example/3"], budget=5.0)
    restarts = []
    for _ in range(12):
        world.killed_after(9.0)
        restarts.append(world.clock.now())
        world.robots.forget()
    gaps = np.diff(world.asked())
    assert len(gaps) > 5
    assert gaps.min() >= 7.0 - 1e-6


def test_crawl_delays_are_capped():
    def page(url, now):
        return "User-agent: *\nCrawl-delay: 3000\n" if url.endswith("robots.txt") else "<p>x"

    world = World(page, ["https://a.example/1"], budget=5.0, longest_delay=10.0)
    world.run(100.0)
    assert 8 <= len(world.asked()) <= 11


# --- hints ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "settings", "gap"),
    [
        ("max-age=90", {}, 90.0),
        ("max-age=31536000", {}, 600.0),
        ("max-age=31536000", {"longest_hint": 0.0}, 1.0),
        ("no-cache", {}, 1.0),
        ("max-age=90", {"rules": Rules([Rule("*", max_interval=30.0)])}, 30.0),
        ("max-age=90", {"rules": Rules([Rule("*", min_interval=120.0)])}, 120.0),
    ],
)
def test_a_page_is_left_alone_while_its_server_says_so_but_not_for_long(said, settings, gap):
    def page(url, now):
        return None if url.endswith("robots.txt") else Answer(f"<p>{now}".encode(), headers={"Cache-Control": said})

    world = World(page, ["https://a.example/1"], budget=5.0, **settings)
    world.run(2.2 * gap + 60.0)
    gaps = np.diff(world.asked("/1"))
    assert len(gaps) >= 2
    assert gaps.min() >= gap - 1e-6
    assert gaps.min() <= gap + 2.0


# --- robots ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_that_robots_txt_forbids_are_set_aside_and_looked_at_again():
    def page(url, now):
        if url.endswith("robots.txt"):
            return "User-agent: *\nDisallow: /private\n" if now < START + DAY else "User-agent: *\nAllow: /\n"
        return "<p>x"

    urls = ["https://a.example/open", "https://a.example/private/1"]
    world = World(page, urls, budget=0.003)
    world.run(0.9 * DAY)
    assert len(world.asked("/private/1")) == 0
    assert [o.failure for o in world.store.observations(urls[1])] == ["robots"]
    assert "set aside" in str(world.engine.explain(int(world.engine.id(urls[1])[0]), world.clock.now()))
    world.run(1.5 * DAY)
    assert len(world.asked("/private/1")) > 0


@pytest.mark.slow
def test_a_host_whose_robots_txt_cannot_be_read_is_not_asked_for_pages():
    def page(url, now):
        if url.endswith("robots.txt"):
            return Answer(status=500) if now < START + 4000 else Answer(status=404)
        return "<p>x"

    world = World(page, [f"https://a.example/{k}" for k in range(5)], budget=0.3)
    world.run(5500.0)
    pages = np.array([at for at, url in world.web.requests if not url.endswith("robots.txt")])
    assert len(pages) > 100
    assert pages.min() > START + 4000


# --- answers --------------------------------------------------------------------------------------------------------


def busy_at_first():
    """A host that answers 429 for half a minute and asks to be left alone for ten."""

    def page(url, now):
        if "robots" in url:
            return None
        return Answer(status=429, headers={"Retry-After": "600"}) if now < START + 30 else "<p>x"

    return World(page, [f"https://a.example/{k}" for k in range(9)], budget=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [(660.0,), (20.0, 660.0)], ids=["one run", "over a restart"])
def test_retry_after_holds_the_host(runs):
    world = busy_at_first()
    for seconds in runs:
        world.run(seconds)
    pages = [at for at, url in world.web.requests if "robots" not in url]
    assert pages[1] - pages[0] >= 600.0
    assert next(world.store.observations()).failure == "busy"


@pytest.mark.slow
def test_hosts_that_do_not_answer_rest():
    world = World(
        lambda url, now: Answer(failure="connect") if "bad" in url else "<p>x",
        [f"https://{name}.example/{k}" for k in range(50) for name in ("bad", "good")],
        budget=0.1,
        robots=False,
    )
    world.run(3600.0)
    bad = [at for at, url in world.web.requests if "bad" in url]
    assert 3 < len(bad) < 15, "a dead host does not eat the budget"


@pytest.mark.slow
def test_pages_that_are_gone_are_asked_for_rarely():
    world = World(
        lambda url, now: None if url.endswith("/1") else "<p>x", ["https://a.example/1", "https://a.example/2"]
    )
    world.budget = 0.002
    world.run(DAY)
    assert len(world.asked("/1")) == 1
    (outcome,) = world.store.observations("https://a.example/1")
    assert (outcome.status, outcome.gone, outcome.failure) == (404, True, None)


@pytest.mark.slow
def test_requests_are_conditional_and_lying_servers_are_found_out():
    def page(url, now):
        if "robots" in url:
            return None
        state = int(now / 1800)
        lies = "liar" in url
        return Answer(
            f"<p>{state}", headers={"ETag": '"always"' if lies else f'"{state}"', "content-type": "text/html"}
        )

    urls = [f"https://{kind}.example/{k}" for k in range(5) for kind in ("liar", "honest")]
    seen = {"liar": 0, "honest": 0}
    for budget in (
        0.028,
        0.03,
        0.032,
    ):  # a page is found out by a request in full, which is drawn: one crawl says little
        world = World(page, urls, budget=budget)
        counts = world.run(DAY / 2)
        assert counts.not_modified > 250
        for outcome in world.store.observations(since=START + 0.375 * DAY):
            seen[outcome.url.split("//")[1].split(".")[0]] += bool(outcome.changed)
    assert seen["liar"] > 0.5 * seen["honest"]
