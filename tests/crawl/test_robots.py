"""robots.txt by RFC 9309."""

import asyncio

import pytest
from effort import at_most
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.http.memory import Answer, ManualClock, MemoryWeb
from recrawl.crawl.polite.robots import READ, CachedRobots, Robots, product_token
from recrawl.crawl.polite.robots_cache import RobotsCache
from recrawl.store import BlockingStore, MemoryStore

DAY = 86400.0
PAGE = "http://a.example/private/page"


class Site:
    """A host whose robots.txt is what ``answer`` says."""

    def __init__(self, answer, cache=None):
        self.answer = answer
        self.clock = ManualClock(1e6)
        self.web = MemoryWeb(lambda url, now: self.answer, self.clock)
        self.robots = Robots(self.web, "recrawl/1 (+me@example.org)", self.clock, cache)

    def rule(self, url=PAGE):
        return asyncio.run(self.robots.rules(url))

    def wait(self, seconds):
        asyncio.run(self.clock.advance(seconds))


def rule(text, url=PAGE):
    return Site(text).rule(url)


def allowed(text, path="/private/page"):
    return rule(text, f"http://a.example{path}").allowed


def test_rules_of_all_crawlers():
    assert not allowed("User-agent: *\nDisallow: /private")
    assert allowed("User-agent: *\nDisallow: /private", "/public")


def test_rules_of_this_crawler_replace_those_of_all():
    text = "User-agent: *\nDisallow: /\n\nUser-agent: ReCrawl\nDisallow: /private\n"
    assert allowed(text, "/public")
    assert not allowed(text)


def test_groups_of_the_same_name_are_one():
    text = "User-agent: recrawl\nDisallow: /a\n\nUser-agent: other\nDisallow: /\n\nUser-agent: recrawl\nDisallow: /b\n"
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_a_group_of_several_names():
    assert not allowed("User-agent: other\nUser-agent: recrawl\nDisallow: /private")


@pytest.mark.parametrize(
    "name", ["recrawl/1.0", "Recrawl bot", "recrawl # us", "RECRAWL/2 (+http://a.example)", "recrawl"]
)
def test_of_a_name_its_token_counts(name):
    assert not allowed(f"User-agent: {name}\nDisallow: /private\n\nUser-agent: *\nAllow: /\n")


def test_names_that_only_look_alike():
    assert allowed("User-agent: recrawler\nDisallow: /\n\nUser-agent: other/recrawl\nDisallow: /\n")


def test_the_longest_match_decides_and_allow_wins_ties():
    text = "User-agent: *\nDisallow: /private\nAllow: /private/page\nDisallow: /x\nAllow: /x\n"
    assert allowed(text)
    assert not allowed(text, "/private/other")
    assert allowed(text, "/x")


def test_wildcards_and_ends():
    text = "User-agent: *\nDisallow: /*.gif$\nDisallow: /a*z\n"
    paths = ["/x.gif", "/x.gif?a", "/abcz", "/azb", "/abc"]
    assert [allowed(text, path) for path in paths] == [False, True, False, False, True]


def test_escapes_match_as_what_they_stand_for():
    text = "User-agent: *\nDisallow: /stra%C3%9Fe\nDisallow: /%7Euser\n"
    assert not allowed(text, "/stra%C3%9Fe/1")
    assert not allowed(text, "/~user/1")


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "User-agent: *\nDisallow:\n", "<html><body>Not found</body></html>"]
)
def test_nothing_said_is_everything_allowed(text):
    assert allowed(text)


def test_byte_order_marks_line_ends_and_comments():
    assert not allowed("\ufeffUser-agent: * # all\r\nDisallow: /private # no\r\n")
    assert not allowed("User-agent: *\rDisallow: /private\r")


def test_the_file_itself_is_always_allowed():
    assert allowed("User-agent: *\nDisallow: /", "/robots.txt")


def test_crawl_delay_and_sitemaps():
    text = "Sitemap: http://a.example/s.xml\nUser-agent: *\nCrawl-delay: 2.5\nSitemap: http://a.example/t.xml\n"
    found = rule(text)
    assert (found.crawl_delay, found.sitemaps) == (2.5, ("http://a.example/s.xml", "http://a.example/t.xml"))
    assert rule("User-agent: *\nDisallow: /x").crawl_delay is None


@pytest.mark.parametrize(
    ("said", "delay"), [("1e9", 3600.0), ("inf", None), ("-5", None), ("nan", None), ("soon", None)]
)
def test_delays_nobody_means(said, delay):
    assert rule(f"User-agent: *\nCrawl-delay: {said}\n").crawl_delay == delay


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_file_that_is_not_there_allows_all(status):
    site = Site(Answer(status=status))
    assert site.rule().allowed
    site.wait(DAY - 1)
    assert site.rule().allowed
    assert len(site.web.requests) == 1


@pytest.mark.parametrize("answer", [Answer(status=500), Answer(status=503), Answer(status=429), Answer(failure="dns")])
def test_a_file_that_cannot_be_reached_allows_nothing(answer):
    found = Site(answer).rule()
    assert not found.allowed
    assert found.unreachable in ("http-5xx", "busy", "dns")


def test_it_is_tried_again_ever_less_often():
    site = Site(Answer(status=500))
    tries = []
    for _ in range(1000):
        site.rule()
        tries.append(len(site.web.requests))
        site.wait(300.0)
    assert tries[:8] == [1, 2, 2, 3, 3, 3, 3, 4]
    assert tries[-1] <= 12
    site.answer = "User-agent: *\nAllow: /"
    site.wait(DAY)
    assert site.rule().allowed


def test_a_busy_server_is_left_alone_as_long_as_it_asks():
    site = Site(Answer(status=503, headers={"Retry-After": "7200"}))
    site.rule()
    site.wait(7199.0)
    site.rule()
    assert len(site.web.requests) == 1
    site.wait(2.0)
    site.rule()
    assert len(site.web.requests) == 2


def test_a_copy_is_used_for_30_days_while_the_file_cannot_be_reached():
    site = Site("User-agent: *\nDisallow: /private\n")
    site.rule()
    site.answer = Answer(status=500)
    for _ in range(29):
        site.wait(DAY)
        assert site.rule("http://a.example/public").allowed
        assert not site.rule().allowed
    site.wait(DAY)
    assert not site.rule("http://a.example/public").allowed
    site.answer = "User-agent: *\nDisallow: /public\n"
    site.wait(DAY)
    assert site.rule().allowed


def test_a_copy_is_used_for_a_day():
    site = Site("User-agent: *\nDisallow: /private\n")
    assert not site.rule().allowed
    site.answer = ""
    site.wait(DAY - 1)
    assert site.robots.known(PAGE)
    assert not site.rule().allowed
    site.wait(1.0)
    assert not site.robots.known(PAGE)
    assert site.rule().allowed


def test_rules_are_by_scheme_host_and_port():
    site = Site("")
    for origin in ("http://a.example", "https://a.example", "http://a.example:8080", "http://b.example"):
        site.rule(f"{origin}/x")
    assert len(site.web.requests) == 4


def test_one_fetch_at_a_time():
    site = Site(Answer("User-agent: *\nDisallow: /private", took=3.0))

    async def main():
        return await asyncio.gather(*[site.robots.rules(f"http://a.example/private/{n}") for n in range(50)])

    found = asyncio.run(site.clock.drive(main()))
    assert not any(one.allowed for one in found)
    assert len(site.web.requests) == 1


def test_one_who_no_longer_waits_does_not_stop_the_others():
    site = Site(Answer("User-agent: *\nDisallow: /private", took=3.0))

    async def main():
        first = asyncio.create_task(site.robots.rules(PAGE))
        second = asyncio.create_task(site.robots.rules(PAGE))
        await site.clock.sleep(1.0)
        first.cancel()
        return await second

    assert not asyncio.run(site.clock.drive(main())).allowed
    assert len(site.web.requests) == 1


def test_redirects_are_followed_up_to_five():
    def page(n):
        return lambda url, now: Answer(status=301, headers={"Location": f"http://b.example/{n - 1}"})

    pages = {f"http://b.example/{n}": page(n) for n in range(1, 9)}
    pages["http://b.example/0"] = lambda url, now: "User-agent: *\nDisallow: /"
    for n, is_allowed in [(4, False), (5, True)]:  # n more after the first
        pages["http://a.example/robots.txt"] = page(n + 1)
        clock = ManualClock()
        found = asyncio.run(Robots(MemoryWeb(pages, clock), "recrawl", clock).rules(PAGE))
        assert found.allowed is is_allowed


def test_500_kib_are_read_in_whole_lines():
    filler = b"# " + b"x" * 97 + b"\n"
    lines = READ // len(filler)
    head = b"User-agent: *\nDisallow: /first\n"
    text = head + filler * (lines - 1)
    text += b"Allow: /" + b"y" * (READ - len(text) - 8) + b"first\nDisallow: /late\n"
    found = Site(text)
    assert [found.rule(f"http://a.example{path}").allowed for path in ("/first", "/late", "/")] == [False, True, True]


def test_what_is_kept_serves_another_run():
    cache = {}
    Site("User-agent: *\nDisallow: /private\n", cache).rule()
    again = Site(Answer(status=500), cache)
    assert not again.rule().allowed
    assert again.rule("http://a.example/public").allowed
    assert again.web.requests == []


@pytest.mark.parametrize(("agent", "token"), [("a/1", "a"), ("a b", "a"), ("a (x/y)", "a"), ("/1", "*"), (" ", "*")])
def test_product_tokens(agent, token):
    assert product_token(agent) == token


@given(st.binary(max_size=2000))
def test_any_bytes_are_rules(body):
    assert Site(body).rule().allowed in (True, False)


def test_rules_made_to_be_slow_are_not():
    text = "User-agent: *\n" + "".join(f"Disallow: /{'*a' * 50}{n}$\n" for n in range(3000))
    site = Site(text)
    with at_most(3):
        assert site.rule("http://a.example/" + "a" * 2000).allowed


def test_nothing_is_known_beforehand_also_by_a_clock_that_goes_on():
    clock = SystemClock()
    robots = Robots(MemoryWeb({}, clock), "recrawl/1", clock)
    assert not any(robots.known("http://a.example/") for _ in range(1000))


def test_what_is_parsed_is_bounded(monkeypatch):
    monkeypatch.setattr("recrawl.crawl.polite.robots._PARSED_BYTES", 50_000)
    monkeypatch.setattr("recrawl.crawl.polite.robots._CHECKED", 30)
    site = Site("User-agent: *\nDisallow: /private\n" + "# " + "x" * 9000)
    for _ in range(2):
        for k in range(40):
            assert not site.rule(f"http://h{k}.example/private/x").allowed
            assert site.rule(f"http://h{k}.example/public").allowed
    assert len(site.robots._parsed) == 5
    assert site.robots._parsed_bytes == sum(one.size for one in site.robots._parsed.values()) <= 50_000
    assert len(site.robots._checked) == 30
    assert len(site.web.requests) == 40, "what is read is read once"


def test_redirects_are_asked_for_one_by_one():
    asked = []

    async def ask(url):
        asked.append(url)
        return await site.web.fetch(url)

    site = Site("User-agent: *\nDisallow: /private")
    answers = {f"http://h{k}.example/robots.txt": f"http://h{k + 1}.example/robots.txt" for k in range(3)}
    goal = lambda url: Answer(status=301, headers={"location": answers[url]}) if url in answers else site.answer  # noqa: E731
    site.web = MemoryWeb(lambda url, now: goal(url), site.clock, max_redirects=0)
    rule = asyncio.run(site.robots.rules("http://h0.example/private", ask))
    assert asked == [f"http://h{k}.example/robots.txt" for k in range(4)]
    assert not rule.allowed


def test_redirects_in_a_circle_end():
    site = Site(Answer(status=302, headers={"location": "/robots.txt?again"}))
    site.web._max_redirects = 0
    assert site.rule().allowed, "as if there were no file"
    assert len(site.web.requests) == 2


def test_what_is_kept_in_memory_is_bounded_and_read_again_from_the_store(monkeypatch):
    monkeypatch.setattr("recrawl.crawl.polite.robots_cache._BYTES", 20_000)
    store = BlockingStore(MemoryStore())
    cache = RobotsCache(store.store)
    for k in range(100):
        cache[f"http://h{k}.example"] = CachedRobots(bytes([k]) * 1000, float(k), 1e9)
        if k % 10 == 9:
            store.save(notes=cache.pending_notes())
    store.save(notes=cache.pending_notes())
    cache.pending_notes()
    for k in range(100):
        store.run(cache.recall(f"http://h{k}.example"))
        assert cache[f"http://h{k}.example"].text[0] == k
    store.run(cache.recall("http://never.example"))
    assert len(cache) < 30
    assert "http://never.example" not in cache
    del cache["http://h99.example"]
    assert cache.pending_notes() == {"robots:http://h99.example": None}
