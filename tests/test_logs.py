"""Log records: one event name and fields per record, as text and as JSON, without secrets."""

import asyncio
import json
import logging

import pytest

from recrawl import ParameterError
from recrawl._compile import compiling
from recrawl.logs import StderrHandler, configure, event, event_line, silent

log = logging.getLogger("recrawl.tests")


@pytest.fixture(autouse=True)
def _restored():
    logger = logging.getLogger("recrawl")
    before, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:], logger.level = before, level
    compiling.say_by(compiling.print_line)
    logging.getLogger("recrawl.tests").manager._clear_cache()


def written(capsys):
    return capsys.readouterr().err.splitlines()


def test_a_record_of_text_is_one_line(capsys):
    configure("info")
    event(log, logging.INFO, "crawl.failed", url="https://a.example/", n=2, changed=None, y='so "so"\nand so', empty="")
    (line,) = written(capsys)
    head = "INFO recrawl.tests crawl.failed"
    fields = r'url=https://a.example/ n=2 changed=null y="so \"so\" and so" empty=""'
    assert line[10] == "T"
    assert line.split("Z ", 1)[1] == f"{head} {fields}"


def test_a_record_of_json_is_one_object(capsys):
    configure("debug", "json")
    event(log, logging.DEBUG, "crawl.ended", url="https://a.example/é", status=200, error=ValueError("a\nb"))
    (line,) = written(capsys)
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "debug",
        "logger": "recrawl.tests",
        "event": "crawl.ended",
        "url": "https://a.example/é",
        "status": 200,
        "error": "ValueError: a b",
    }


def test_a_line_for_other_handlers_has_its_fields_in_the_message(caplog):
    caplog.set_level("INFO", logger="recrawl")
    event_line(log, logging.INFO, "scrapy.ready", source="http://me:s3cret@a.example/", seconds=1.5, pages=None)
    event_line(log, logging.ERROR, "scrapy.failed", error='no "budget"')
    event_line(log, logging.DEBUG, "scrapy.ready")
    with silent():
        event_line(log, logging.ERROR, "scrapy.failed", error="not logged")
    assert [record.getMessage() for record in caplog.records] == [
        "recrawl: scrapy.ready source=http://***@a.example/ seconds=1.5",
        r'recrawl: scrapy.failed error="no \"budget\""',
    ]
    assert [record.fields for record in caplog.records][1] == {"error": 'no "budget"'}


def test_a_silent_task_logs_nothing_nor_do_tasks_that_it_starts(capsys):
    configure("info")

    async def work():
        with silent():
            await asyncio.gather(*(asyncio.create_task(part()) for _ in range(2)))
        event(log, logging.INFO, "loud")

    async def part():
        event(log, logging.INFO, "quiet")

    asyncio.run(work())
    (line,) = written(capsys)
    assert line.endswith(" loud")


def test_compilation_is_a_line_or_a_record_from_info_on(capsys):
    first, later = compiling.Progress(0, 9, "a.b", True), compiling.Progress(3, 6, "c.d", False)
    configure("warning", "text")
    compiling._say(first)
    compiling._say(later)
    assert written(capsys) == [
        "recrawl: compiling kernels, once per version: at most 9 to go",
        "recrawl: compiling kernels, in every run (no folder for them can be written): 3 done, at most 6 left, now c.d",
    ]
    configure("warning", "json")
    compiling._say(first)
    assert written(capsys) == []
    configure("info", "json")
    compiling._say(later)
    found = json.loads(written(capsys)[0])
    assert {name: found[name] for name in ("event", "done", "left", "now", "kept")} == {
        "event": "kernels.compiling",
        **later._asdict(),
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_never_written(capsys, form):
    configure("info", form)
    secret = {"webhook_secret": "s3cret", "headers": {"Authorization": "s3cret"}, "Cookie": "s3cret", "token": "s3cret"}
    event(
        log,
        logging.INFO,
        "x",
        **secret,
        url="https://me:s3cret@a.example/",
        error=ValueError("http://s3cret@b.example"),
    )
    (line,) = written(capsys)
    assert "s3cret" not in line
    assert "a.example" in line


def test_only_records_of_the_level_are_written_and_each_once(capsys):
    configure("debug")
    configure("warning", "json")
    configure("warning")
    event(log, logging.INFO, "quiet")
    event(log, logging.WARNING, "loud", text="x" * 5000)
    (line,) = written(capsys)
    assert " loud " in line
    assert len(line) < 1100
    assert sum(isinstance(one, StderrHandler) for one in logging.getLogger("recrawl").handlers) == 1


def test_a_plain_record_of_logging_is_written_too(capsys):
    configure()
    log.warning("%d of %d", 1, 2)
    assert written(capsys)[0].endswith("WARNING recrawl.tests 1 of 2")


def test_unknown_levels_and_formats_are_refused():
    with pytest.raises(ParameterError, match="log level is 'loud': must be one of debug, info, warning, error"):
        configure("loud")
    with pytest.raises(ParameterError, match="log format is 'xml'"):
        configure("info", "xml")
