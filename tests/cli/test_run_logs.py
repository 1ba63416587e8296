"""``--log-level`` and ``--log-format`` of the commands that crawl."""

import json

import pytest

from .test_crawl import RUN, added, here, refused, site  # noqa: F401


def test_run_writes_its_log_as_lines_of_json(run, site, here):  # noqa: F811
    added(run, site, 3)
    result = run(*RUN, "--once", "--log-level", "debug", "--log-format", "json")
    assert result.code == 0
    records = [json.loads(line) for line in result.err.splitlines() if line.startswith("{")]
    assert (records[0]["event"], records[0]["pages"]) == ("run.started", 3)
    assert (records[-1]["event"], records[-1]["level"]) == ("run.ended", "info")
    crawled = [record for record in records if record["event"] == "crawl.ended"]
    assert len(crawled) == json.loads(result.out)["ended"] == 3
    assert {record["status"] for record in crawled} == {200}


def test_nothing_is_logged_where_nothing_is_wrong(run, site, here):  # noqa: F811
    added(run, site, 3)
    assert "recrawl.crawl" not in run(*RUN, "--once").err


@pytest.mark.parametrize("command", [("run", "--contact", "me@example.org"), ("audit",), ("add", "https://a.example/")])
def test_unknown_levels_and_formats_are_refused(run, here, command):  # noqa: F811
    assert "log level is 'loud'" in refused(run, *command, "--log-level", "loud")
    assert "log format is 'xml'" in refused(run, *command, "--log-format", "xml")


def test_without_a_terminal_run_logs_its_start_and_its_end(run, site, here):  # noqa: F811
    added(run, site, 3)
    shown = [word for word in RUN if word != "--json"]
    lines = run(*shown, "--once").err.splitlines()
    assert "run.started database=recrawl.db budget=50/s" in next(line for line in lines if "run.started" in line)
    assert "reason=done" in lines[-1]
    assert "run.started" not in run(*shown, "--once", "--quiet").err
