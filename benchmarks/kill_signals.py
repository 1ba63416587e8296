"""Kill a crawl while signals arrive by HTTP, and see whether one that was acknowledged is missing: none may be.

    python benchmarks/kill_signals.py --kills 100 --out benchmarks/results/kill_signals.json

The crawl is ``recrawl run --listen`` in a process of its own, killed with SIGKILL with requests in flight and started
again on the same database. Its pages are on loopback. A signal that was answered with 200 must afterwards be pending,
or a crawl of its page that did not fail must have begun after the signal was sent.

    python benchmarks/kill_signals.py --pings --kills 5

The same with IndexNow pings, of a new key after each kill (a host may try five a day). One that was answered with 202
may also wait for its key. Requests that a busy crawl turns away are counted apart from those that it refuses.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
from aiohttp import web

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.crawl.signals.indexnow.keys import PREFIX as KEYS
from recrawl.crawl.signals.tokens import PREFIX, new_token
from recrawl.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PAGES, RATE = 300, 200.0  # pages; signals per second
TURNED_AWAY = 429  # the crawl was busy: it is on a machine with other work, or compiles
RUN = ["run", "--listen", "127.0.0.1:0", "--allow-private", "--contact", "kill@example.org", "--budget", "100/s"]
LOGS = ["--delay", "0.005", "--quiet", "--log-level", "info", "--log-format", "json"]


class Answered(NamedTuple):
    """A signal that was acknowledged."""

    url: str
    sent_at: float
    accepted: int


@asynccontextmanager
async def pages() -> AsyncIterator[str]:
    """Pages on loopback that change all the time; where they are."""

    async def page(request: web.Request) -> web.Response:
        if request.path == "/robots.txt":
            raise web.HTTPNotFound
        if request.path.endswith(".txt"):
            await asyncio.sleep(random.uniform(0.0, 1.0))
            return web.Response(text=request.path[1:-4])  # a key file
        await asyncio.sleep(random.uniform(0.0, 0.02))
        return web.Response(text=f"<p>{request.path} {time.time()}</p>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/{tail:.*}", page)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def prepared(database: Path, urls: list[str]) -> str:
    """A database with pages and a token; the token."""
    text, token = new_token("sender", ["signal"], time.time())
    async with SqliteStore(database) as store:
        engine = await open_engine(store, time.time(), budget=1.0)
        notes = {f"{PREFIX}sender": token.as_note()}
        await save_pages(engine, store, add_pages(engine, Rules(), urls, time.time()), notes=notes)
    return text


async def started(database: Path) -> tuple[asyncio.subprocess.Process, str]:
    """A crawl that listens, and where."""
    command = [sys.executable, "-m", "recrawl", *RUN, *LOGS, "--database", str(database)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        cwd=database.parent,
    )
    assert process.stderr is not None
    async for line in process.stderr:
        if b'"serve.started"' in line:
            return process, str(json.loads(line)["url"])
    raise AssertionError("the crawl did not start")


class Sender:
    """Sends single signals at a rate, whether earlier ones are answered or not."""

    def __init__(self, client: aiohttp.ClientSession, url: str, urls: list[str], rng: random.Random) -> None:
        self._client, self._url, self._urls, self._rng = client, url, urls, rng
        self.answered: list[Answered] = []
        self.refused, self.turned_away, self.in_flight = 0, 0, 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, seconds: float) -> None:
        """Send for some seconds, and until one was answered and another is in flight."""
        began, n = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds or (
            not (self.in_flight and self.answered) and passed < seconds + 60.0
        ):
            due = int((time.monotonic() - began) * RATE)
            for _ in range(due - n):
                task = asyncio.create_task(self._one(self._rng.choice(self._urls)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            n = max(n, due)
            await asyncio.sleep(0.002)

    async def _one(self, url: str) -> None:
        sent_at = time.time()
        self.in_flight += 1
        with suppress(aiohttp.ClientError, ConnectionError):
            try:
                status, accepted = await self._sent(url)
                if accepted is None:
                    self.turned_away += status == TURNED_AWAY
                    self.refused += status != TURNED_AWAY
                else:
                    self.answered.append(Answered(url, sent_at, accepted))
            finally:
                self.in_flight -= 1

    async def _sent(self, url: str) -> tuple[int, int | None]:
        """Send a signal; the status, and how many were new, None if it was refused."""
        async with self._client.post(f"{self._url}/v1/signals", json=[url]) as answer:
            return answer.status, int((await answer.json())["accepted"]) if answer.status == 200 else None

    async def end(self) -> None:
        """Wait for the answers that still come."""
        await asyncio.gather(*self._tasks)


class Pinger(Sender):
    """Sends IndexNow pings of one key."""

    key = ""

    async def _sent(self, url: str) -> tuple[int, int | None]:
        async with self._client.get(f"{self._url}/indexnow", params={"url": url, "key": self.key}) as answer:
            return answer.status, {200: 0, 202: 1}.get(answer.status)


async def missing(database: Path, answered: list[Answered]) -> dict[str, int]:
    """Signals that were acknowledged and neither wait nor were followed by a crawl; and contradictions."""
    crawled = defaultdict[str, float](float)
    async with SqliteStore(database) as store:
        pending = {signal.url for signal in await store.signals()}
        pending.update(url for note in (await store.notes(KEYS)).values() for url in note["waiting"])
        async for one in store.observations():
            if one.failure is None:
                crawled[one.url] = max(crawled[one.url], one.began_at)
        problems = await store.check()
    lost = [one for one in answered if one.url not in pending and crawled[one.url] < one.sent_at]
    return {"missing": len(lost), "pending": len(pending), "damage": len(problems)}


async def kill_all(
    kills: int, seed: int, folder: Path, *, gently: bool = False, sends: type[Sender] = Sender
) -> dict[str, Any]:
    """Kill a crawl again and again, or end it by SIGTERM; what was lost."""
    rng, database = random.Random(seed), folder / "signals.db"
    totals: dict[str, Any] = defaultdict(int)
    async with pages() as origin:
        urls = [f"{origin}/{k}" for k in range(PAGES)]
        headers = {"authorization": f"Bearer {await prepared(database, urls)}"}
        for number in range(kills):
            process, url = await started(database)
            async with aiohttp.ClientSession(headers=headers) as client:
                sender = sends(client, url, urls, rng)
                if isinstance(sender, Pinger):
                    sender.key = f"the-key-number-{number}"
                await sender.send(rng.uniform(0.3, 1.2))
                totals["kills_with_requests_in_flight"] += sender.in_flight > 0
                process.terminate() if gently else process.kill()
                totals["ended_well"] += await process.wait() == 0
                await sender.end()
            found = await missing(database, sender.answered)
            totals["acknowledged"] += len(sender.answered)
            totals["accepted"] += sum(one.accepted for one in sender.answered)
            totals["refused"] += sender.refused
            totals["turned_away"] += sender.turned_away
            totals["missing"] += found["missing"]
            totals["damage"] += found["damage"]
    return {"kills": kills, **totals}


def run(kills: int, seed: int, folder: Path, *, gently: bool = False, sends: type[Sender] = Sender) -> dict[str, Any]:
    """The same, from outside of event loops."""
    return asyncio.run(kill_all(kills, seed, folder, gently=gently, sends=sends))


def main() -> None:
    """Kill, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pings", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(given.kills, given.seed, Path(folder), sends=Pinger if given.pings else Sender)
    text = json.dumps(found, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
