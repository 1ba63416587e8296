"""Servers and crawls of the hostile web in processes of their own: for the test and for the benchmark."""

import io
import json
import os
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path

from recrawl.cli import main
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.store import BlockingStore, SqliteStore

from .cases import CASES

TESTS = Path(__file__).parents[2]
MB = 1 << 20
MEMORY = 256 * MB
GOOD_HOSTS, GOOD_PAGES, DELAY = 10, 8, 2.0
SETTINGS = {
    "budget": "200/s",
    "delay": f"{DELAY} s",
    "timeout": "6 s",
    "largest_body": MB,
    "longest_delay": "2 s",
    "contact": "tests@example.org",
}


def _environment():
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextmanager
def serving(which, ended):
    """A process that serves; what it says at first, and at its end in ``ended``."""
    command = [sys.executable, "-m", "crawl.hostile.web", which]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=_environment(), cwd=TESTS, **pipes)
    try:
        yield json.loads(process.stdout.readline())
        ended |= json.loads(process.communicate(timeout=300)[0])
    finally:
        process.kill()
        process.wait()


@contextmanager
def crawling(folder, urls, *, seconds, each=False, **settings):
    """A process that is ready to crawl some pages and what begins it; what it said is in the first after the block.

    It crawls for so many seconds, or with ``each`` until every host was crawled, if that is sooner.
    """
    folder.mkdir()
    database, found = folder / "recrawl.db", {}
    with BlockingStore(SqliteStore(database)) as store:
        engine = store.run(open_engine(store.store, 1.7e9, budget=1.0))
        store.run(save_pages(engine, store.store, add_pages(engine, Rules(), urls, 1.7e9)))
    names = {one.host: one.addresses for one in CASES}
    given = {"settings": {**SETTINGS, **settings, "database": str(database)}, "names": names, "memory": MEMORY}
    command = [sys.executable, "-m", "crawl.hostile.crawl", json.dumps({**given, "seconds": seconds, "each": each})]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=_environment(), cwd=TESTS, **pipes)
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()[-3000:]
        yield found, partial(_go, process)
        out, err = process.communicate(timeout=seconds + 300)
        assert process.returncode == 0, err[-3000:]
        found |= {**json.loads(out), "stderr": err, "database": database}
    finally:
        process.kill()
        process.wait()


def _go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def status(database, *options):
    """What the command says, in this process."""
    said, code = io.StringIO(), None
    try:
        with redirect_stdout(said):
            main(["status", "--database", str(database), *options])
    except SystemExit as ended:
        code = ended.code
    assert not code, said.getvalue()
    return said.getvalue()


def good_urls(port):
    """Pages of the good hosts."""
    return [f"http://good{k % GOOD_HOSTS}.test:{port}/{k}" for k in range(GOOD_HOSTS * GOOD_PAGES)]


def hostile_urls(ports):
    """Two pages of each bad host."""
    return [f"{one.scheme}://{one.host}:{ports[one.host]}/p{k}" for one in CASES for k in range(2)]
