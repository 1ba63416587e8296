"""recrawl prepare: the kernels of crawls are on disk afterwards."""

import json

import pytest
from typer.testing import CliRunner

from recrawl import _jit
from recrawl._compiling import is_cached
from recrawl.cli.commands import app


@pytest.mark.slow
def test_kernels_are_on_disk():
    found = CliRunner().invoke(app, ["prepare", "--json"])
    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    assert report["folder"] == str(_jit.cache_folder())
    assert report["kernels"] >= 100
    from recrawl.engine.crawl_kernels import end_crawls
    from recrawl.schedule.exact.kernels.picking import pick

    assert is_cached(end_crawls)
    assert is_cached(pick)


def test_without_a_folder_nothing_can_be_prepared(monkeypatch):
    monkeypatch.setattr(_jit, "cache_folder", lambda: None)
    found = CliRunner().invoke(app, ["prepare"])
    assert "set NUMBA_CACHE_DIR" in str(found.exception)
