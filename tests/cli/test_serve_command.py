"""``recrawl serve`` as a process: clients pick and record until it must end; nothing acknowledged is missing."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter

import pytest
from profiles import few

from recrawl.client import Client, Outcome
from recrawl.errors import ServiceError
from recrawl.store import BlockingStore, SqliteStore

from .test_crawl import here, site  # noqa: F401

pytestmark = pytest.mark.slow


class Crawling(threading.Thread):
    """A client that crawls until nobody answers."""

    def __init__(self, url, token):
        super().__init__(daemon=True)
        self.url, self.token, self.problem = url, token, None
        self.acknowledged, self.unsure = Counter(), Counter()  # outcomes by URL; sent, but no answer came

    def run(self):
        with Client(self.url, self.token, patience=0.0, timeout=300) as client:
            try:
                while True:
                    self.crawl(client)
            except ServiceError as problem:
                self.problem = problem

    def crawl(self, client):
        pages = client.pick(3, wait=1.0)
        outcomes = [Outcome(page.lease, status=200, body=page.url.encode()) for page in pages]
        self.unsure.update(page.url for page in pages)
        words = client.record(outcomes)
        self.unsure.clear()
        assert set(words) <= {"recorded"}, words
        self.acknowledged.update(page.url for page in pages)


def until(condition, process):
    """Wait until a condition holds, as long as a process runs."""
    while not condition():
        assert process.poll() is None, "the service has ended"
        time.sleep(0.02)


def is_ready(url):
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=300) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.mark.parametrize("crawls", few([True, False], 1))
def test_nothing_acknowledged_is_missing_after_sigterm(crawls, run, site, here):  # noqa: F811
    (here / "urls.txt").write_text("\n".join(f"{site.url}/p/{k}" for k in range(30, 430)))
    run("add", "urls.txt")
    token = run("token", "add", "crawlers", "--scope", "crawl").out.strip()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    options = ["--allow-private", "--contact", "a@example.org"] if crawls else ["--no-crawl"]
    command = [sys.executable, "-m", "recrawl", "serve", "--listen", address, "--budget", "300/s", "--delay", "0"]
    environment = {**os.environ, "RECRAWL_HOST_CONCURRENCY": "0"}
    process = subprocess.Popen([*command, "--log-level", "error", *options], cwd=here, env=environment)
    try:
        url = f"http://{address}"
        until(lambda: is_ready(url), process)
        clients = [Crawling(url, token) for _ in range(4)]
        for client in clients:
            client.start()
        until(lambda: all(sum(client.acknowledged.values()) >= 9 for client in clients), process)
        until(lambda: not crawls or any(path.startswith("/p/") for path, _ in site.asked), process)
        assert all(client.is_alive() for client in clients), "they go on while it ends"
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
    for client in clients:
        client.join(120)
        assert client.problem is not None, "each ended because nobody answered"
        assert client.problem.status in (0, 503)
    with BlockingStore(SqliteStore(here / "recrawl.db")) as store:
        stored = Counter(outcome.url for outcome in store.observations())
        assert store.check() == []
    acknowledged = sum((client.acknowledged for client in clients), Counter())
    unsure = sum((client.unsure for client in clients), Counter())
    assert not acknowledged - stored, "acknowledged and missing"
    if not crawls:
        assert not stored - acknowledged - unsure, "nothing else is stored"
    else:
        assert site.asked, "the service crawled too"
