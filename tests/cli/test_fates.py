"""recrawl why for thirty pages of different fates: each cause is distinguished, in units that a person would use."""

import re

import pytest

from recrawl.cli.crawl.why import feed_of
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.polite.robots_cache import RobotsCache
from recrawl.crawl.run.opening.partial import explain_page
from recrawl.crawl.views.reasons import Fate
from recrawl.crawl.views.why_report import why_lines
from recrawl.store import BlockingStore, SqliteStore
from tests.crawl.driving import AGENT, World

RULES = (
    {"match": "*/never", "never": True},
    {"match": "*/ruled", "min_interval": "2 h"},
    {"match": "*/every", "every": "30 min"},
    {"match": "*/worthless", "importance": 0.0},
    {"match": "*/precious", "importance": 50.0},
    {"match": "*/select", "detector": "css", "select": "#absent"},
)
SETTINGS = Settings(budget="1/s", rule=RULES)
HTML = {"content-type": "text/html; charset=utf-8"}
HELD = HTML | {"cache-control": "max-age=100000"}

PAGES = {
    "static": lambda now: "same",
    "minutes": lambda now: f"{int(now / 120)}",
    "hours": lambda now: f"{int(now / 7200)}",
    "always": lambda now: f"{now}",
    "never": lambda now: "never",
    "ruled": lambda now: f"{int(now / 60)}",
    "every": lambda now: "every",
    "worthless": lambda now: f"{now}",
    "precious": lambda now: f"{int(now / 600)}",
    "select": lambda now: "<p>nothing to select</p>",
    "404": lambda now: None,
    "410": lambda now: Answer("gone", 410),
    "301": lambda now: Answer("", 301, {"location": "/static"}),
    "308": lambda now: Answer("", 308, {"location": "/minutes"}),
    "301-out": lambda now: Answer("", 301, {"location": "/elsewhere"}),
    "302": lambda now: Answer("", 302, {"location": "/elsewhere"}),
    "elsewhere": lambda now: "elsewhere",
    "loop": lambda now: Answer("", 302, {"location": "/loop"}),
    "403": lambda now: Answer("no", 403),
    "500": lambda now: Answer("broken", 500),
    "503": lambda now: Answer("later", 503, {"retry-after": "3600"}),
    "429": lambda now: Answer("slow down", 429),
    "timeout": lambda now: Answer(failure="timeout"),
    "dns": lambda now: Answer(failure="dns"),
    "reset": lambda now: Answer(failure="reset"),
    "etag": lambda now: Answer("same", 200, HTML | {"etag": '"1"'}),
    "cached": lambda now: Answer("same", 200, HELD),
    "fails-late": lambda now: "early" if now < 1.7e9 + 900 else Answer("broken", 500),
    "flaps": lambda now: f"{int(now / 300) % 2}",
}
ALONE = {"429", "503", "timeout", "dns", "reset"}  # each on a host of its own, which may rest after it
HOSTS = {name: f"https://{name}.example" if name in ALONE else "https://a.example" for name in PAGES}
EXTRA = {"private": "https://a.example/private", "unread": "https://b.example/page"}
URLS = {**{name: f"{HOSTS[name]}/{name}" for name in PAGES if name != "elsewhere"}, **EXTRA}


def page(url, now):
    host, _, name = url.removeprefix("https://").partition("/")
    if name == "robots.txt":
        if host == "b.example":
            return Answer("", 500)
        return "User-agent: *\nDisallow: /private\n" if host == "a.example" else None
    return PAGES[name](now) if name in PAGES else None


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What why prints of every page after an hour and a half."""
    with BlockingStore(SqliteStore(tmp_path_factory.mktemp("fates") / "a.db")) as store:
        world = World(page, URLS.values(), store=store, budget=0.2, delay=1.0, rules=SETTINGS.rules())
        world.robots = Robots(world.web, AGENT, world.clock, RobotsCache(store.store))
        world.run(5400.0)
        world.store.run(_add_one(world))
        now = world.clock.now()
        return {name: _why(store, url, now) for name, url in {**URLS, "new": "https://a.example/new"}.items()}


async def _add_one(world):
    from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages

    engine = await open_engine(world.store.store, world.clock.now(), rules=world.rules, budget=0.2)
    await save_pages(
        engine, world.store.store, add_pages(engine, world.rules, ["https://a.example/new"], world.clock.now())
    )


def _why(store, url, now):
    found = store.run(explain_page(store.store, SETTINGS, url, now))
    return "\n".join(
        why_lines(found, Fate.of(store, SETTINGS.rules(), url), store.copies([url]).get(url), feed_of(store, url))
    )


GOLDEN = {
    "404": r"^not found \(404\); looked for again in 29.9 days",
    "410": r"^gone for good \(410\); looked for again in 29.9 days",
    "301": r"moved permanently \(301\) to https://a.example/static, which is a page of its own; looked for again in",
    "308": r"moved permanently \(308\) to https://a.example/minutes",
    "301-out": r"redirects to https://a.example/elsewhere",
    "302": r"redirects to https://a.example/elsewhere",
    "private": r"disallowed by robots.txt; robots.txt is read again in",
    "unread": r"its robots.txt could not be read \(http-5xx\); robots.txt is read again in",
    "never": r"never crawled: a rule with never = true matches it",
    "cached": r"held by cache headers: its server calls the copy good; crawled no sooner than in",
    "ruled": r"its rule allows a crawl every 2 h at most; the next in",
    "500": r"failed \d+ times in a row \(the server answers 500\); tried again in",
    "403": r"failed \d+ times in a row \(the server answers 403\); tried again in",
    "429": r"\(the server answers 429 and asks to come later\)",
    "503": r"its host rests for another",
    "timeout": r"\(timeout: the time allowed ran out\); tried again in",
    "dns": r"\(dns: the host has no address\)",
    "fails-late": r"fresh with probability .*; last tried .* ago\nfailed .* \(the server answers 500\)",
    "always": r"^changes more often than it is crawled \((\d+) changes seen in \1 comp.*\)\n[^~]*never worth a crawl",
    "worthless": r"never worth a crawl at this budget",
    "select": r"matched nothing in the last copy",
    "flaps": r"flapping: returned",
    "new": r"there is no copy yet",
    "minutes": r"^changes about every \d[\d.]* (s|min)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GOLDEN)
def test_each_cause_is_distinguished(answers, name):
    assert re.search(GOLDEN[name], answers[name], re.MULTILINE), answers[name]


@pytest.mark.slow
def test_units_are_those_a_person_would_use(answers):
    assert len(answers) >= 30
    for text in answers.values():
        assert not re.search(r"\de[+-]?\d+ (s|min|h|d|days|years)\b|\d d\b|\bnan\b|\binf\b", text), text
