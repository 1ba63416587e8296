"""DemoWeb: serves a world on loopback, one port for all hosts, and keeps a log of every request it saw."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

from recrawl.demo.pages import html
from recrawl.demo.world import DemoWorld, Page, Site

PRIVATE = "/private/"  # what robots.txt forbids on every host


@dataclass(frozen=True, slots=True)
class Visit:
    """One request as the server saw it: when it came and was answered, for which page, in which version, with what."""

    came_at: float
    at: float
    host: str
    path: str
    page: int  # −1: none of the pages
    version: int  # −1: none was shown
    status: int


class DemoWeb:
    """A world behind an HTTP server; times are seconds since ``start``.

    Hosts are told apart by the Host header, so that one address is enough.
    """

    def __init__(self, world: DemoWorld) -> None:
        self.world = world
        self.log: list[Visit] = []
        self.port = 0
        self.started_at = 0.0  # seconds since 1970
        self._began = 0.0
        self._random = random.Random(world.seed)
        self._sites = {site.host: site for site in world.sites}
        self._pages = {(page.site.host, page.path): page for page in world.pages}
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Serve from now on, at a port (0: a free one) of 127.0.0.1."""
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self._began, self.started_at = time.monotonic(), time.time()

    async def stop(self) -> None:
        """End the server."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def skip(self, seconds: float) -> None:
        """Let time pass at once."""
        self._began -= seconds

    def url(self, page: Page) -> str:
        """The address of a page."""
        return f"http://{page.site.host}:{self.port}{page.path}"

    @property
    def urls(self) -> list[str]:
        """The addresses of all pages, in their order."""
        return [self.url(page) for page in self.world.pages]

    @property
    def private_urls(self) -> list[str]:
        """Addresses that robots.txt forbids: one per host."""
        return [f"http://{site.host}:{self.port}{PRIVATE}0" for site in self.world.sites]

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        came_at, host = self.now(), request.host.rpartition(":")[0] or request.host
        site = self._sites.get(host)
        page = self._pages.get((host, request.path))
        if site is not None and site.latency:
            await asyncio.sleep(site.latency)
        at = self.now()
        version = -1
        if site is None:
            response = web.Response(status=421, text="no such host here\n")
        elif request.path == "/robots.txt":
            response = web.Response(text=_robots(site, self.port))
        elif self.world.is_out(host, at):
            response = web.Response(status=503, headers={"Retry-After": "1"}, text="down for maintenance\n")
        elif request.path == "/sitemap.xml":
            response = web.Response(text=self._sitemap(site), content_type="application/xml")
        elif page is not None:
            version, response = self._page(request, page, at)
        else:
            response = web.Response(status=404, text="not found\n")
        number = -1 if page is None else page.number
        self.log.append(Visit(came_at, at, host, request.path, number, version, response.status))
        return response

    def _page(self, request: web.BaseRequest, page: Page, at: float) -> tuple[int, web.Response]:
        if self._random.random() < page.site.failing:
            return -1, web.Response(status=500, text="something went wrong\n")
        version, token = self.world.version(page.number, at), self._random.getrandbits(64)
        headers = self._validators(page, version, token)
        if _still(request, headers):
            return version, web.Response(status=304, headers=headers)
        text = html(self.world.seed, page.number, version, token)
        return version, web.Response(text=text, content_type="text/html", headers=headers)

    def _validators(self, page: Page, version: int, token: int) -> dict[str, str]:
        kind = page.site.validator
        if kind == "etag":
            return {"ETag": f'"{page.number}-{version}"'}
        if kind == "fickle":
            return {"ETag": f'"{token:x}"'}
        if kind == "last-modified":
            return {"Last-Modified": self._date(page, version)}
        return {}

    def _date(self, page: Page, version: int) -> str:
        """When a version came about in the time that is stood for, all of it before the start: dates have seconds."""
        hours = self.world.changed_at(page.number, version) - self.world.trace.end
        return email.utils.formatdate(self.started_at + 3600.0 * hours, usegmt=True)

    def _sitemap(self, site: Site) -> str:
        paths = [page.path for page in self.world.pages if page.site is site]
        rows = "".join(f"<url><loc>http://{site.host}:{self.port}{path}</loc></url>" for path in [*paths, f"{PRIVATE}0"])
        return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'


def _robots(site: Site, port: int) -> str:
    delay = "" if site.crawl_delay is None else f"Crawl-delay: {site.crawl_delay:g}\n"
    return f"User-agent: *\nDisallow: {PRIVATE}\n{delay}\nSitemap: http://{site.host}:{port}/sitemap.xml\n"


def _still(request: web.BaseRequest, headers: dict[str, str]) -> bool:
    """Whether the client's copy is still right, as far as validators tell."""
    tag, date = headers.get("ETag"), headers.get("Last-Modified")
    if tag is not None:
        return request.headers.get("If-None-Match") == tag
    return date is not None and request.headers.get("If-Modified-Since") == date
