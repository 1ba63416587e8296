"""Bad hosts among good ones by a clock moved by hand: exact counts, whatever the machine does."""

import asyncio
from contextlib import ExitStack

import pytest

from recrawl.crawl.http.fetched import FAILURES
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.polite.slots import Slots

from ..driving import World

GOOD = [f"https://good{k % 10}.example/{k}" for k in range(80)]
FEW = [f"https://good{k % 5}.example/{k}" for k in range(40)]
WORDS = [word for word in FAILURES if word not in ("robots", "bad-url", "redirects", "http-4xx")]


def page(url, now):
    """Good pages change all the time; a bad host fails by a word of its own, after as long as its name says."""
    if "//good" in url:
        return None if url.endswith("/robots.txt") else Answer(f"<p>{int(now)}", took=0.05)
    name = url.split("//")[1].split(".")[0]
    word, _, seconds = name.partition("-after-")
    if url.endswith("/robots.txt") and not name.startswith("robots"):
        return None
    return Answer(failure=word.removeprefix("robots-").rsplit("-x", 1)[0], took=float(seconds))


def good_requests(urls, **options):
    world = World(page, urls, budget=100.0, delay=1.0, commit_delay=5.0, **options)
    counts = world.run(120.0)
    return sum("//good" in url and not url.endswith("/robots.txt") for _, url in world.web.requests), counts


@pytest.fixture(scope="module")
def alone():
    return good_requests(FEW)[0]


@pytest.mark.slow
def test_good_hosts_go_on_at_their_rate():
    """Hosts that fail in every way, at once, after 5 s or after a minute, cost all good hosts one request at most."""
    hosts = [f"{robots}{word}-x0-after-{s}" for word in WORDS for robots in ("", "robots-") for s in (0, 5, 60)]
    bad = [f"https://{host}.example/{k}" for host in hosts for k in range(2)]
    counts = []
    for urls in (GOOD, [*bad, *GOOD]):
        world = World(page, urls, budget=100.0, delay=2.0, commit_delay=5.0)
        world.run(60.0, concurrency=64)
        counts.append([len([at for at, url in world.web.requests if f"//good{k}." in url]) for k in range(10)])
    alone, among = counts
    assert alone == [30] * 10, "its robots.txt, and a page every 2.05 s"
    assert sum(alone) - sum(among) <= 1, (alone, among)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 5, 60])
@pytest.mark.parametrize("robots", ["", "robots-"])
def test_every_kind_of_failure_leaves_good_hosts_alone(alone, seconds, robots):
    bad = [
        f"https://{robots}{word}-x{k}-after-{seconds}.example/{j}" for word in WORDS for k in range(3) for j in range(3)
    ]
    among, counts = good_requests([*bad, *FEW], concurrency=64)
    assert among >= 0.95 * alone, (among, alone)
    assert counts.failed + counts.set_aside >= len(WORDS)


@pytest.mark.slow
def test_more_hosts_that_never_answer_than_there_are_places(alone):
    """200 hosts that take a minute each, and 32 slots."""
    bad = [f"https://timeout-x{k}-after-60.example/{j}" for k in range(200) for j in range(2)]
    among, _ = good_requests([*bad, *FEW], concurrency=32)
    assert among >= 0.8 * alone, (among, alone)


def test_with_few_places_nobody_is_cut():
    world = World(page, ["https://timeout-x1-after-40.example/1", "https://timeout-x2-after-40.example/1"], delay=1.0)
    world.run(100.0, concurrency=1)
    assert all(outcome.took >= 40.0 for outcome in world.store.observations())


@pytest.mark.slow
def test_a_slow_host_is_not_cut_while_nobody_needs_its_place():
    world = World(page, ["https://timeout-x1-after-40.example/1", *GOOD], budget=100.0, delay=1.0, commit_delay=5.0)
    world.run(100.0, concurrency=32)
    (outcome,) = [outcome for outcome in world.store.observations() if "timeout" in outcome.url][:1]
    assert outcome.took >= 40.0


@pytest.fixture(scope="module")
def many_new_hosts():
    """Requests of 320 new pages on 16 hosts, 64 at a time."""
    urls = [f"https://good{k % 16}.example/{k}" for k in range(320)]
    world = World(page, urls, budget=1e6, delay=0.0, choices={"host_concurrency": 64})
    world.run(1.0, concurrency=64)
    return urls, [(at, url) for at, url in world.web.requests if not url.endswith("/robots.txt")]


def test_new_hosts_are_crawled_once_before_any_page_is_crawled_again_but_for_one_round(many_new_hosts):
    """Half of the slots are kept for hosts that have answered, so that new ones cannot take all of them.

    While the last pages of new hosts wait for the other half, these slots are not left idle: they fetch pages that
    were crawled before. That lasts for one round of them at most. Hosts wait for a slot only until they have answered,
    and what they answer does not wait for it.
    """
    urls, asked = many_new_hosts
    first = {url: (number, at) for number, (at, url) in reversed(list(enumerate(asked)))}
    assert sorted(first) == sorted(urls)
    number, at = max(first.values())
    assert number < 320 + 32, "one round of half of the slots goes to others"
    assert at - asked[0][0] < 0.6, "64 at a time, 0.05 s each, half of them at first"


def test_who_waits_no_longer():
    async def main():
        slots = Slots(8)
        pages = [(k, f"https://h{k}.example/") for k in range(7)]
        assert slots.share(pages, 0.0) == (pages[:4], pages[4:])
        async with asyncio.timeout(None) as limit:
            with ExitStack() as stack:
                for k in range(3):
                    stack.enter_context(slots.taken(f"h{k}.example", 0.0, limit))
                assert slots.admitted(0.1) == [], "no host has answered, one slot of four is free"
                slots.ended("h6.example", 0.5, answered=True)
                assert slots.admitted(0.6) == ["h6.example"]
            assert slots.admitted(0.7) == ["h4.example", "h5.example"]
            assert slots.admitted(0.8) == []

    asyncio.run(main())


def test_who_is_slow():
    async def main():
        slots = Slots(8)
        async with asyncio.timeout(None) as limit:
            pages = [(k, f"https://h{k}.example/") for k in range(6)]
            assert slots.share(pages, 0.0) == (pages[:4], pages[4:]), "half of eight"
            slots.ended("h5.example", 0.5, answered=True)
            assert slots.share(pages, 0.0) == ([*pages[:4], pages[5]], [pages[4]])
            with slots.taken("h5.example", 0.0, limit):
                assert (slots.n_slow(1.0), slots.n_slow(3.0)) == (0, 1), "whoever is at it for long is slow"
                assert slots.share(pages[:4], 3.0) == (pages[:3], pages[3:4])
            slots.ended("h5.example", 0.5, answered=False)
            assert slots.is_slow("h5.example")
            slots.ended("h5.example", 2.5, answered=True)
            assert slots.is_slow("h5.example")

    asyncio.run(main())
