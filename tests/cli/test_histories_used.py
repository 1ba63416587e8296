"""Plans, crawls and importance from histories of other tools and from access logs."""

import gzip
import json

import pytest

from . import stores
from .histories import (
    COMBINED,
    STORES,
    combined,
    json_lines,
    same_checks,
    saved_sitemaps,
    sitemap_log,
    warc_file,
)
from .stores import CHECKS, URLS


def same_plan(run, path, own, *options):
    """Whether a plan from a history has the figures of the plan from a crawl log."""
    found = [json.loads(run("plan", one, *options, "--json").out) for one in (path, own)]
    for one in found:
        for name in ("file", "repairs", "remarks", "computed"):
            one.pop(name)
    return found[0] == found[1]


TOOLS = ["warc", "urlwatch", "webchanges", "changedetection", "sitemaps"]


def history_and_log(folder, tool):
    """The history of a tool, and the same checks as a crawl log."""
    checks = same_checks(CHECKS) if tool == "changedetection" else CHECKS
    own = stores.own_log(folder / "own.csv", checks)
    if tool == "warc":
        return warc_file(folder / "crawl.warc.gz", stores.warc_records(checks), True), own
    if tool == "sitemaps":
        return saved_sitemaps(folder / "maps"), sitemap_log(own)
    if tool == "changedetection":
        return stores.changedetection(folder / "datastore", checks), own
    return STORES[tool](folder / "cache.db", checks), own


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_plans_are_the_same(run, tmp_path, tool):
    assert same_plan(run, *history_and_log(tmp_path, tool), "--budget", "5/day")


@pytest.mark.slow
def test_one_command_from_a_store_to_a_plan(run, tmp_path):
    path = stores.urlwatch(tmp_path / "cache.db", CHECKS)
    result = run("plan", path, "--budget", "6/day", "--every", "1d")
    assert result.code == 0, result
    assert "3 pages" in result.out
    assert "urlwatch keeps changes and failures only" in result.out


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_an_imported_history_is_crawled_on(run, tmp_path, tool):
    """Pages, their rates, and crawls (URL, time, changed) in the database are those of an imported crawl log."""
    exported = []
    for k, path in enumerate(history_and_log(tmp_path, tool)):
        database, pages, crawls = (tmp_path / f"{k}{suffix}" for suffix in (".db", ".pages.csv", ".crawls.csv"))
        result = run("import", path, "--database", database, "--json")
        assert result.code == 0, result
        assert json.loads(result.out)["added"] == 3
        assert run("export", "--database", database, "--pages", pages, "--observations", crawls).code == 0
        rows = [line.split(",")[:3] for line in crawls.read_text().splitlines()]
        exported.append((sorted(pages.read_text().splitlines()), sorted(rows)))
    assert exported[0] == exported[1]


@pytest.mark.slow
@pytest.mark.parametrize("form", [combined, json_lines])
@pytest.mark.parametrize("packed", [False, True])
def test_requests_are_importance(run, tmp_path, form, packed):
    own = stores.own_log(tmp_path / "own.csv", CHECKS)
    weights = dict(zip(URLS, (5, 0.5, 1), strict=True))
    rows = own.read_text().splitlines()
    weighted = [f"{line},{weights[line.split(',')[0]]}" for line in rows[1:]]
    (tmp_path / "weighted.csv").write_text("\n".join([f"{rows[0]},importance", *weighted]) + "\n")
    data = ("\n".join(form(broken=True)) + "\n").encode()
    (tmp_path / "access").write_bytes(gzip.compress(data) if packed else data)
    found = json.loads(run("plan", own, "--access-log", tmp_path / "access", "--json").out)
    other = json.loads(run("plan", tmp_path / "weighted.csv", "--json").out)
    assert found["budgets"] == other["budgets"]
    assert found["now"] == other["now"]
    assert "importance is the number of requests: 6 of 7 are for 2 pages" in found["remarks"]
    assert any("1 broken lines of the access log" in line and "line 10" in line for line in found["remarks"])


@pytest.mark.slow
def test_paths_are_pages_of_the_only_host(run, tmp_path):
    one = [check for check in CHECKS if "a.example" in check.url]
    own = stores.own_log(tmp_path / "own.csv", one)
    lines = [COMBINED.format(k=k, request="GET /about HTTP/1.1", status=200) for k in range(3)]
    (tmp_path / "access.log").write_text("\n".join(lines) + "\n")
    result = run("import", own, "--access-log", tmp_path / "access.log", "--database", tmp_path / "a.db", "--json")
    assert "importance is the number of requests: 3 of 3 are for 1 pages" in json.loads(result.out)["remarks"]
    run("export", "--database", tmp_path / "a.db", "--pages", tmp_path / "pages.csv")
    pages = [line.split(",")[:2] for line in (tmp_path / "pages.csv").read_text().splitlines()[1:]]
    assert dict(pages) == {URLS[0]: "0.5", URLS[1]: "3.0"}


@pytest.mark.slow
def test_access_logs_that_do_not_fit_are_one_line(run, tmp_path):
    own = stores.own_log(tmp_path / "own.csv", CHECKS)
    path = tmp_path / "access.log"
    cases = {
        COMBINED.format(k=1, request="GET /about HTTP/1.1", status=200): "no host, and the pages are of 2 hosts",
        json.dumps({"host": "c.example", "uri": "/", "status": 200}): "no request for any of the 3 pages",
        "what a day\nwhat a night": "is not an access log: 2 of 2 lines",
    }
    for text, line in cases.items():
        path.write_text(text + "\n")
        result = run("plan", own, "--access-log", path)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
        assert line in result.err
