"""Notifications: messages about changes to a real mail server and a real receiver on loopback."""

import asyncio
import json
import socket
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes, policy
from zoneinfo import ZoneInfo

import pytest

from crawl.driving import START, World
from crawl.mailbox import PASSWORD, certified, receiving, trusting
from crawl.test_webhook import Receiver
from recrawl.crawl.config.notify import Notify, parse_notify
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.deliver.notify.hook import Hook, check_template, filled
from recrawl.crawl.deliver.notify.mail import Mail, MailServer, check_address, composed
from recrawl.crawl.deliver.notify.message import message_of
from recrawl.crawl.deliver.notify.notifier import Notifier
from recrawl.crawl.deliver.subscribers import NotDelivered
from recrawl.crawl.http.memory import ManualClock
from recrawl.errors import ParameterError
from recrawl.store import Event, MemoryStore

pytestmark = pytest.mark.slow

URL = "https://a.example/0"
HOSTILE = "x\r\nBcc: victim@example.org\r\n\r\n<script>alert(1)</script>\u202e]]>&\x00"
EVENT = Event(7, "s.7", URL, "changed", START, old_text="Tea\ngreen 3.00\nend", new_text="Tea\ngreen 3.20\nend")


@pytest.fixture
def mailbox():
    with receiving() as box:
        yield box


def mail_to(port, *to, **options):
    server = {"tls": "none", "timeout": 10.0, **options}
    return Mail(MailServer("127.0.0.1", port, "recrawl@example.org", **server), to or ("you@example.org",))


def send(mail, events=(EVENT,), **options):
    asyncio.run(mail(message_of(list(events), **options)))


# --- messages ---------------------------------------------------------------------------------------------------------


def test_a_message_shows_what_changed():
    message = message_of([EVENT])
    assert message.subject == "changed: Tea"
    assert message.text() == (
        "Tea\nchanged 2023-11-14 22:13 UTC: https://a.example/0\n    Tea\n  - green 3.00\n  + green 3.20\n    end\n"
    )
    assert "green 3.20" in message.html()
    assert message_of([EVENT], diffs=False).items[0].diff is None
    assert message_of([replace(EVENT, old_text=None)]).items[0].diff is None, "the text before was not kept"
    many = message_of([replace(EVENT, number=k, url=f"https://h{k}.example/") for k in range(60)], n_more=5)
    assert many.subject == "65 changes: h0.example, h1.example, h2.example …"
    assert (len(many.items), many.left_out) == (50, 15)
    assert sum(item.diff is not None for item in many.items) == 20
    assert many.text().endswith("… and 15 further changes\n")
    urls = [f"https://a.example/{k}" for k in (1, 2, 1)]
    few = [replace(EVENT, number=k, url=url) for k, url in enumerate(urls)]
    assert message_of(few[:2]).subject == "2 pages changed: a.example"
    assert message_of(few).subject == "3 changes: a.example", "two of them are of one page"
    assert message_of(few[:1], n_more=2).subject == "3 changes: a.example", "whose the others are is not known"
    assert message_of([replace(EVENT, kind="gone", new_text=None)]).subject == "gone: Tea"
    twice = message_of([replace(EVENT, kind="changed"), replace(EVENT, kind="gone", new_text=None)])
    assert (twice.subject, len(twice.items)) == ("gone: Tea", 2), "one page, its newest event"


@pytest.mark.parametrize("place", ["url", "new_text", "old_text"])
def test_what_a_page_says_is_no_markup_and_no_header(place):
    event = replace(EVENT, **{place: HOSTILE if place != "url" else "https://a.example/" + HOSTILE})
    message = message_of([event])
    mail = composed(message, "recrawl@example.org", ("you@example.org",))
    sent = message_from_bytes(bytes(mail), policy=policy.default)
    assert sent["Bcc"] is None
    assert sent["To"] == "you@example.org"
    assert "\n" not in message.subject
    assert "<script" not in message.html()
    assert "\u202e" not in message.subject
    body = json.loads(json.dumps(filled({"text": "{subject} {url} {diff}", "n": 1}, message)))
    assert list(body) == ["text", "n"]
    shown = replace(event, url="javascript:alert(1)")
    assert "href" not in message_of([shown]).html()


def test_places_of_a_template_are_filled_once():
    message = message_of([replace(EVENT, new_text="{url} {subject}\nx")])
    template = {"a": ["{title}", {"b": "{count}: {kind}"}], "n": 3, "flag": True}
    assert filled(template, message) == {"a": ["{url} {subject}", {"b": "1: changed"}], "n": 3, "flag": True}
    assert filled("{id} {} {X} {{url}}", message) == "s.7 {} {X} {https://a.example/0}"
    with pytest.raises(ParameterError, match="place"):
        check_template({"text": ["{titel}"]}, "template")


# --- mail -------------------------------------------------------------------------------------------------------------


def test_a_mail_arrives_with_text_and_html(mailbox):
    send(mail_to(mailbox.serve(), "you@example.org", "all@example.org"))
    ((envelope, mail),) = mailbox.mails
    assert envelope.rcpt_tos == ["you@example.org", "all@example.org"]
    assert (mail["From"], mail["Subject"]) == ("recrawl@example.org", "changed: Tea")
    assert mail["Auto-Submitted"] == "auto-generated"
    kinds = [part.get_content_type() for part in mail.walk()]
    assert kinds == ["multipart/alternative", "text/plain", "text/html"]
    assert "+ green 3.20" in mail.get_body(("plain",)).get_content()


def test_a_mail_that_is_sent_again_has_the_same_id(mailbox):
    port = mailbox.serve()
    send(mail_to(port))
    send(mail_to(port))
    assert len({mail["Message-ID"] for _, mail in mailbox.mails}) == 1


def test_login_and_encryption(mailbox):
    options = {"auth_required": True, "authenticator": mailbox.authenticated}
    port = mailbox.serve(tls_context=certified(), require_starttls=True, **options)
    login = {"user": "me", "password": PASSWORD}
    send(mail_to(port, tls="starttls", ssl_context=trusting(), **login))
    assert (len(mailbox.mails), mailbox.users) == (1, ["me"])
    with pytest.raises(NotDelivered, match="refused the login"):
        send(mail_to(port, tls="starttls", ssl_context=trusting(), user="me", password="wrong"))
    with pytest.raises(NotDelivered, match="no trusted encrypted connection"):
        send(mail_to(port, tls="starttls", **login))
    plain = mailbox.serve()
    with pytest.raises(NotDelivered, match="offers no encryption"):
        send(mail_to(plain, tls="starttls"))
    sealed = mailbox.serve(ssl_context=certified())
    send(mail_to(sealed, tls="tls", ssl_context=trusting()))
    assert len(mailbox.mails) == 2
    assert PASSWORD not in repr(mail_to(port, **login)._server)


def test_what_the_server_refuses_is_named_without_addresses(mailbox):
    port = mailbox.serve()
    with pytest.raises(NotDelivered) as caught:
        send(mail_to(port, "nobody@example.org"))
    assert str(caught.value) == "the mail server refused the recipients (550)"
    send(mail_to(port, "nobody@example.org", "you@example.org"))
    assert len(mailbox.mails) == 1, "the others get it, once"
    mailbox.refuses = 1
    with pytest.raises(NotDelivered, match="answered 451"):
        send(mail_to(port))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
    with pytest.raises(NotDelivered, match="no connection to the mail server"):
        send(mail_to(nobody))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sender": "x\r\nBcc: y@example.org"}, "not an e-mail address"),
        ({"sender": ""}, "not an e-mail address"),
        ({"host": "smtp.example.org", "tls": "none", "user": "a", "password": "b"}, "without encryption"),
        ({"user": "a"}, "needs a password"),
    ],
)
def test_settings_of_the_mail_server_are_checked(options, why):
    with pytest.raises(ParameterError, match=why):
        MailServer(**{"host": "127.0.0.1", "port": 25, "sender": "a@example.org", **options})
    for bad in ("a", "a@", "@b", "a b@c", "a@b\n", "<a@b>", "a@b, c@d", "ü@example.org", "a" * 3000 + "@"):
        with pytest.raises(ParameterError):
            check_address(bad, "mail")


# --- webhooks ---------------------------------------------------------------------------------------------------------


class Hooked(Receiver):
    """Keeps bodies as they come."""

    async def _answer(self, headers, body, writer):
        self.posts.append((headers, body))
        status = self.script.pop(0) if self.script else 204
        writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()


def hooked(test, script=(), **options):
    async def main():
        async with Hooked(script) as receiver:
            hook = Hook(receiver.url, **{"allow_private": True, **options})
            try:
                return receiver, await test(hook)
            finally:
                await hook.close()

    return asyncio.run(main())


def test_a_message_is_posted_by_its_template():
    message = message_of([replace(EVENT, new_text='"}, {"x": "\nline')])
    receiver, _ = hooked(lambda hook: hook(message), template={"content": "{title}", "embeds": [{"d": "{count}"}]})
    ((headers, body),) = receiver.posts
    assert json.loads(body) == {"content": '"}, {"x": "', "embeds": [{"d": "1"}]}
    assert headers["Content-Type"] == "application/json"
    receiver, _ = hooked(lambda hook: hook(message), template="{subject}")
    assert receiver.posts[0][1] == b'changed: "}, {"x": "'
    receiver, _ = hooked(lambda hook: hook(message))
    assert sorted(json.loads(receiver.posts[0][1])) == ["subject", "text"]


def test_refusals_redirects_and_private_addresses():
    for status in (500, 302, 404):
        with pytest.raises(NotDelivered, match=f"answered {status}"):
            hooked(lambda hook: hook(message_of([EVENT])), [status])
    for url in ("http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/", "http://169.254.169.254/x"):
        with pytest.raises(NotDelivered, match="private"):
            asyncio.run(once(Hook(url, timeout=5.0)))


async def once(hook):
    try:
        await hook(message_of([EVENT]))
    finally:
        await hook.close()


# --- when messages are sent -------------------------------------------------------------------------------------------


def berlin(day, hour, minute=0):
    return datetime(2026, 3, day, hour, minute, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


def test_when_messages_are_due():
    at_once = Notify("a", mail=("a@b.example",))
    assert at_once.due_at(5.0, 9.0) == 9.0
    span = replace(at_once, digest="15 min")
    assert span.due_at(100.0, 200.0) == 1000.0
    assert span.due_at(100.0, 2000.0) == 2000.0
    daily = replace(at_once, digest="8:00", zone="Europe/Berlin")
    assert daily.due_at(berlin(10, 7), berlin(10, 7)) == berlin(10, 8)
    assert daily.due_at(berlin(10, 8), berlin(10, 8)) == berlin(11, 8)
    assert daily.due_at(berlin(28, 9), berlin(28, 9)) == berlin(29, 8), (
        "the day on which clocks go forward has 23 hours"
    )
    nights = replace(at_once, quiet="22-7", zone="Europe/Berlin")
    assert nights.due_at(berlin(10, 23), berlin(10, 23)) == berlin(11, 7)
    assert nights.due_at(berlin(10, 12), berlin(10, 12)) == berlin(10, 12)
    assert replace(nights, digest="1 h").due_at(berlin(10, 21, 30), berlin(10, 21, 30)) == berlin(11, 7)


class Sent:
    """Keeps messages; raises as often as it is asked to."""

    def __init__(self, fails=0):
        self.messages, self.fails = [], fails

    async def __call__(self, message):
        if self.fails:
            self.fails -= 1
            raise NotDelivered("down")
        self.messages.append(message)

    async def close(self):
        """Nothing is open."""


def page(url, now):
    """Each page changes every ten minutes."""
    return f"<title>T</title><p>{int(now / 600.0)}</p>"


def notified(seconds, rule, sent, world=None, **options):
    """A crawl of two pages with a notifier; the world."""
    world = world or World(page, [URL, "https://b.example/1"], budget=0.02, delay=0.0, robots=False)
    notifier = Notifier(rule, sent, world.store.store, world.clock)
    world.run(seconds, subscribers={notifier.name: notifier}, texts=rule.matches, **options)
    return world


def test_a_crawl_sends_messages_at_once():
    sent = Sent()
    rule = Notify("a", match=("https://a.example/*",), mail=("a@b.example",))
    world = notified(3600.0, rule, sent)
    assert len(sent.messages) >= 4
    assert {item.url for one in sent.messages for item in one.items} == {URL}
    assert all(item.diff is not None and item.diff.added == 1 for one in sent.messages for item in one.items)
    others = world.store.newest_events(url="https://b.example/1")
    assert others[0].new_text is None, "texts are kept only where a rule asks for them"
    (subscriber,) = world.store.subscribers()
    assert (subscriber.name, subscriber.failures) == ("notify:a", 0)


def test_a_digest_is_one_message_and_survives_restarts():
    rule = Notify("a", mail=("a@b.example",), digest="1 h")
    before, after = Sent(), Sent()
    world = notified(1800.0, rule, before)
    assert before.messages == []
    assert len(world.store.notes("notify:")["notify:a"]["numbers"]) >= 2
    notified(3600.0, rule, after, world)
    (message,) = after.messages[:1]
    assert len(message.items) > 4
    assert len({item.at for item in message.items}) == len(message.items)
    assert world.store.notes("notify:").get("notify:a", {"numbers": []})["numbers"] == [] or len(after.messages) == 1


def test_a_failing_receiver_is_tried_again_and_delays_nothing():
    sent, rule = Sent(fails=5), Notify("a", mail=("a@b.example",))
    world = notified(3600.0, rule, sent)
    changes = sorted(event.at for event in world.store.newest_events(kinds=["changed"]))
    notified(3600.0, rule, sent, world)  # what was on its way at the end is sent now
    assert len(sent.messages) >= 4
    numbers = [item.at for one in sent.messages for item in one.items]
    assert numbers == sorted(set(numbers)), "each once, in their order"
    assert numbers[: len(changes)] == changes, "none is missing"
    lasting = Sent(fails=10**9)
    world = notified(3600.0, Notify("a", mail=("a@b.example",)), lasting)
    (subscriber,) = world.store.subscribers()
    assert (subscriber.failure, subscriber.failures > 5) == ("down", True)
    assert world.store.counts()["observations"] > 50, "the crawl goes on"


def test_a_failing_digest_waits_longer_each_time():
    lasting = Sent(fails=10**9)
    world = notified(7200.0, Notify("a", mail=("a@b.example",), digest="10 min"), lasting)
    (subscriber,) = world.store.subscribers()
    tries = 10**9 - lasting.fails
    assert tries == subscriber.failures, "further events do not make it try sooner"
    assert 10 < tries < 60


def test_a_new_notification_gets_no_earlier_changes():
    world = World(page, [URL], budget=0.02, delay=0.0, robots=False)
    world.run(1800.0)
    n = world.store.event_counts()["last"]
    sent = Sent()
    notified(1800.0, Notify("a", mail=("a@b.example",), diff=False), sent, world)
    assert n >= 2
    assert min(item.at for one in sent.messages for item in one.items) > START + 1800.0


def test_events_that_are_no_longer_kept_are_counted():
    async def main():
        store, sent = MemoryStore(), Sent()
        clock = ManualClock(START)
        await store.save(notes={"notify:a": {"numbers": [4, 5], "more": 3, "since": START - 7200.0}})
        notifier = Notifier(Notify("a", mail=("a@b.example",), digest="1 h"), sent, store, clock)
        await notifier.load()
        assert notifier.n_waiting == 5
        assert notifier.wake_at() == START
        await notifier.flush()
        assert (sent.messages, await store.notes("notify:")) == ([], {})

    asyncio.run(main())


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({}, "either mail"),
        ({"mail": "a@b.example", "webhook": "https://x.example/"}, "either mail"),
        ({"mail": "a"}, "not an e-mail address"),
        ({"mail": [1]}, "a text or a list"),
        ({"webhook": "ftp://x.example/secret"}, "no http or https URL"),
        ({"webhook": "https://x.example/\r\nX: y"}, "no http or https URL"),
        ({"webhook": 5}, "must be a text"),
        ({"webhook": "https://x.example/", "template": 5}, "a table or a text"),
        ({"webhook": "https://x.example/", "template": {"a": "{nothing}"}}, "place"),
        ({"mail": "a@b.example", "template": "x"}, "goes with webhook"),
        ({"mail": "a@b.example", "kinds": "chnged"}, "changed"),
        ({"mail": "a@b.example", "digest": "soon"}, "notify 1: digest"),
        ({"mail": "a@b.example", "digest": "25:00"}, "notify 1: digest"),
        ({"mail": "a@b.example", "quiet": "late"}, "not understood"),
        ({"mail": "a@b.example", "quiet": 5}, "quiet"),
        ({"mail": "a@b.example", "zone": "Mars/Olympus"}, "zone"),
        ({"mail": "a@b.example", "zone": "../../etc/passwd"}, "zone"),
        ({"mail": "a@b.example", "diff": 1}, "true or false"),
        ({"mail": "a@b.example", "name": "a b"}, "name"),
        ({"mail": "a@b.example", "match": []}, "match"),
        ({"mail": "a@b.example", "foo": 1}, "foo"),
    ],
)
def test_bad_tables_are_refused(table, why):
    with pytest.raises(ParameterError, match=why) as caught:
        parse_notify((table,))
    assert "secret" not in str(caught.value)


def test_settings_go_together(tmp_path):
    table = {"mail": "a@b.example"}
    with pytest.raises(ParameterError, match="two of that name"):
        parse_notify(({"name": "x", **table}, {"name": "x", **table}))
    with pytest.raises(ParameterError, match="mail needs smtp"):
        Settings(notify=(table,))
    settings = Settings(smtp="127.0.0.1:25", smtp_from="r@b.example", notify=(table,))
    assert settings.mail_server().port == 25
    file = tmp_path / "recrawl.toml"
    file.write_text('smtp_password = "x"\n')
    with pytest.raises(ParameterError, match="RECRAWL_SMTP_PASSWORD"):
        Settings.read(file)
    (tmp_path / "password").write_text("of a file\n")
    given = {"smtp": "smtp.example.org", "smtp_from": "r@b.example", "smtp_user": "u"}
    known = Settings(**given, smtp_password_file=str(tmp_path / "password")).mail_server()
    assert (known.password, known.port) == ("of a file", 587)
    with pytest.raises(ParameterError, match="no variable HOOK"):
        Notify("a", webhook="$HOOK").url({})
    with pytest.raises(ParameterError, match="no http or https URL"):
        Notify("a", webhook="$HOOK").url({"HOOK": "file:///etc/passwd"})
    assert Notify("a", webhook="$HOOK").url({"HOOK": "https://x.example/"}) == "https://x.example/"
