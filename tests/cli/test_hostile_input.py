"""Hostile values for every option and argument of every command: one line and exit code 2, or success; nothing is lost.

The grid comes from the commands' own definitions. A new option is covered by itself; a new command needs a line in
`BASE`.
"""

import os
import subprocess
from pathlib import Path

import pytest

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.store import BlockingStore, Outcome, SqliteStore

from .tree import commands, options

pytestmark = pytest.mark.slow

VALUES = ["", "-1", "nan", "1e308", "1e-320", "1" + "0" * 24, "x\udcff", "no/[red]/%s/" + "x" * 300]
URLS = [f"https://{host}.example/{k}" for host in "ab" for k in range(3)]
SMALL = ["--pages", "5", "--horizon", "2", "--repetitions", "1", "--jobs", "1"]
BASE = {
    "demo": ["--database", "notes.txt", "--for", "0.1s"],
    "prepare": [],
    "add": ["https://a.example/new"],
    "run": ["--dry-run", "2"],
    "serve": ["--no-crawl", "--listen", "nowhere"],
    "urlfrontier": ["--host", "nowhere.invalid"],
    "status": [],
    "events": [],
    "notify": [],
    "audit": ["--list"],
    "why": [URLS[0]],
    "signals": [],
    "import": ["log.csv"],
    "export": ["--pages", "pages-out.csv"],
    "backup": ["copy.db"],
    "copy": ["recrawl.db", "copied.db"],
    "remove": ["https://a.example/absent"],
    "set": [URLS[0], "--importance", "2"],
    "cluster create": [],
    "cluster status": [],
    "cluster budget": ["2/s"],
    "cluster drain": ["absent"],
    "cluster ray": ["--workers", "1"],
    "token add": ["cms"],
    "token list": [],
    "token remove": ["absent"],
    "reload": [],
    "solve": ["pages.csv", "--budget", "2/day"],
    "estimate": ["log.csv"],
    "plan": ["log.csv"],
    "simulate": ["--world", "poisson", "--policy", "uniform", "--budget", "1/day", *SMALL],
    "predict train": ["pages.csv", "--out", "model.json"],
    "predict score": ["notes.txt", "pages.csv", "--out", "rates.csv"],
    "trace git": ["repository", "--out", "trace"],
    "reproduce": ["kolobov2019", "--check", "--floors", "nowhere"],
}
COMMANDS = dict(commands())


def words_of(name, command):
    """Argument lists of a command: each hostile value for each option and argument, a flag with a value, and others."""
    first, base = name.split(), BASE[name]
    valued, flags = options(command)
    for option in valued:
        for value in VALUES:
            yield [*first, *base, option, value]
        yield [*first, *base, option]
    for flag in flags:
        yield [*first, *base, f"{flag}=yes"]
    for value in VALUES:
        yield [*first, value, *base[1:]]
    yield [*first, *base, "--no-such-option"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that commands read, and a database."""
    here = tmp_path_factory.mktemp("hostile")
    (here / "notes.txt").write_text("not a database\n")
    (here / "log.csv").write_text(
        "url,time,changed\n" + "".join(f"{u},{1e9 + 9e4 * k},{k % 2}\n" for u in URLS for k in range(4))
    )
    (here / "pages.csv").write_text("url,change_rate,importance\n" + "".join(f"{url},0.5,2\n" for url in URLS))
    git = ["git", "-C", str(here / "repository"), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(here / "repository")], check=True)
    (here / "repository" / "page.md").write_text("text\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "a page"], check=True)
    with BlockingStore(SqliteStore(here / "recrawl.db")) as store:
        engine = store.run(open_engine(store.store, 1e9, budget=1.0))
        store.run(save_pages(engine, store.store, add_pages(engine, Rules(), URLS, 1e9)))
        store.save([Outcome(url, 1e9 + 9.0, status=200, digest="d", changed=True) for url in URLS])
    return here


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    for name in [name for name in os.environ if name.startswith("RECRAWL_")]:
        monkeypatch.delenv(name)
    return folder


def contents(folder):
    """The bytes of every file that a user would miss."""
    found = {}
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            if not name.endswith(("-shm", "-wal", ".lock")):
                found[name] = Path(here, name).read_bytes()
    return found


def test_every_command_has_a_base():
    assert set(BASE) == set(COMMANDS)


def test_hostile_input_is_one_line_and_nothing_is_lost(run, here):
    refused, before = set(), contents(here)
    for name, command in COMMANDS.items():
        for argv in words_of(name, command):
            result = run(*argv)
            after = contents(here)
            assert result.code in (0, 2), (argv, result)
            if result.code == 2:
                lines = [line for line in result.err.splitlines() if "compiling kernels" not in line]
                assert len(lines) == 1, (argv, result)
                assert lines[0].startswith("recrawl: "), (argv, result)
                assert result.out == "", (argv, result)
                assert after == before, argv
                refused.add(tuple(argv))
            before = after
    assert len(refused) >= 500
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        assert set(store.urls()) >= set(URLS)
        assert store.check() == []
