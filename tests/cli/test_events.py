"""``recrawl events``, what ``status`` says of subscribers and hosts, and what ``run`` says on standard error."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from recrawl.crawl.run.opening.pages import open_engine
from recrawl.logs import configure
from recrawl.store import BlockingStore, EventLimits, Outcome, SqliteStore, Subscriber
from recrawl.store.testing.rows import example_rows

from .test_crawl import RUN, added, here, refused, site  # noqa: F401
from .web import SmallWeb

pytestmark = pytest.mark.slow

URLS = [f"https://a.example/{k}" for k in range(5)]


def filled(path, n, first=0, **options):
    """A database with n more events."""
    with BlockingStore(SqliteStore(path, **options)) as store:
        if not store.urls():
            store.save(rows=example_rows(URLS))
        for k in range(first, first + n):
            store.save([Outcome(URLS[k % 5], 1.7e9 + k, status=200, digest=f"d{k}", changed=True, text=f"text {k}")])


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_events_are_lines_of_json_from_any_number_on(run, here):  # noqa: F811
    filled("recrawl.db", 12)
    result = run("events")
    assert (result.code, result.err) == (0, "")
    found = lines(result.out)
    assert [one["number"] for one in found] == list(range(1, 13))
    assert [one["kind"] for one in found] == ["new"] * 5 + ["changed"] * 7
    assert (found[5]["old_text"], found[5]["new_text"]) == ("text 0", "text 5")
    assert set(found[0]) == {"number", "id", "url", "kind", "at", "status", "new_digest", "new_text"}
    assert lines(run("events", "--after", 10).out) == found[10:]
    assert run("events", "--after", 12).out == ""


def test_a_snapshot_says_what_is_there_and_where_to_go_on(run, here):  # noqa: F811
    filled("recrawl.db", 12)
    found = lines(run("events", "--snapshot").out)
    assert {one["url"]: one["new_digest"] for one in found} == {URLS[k % 5]: f"d{k}" for k in range(7, 12)}
    assert {one["number"] for one in found} == {12}
    filled("recrawl.db", 1, 12)
    assert [one["number"] for one in lines(run("events", "--after", 12).out)] == [13]


def test_a_file_goes_on_after_its_last_line_also_when_it_was_cut(run, here):  # noqa: F811
    filled("recrawl.db", 6)
    run("events", "--output", "out.jsonl")
    filled("recrawl.db", 4, 6)
    with open("out.jsonl", "ab") as file:
        file.write(b'{"number": 7, "id": "ha')
    assert run("events", "--output", "out.jsonl").code == 0
    with open("out.jsonl") as file:
        assert [one["number"] for one in lines(file.read())] == list(range(1, 11))
    run("events", "--snapshot", "--output", "all.jsonl")
    filled("recrawl.db", 2, 10)
    run("events", "--snapshot", "--output", "all.jsonl")
    with open("all.jsonl") as file:
        assert [one["number"] for one in lines(file.read())] == [10] * 5 + [11, 12]


def test_events_that_are_no_longer_kept_are_reported(run, here):  # noqa: F811
    filled("recrawl.db", 12, events=EventLimits(rows=4))
    result = run("events", "--after", 2)
    assert [one["number"] for one in lines(result.out)] == [9, 10, 11, 12]
    assert result.err == "recrawl: 6 events after number 2 are no longer stored\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--snapshot", "--after", 3], "give it without --after"),
        (["--after", "-1"], "after"),
        (["--after", 10**24], "after"),
        (["--output", "other.jsonl"], "other.jsonl: its events are of another database"),
        (["--output", "bad.txt"], "bad.txt: its last line is not an event"),
        (["--output", "no/such/file"], "No such file or directory"),
        (["--database", "absent.db"], "there is no such database"),
    ],
)
def test_bad_wishes_are_refused(run, here, arguments, line):  # noqa: F811
    filled("recrawl.db", 1)
    (here / "bad.txt").write_text("a letter\n")
    (here / "other.jsonl").write_text('{"number": 1, "id": "other.1", "url": "https://a.example/", "kind": "new"}\n')
    assert line in refused(run, "events", *arguments)
    assert (here / "bad.txt").read_text() == "a letter\n"


def test_follow_goes_on_until_it_is_asked_to_end(here):  # noqa: F811
    filled("recrawl.db", 3)
    command = [sys.executable, "-m", "recrawl", "events", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        first = [json.loads(process.stdout.readline())["number"] for _ in range(3)]
        filled("recrawl.db", 2, 3)
        then = [json.loads(process.stdout.readline())["number"] for _ in range(2)]
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(300) == 0
    assert first + then == [1, 2, 3, 4, 5]


# --- run with a webhook -----------------------------------------------------------------------------------------------


@pytest.fixture
def hook():
    web = SmallWeb()
    yield web
    web.close()


SECRET = "a secret of some length"


def test_a_crawl_posts_its_events_and_status_says_how_far(run, run_until, hook, here, monkeypatch):  # noqa: F811
    added(run, hook)
    monkeypatch.setenv("RECRAWL_WEBHOOK_SECRET", SECRET)
    (here / "recrawl.toml").write_text(f'webhook = "{hook.url}/hook"\nevent_text = true\n')
    result = run_until(lambda: len(hook.asked) > 30 and hook.posts, *RUN)
    assert (result.code, result.err) == (0, ""), result
    from recrawl.crawl.deliver.webhook import verify

    got = []
    for headers, body in hook.posts:
        assert verify(SECRET, headers["Recrawl-Timestamp"], headers["Recrawl-Signature"], body)
        got += json.loads(body)["events"]
    printed = lines(run("events").out)
    assert got == printed
    assert {"new", "changed"} == {one["kind"] for one in printed}
    assert printed[0]["new_text"].startswith("/p/")
    events = json.loads(run("status", "--json").out)["events"]
    (subscriber,) = events["subscribers"]
    assert events["followers"] == events["subscribers"]
    assert (subscriber["name"], subscriber["lag"], subscriber["failures"], subscriber["dropped"]) == (
        "webhook",
        0,
        0,
        0,
    )
    assert events["last"] == len(printed)
    assert "subscriber webhook        0 events behind\n" in run("status").out


def test_a_receiver_that_fails_is_reported_and_nothing_secret_is_said(run, run_until, hook, here, monkeypatch):  # noqa: F811
    added(run, hook)
    (here / "secret.txt").write_text(SECRET + "\n")
    (here / "recrawl.toml").write_text(f'webhook = "{hook.url}/token-123"\nwebhook_secret_file = "secret.txt"\n')
    hook.status = 500
    result = run_until(lambda: hook.refused > 1, *RUN)
    assert result.code == 0
    record = 'WARNING recrawl.crawl.run.progress subscriber.failed subscriber=webhook failures=1 reason="answered 500"'
    assert record in result.err
    status = run("status").out
    assert "events behind" in status
    assert "last: answered 500" in status
    both = result.out + result.err + status
    assert SECRET not in both
    assert "token-123" not in both
    hook.status = 204
    run_until(lambda: hook.posts, *RUN)
    got = [event["number"] for _, body in hook.posts for event in json.loads(body)["events"]]
    assert got == [one["number"] for one in lines(run("events").out)]


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        ('webhook = "ftp://a.example/"\nwebhook_secret_file = "s"', "webhook is no http or https URL"),
        ('webhook = "https://a.example/"', "give at least 16, in the environment variable RECRAWL_WEBHOOK_SECRET"),
        ('webhook = "https://a.example/"\nwebhook_secret_file = "absent"', "absent: No such file or directory"),
        ('webhook_secret = "0123456789abcdef"', "webhook_secret does not belong here"),
        ("event_rows = -1", "event_rows is -1: must be at least 0"),
        ('event_age = "soon"', "event_age 'soon' is not a span of time"),
    ],
)
def test_settings_that_cannot_work_are_refused(run, site, here, toml, line):  # noqa: F811
    added(run, site)
    (here / "s").write_text(SECRET)
    (here / "recrawl.toml").write_text(toml)
    text = refused(run, *RUN, "--for", "1s")
    assert line in text
    assert "0123456789abcdef" not in text


def test_errors_of_the_crawler_are_logged_once_each_up_to_a_limit(capsys):
    from recrawl.crawl.run.progress import Reporter

    configure()
    report = Reporter()
    for k in range(50):
        report("error", url=f"https://a.example/{k}", problem=ValueError("line one\nline two"))
    lines = capsys.readouterr().err.splitlines()
    fields = 'crawl.error url=https://a.example/0 error="ValueError: line one line two"'
    assert lines[0].endswith(f"Z ERROR recrawl.crawl.run.progress {fields}")
    assert len(lines) == 21
    report("dropped", subscriber="webhook", n=7)
    report("commands", n=3)
    for n in (1, 2, 3, 4):
        report("not delivered", subscriber="webhook", failures=n, why="down", problem=ValueError())
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_run_logs_an_exception_in_a_detector(run, site, here, monkeypatch):  # noqa: F811
    added(run, site, 3)
    from recrawl.crawl.detect.detectors import MainText

    monkeypatch.setattr(MainText, "digest", lambda self, fetched: {}["no"])
    result = run(*RUN, "--once")
    assert result.code == 0
    assert "crawl.error url=" in result.err
    assert "/p/0 error=\"KeyError: 'no'\"" in result.err
    assert json.loads(result.out)["errors"] >= 3


def test_status_names_hosts_that_fail_and_why(run, here):  # noqa: F811
    urls = [
        "https://a.example/1",
        "https://a.example/2",
        "https://b.example/",
        "https://c.example/",
        "https://d.example/",
    ]
    failures = ["timeout", "reset", "robots", "robots", None]
    assert run("add", *urls).code == 0
    kept = {"text": None, "at": [0, 0, 0], "failure": "dns"}
    now = time.time()
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        engine = store.run(open_engine(store.store, now, budget=1.0))
        engine.record(engine.id(urls[:2]), now, failed=[True, True])
        outcomes = [Outcome(url, now, failure=word) for url, word in zip(urls, failures, strict=True)]
        store.save(outcomes, engine.rows(), notes={"robots:https://b.example": kept})
        store.save_subscriber(Subscriber("index", dropped=3))
    found = {one["host"]: one["reasons"] for one in json.loads(run("status", "--json").out)["hosts"]}
    assert found == {"a.example": {"timeout": 1, "reset": 1}, "b.example": {"robots.txt: dns": 1}}
    text = run("status").out
    assert "hosts that fail: 2\n" in text
    assert "  a.example                               timeout, reset\n" in text
    assert "3 EVENTS DROPPED" in text
