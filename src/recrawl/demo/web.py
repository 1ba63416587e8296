"""DemoWeb: what the hosts of a world answer at a time, and a log of every request that they saw."""

from __future__ import annotations

import email.utils
import random
from dataclasses import dataclass
from urllib.parse import urlsplit

from recrawl.crawl.clock import Clock
from recrawl.crawl.http.memory import Answer
from recrawl.demo.announcements import Announcements, feed, sitemap
from recrawl.demo.pages import html
from recrawl.demo.world import DemoWorld, Page, Site

PRIVATE = "/private/"  # what robots.txt forbids on every host
SITEMAP, FEED = "/sitemap.xml", "/feed.xml"


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """One request as the server saw it: when it came and was answered, for which page, in which version, with what."""

    came_at: float
    at: float
    host: str
    path: str
    page: int  # −1: none of the pages
    version: int  # −1: none was shown
    status: int


class DemoWeb:
    """The hosts of a world; times are seconds since it was made, by ``clock``. All are on one port."""

    def __init__(self, world: DemoWorld, clock: Clock, port: int = 80) -> None:
        self.world, self.clock, self.port = world, clock, port
        self.log: list[ServedRequest] = []
        self.started_at = clock.now()
        self.announced = Announcements(world)
        self._random = random.Random(world.seed)
        self._sites = {site.host: site for site in world.sites}
        self._pages = {(page.site.host, page.path): page for page in world.pages}

    def now(self) -> float:
        """Seconds since the start."""
        return self.clock.now() - self.started_at

    def skip(self, seconds: float) -> None:
        """Move the time forward."""
        self.started_at -= seconds

    @property
    def urls(self) -> list[str]:
        """The addresses of all pages, in their order."""
        return [self.url(page.site, page.path) for page in self.world.pages]

    @property
    def private_urls(self) -> list[str]:
        """Addresses that robots.txt forbids: one per host."""
        return [self.url(site, f"{PRIVATE}0") for site in self.world.sites]

    @property
    def feed_urls(self) -> list[str]:
        """The addresses of the feeds."""
        return [self.url(site, FEED) for site in self.world.sites if site.says == "feed"]

    def pings(self, after: float, until: float) -> dict[str, list[tuple[str, float]]]:
        """What sites that ping say of their changes in (after, until]: addresses and times of this web, by site."""
        found = {}
        for site in self.world.sites:
            if site.says == "pings" and (said := self.announced.between(site, after, until)):
                found[site.name] = [(self._url_of(page), at) for page, at in said]
        return found

    def url(self, site: Site, path: str) -> str:
        """The address of a path."""
        port = "" if self.port == 80 else f":{self.port}"
        return f"http://{site.host}{port}{path}"

    def latency(self, host: str) -> float:
        """Seconds that a host takes for an answer."""
        return self._sites[host].latency if host in self._sites else 0.0

    def ask(self, url: str, now: float) -> Answer:
        """The answer of a URL, for a web in memory."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        answer = self.answer(host, parts.path, self.now())
        return Answer(answer.body, answer.status, answer.headers, took=self.latency(host))

    def answer(self, host: str, path: str, came_at: float) -> Answer:
        """The answer of a host to a request that came at a time; it is logged."""
        at, site, page = self.now(), self._sites.get(host), self._pages.get((host, path))
        version = -1
        if site is None:
            answer = _text(421, "no such host here\n")
        elif path == "/robots.txt":
            answer = _text(200, self._robots(site))
        elif self.world.is_out(host, at):
            answer = _text(503, "down for maintenance\n", {"Retry-After": "1"})
        elif path == SITEMAP or (path == FEED and site.says == "feed"):
            answer = self._listing(site, path, at)
        elif page is None:
            answer = _text(404, "not found\n")
        elif self._random.random() < site.failing:
            answer = _text(500, "something went wrong\n")
        else:
            version = self.world.version(page.number, at)
            answer = self._page(page, version)
        number = -1 if page is None else page.number
        self.log.append(ServedRequest(came_at, at, host, path, number, version, answer.status))
        return answer

    def _page(self, page: Page, version: int) -> Answer:
        token = self._random.getrandbits(64)
        headers = {"Content-Type": "text/html; charset=utf-8", **self._validators(page, version, token)}
        return Answer(html(self.world.seed, page.number, version, token), headers=headers)

    def _validators(self, page: Page, version: int, token: int) -> dict[str, str]:
        kind = page.site.validator
        if kind == "etag":
            return {"ETag": f'"{page.number}-{version}"'}
        if kind == "fickle":
            return {"ETag": f'"{token:x}"'}
        return {"Last-Modified": self._date(page, version)} if kind == "last-modified" else {}

    def _date(self, page: Page, version: int) -> str:
        """When a version came about in the time that is stood for, all of it before the start: dates have seconds."""
        hours = self.world.changed_at(page.number, version) - self.world.trace.end
        return email.utils.formatdate(self.started_at + 3600.0 * hours, usegmt=True)

    def _robots(self, site: Site) -> str:
        delay = "" if site.crawl_delay is None else f"Crawl-delay: {site.crawl_delay:g}\n"
        return f"User-agent: *\nDisallow: {PRIVATE}\n{delay}\nSitemap: {self.url(site, SITEMAP)}\n"

    def _listing(self, site: Site, path: str, now: float) -> Answer:
        """The sitemap or the feed of a site."""
        tag = {"ETag": self.announced.tag(site, "feed" if path == FEED else "sitemap", now)}
        if path == FEED:
            items = self._dated(self.announced.newest(site, now))
            return Answer(feed(self.url(site, path), items), headers={"Content-Type": "application/atom+xml", **tag})
        paths = [page.path for page in self.world.pages if page.site is site]
        urls = [self.url(site, one) for one in [*paths, f"{PRIVATE}0"]]
        text = sitemap(urls, self._dated(self.announced.dates(site, now)))
        return Answer(text, headers={"Content-Type": "application/xml", **tag})

    def _dated(self, said: dict[int, float]) -> dict[str, float]:
        return {self._url_of(page): self.started_at + at for page, at in said.items()}

    def _url_of(self, number: int) -> str:
        page = self.world.pages[number]
        return self.url(page.site, page.path)


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(text, status, {"Content-Type": "text/plain", **(headers or {})})
