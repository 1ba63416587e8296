"""Browsers for tests and benchmarks, pages of every kind, and the processes that they start."""

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

from crawl.servers import AGENT, serving

from contrib.scripted import SCRIPTS, WORDS, ScriptedSite
from recrawl.contrib.browser import BrowserFetcher, BrowserLimits, Render
from recrawl.crawl import HttpFetcher, Limits
from recrawl.crawl.detect.visible import visible_text

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMITS = BrowserLimits(total=120.0, settling=60.0, quiet=1.0, requests=20, contexts=2)
ENDLESS = {  # failures
    "loop": {"timeout"}, "hog": {"bad-response", "timeout"}, "buffers": {"bad-response"}, "crash": {"bad-response"},
}  # fmt: skip
TEXT = [kind for kind in SCRIPTS if kind not in (*ENDLESS, "late")]


def descendants():
    """The processes that this one has started, and those that these have."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found - {os.getpid()}
        found |= more


def memory(pids):
    """MiB of processes, what they share divided among them."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def browser(limits=LIMITS, render=None, **options):
    """A fetcher that may connect to loopback."""
    plain = HttpFetcher(AGENT, allow_private=True, limits=Limits(redirects=0))
    further = HttpFetcher(AGENT, allow_private=options.pop("private", True), limits=Limits(total=5.0))
    chosen = render or (lambda url: Render("always"))
    return BrowserFetcher(plain, further, chosen, user_agent=AGENT, executable=CHROMIUM, limits=limits, **options)


async def every_kind(kinds=(*TEXT, *ENDLESS)):
    """Fetch a page of each kind, each on a host of its own; what came, and what the server saw of each host."""
    endless = browser(BrowserLimits(total=3.0, heap=64))
    large = browser(BrowserLimits(total=120.0, memory=300), lambda url: Render("always", "#never"))

    async def crash():
        page = next(iter(endless._running))
        session = await page.context.new_cdp_session(page)
        sent = asyncio.ensure_future(asyncio.wait_for(session.send("Page.crash"), 5.0))
        await asyncio.wait([sent])
        sent.exception()

    site, fetcher = ScriptedSite(crash), browser()
    async with serving(site.answer) as origin:
        port = origin.rpartition(":")[2]
        url = {kind: f"http://{kind}.localhost:{port}/page/{kind}" for kind in SCRIPTS}
        try:
            text = [kind for kind in kinds if kind in TEXT]
            came = await asyncio.gather(*(fetcher.fetch(url[kind]) for kind in text))
            found = dict(zip(text, came, strict=True))
            for kind in (kind for kind in kinds if kind in ENDLESS):
                found[kind] = await (large if kind == "buffers" else endless).fetch(url[kind])
            found["after"] = await endless.fetch(url["fetch"])
        finally:
            await fetcher.close()
            await endless.close()
            await large.close()
    return found, {kind: [path for host, path in site.log if host.startswith(f"{kind}.")] for kind in SCRIPTS}


async def many_pages(n, see):
    """Render n pages of five hosts, 20 at a time; ``see`` is called after each 20. How often a browser was started."""
    limits = BrowserLimits(total=120.0, settling=60.0, quiet=0.5, contexts=2, restart=60, pages=4)
    fetcher = browser(limits)
    async with serving(ScriptedSite().answer) as origin:
        port = origin.rpartition(":")[2]
        try:
            urls = [f"http://h{k % 5}.localhost:{port}/page/fetch?{k}" for k in range(n)]
            for k in range(0, n, 20):
                found = await asyncio.gather(*map(fetcher.fetch, urls[k : k + 20]))
                assert all(WORDS in visible_text(one.text()) for one in found)
                see()
            return fetcher._process.n_starts
        finally:
            await fetcher.close()
