"""A host with a sitemap that says what changes, for tests of listings."""

from datetime import UTC, datetime

from crawl.driving import DAY, START
from crawl.driving import World as AnyWorld
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.listings.listing import Listing

HOST = "https://a.example"


class World(AnyWorld):
    """Loops that idle seldom wake, so that days pass quickly."""

    def __init__(self, page, urls=(), **options):
        seldom = {"commands_every": 7200.0, "notes_every": DAY, "longest_sleep": 7200.0, "commit_delay": 60.0}
        super().__init__(page, urls, **{**seldom, **options})


MAP = f"{HOST}/sitemap.xml"


def stamp(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def urlset(entries):
    rows = "".join(
        f"<url><loc>{url}</loc>{'' if at is None else f'<lastmod>{at if isinstance(at, str) else stamp(at)}</lastmod>'}"
        "</url>"
        for url, at in entries
    )
    return Answer(f"<urlset>{rows}</urlset>", headers={"content-type": "application/xml"})


class Site1:
    """A host with pages that change on request, and a sitemap that says so."""

    def __init__(self, n=20, robots=f"User-agent: *\nSitemap: {MAP}\n", other=None):
        self.urls = [f"{HOST}/{k}" for k in range(n)]
        self.changes = {url: [START - DAY] for url in self.urls}
        self.listed = dict.fromkeys(self.urls, START - DAY)
        self.robots, self.other = robots, other or {}

    def __call__(self, url, now):
        if url.endswith("/robots.txt"):
            return self.robots if url.startswith(HOST) else None
        if url in self.other:
            answer = self.other[url]
            return answer(url, now) if callable(answer) else answer
        if url == MAP:
            dates = [(one, max(at for at in self.changes.get(one, [START]) if at <= now)) for one in self.listed]
            return urlset(dates)
        if url in self.changes:
            return f"<p>{url} version {sum(at <= now for at in self.changes[url])}</p>"
        return None

    def changes_at(self, number, at):
        self.changes[self.urls[number]].append(START + at)


def polls(world, url=MAP):
    return [at - START for at, asked in world.web.requests if asked == url]


def listing(world, url=MAP):
    return {one.url: Listing.restore(one) for one in world.store.listings()}.get(url)
