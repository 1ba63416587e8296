"""One page while it is rendered: what its scripts ask for, when it is complete, and what a reader would see."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from recrawl.contrib.browser.options import BLOCKED, BrowserLimits, Render
from recrawl.crawl.http.fetched import Fetched, Fetcher
from recrawl.crawl.polite.robots import Robots

# The document with the content of open shadow roots in its place, without scripts. The copy is made in a document of
# its own, so that nothing is loaded and no element comes to life.
_SERIALIZED = """() => {
  const copy = document.implementation.createHTMLDocument('');
  const drop = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'LINK']);
  const cloned = (node) => {
    const found = copy.importNode(node, false);
    const inner = node.shadowRoot ? [...node.shadowRoot.childNodes] : [];
    for (const child of [...inner, ...node.childNodes]) {
      if (!drop.has(child.nodeName.toUpperCase()) && child.nodeType !== 8) found.appendChild(cloned(child));
    }
    return found;
  };
  return '<!doctype html>' + cloned(document.documentElement).outerHTML;
}"""
# When the page has nothing else to do; by its own clock, so that a slow page is not cut off.
_IDLE = "() => new Promise((done) => requestIdleCallback(() => setTimeout(done, 0), {timeout: 2000}))"
_KEPT_OUT = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "content-security-policy-report-only"}
)
_SLICE = 0.05  # seconds between two looks at the requests of a page


class TooMuch(Exception):
    """A page has more bytes than is allowed."""


class Crashed(Exception):
    """The process of a page ended."""


class Rendering:
    """Renders the plain answer of a page.

    ``asked`` are the URLs of the further requests that it made, ``failed`` the answers to those that failed.
    """

    def __init__(self, plain: Fetched, fetcher: Fetcher, limits: BrowserLimits, robots: Robots | None = None) -> None:
        self._plain, self._fetcher, self._limits, self._robots = plain, fetcher, limits, robots
        self.asked: list[str] = []
        self.failed: list[Fetched] = []
        self._n_bytes = self._n_running = 0
        self._shown = False  # whether the plain answer was given to the browser
        self._crashed = asyncio.Event()
        self._last = 0.0

    async def run(self, page: Any, render: Render) -> bytes:
        """The rendered page. TimeoutError, TooMuch and Crashed where there is none."""
        page.on("crash", lambda _: self._crashed.set())
        page.on("popup", lambda other: asyncio.ensure_future(_closed(other)))
        work = asyncio.ensure_future(self._work(page, render))
        crash = asyncio.ensure_future(self._crashed.wait())
        try:
            async with asyncio.timeout(self._limits.total):
                await asyncio.wait([work, crash], return_when=asyncio.FIRST_COMPLETED)
            if self._crashed.is_set():
                raise Crashed
            return await work
        finally:
            for task in (work, crash):
                task.cancel()
            await asyncio.gather(work, crash, return_exceptions=True)

    async def _work(self, page: Any, render: Render) -> bytes:
        await page.goto(self._plain.final_url, wait_until="domcontentloaded", timeout=0)
        if render.wait_for is not None:
            await page.wait_for_selector(render.wait_for, state="attached", timeout=self._limits.total * 1000)
        else:
            await self._settled(page)
        text = await self._read(page)
        if not isinstance(text, str) or len(text) > self._limits.body:
            raise TooMuch
        return text.encode("utf-8", "replace")

    async def _read(self, page: Any) -> Any:
        """The text, again if a script may have gone to another page meanwhile."""
        for _ in range(3):
            try:
                return await page.evaluate(_SERIALIZED)
            except Exception:
                if page.is_closed():
                    raise
                await page.wait_for_load_state("domcontentloaded", timeout=0)
                await self._settled(page)
        return await page.evaluate(_SERIALIZED)

    async def _settled(self, page: Any) -> None:
        """Wait until no request has been under way for a while, or for as long as that is waited for.

        On a busy machine the page may have had no time meanwhile to use what came: it counts as settled when it has
        nothing to do, and has asked for nothing until then. A question fails when a script goes to another page.
        """
        loop = asyncio.get_running_loop()
        end, self._last = loop.time() + self._limits.settling, loop.time()
        while loop.time() < end:
            if self._n_running or loop.time() < self._last + self._limits.quiet:
                await asyncio.sleep(_SLICE)
                continue
            before = self._last
            try:
                async with asyncio.timeout_at(end):
                    await page.evaluate(_IDLE)
            except TimeoutError:
                return
            except Exception:
                if page.is_closed():
                    raise
                self._last = loop.time()
            if not self._n_running and self._last == before:
                return

    async def answer(self, route: Any, request: Any) -> None:
        """Answer one request of the page."""
        main = request.is_navigation_request() and request.frame.parent_frame is None
        if main and not self._shown:
            self._shown = True
            await route.fulfill(status=200, headers=_passed(self._plain), body=self._plain.body)
        elif request.resource_type in BLOCKED or request.method != "GET" or not self._may_ask(request.url):
            await route.abort("blockedbyclient")
        else:
            await self._fetch(route, request)

    def _may_ask(self, url: str) -> bool:
        room = len(self.asked) < self._limits.requests and self._n_bytes < self._limits.body
        return room and url.startswith(("http://", "https://"))

    async def _fetch(self, route: Any, request: Any) -> None:
        self._n_running += 1
        try:
            if not await self._is_allowed(request.url) or not self._may_ask(request.url):
                await route.abort("blockedbyclient")
                return
            self.asked.append(request.url)
            wanted = {name: request.headers[name] for name in ("accept", "accept-language") if name in request.headers}
            found = await self._fetcher.fetch(request.url, headers=wanted or None)
            self.asked += found.redirects[1:]
            if found.failure is not None:
                self.failed.append(replace(found, body=b""))
            self._n_bytes += len(found.body)
            if not found.status or (found.failure is not None and found.status < 400):
                await route.abort("failed")
            else:
                await route.fulfill(status=found.status, headers=_passed(found), body=found.body)
        finally:
            self._n_running -= 1
            self._last = asyncio.get_running_loop().time()

    async def _is_allowed(self, url: str) -> bool:
        """Whether robots.txt allows a request; reading it counts as one."""
        if self._robots is None:
            return True
        return (await self._robots.rules(url, self._read_robots)).allowed

    async def _read_robots(self, url: str) -> Fetched:
        assert self._robots is not None
        self.asked.append(url)
        return await self._robots.fetch(url)


def _passed(fetched: Fetched) -> dict[str, str]:
    """The headers that the browser sees: the codings are undone already."""
    return {name: value for name, value in fetched.headers.items() if name not in _KEPT_OUT}


async def _closed(page: Any) -> None:
    try:
        await page.close()
    except Exception:
        return
