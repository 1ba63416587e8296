"""Secrets in no view, metric, refusal, error or log record: each is marked, and all that is said is searched."""

import io
import json
import logging
import time
from contextlib import contextmanager

import pytest

from recrawl.errors import StoreError
from recrawl.logs import JsonFormatter
from serving.dashboard.site import Served, Site, crawl_days, settings_of
from serving.dashboard.test_routes import VIEWS, Person

pytestmark = pytest.mark.slow

URL = "https://fast.example.org/"
MARKED = {
    "smtp_password": "marked-smtp-password",
    "webhook_secret": "marked-webhook-signing-secret",
    "webhook": "http://127.0.0.1:9/marked-webhook-path",
}
HOOK = {"name": "chat", "webhook": "http://127.0.0.1:9/hooks/marked-notify-path", "allow_private": True}
MAIL = {"name": "team", "mail": "you@example.org"}
RULE = {"match": "https://fast.*", "headers": {"X-Key": "marked-header-value", "Cookie": "id=marked-cookie-value"}}


@contextmanager
def logged():
    """All that recrawl logs, as JSON, from the least level on."""
    text, logger = io.StringIO(), logging.getLogger("recrawl")
    handler, before = logging.StreamHandler(text), logger.level
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield text
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A crawl with secrets in all places, whose page changes and whose messages are refused; its log."""
    folder = tmp_path_factory.mktemp("secrets")
    site = Site(copies=0, hostile=False)
    site.pages = {URL: ("Fast", 1e-5)}
    quick = {"budget": "20/s", "delay": "0 s", "min_change_probability": "0", "allow_private": True}
    _, tokens = crawl_days(site, folder, 0.0, time.time(), **quick)
    mail = {"smtp": "127.0.0.1:9", "smtp_tls": "none", "smtp_from": "recrawl@example.org", "smtp_user": "recrawl"}
    settings = settings_of(folder, **quick, **MARKED, **mail, notify=(HOOK, MAIL), rule=(RULE,))
    with logged() as log, Served(site, settings) as server:
        end = time.monotonic() + 300.0
        while log.getvalue().count('"subscriber.') < 3 and time.monotonic() < end:
            time.sleep(0.1)
        yield server, tokens, log


def test_no_secret_is_said_anywhere(crawl, monkeypatch):
    server, tokens, log = crawl
    code = server.call(_later(server.board.sessions.new_code))
    with Person(server) as person:
        first = person.get(f"/sign-in?code={code}")
        assert first.status_code == 303
        said = [person.get(f"/sign-in?code={code}")]
        assert person.sign_in(tokens["admin"]).status_code == 303
        cookie = person.cookies["recrawl_session"]
        server.figures()
        said += [person.get(path) for path in [*VIEWS, f"/page?url={URL}", "/no-such-path"]]
        said += [person.post(path, data={"csrf": "x", "token": tokens["admin"]}) for path in ("/add", "/settings")]
        said += [
            person.act("/settings", budget="1/s", rules=rules, do="preview") for rules in ("[[rule]]\nx = 1", "[[")
        ]
        said += [person.get("/", headers={"host": "evil.example"}), person.post("/add", data=b"x" * (3 << 20))]
        for token in (tokens["read"], tokens["admin"], f"{tokens['read']}x"):
            head = {"authorization": f"Bearer {token}"}
            said += [
                person.get(path, headers=head) for path in ("/metrics", "/changes.xml", "/changes.xml?notify=chat")
            ]
            said.append(person.post("/v1/signals", headers=head, data=b"{"))
        for problem in (StoreError("disk I/O error"), RuntimeError("odd")):
            monkeypatch.setattr(server.board.lists, "listed", _failing(problem))
            said.append(person.get("/"))
    statuses = {one.status_code for one in said}
    assert {200, 401, 403, 404, 413, 421, 422, 500, 503} <= statuses
    records = [json.loads(line) for line in log.getvalue().splitlines()]
    assert {"dashboard.failed", "subscriber.failed"} <= {one["event"] for one in records}
    assert any("(hidden)" in one.text for one in said), "the rule with its header is shown, its value is not"
    for text in (*(one.text + str(one.url.partition("?")[0]) for one in said), log.getvalue()):
        assert "marked-" not in text
        for secret in (code, cookie, tokens["admin"], tokens["read"]):
            assert secret not in text


async def _later(call):
    return call()


def _failing(problem):
    async def listed(*_):
        raise problem

    return listed
