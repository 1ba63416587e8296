"""A server in a thread, Scrapy in a process, and what the database says in the end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from recrawl.errors import StoreInUseError
from recrawl.store.opening import open_store

PROGRAM = Path(__file__).parent / "crawl.py"
PATIENCE = 120.0  # seconds until a condition that should hold counts as failed


class Site:
    """Serves pages on loopback and logs every request: path, status and time. Pages change when ``version`` does."""

    def __init__(self):
        self.log, self.version, self.origin = [], 1, ""
        self.leases = []  # of the requests in the log, as `crawl.py` names them; "" without
        self.starts = []  # how many requests were in the log when each run began
        self.tags = True  # whether answers have an ETag; without it none is 304
        self.n_waiting = 0  # requests that wait at the gate
        self.gate = threading.Event()  # answers wait until it is set
        self.gate.set()

    def _answer(self, path, tag):
        if path == "/robots.txt":
            return 200, "User-agent: *\nDisallow: /private", {"Content-Type": "text/plain"}
        if path in ("/moved", "/circle"):
            return 302, "", {"Location": "/page/0" if path == "/moved" else "/circle"}
        if path in ("/gone", "/broken"):
            return (404 if path == "/gone" else 500), "no", {}
        mine = f'"{self.version}"'
        if tag == mine:
            return 304, "", {"ETag": mine}
        links = "<a href='/page/found'>one</a>" if path == "/page/0" else ""
        body = f"<html><body><main><p>{path} version {self.version}</p>{links}</main></body></html>"
        if path == "/trouble":
            body = body.replace("version", "trouble")
        return 200, body, {"Content-Type": "text/html"} | ({"ETag": mine} if self.tags else {})

    async def _handle(self, request):
        self.n_waiting += 1
        while not self.gate.is_set() and request.path != "/robots.txt":
            await asyncio.sleep(0.01)
        self.n_waiting -= 1
        status, body, headers = self._answer(request.path, request.headers.get("If-None-Match"))
        self.leases.append(request.headers.get("X-Lease", ""))
        self.log.append((request.path, status, time.time()))
        return web.Response(body=body.encode(), status=status, headers=headers)

    @contextmanager
    def serving(self):
        """Serve in a thread."""
        loop, ready = asyncio.new_event_loop(), threading.Event()

        async def start():
            runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready.set()
            return runner

        runner = None

        def run():
            nonlocal runner
            asyncio.set_event_loop(loop)
            runner = loop.run_until_complete(start())
            loop.run_forever()
            loop.run_until_complete(runner.cleanup())
            loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            self.gate.set()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def served(self, *statuses):
        """Requests by path."""
        return Counter(path for path, status, _ in self.log if not statuses or status in statuses)


class Run:
    """A crawl that is running."""

    def __init__(self, folder, site, paths, **settings):
        self._site, self._stats, self._errors = site, folder / "stats.json", folder / "log.txt"
        self.database = str(folder / "pages.db")
        where = {} if "RECRAWL_URL" in settings else {"RECRAWL_DATABASE": self.database}
        if not where:
            where = {"RECRAWL_BUDGET": None}
        task = {"settings": {**where, **settings}, "urls": [site.origin + path for path in paths]}
        files = {"stats": str(self._stats), "words": str(folder / "words.txt")}
        (folder / "task.json").write_text(json.dumps(task | files))
        site.starts.append(len(site.log))
        with self._errors.open("w") as log:
            command = [sys.executable, str(PROGRAM), str(folder / "task.json")]
            self.process = subprocess.Popen(command, stderr=log, env={**os.environ, "NO_PROXY": "*"}, cwd=folder)

    def until(self, condition, *, ends=False):
        """Wait until a condition holds; the process must run until then, unless it may have ended."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert ends or self.process.poll() is None, self.errors
            assert time.monotonic() < end, self.errors
            time.sleep(0.02)

    def interrupt(self):
        """SIGINT, as Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self):
        """Wait for the end; the stats."""
        assert self.process.wait(PATIENCE) == 0, self.errors
        return json.loads(self._stats.read_text())

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    @property
    def errors(self):
        """Scrapy's log."""
        return self._errors.read_text()


def opened(database):
    """The store of a database, as soon as the process of the desk of a Scrapy that was killed has ended."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return open_store(database, keep=1)
        except StoreInUseError:
            assert time.monotonic() < end, "the process of the desk goes on"
            time.sleep(0.02)


def stored(database):
    """What the database holds: outcomes, and leases that are held."""

    async def read():
        store = opened(database)
        try:
            return [one async for one in store.observations()], await store.leases()
        finally:
            await store.close()

    return asyncio.run(read())


def leases(database, ids):
    """Leases by id, those that have ended too."""

    async def read():
        store = opened(database)
        try:
            return {lease.id: lease for lease in await store.leases(ids)}
        finally:
            await store.close()

    return asyncio.run(read())


def recorded(outcomes, origin):
    """Outcomes by path."""
    return Counter(one.url.removeprefix(origin) for one in outcomes)
