"""BrowserFetcher: fetches a page as any fetcher does, and lets a browser run its scripts where that is needed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from recrawl.contrib.browser.options import BrowserLimits, Render
from recrawl.contrib.browser.process import BrowserProcess
from recrawl.contrib.browser.rendering import Crashed, Rendering, TooMuch
from recrawl.crawl.detect.visible import visible_text
from recrawl.crawl.formats.content_kind import kind_of
from recrawl.crawl.http.fetched import Fetched, Fetcher
from recrawl.crawl.polite.robots import Robots
from recrawl.errors import ParameterError
from recrawl.logs import event

log = logging.getLogger(__name__)
_FEW = 20  # words: a plain answer with scripts and fewer words has no text
_DROPPED = ("etag", "last-modified", "content-encoding", "content-length", "transfer-encoding")


class BrowserFetcher:
    """Fetches by ``plain`` and renders HTML where ``render(url)`` says so (None: never).

    The page's own answer is requested once, by ``plain``. What its scripts ask for is requested by ``further``, which
    follows redirects; ``Fetched.beside`` names these requests, and they count against the budget; a host that is busy
    rests. Limits and the rule against private addresses are those of the fetchers: the browser reaches no network.
    """

    def __init__(
        self,
        plain: Fetcher,
        further: Fetcher,
        render: Callable[[str], Render | None],
        *,
        user_agent: str,
        executable: str | None = None,
        limits: BrowserLimits | None = None,
    ) -> None:
        self._plain, self._further = plain, further
        self.render = render  # may be replaced while it is in use
        self.robots: Robots | None = None  # what scripts may ask for
        self._limits = limits or BrowserLimits()
        self._running: dict[Any, Rendering] = {}
        self._process = BrowserProcess(executable, user_agent, self._limits, self._answer)
        self._places = asyncio.Semaphore(self._limits.pages)
        self.n_rendered = 0

    async def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch a URL and render it where needed. A rendered page is fetched without validators: they are of its
        frame, which may stay the same while what its scripts load has changed.
        """
        render = self.render(url)
        if render is not None and render.mode == "always":
            etag = last_modified = None
        plain = await self._plain.fetch(url, etag=etag, last_modified=last_modified, headers=headers)
        if render is None or plain.failure is not None or plain.status != 200 or kind_of(plain) != "html":
            return plain
        if render.mode == "auto" and not needs_rendering(plain):
            return plain
        async with self._places:
            return await self._rendered(plain, render)

    async def close(self) -> None:
        """End the browser, and close the other fetchers."""
        await self._process.end()
        await self._plain.close()
        await self._further.close()

    async def _rendered(self, plain: Fetched, render: Render) -> Fetched:
        loop = asyncio.get_running_loop()
        rendering = Rendering(plain, self._further, self._limits, self.robots)
        began, failure, body = loop.time(), None, b""
        host = urlsplit(plain.final_url).netloc
        page = await self._opened(host)
        self._running[page] = rendering
        self.n_rendered += 1
        try:
            body = await rendering.run(page, render)
        except TooMuch:
            failure = "too-large"
        except Crashed:
            failure = "bad-response"
        except Exception as problem:
            failure = "timeout" if "Timeout" in type(problem).__name__ else "bad-response"
            if failure == "bad-response":  # such as a wait_for that is no selector
                said = str(problem).strip().splitlines() or [type(problem).__name__]
                event(log, logging.WARNING, "page.not_rendered", url=plain.url, error=said[0])
        finally:
            del self._running[page]
            await self._process.shut(page, host)
        kept = {name: value for name, value in plain.headers.items() if name not in _DROPPED}
        kept["content-type"] = "text/html; charset=utf-8"
        took = plain.took + loop.time() - began
        asked, failed = tuple(rendering.asked), tuple(rendering.failed)
        plain = replace(plain, took=took, beside=asked, failed_beside=failed)
        return replace(plain, body=body, headers=kept, failure=failure)

    async def _opened(self, host: str) -> Any:
        """A new page, by a new browser if the one before has ended."""
        try:
            return await self._process.open(host)
        except ParameterError:
            raise
        except Exception:
            await self._process.end()
            return await self._process.open(host)

    async def _answer(self, route: Any, request: Any) -> None:
        """Answer a request of the browser; those of pages that nobody waits for are refused."""
        with suppress(Exception):
            rendering = self._running.get(request.frame.page)
            if rendering is not None:
                await rendering.answer(route, request)
                return
        with suppress(Exception):
            await route.abort("blockedbyclient")


def needs_rendering(fetched: Fetched) -> bool:
    """Whether a plain answer has scripts but no text of its own."""
    if b"<script" not in fetched.body.lower():
        return False
    return len(visible_text(fetched.text()).split()) < _FEW
