"""recrawl prepare: the kernels of crawls are on disk afterwards."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recrawl._compile import jit
from recrawl._compile.compiling import is_cached
from recrawl.cli.commands import app

# Prints the kernels that Python has called, with their types.
USED = """
from recrawl._compile import jit
from recrawl._compile.compiling import name_of
print(*sorted(f"{name_of(one)} {types}" for one in jit.KERNELS for types in getattr(one, "overloads", ())), sep="\\n")
"""
PREPARE = "from recrawl.cli.service.prepare import prepare; prepare(as_json=True)"
REHEARSE = "import asyncio; from recrawl.serve.rehearsal import rehearse_service; asyncio.run(rehearse_service())"
SERVE = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from serving.service import with_service

async def use(one):
    for hosts in (None, ["h1.example", "h2.example"], None):
        pages = (await one.call("POST", "/v1/pick", {"n": 5, "wait": 5.0, "hosts": hosts}))[1]["pages"]
        outcomes = [{"lease": page["lease"], "status": 200, "digest": "same"} for page in pages]
        assert (await one.call("POST", "/v1/record", {"outcomes": outcomes}))[0] == 200
    for path in ("/v1/status", "/v1/forecast?budget=2000/s", f"/v1/why?url={pages[0]['url']}", "/v1/pages"):
        assert (await one.call("GET", path))[0] == 200, path

with TemporaryDirectory() as folder:
    with_service(use, Path(folder))
"""

CRAWL = """
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote
from serving.dashboard.site import served

VIEWS = ["", "?order=stale", "?q=news", "stale", "freshness", "budget", "hosts", "signals", "feed", "settings"]

with TemporaryDirectory() as folder:
    with served(Path(folder), days=1.0, copies=2, audit_share="10%", audit_draws=20) as (server, tokens):
        server.figures()
        pages = [f"page?url={quote(url)}" for url in server.live.crawler.engine.url([0, 10, 20])]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        browser.open(f"{server.url}/sign-in", f"token={tokens['admin']}".encode()).close()
        for path in (*VIEWS, *pages):
            with browser.open(f"{server.url}/{path}") as answer:
                assert answer.url == f"{server.url}/{path}"
"""


@cache
def used(program):
    """The kernels that a program calls from Python, with their types."""
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tests)!r})\n{program}\n{USED}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_kernels_are_on_disk_and_include_those_that_a_service_rehearses():
    report, *prepared = used(PREPARE)
    found = json.loads(report)
    assert found["folder"] == str(jit.cache_folder())
    assert found["kernels"] >= len(prepared) > 50
    from recrawl.engine.outcomes.crawl_kernels import end_crawls
    from recrawl.schedule.exact.kernels.picking import pick_promoting

    assert is_cached(end_crawls)
    assert is_cached(pick_promoting)
    assert set(used(REHEARSE)) <= set(prepared)


@pytest.mark.slow
@pytest.mark.parametrize("program", [SERVE, CRAWL], ids=["crawlers of others", "a crawl with its dashboard"])
def test_a_rehearsed_service_compiles_nothing_more(program):
    rehearsed, needed = set(used(REHEARSE)), set(used(program))
    assert len(needed) > 15
    assert needed <= rehearsed, needed - rehearsed


def test_without_a_folder_nothing_can_be_prepared(monkeypatch):
    monkeypatch.setattr(jit, "writable_folder", lambda: None)
    found = CliRunner().invoke(app, ["prepare"])
    assert "set NUMBA_CACHE_DIR" in str(found.exception)
