"""The browser's process: started when it is needed, again after a crash or many pages; one context for each host.

The browser reaches no network: its proxy is a port that nobody serves. Every request is answered by this program.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from recrawl.contrib.browser.memory import watch
from recrawl.contrib.browser.options import BrowserLimits
from recrawl.errors import ParameterError

NOWHERE = "http://127.0.0.1:9"  # the discard port
_CLOSING = 5.0  # seconds that closing may take before the process is ended
_ALL = re.compile(".*", re.DOTALL)
_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-features=WebRtcHideLocalIpsWithMdns,Translate,MediaRouter",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-first-run",
    "--no-pings",
    "--disable-dev-shm-usage",
)
OnRequest = Callable[[Any, Any], Awaitable[None]]


class BrowserProcess:
    """One Chromium. ``on_request`` gets every request of every page (route and request)."""

    def __init__(self, executable: str | None, user_agent: str, limits: BrowserLimits, on_request: OnRequest) -> None:
        self._executable, self._user_agent, self._limits = executable, user_agent, limits
        self._on_request = on_request
        self._driver: Any = None
        self._browser: Any = None
        self._watching: asyncio.Task[None] | None = None
        self._contexts: OrderedDict[str, Any] = OrderedDict()
        self._users: Counter[str] = Counter()  # open pages by host
        self._changed = asyncio.Condition()
        self._n_pages = 0
        self.n_starts = 0

    async def open(self, host: str) -> Any:
        """A new page in the context of a host; ParameterError if there is no browser."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._n_pages < self._limits.restart or not self._users.total())
            if self._n_pages >= self._limits.restart or self._browser is None or not self._browser.is_connected():
                await self._end()
                await self._start()
            context = self._contexts.get(host) or await self._context(host)
            self._contexts.move_to_end(host)
            page = await context.new_page()
            self._users[host] += 1
            self._n_pages += 1
            return page

    async def shut(self, page: Any, host: str) -> None:
        """Close a page, and contexts that are too many; a browser that does not close a page is ended."""
        try:
            async with asyncio.timeout(_CLOSING):
                await page.close()
        except Exception:
            if not page.is_closed():
                await self.end()
        async with self._changed:
            self._users[host] -= 1
            idle = [one for one in self._contexts if not self._users[one]]
            for one in idle[: max(len(self._contexts) - self._limits.contexts, 0)]:
                with suppress(Exception):
                    await asyncio.wait_for(self._contexts.pop(one).close(), _CLOSING)
            self._changed.notify_all()

    async def end(self) -> None:
        """End the browser and the process that drives it."""
        async with self._changed:
            await self._end()

    async def _end(self) -> None:
        browser, driver = self._browser, self._driver
        self._driver = self._browser = None
        if self._watching is not None:
            self._watching.cancel()
        self._contexts.clear()
        self._n_pages = 0
        closing = [*([] if browser is None else [browser.close]), *([] if driver is None else [driver.stop])]
        for close in closing:
            with suppress(Exception):
                await asyncio.wait_for(close(), _CLOSING)

    async def _start(self) -> None:
        try:
            from playwright.async_api import async_playwright
        except ImportError:
            raise ParameterError("rendering needs playwright: pip install 'recrawl[browser]'") from None
        self._driver = await async_playwright().start()
        try:
            self._browser = await self._driver.chromium.launch(
                executable_path=self._executable,
                chromium_sandbox=os.geteuid() != 0,
                proxy={"server": NOWHERE, "bypass": "<-loopback>"},
                args=[*_ARGUMENTS, f"--js-flags=--max-old-space-size={self._limits.heap}"],
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
            session = await self._browser.new_browser_cdp_session()
            found = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
        except Exception as problem:
            await self._end()
            line = str(problem).strip().splitlines()[0]
            name = self._executable or "of playwright"
            raise ParameterError(
                f"the browser {name} does not start; the setting browser is the path of Chromium: {line}"
            ) from None
        pid = next(int(one["id"]) for one in found if one["type"] == "browser")
        self._watching = asyncio.create_task(watch(pid, self._limits.memory))
        self.n_starts += 1

    async def _context(self, host: str) -> Any:
        context = await self._browser.new_context(
            user_agent=self._user_agent, accept_downloads=False, service_workers="block", ignore_https_errors=True
        )
        await context.route(_ALL, self._on_request)
        await context.route_web_socket(_ALL, lambda socket: socket.close())
        self._contexts[host] = context
        return context
