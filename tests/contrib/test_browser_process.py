"""The browser's process without a browser: contexts by host, restarts, and what is too large."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.contrib.browser.memory import end_large, family, own_memory
from recrawl.contrib.browser.options import BrowserLimits
from recrawl.contrib.browser.process import BrowserProcess


class Context:
    """A context of a browser that counts its pages."""

    def __init__(self):
        self.closed, self.pages = False, []

    async def new_page(self):
        self.pages.append(Page())
        return self.pages[-1]

    async def route(self, match, call):
        pass

    route_web_socket = route

    async def close(self):
        self.closed = True


class Page:
    closed = False

    async def close(self):
        self.closed = True

    def is_closed(self):
        return self.closed


class Browser:
    """Makes contexts."""

    def __init__(self):
        self.made, self.connected = [], True

    def is_connected(self):
        return self.connected

    async def new_context(self, **how):
        assert how["service_workers"] == "block"
        self.made.append(Context())
        return self.made[-1]

    async def close(self):
        self.connected = False


class Process(BrowserProcess):
    """Starts browsers that are none."""

    async def _start(self):
        self._browser = Browser()
        self.browsers = [*getattr(self, "browsers", []), self._browser]


def process(**limits):
    return Process(None, "agent", BrowserLimits(**limits), None)


def test_one_context_for_each_host_the_last_used_are_kept():
    async def run():
        one = process(contexts=2)
        for host in ("a", "b", "a", "c", "b"):
            await one.shut(await one.open(host), host)
        (browser,) = one.browsers
        return [(len(context.pages), context.closed) for context in browser.made]

    a, b, c, again = asyncio.run(run())
    assert (a, b) == ((2, True), (1, True)), "closed when a third came: first b, then a"
    assert (c, again) == ((1, False), (1, False))


def test_a_context_with_open_pages_stays():
    async def run():
        one = process(contexts=1)
        page = await one.open("a")
        await one.shut(await one.open("b"), "b")
        first, second = one.browsers[0].made
        kept = (first.closed, second.closed)
        await one.shut(page, "a")
        return kept, first.closed

    assert asyncio.run(run()) == ((False, True), False)


def test_a_browser_ends_after_so_many_pages_or_when_it_is_gone():
    async def run():
        one = process(restart=3)
        for _ in range(4):
            await one.shut(await one.open("a"), "a")
        one.browsers[-1].connected = False
        await one.shut(await one.open("a"), "a")
        return [sum(len(context.pages) for context in browser.made) for browser in one.browsers]

    assert asyncio.run(run()) == [3, 1, 1]


def test_a_browser_is_not_restarted_under_an_open_page():
    async def run():
        one = process(restart=1)
        page = await one.open("a")
        waiting = asyncio.ensure_future(one.open("b"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert one.browsers[0].connected
        await one.shut(page, "a")
        await one.shut(await waiting, "b")
        return len(one.browsers)

    assert asyncio.run(run()) == 2


GRANDCHILD = "import sys; kept = bytearray(b'x') * (100 << 20); print('ready', flush=True); sys.stdin.read()"
CHILD = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {GRANDCHILD!r}]))"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say what a process takes")
def test_a_process_that_is_too_large_is_ended_and_no_other():
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "ready\n"
        first, grandchild = family(child.pid)
        assert first == child.pid
        assert own_memory(grandchild) > 100 << 20
        assert end_large(child.pid, 1000) == []
        assert end_large(child.pid, 90) == [grandchild]
        assert child.wait() == -signal.SIGKILL % 256, "the child's own end says how the other ended"
    assert own_memory(child.pid) == 0
    assert family(os.getpid())[0] == os.getpid()
