"""Secrets in no view, answer, metric, event, refusal, error or log record: each is marked, and all is searched."""

import io
import json
import logging
import time
from contextlib import contextmanager

import pytest
from aiosmtpd.smtp import AuthResult
from crawl.mailbox import receiving

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
    """A crawl with secrets in all places, whose page changes and whose messages are refused; its log.

    The mail server refuses the login, and says the password that it was given.
    """
    folder = tmp_path_factory.mktemp("secrets")
    site = Site(copies=0, hostile=False)
    site.pages = {URL: ("Fast", 1e-5)}
    quick = {"budget": "20/s", "delay": "0 s", "min_change_probability": "0", "allow_private": True}
    _, tokens = crawl_days(site, folder, 0.0, time.time(), **quick)
    with receiving() as box, logged() as log:
        port = box.serve(auth_require_tls=False, authenticator=_refusing(heard := []))
        mail = {"smtp": f"127.0.0.1:{port}", "smtp_tls": "none", "smtp_from": "recrawl@example.org", "smtp_user": "me"}
        settings = settings_of(folder, **quick, **MARKED, **mail, notify=(HOOK, MAIL), rule=(RULE,))
        with Served(site, settings, desk=True) as server:
            end = time.monotonic() + 300.0
            while (log.getvalue().count('"subscriber.') < 3 or not heard) and time.monotonic() < end:
                time.sleep(0.1)
            assert set(heard) == {MARKED["smtp_password"]}, "it was sent, and to nobody else"
            yield server, tokens, log


def _refusing(heard):
    """A mail server's check of logins."""

    def check(server, session, envelope, mechanism, data):
        heard.append(data.password.decode())
        return AuthResult(success=False, handled=False, message=f"535 5.7.8 not with {heard[-1]}")

    return check


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
    assert "the mail server refused the login (535)" in log.getvalue()
    assert any("(hidden)" in one.text for one in said), "the rule with its header is shown, its value is not"
    _search([*said, log], code, cookie, *tokens.values())


def test_no_secret_is_said_by_the_interface_for_programs(crawl, monkeypatch):
    """Every method of every path under /v1: allowed, refused, with what cannot be read, and while it fails."""
    server, tokens, log = crawl
    endpoints = server.service.endpoints()
    heads = {name: {"authorization": f"Bearer {token}"} for name, token in tokens.items()}
    heads |= {"wrong": {"authorization": f"Bearer {tokens['admin']}x"}, "none": {}}
    heads["basic"] = {"authorization": f"Basic {tokens['admin']}"}
    with Person(server) as person:
        said = [person.get("/v1/openapi.json"), *(person.get("/changes.xml", headers=one) for one in heads.values())]
        for one in endpoints:
            for head in heads.values():
                if one.streams:
                    said += _streamed(person, head)
                elif one.method == "GET":
                    said.append(person.get(one.path, headers=head, params={**one.example}))
                    said.append(person.get(one.path, headers=head, params={"url": URL, "match": URL, "limit": 3}))
                else:
                    said.append(person.request(one.method, one.path, headers=head, data=b"{"))
                    said.append(person.request(one.method, one.path, headers=head, json={"odd": 1, "n": -1}))
                    said.append(person.request(one.method, one.path, headers=head, data=b"x" * (65 << 20)))
        said.append(person.get("/v1/why", headers=heads["read"], params={"url": URL}))
        assert said[-1].json()["url"] == URL
        monkeypatch.setattr(server.live.crawler.engine, "explain", _broken)
        said.append(person.get("/v1/why", headers=heads["read"], params={"url": URL}))
        assert said[-1].status_code == 500
    assert {200, 401, 403, 413, 422, 500} <= {one.status_code for one in said}
    assert sum(one.status_code == 200 for one in said) > len(endpoints)
    assert sum("changed" in one.text for one in said) > 1, "events are among them"
    _search([*said, log], *tokens.values())


def _streamed(person, head):
    """The first events of all, and refusals of a stream."""
    refused = person.get("/v1/events?cursor=odd", headers=head)
    with person.get("/v1/events?cursor=start", headers=head, stream=True) as answer:
        if answer.status_code != 200:
            return [refused, answer]
        lines = answer.iter_lines()
        answer._content = b"\n".join(next(lines) for _ in range(20))  # the rest never ends
        return [refused, answer]


def _search(said, *secrets):
    """No secret is in answers and where they lead, nor in a log."""
    for one in said:
        text = (
            one.getvalue() if isinstance(one, io.StringIO) else f"{one.text} {one.headers} {one.url.partition('?')[0]}"
        )
        assert "marked-" not in text
        assert not [secret for secret in secrets if secret in text]


def _broken(*_, **__):
    raise RuntimeError("odd")


async def _later(call):
    return call()


def _failing(problem):
    async def listed(*_):
        raise problem

    return listed
