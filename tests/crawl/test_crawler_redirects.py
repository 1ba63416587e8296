"""Redirects on a web in memory: followed at the pace of their hosts, paid for, and recorded."""

import pytest

from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.http.memory import Answer

from .driving import World, gaps_by_host, largest_share


def redirecting(goals):
    def page(url, now):
        if "robots" in url:
            return "User-agent: *\nDisallow: /secret\n"
        goal = goals.get(url.split("example")[1])
        return Answer(status=goal[0], headers={"Location": goal[1]}) if goal else f"<p>{url} {int(now / 600)}"

    return page


def test_redirects_are_followed_at_the_pace_of_their_host_and_recorded():
    goals = {"/a": (302, "/b"), "/b": (302, "https://other.example/c")}
    world = World(redirecting(goals), ["https://a.example/a"], budget=5.0)
    world.run(50.0)
    first = next(world.store.observations())
    assert (first.status, first.final_url, first.failure) == (200, "https://other.example/c", None)
    assert first.requests == 4, "three hops and the other host's robots.txt"
    assert world.store.copies(["https://a.example/a"])["https://a.example/a"].final_url == "https://other.example/c"
    assert min(gaps_by_host(world.web.requests).values()) >= 1.0 - 1e-6
    assert any(url == "https://other.example/robots.txt" for _, url in world.web.requests)


def test_a_page_that_redirects_is_asked_for_conditionally_where_it_leads():
    def page(url, now):
        if url.endswith("/a"):
            return Answer(status=302, headers={"Location": "/b"})
        return Answer("<p>same", headers={"ETag": '"e"', "content-type": "text/html"})

    world = World(page, ["https://a.example/a"], budget=1.0, robots=False)
    counts = world.run(200.0)
    assert counts.not_modified > 0.7 * counts.ended > 30


def test_redirects_that_a_fetcher_follows_itself_are_paid_for():
    goals = {f"/{k}": (302, f"/to/{k}") for k in range(60)}
    urls = [f"https://h{k}.example/{k}" for k in range(60)]
    world = World(redirecting(goals), urls, budget=5.0, robots=False)
    world.web._max_redirects = 5
    counts = world.run(60.0)
    assert counts.requests == len(world.asked()) > 250
    assert all(o.requests == 2 and "/to/" in o.final_url for o in world.store.observations())
    assert largest_share(world.asked(), 5.0) <= 1.0


def test_redirects_to_what_robots_txt_forbids_are_not_followed():
    world = World(redirecting({"/a": (302, "https://other.example/secret")}), ["https://a.example/a"], budget=5.0)
    world.run(20.0)
    assert not any("secret" in url for _, url in world.web.requests)
    assert next(world.store.observations()).failure == "robots"


def test_circles_and_endless_redirects_fail():
    goals = {"/a": (302, "/b"), "/b": (302, "/a")} | {f"/{k}": (302, f"/{k + 1}") for k in range(20)}
    world = World(redirecting(goals), ["https://a.example/a", "https://b.example/0"], budget=5.0)
    world.run(30.0)
    failures = {o.url: (o.failure, o.requests) for o in world.store.observations()}
    assert failures["https://a.example/a"] == ("redirects", 2)
    assert failures["https://b.example/0"] == ("redirects", 6)


@pytest.mark.slow
def test_a_page_that_moved_for_good_to_another_page_is_not_crawled_twice():
    urls = ["https://a.example/old", "https://a.example/new"]
    world = World(redirecting({"/old": (301, "/new")}), urls, budget=0.1)
    world.run(2 * 3600.0)
    (old,) = world.store.observations(urls[0])
    assert (old.gone, old.final_url, old.requests) == (True, urls[1], 1)
    assert len(world.asked("/new")) > 100


def test_headers_go_to_their_own_urls_only():
    sent = []

    class Spy:
        def __init__(self, web):
            self._web = web

        async def fetch(self, url, *, headers=None, **options):
            sent.append((url, dict(headers or {})))
            return await self._web.fetch(url, headers=headers, **options)

    rules = Rules([Rule("https://a.example/*", headers={"X-Key": "secret"}, cookies={"a": "1", "b": "2"})])
    world = World(redirecting({"/a": (302, "https://b.example/x")}), ["https://a.example/a"], budget=5.0, rules=rules)
    world.web = Spy(world.web)
    world.run(20.0, robots=None)
    assert dict(sent)["https://a.example/a"] == {"X-Key": "secret", "Cookie": "a=1; b=2"}
    assert dict(sent)["https://b.example/x"] == {}
    assert "secret" not in repr(world.events) + repr(list(world.store.observations())) + repr(rules.rules)
