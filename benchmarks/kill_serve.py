"""Eight clients that crash at random and a service that is killed again and again: nothing twice, nothing lost.

The budget binds: eight clients ask for more pages than it allows. After the last kill all clients crash, and one more
picks every page: each abandoned lease must be back when it ends.

Run: python benchmarks/kill_serve.py [--kills 100] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

from recrawl.client import Client, Outcome
from recrawl.errors import ServiceError
from recrawl.store import BlockingStore, SqliteStore

RATE, PAGES, LEASE = 100.0, 2000, 3.0
ABANDONED = 150  # pages that are held when the last clients have crashed
LONG = 30.0  # seconds of their leases: all other pages are picked meanwhile
ANY_NUMBER = {"RECRAWL_HOST_CONCURRENCY": "0"}  # of pages of a host at a time: only the budget binds
PATIENCE = 60.0  # seconds after which a lease that has ended counts as not back


class Ledger:
    """What clients know, from all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held: dict[str, tuple[float, str]] = {}  # URL -> until when, lease
        self.acknowledged: Counter[str] = Counter()
        self.unsure: Counter[str] = Counter()  # sent, but no answer came
        self.began: list[float] = []
        self.picks = self.short = 0  # answered; with fewer pages than were asked for
        self.doubled: list[str] = []
        self.crashes = 0
        self.refused: list[str] = []


def client(k: int, url: str, token: str, ledger: Ledger, stop: threading.Event) -> None:
    """Crawl until it is time to stop; now and then crash: forget all leases, or go away before an answer."""
    rng = random.Random(k)
    while not stop.is_set():
        with Client(url, token, patience=20.0, timeout=10.0) as mine:
            try:
                while not stop.is_set():
                    crawl_batch(mine, rng, ledger)
                    if rng.random() < 0.05:
                        with ledger.lock:
                            ledger.crashes += 1
                        break
            except ServiceError as problem:
                if problem.status not in (0, 503):  # 503: it is being loaded
                    with ledger.lock:
                        ledger.refused.append(str(problem))
                time.sleep(0.05)


def crawl_batch(mine: Client, rng: random.Random, ledger: Ledger) -> None:
    """Pick, perhaps crash, record, perhaps twice."""
    asked, n = time.time(), rng.randint(1, 20)
    pages = mine.pick(n, lease=LEASE, wait=1.0)
    now = time.time()
    with ledger.lock:
        ledger.picks, ledger.short = ledger.picks + 1, ledger.short + (len(pages) < n)
        ledger.began += [now] * len(pages)
        for page in pages:
            until, _ = ledger.held.get(page.url, (0.0, ""))
            if until > page.until - LEASE + 0.001 and until > asked:  # handed out while somebody else had it
                ledger.doubled.append(page.url)
            ledger.held[page.url] = (page.until, page.lease)
    if rng.random() < 0.1:
        return  # crashed with leases in hand
    if rng.random() < 0.1:
        time.sleep(LEASE * 1.2)  # so slow that the leases end
    sent = [Outcome(page.lease, 200, digest=str(rng.random())) for page in pages]
    with ledger.lock:
        for page in pages:
            ledger.unsure[page.url] += 1
    words = mine.record(sent)
    if rng.random() < 0.2:
        assert set(mine.record(sent)) <= {"repeated", "removed", "unknown"}
    with ledger.lock:
        for page, word in zip(pages, words, strict=True):
            ledger.unsure[page.url] -= word != "repeated"  # repeated: an answer was lost, and it counts already
            ledger.acknowledged[page.url] += word in ("recorded", "late")
            if ledger.held.get(page.url, (0.0, ""))[1] == page.lease:
                del ledger.held[page.url]
            if word not in ("recorded", "late", "repeated", "outdated"):
                ledger.refused.append(word)


class Server:
    """The service as a process of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        self._command = [sys.executable, "-m", "recrawl", "serve", "--no-crawl", "--listen", f"127.0.0.1:{port}"]
        self._command += ["--budget", f"{RATE:g}/s", "--delay", "0", "--database", str(folder / "crawl.db")]
        self._command += ["--log-level", "error"]
        self._port = port
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, env={**os.environ, **ANY_NUMBER})
        until = time.time() + 120.0
        while time.time() < until:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/v1/openapi.json", timeout=5):
                    return  # its engine is loaded
            except OSError:
                time.sleep(0.02)
        raise SystemExit("the service did not start")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prepared(folder: Path) -> str:
    """A database with pages and a token."""
    urls, database = folder / "pages.txt", ["--database", str(folder / "crawl.db")]
    urls.write_text("\n".join(f"https://h{k % 50}.example/{k}" for k in range(PAGES)))
    recrawl = [sys.executable, "-m", "recrawl"]
    subprocess.run([*recrawl, "add", str(urls), *database], check=True, capture_output=True)
    made = [*recrawl, "token", "add", "kill", "--scope", "admin", *database]
    return subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()


def windows_kept(began: list[float], killed: list[float]) -> float:
    """The largest share of budget·(W+1+k) that any window of W seconds with k kills has seen."""
    began, worst = sorted(began), 0.0
    for length in (0.0, 0.5, 1.0, 3.0, 10.0, 30.0):
        j = 0
        for i, start in enumerate(began):
            j = max(j, i)
            while j + 1 < len(began) and began[j + 1] <= start + length:
                j += 1
            kills = sum(start - 1.0 <= at <= start + length for at in killed)
            worst = max(worst, (j - i + 1) / (RATE * (length + 1.0 + kills)))
    return worst


def leases_back(url: str, token: str, ledger: Ledger) -> dict[str, object]:
    """Abandon leases, then pick all pages once: how many abandoned ones do not come, and how late the others do.

    A page may be picked when its lease ends or later, once it is worth most and the budget allows it. So only abandoned
    pages are left for the last picks: all others are held for long, and the delay is that of the lease alone.
    """
    with Client(url, token, patience=60.0, timeout=30.0) as mine:
        time.sleep(LEASE + 0.5)  # leases of clients that have crashed are over
        others, abandoned = set[str](), dict[str, float]()
        began = time.time()
        while len(abandoned) < ABANDONED and time.time() - began < PATIENCE:
            pages = mine.pick(min(50, ABANDONED - len(abandoned)), lease=LONG, wait=1.0)
            abandoned |= {page.url: page.until for page in pages}
            ledger.began += [time.time()] * len(pages)
        while len(others) < PAGES - len(abandoned) and time.time() < min(abandoned.values(), default=0.0) - 1.0:
            pages = mine.pick(100, lease=3000.0, wait=1.0)
            others |= {page.url for page in pages}
            ledger.began += [time.time()] * len(pages)
        back, latest = dict[str, float](), max(abandoned.values(), default=0.0)
        while len(back) < len(abandoned) and time.time() < latest + PATIENCE:
            pages = mine.pick(100, lease=3000.0, wait=1.0)
            now = time.time()
            ledger.began += [now] * len(pages)
            back |= {page.url: now - abandoned[page.url] for page in pages if page.url in abandoned}
    return {
        "abandoned": len(abandoned),
        "held_by_others": len(others),
        "leases_not_back": len(abandoned) - len(back),
        "back_too_soon": sum(delay < 0.0 for delay in back.values()),
        "largest_delay_after_until": round(max(back.values(), default=0.0), 3),
    }


def run(kills: int, seed: int = 0, seconds: float = 1e9) -> dict[str, object]:
    """Kill the service so often, or for so long, while clients crawl; compare what they know with what is stored."""
    rng, ledger, stop = random.Random(seed), Ledger(), threading.Event()
    folder, port = Path(tempfile.mkdtemp()), free_port()
    token = prepared(folder)
    server, killed, began = Server(folder, port), [], time.time()
    arguments = [(k, f"http://127.0.0.1:{port}", token, ledger, stop) for k in range(8)]
    clients = [threading.Thread(target=client, args=args, daemon=True) for args in arguments]
    for one in clients:
        one.start()
    while len(killed) < kills and time.time() - began < seconds:
        time.sleep(rng.uniform(0.1, 1.5))
        server.end(signal.SIGKILL)
        killed.append(time.time())
        server.start()
    time.sleep(2.0)
    stop.set()
    for one in clients:
        one.join(90)
    picked = len(ledger.began)
    back = leases_back(f"http://127.0.0.1:{port}", token, ledger)
    code = server.end(signal.SIGTERM)
    with BlockingStore(SqliteStore(folder / "crawl.db")) as store:
        stored = Counter(outcome.url for outcome in store.observations())
        problems = store.check()
    lost = sum(max(n - stored[url], 0) for url, n in ledger.acknowledged.items())
    doubled = sum(max(n - ledger.acknowledged[url] - max(ledger.unsure[url], 0), 0) for url, n in stored.items())
    return {
        "kills": len(killed),
        "seconds": round(time.time() - began, 1),
        "share_of_picks_cut_short_by_the_budget": round(ledger.short / max(ledger.picks, 1), 3),
        "picked": picked,
        "stored": sum(stored.values()),
        "acknowledged": sum(ledger.acknowledged.values()),
        "answers_lost": sum(max(n, 0) for n in ledger.unsure.values()),
        "client_crashes": ledger.crashes,
        "acknowledged_and_missing": lost,
        "stored_twice": doubled,
        "two_holders": len(ledger.doubled),
        **back,
        "largest_share_of_budget_windows": round(windows_kept(ledger.began, killed), 3),
        "refused": ledger.refused[:5],
        "exit_code": code,
        "damage": problems,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=1e9, help="kill for so long at most")
    given = parser.parse_args()
    found = run(given.kills, seconds=given.seconds)
    print(json.dumps(found, indent=2))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
