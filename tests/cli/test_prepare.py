"""recrawl prepare: the kernels of crawls are on disk afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recrawl import _jit
from recrawl._compiling import is_cached
from recrawl.cli.commands import app

# Prints the kernels that Python has called, with their types.
USED = """
from recrawl import _jit
from recrawl._compiling import name_of
print(*sorted(f"{name_of(one)} {types}" for one in _jit.KERNELS for types in getattr(one, "overloads", ())), sep="\\n")
"""
PREPARE = "from recrawl.cli.service.prepare import prepare; prepare(as_json=True)"
SERVE = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from serving.service import with_service

async def use(one):
    for _ in range(3):
        pages = (await one.call("POST", "/v1/pick", {"n": 5, "wait": 5.0}))[1]["pages"]
        outcomes = [{"lease": page["lease"], "status": 200, "digest": "same"} for page in pages]
        assert (await one.call("POST", "/v1/record", {"outcomes": outcomes}))[0] == 200
    for path in ("/v1/status", "/v1/forecast?budget=2000/s", f"/v1/why?url={pages[0]['url']}", "/v1/pages"):
        assert (await one.call("GET", path))[0] == 200, path

with TemporaryDirectory() as folder:
    with_service(use, Path(folder))
"""


def used(program):
    """The kernels that a program calls from Python, with their types."""
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tests)!r})\n{program}\n{USED}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_kernels_are_on_disk_and_a_service_of_new_pages_compiles_nothing_more():
    report, *prepared = used(PREPARE)
    found = json.loads(report)
    assert found["folder"] == str(_jit.cache_folder())
    assert found["kernels"] >= len(prepared) > 50
    from recrawl.engine.crawl_kernels import end_crawls
    from recrawl.schedule.exact.kernels.picking import pick_promoting

    assert is_cached(end_crawls)
    assert is_cached(pick_promoting)
    more = set(used(SERVE))
    assert len(more) > 15
    assert more <= set(prepared), more - set(prepared)


def test_without_a_folder_nothing_can_be_prepared(monkeypatch):
    monkeypatch.setattr(_jit, "cache_folder", lambda: None)
    found = CliRunner().invoke(app, ["prepare"])
    assert "set NUMBA_CACHE_DIR" in str(found.exception)
