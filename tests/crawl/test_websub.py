"""WebSub without input and output: discovery, signatures, and the state machine of subscriptions."""

import hashlib
import hmac
import random
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from profiles import examples

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.signals.websub import items as items_module
from recrawl.crawl.signals.websub import subscription as steps
from recrawl.crawl.signals.websub import subscriptions as table
from recrawl.crawl.signals.websub.discovery import Links, discover, header_links, speaks_for
from recrawl.crawl.signals.websub.items import ItemMemory, Said, feed_items, is_whole
from recrawl.crawl.signals.websub.signature import METHODS, is_signed, sign
from recrawl.crawl.signals.websub.subscription import DAY, LEASE, VERIFY_WITHIN, Subscription
from recrawl.crawl.signals.websub.subscriptions import Subscriptions

NOW = 1.7e9
PAGE, HUB, OTHER = "https://a.example/feed", "https://hub.example/", "https://hub.example.net/"
LINKS = Links(PAGE, (HUB, OTHER))
MODES = ["subscribe", "unsubscribe", "denied"]
HTML = "text/html; charset=utf-8"


def fetched(body="", content_type=HTML, link="", url=PAGE):
    headers = {"content-type": content_type} | ({"link": link} if link else {})
    return Fetched(url, url, 200, NOW, 0.1, headers, body.encode())


def new_table(**options):
    numbers = count()
    return Subscriptions("https://me.example", random.Random(1), lambda: f"token-{next(numbers)}", **options)


def asked(now=NOW):
    """A table whose one subscription is asked for, and the request."""
    subscriptions = new_table()
    subscriptions.found(PAGE, LINKS, now)
    (request,) = subscriptions.due(now)
    subscriptions.sent(request.name, now)
    return subscriptions, request


def verification(request, mode="subscribe", **more):
    query = {"hub.mode": mode, "hub.topic": request.fields["hub.topic"], "hub.challenge": "echo me"}
    return query | {"hub.lease_seconds": "864000"} | more


def active(now=NOW):
    subscriptions, request = asked(now)
    assert subscriptions.verify(request.name, verification(request), now + 1) == "echo me"
    return subscriptions, request


def deliver(subscriptions, name, signature, body, now):
    """The verdict on a delivery that is stored."""
    verdict = subscriptions.judge(name, signature, body)
    if verdict == "taken":
        subscriptions.took(name, body, now)
    return verdict


# --- discovery -------------------------------------------------------------------------------------------------------

_LINKS = '<link rel="hub" href="https://hub.example/"><link rel="self" href="/feed">'
_ATOM = '<feed xmlns="http://www.w3.org/2005/Atom">{}<entry><link rel="self" href="/entry"/></entry></feed>'
_RSS = (
    '<rss xmlns:a="http://www.w3.org/2005/Atom"><channel>{}<item><a:link rel="hub" href="/x"/></item></channel></rss>'
)
_XML = '<{0}link rel="hub" href="https://hub.example/"/><{0}link rel="self" href="https://a.example/feed"/>'


@pytest.mark.parametrize(
    ("page", "hubs"),
    [
        (fetched(link=f'<{HUB}>; rel="hub", <{PAGE}>; rel="self"'), (HUB,)),
        (fetched(link=f"<{HUB}>; rel=hub, <{OTHER}>; title=a; REL=Hub, </feed>; rel=self"), (HUB, OTHER)),
        (fetched(link=f'<{HUB}>; rel="preconnect hub", </feed>; rel="self alternate"'), (HUB,)),
        (fetched(f"<head>{_LINKS}</head>", link=f"<{OTHER}>; rel=hub, <{PAGE}>; rel=self"), (OTHER,)),
        (fetched(f"<head>{_LINKS}</head>", link=f"<{OTHER}>; rel=hub"), (HUB,)),
        (fetched(f"<html><head><title>t</title>{_LINKS}</head><body>b</body></html>"), (HUB,)),
        (fetched(f"<html><head></head><body>{_LINKS}</body></html>"), None),
        (
            fetched('<head><base href="/x/"><link rel=hub href="h"><link rel=self href="../feed">'),
            ("https://a.example/x/h",),
        ),
        (fetched(_ATOM.format(_XML.format("")), "application/atom+xml"), (HUB,)),
        (fetched(_ATOM.format(""), "application/atom+xml"), None),
        (fetched(_RSS.format(_XML.format("a:")), "application/rss+xml"), (HUB,)),
        (fetched(_RSS.format(_XML.format("a:")), "text/xml"), (HUB,)),
        (fetched(_RSS.format('<a:link rel="self" href="/feed"/>'), "text/xml"), None),
        (fetched('<!DOCTYPE r [<!ENTITY e "x">]>' + _ATOM.format(_XML.format("")), "text/xml"), None),
        (fetched(link="<ftp://hub.example/>; rel=hub, </feed>; rel=self"), None),
        (fetched(link=f"<{HUB}>; rel=hub, <http://[::1>; rel=self"), None),
        (fetched(f"{_LINKS}", "application/json"), None),
    ],
)
def test_the_hubs_of_a_document(page, hubs):
    found = discover(page)
    assert found == (None if hubs is None else Links(PAGE, hubs))


def test_at_most_five_hubs_are_kept():
    link = ", ".join(f"<https://h{k}.example/>; rel=hub" for k in range(50)) + f", <{PAGE}>; rel=self"
    assert len(discover(fetched(link=link)).hubs) == 5


def test_a_failed_or_unmodified_answer_names_no_hub():
    link = f"<{HUB}>; rel=hub, <{PAGE}>; rel=self"
    for options in ({"failure": "busy"}, {"not_modified": True}):
        assert discover(Fetched(PAGE, PAGE, 304, NOW, 0.1, {"link": link}, **options)) is None


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        (PAGE, True),
        ("https://a.example/feed?page=1", True),
        ("https://a.example/other", False),  # a page of its own
        ("https://b.example/feed", False),
    ],
)
def test_a_page_speaks_for_itself_alone(topic, allowed):
    assert speaks_for(PAGE, PAGE, Links(topic, (HUB,)), lambda url: url == "https://a.example/other") is allowed


@given(st.text(max_size=200))
@settings(max_examples=examples(200))
def test_any_header_is_read(text):
    for rel, _ in header_links(text):
        assert rel


@given(st.binary(max_size=400), st.sampled_from(["text/html", "text/xml", "application/atom+xml", "", "a/b"]))
@settings(max_examples=examples(200))
def test_any_body_is_searched(body, kind):
    body = b'<feed><link rel="hub" href="h"/><link rel="self" href="/s"/>' + body
    discover(Fetched(PAGE, PAGE, 200, NOW, 0.1, {"content-type": kind, "link": body.decode("latin-1")}, body))


# --- signatures ------------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=60), st.binary(max_size=200), st.sampled_from(METHODS), st.binary(min_size=1))
@settings(max_examples=examples(200))
def test_a_signature_is_of_one_secret_and_one_body(secret, body, method, more):
    secret = secret.encode("utf-8", "replace").decode()
    right = method + "=" + hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()
    assert sign(secret, body, method) == right
    assert is_signed(secret, right, body)
    assert is_signed(secret, f" {method.upper()}={right.partition('=')[2].upper()} ", body)
    assert not is_signed(secret, right, body + more)
    assert not is_signed(secret + "x", right, body)
    assert not is_signed(secret, right[:-1], body)


@pytest.mark.parametrize("header", ["", "sha256", "sha256=", "md5=0", "sha1=é", "=x", "new=0", "sha256=" + "0" * 500])
def test_what_is_no_signature(header):
    assert not is_signed("secret", header, b"")


# --- subscribing -----------------------------------------------------------------------------------------------------


def test_a_request_names_callback_topic_secret_and_lease():
    subscriptions, request = asked()
    one = subscriptions.of_page(PAGE)
    assert request.hub == HUB
    assert request.fields == {
        "hub.mode": "subscribe",
        "hub.topic": PAGE,
        "hub.callback": f"https://me.example/websub/{request.name}",
        "hub.secret": one.secret,
        "hub.lease_seconds": str(int(LEASE)),
    }
    assert subscriptions.due(NOW) == []


def test_callbacks_and_secrets_are_256_random_bits():
    subscriptions = Subscriptions("https://me.example", random.Random(1))
    for k in range(50):
        subscriptions.found(f"{PAGE}/{k}", Links(f"{PAGE}/{k}", (HUB,)), NOW)
    tokens = {token for one in subscriptions for token in (one.name, one.secret)}
    assert len(tokens) == 100
    assert min(len(token) for token in tokens) >= 43
    assert max(len(token) for token in tokens) < 200


@pytest.mark.parametrize(
    "query",
    [
        {"hub.mode": "unsubscribe"},
        {"hub.mode": "publish"},
        {"hub.mode": ""},
        {"hub.topic": PAGE + "/"},
        {"hub.topic": ""},
        {"hub.challenge": ""},
        {"hub.challenge": "x" * 1025},
    ],
)
def test_what_was_not_asked_for_is_not_found(query):
    subscriptions, request = asked()
    assert subscriptions.verify(request.name, verification(request) | query, NOW + 1) is None
    assert subscriptions.verify("another", verification(request), NOW + 1) is None
    assert subscriptions.counts["not_asked"] == 2
    assert subscriptions.of_page(PAGE).state(NOW + 1) == "asked"


def test_verification_before_the_hub_answered_and_again():
    subscriptions, request = active()
    one = subscriptions.of_page(PAGE)
    subscriptions.answered(request.name, False, NOW + 2)  # it was verified all the same
    assert subscriptions.verify(request.name, verification(request, **{"hub.lease_seconds": "1"}), NOW + 9) == "echo me"
    assert subscriptions.of_page(PAGE) == one
    assert one.lease_until == NOW + 1 + 864000
    assert subscriptions.verify(request.name, verification(request), NOW + VERIFY_WITHIN + 1) is None


@pytest.mark.parametrize(
    ("text", "lease"),
    [("3600", 3600.0), ("0", 300.0), ("-5", LEASE), ("", LEASE), ("soon", LEASE), ("9" * 18, 90 * DAY), ("²", LEASE)],
)
def test_leases_are_bounded(text, lease):
    subscriptions, request = asked()
    subscriptions.verify(request.name, verification(request, **{"hub.lease_seconds": text}), NOW)
    assert subscriptions.of_page(PAGE).lease == lease


def test_renewal_before_the_lease_ends_keeps_callback_and_secret():
    subscriptions, request = active()
    before = subscriptions.of_page(PAGE)
    at = subscriptions.next_at()
    assert 0.6 <= (at - NOW - 1) / before.lease <= 0.8
    assert subscriptions.due(at - 1) == []
    (again,) = subscriptions.due(at)
    assert again == request
    assert subscriptions.verify(again.name, verification(again), at + 1) == "echo me"
    assert subscriptions.of_page(PAGE).lease_until == at + 1 + 864000


def test_a_hub_that_is_gone_is_asked_less_and_less_and_the_other_too():
    subscriptions, _ = asked()
    hubs, waits, now = [], [], NOW
    for _ in range(24):
        one = subscriptions.of_page(PAGE)
        hubs.append(one.hub_url)
        subscriptions.answered(one.name, False, now)
        waits.append(subscriptions.next_at() - now)
        now = subscriptions.next_at()
        assert len(subscriptions.due(now)) == 1
    assert hubs == [HUB, OTHER] * 12
    assert all(FIRST / 2 <= wait <= FIRST for FIRST, wait in zip([60.0, 60.0, 120.0, 120.0], waits[:4], strict=True))
    assert max(waits) <= DAY
    assert waits[-1] > DAY / 2


def test_a_hub_may_ask_to_come_later():
    subscriptions, request = asked()
    subscriptions.answered(request.name, False, NOW, 7200.0)
    assert subscriptions.next_at() == NOW + 7200.0


def test_a_request_that_is_never_verified_fails():
    subscriptions, request = asked()
    subscriptions.answered(request.name, True, NOW)
    at = subscriptions.next_at()
    assert at == NOW + VERIFY_WITHIN
    assert subscriptions.due(at) == []
    (again,) = subscriptions.due(subscriptions.next_at())
    assert again.hub == OTHER
    assert again.name != request.name
    assert subscriptions.verify(request.name, verification(request), at) is None


def test_a_request_may_wait_before_it_is_sent():
    subscriptions = new_table()
    subscriptions.found(PAGE, LINKS, NOW)
    (request,) = subscriptions.due(NOW)
    later = NOW + 2 * VERIFY_WITHIN
    assert subscriptions.due(later) == []
    subscriptions.sent(request.name, later)
    assert subscriptions.verify(request.name, verification(request), later + 1) == "echo me"
    subscriptions.sent(request.name, later + 2)  # again, to where the hub was moved
    assert subscriptions.of_page(PAGE).asked_at == later


def test_a_lost_lease_ends_the_callback():
    subscriptions, request = active()
    now = subscriptions.next_at()
    while subscriptions.of_page(PAGE).active(now):
        for one in subscriptions.due(now):
            assert one.hub == HUB  # while the lease lasts
            subscriptions.answered(one.name, False, now)
        now = subscriptions.next_at()
    assert subscriptions.of_page(PAGE).state(now) == "waiting"
    (again,) = subscriptions.due(now)
    assert again.name != request.name
    assert again.fields["hub.secret"] != request.fields["hub.secret"]
    assert deliver(subscriptions, request.name, sign(request.fields["hub.secret"], b"x"), b"x", now) is None


def test_denial_at_any_time():
    for subscriptions, request in (asked(), active()):
        query = {"hub.mode": "denied", "hub.topic": PAGE, "hub.reason": "r" * 1000}
        assert subscriptions.verify(request.name, query | {"hub.topic": "x"}, NOW + 2) is None
        assert subscriptions.verify(request.name, query, NOW + 2) == ""
        one = subscriptions.of_page(PAGE)
        assert (one.state(NOW + 2), len(one.denied), one.hub_url) == ("denied", 200, OTHER)
        assert subscriptions.verify(request.name, verification(request), NOW + 3) is None
        assert subscriptions.next_at() == NOW + 2 + DAY


def test_unsubscribing():
    subscriptions, request = active()
    subscriptions.left(PAGE, NOW + 10)
    (end,) = subscriptions.due(NOW + 10)
    assert end.fields == {k: v for k, v in request.fields.items() if k in ("hub.topic", "hub.callback")} | {
        "hub.mode": "unsubscribe"
    }
    assert subscriptions.verify(end.name, verification(end), NOW + 11) is None
    assert deliver(subscriptions, end.name, "", b"", NOW + 11) is None
    assert subscriptions.verify(end.name, verification(end, "unsubscribe"), NOW + 11) == "echo me"
    assert len(subscriptions) == 0


def test_unsubscribing_from_a_hub_that_is_gone_is_tried_once():
    subscriptions, request = active()
    subscriptions.left(PAGE, NOW + 10)
    subscriptions.due(NOW + 10)
    subscriptions.answered(request.name, False, NOW + 10)
    assert len(subscriptions) == 0


def test_a_page_that_was_removed_before_it_was_verified():
    subscriptions, request = asked()
    subscriptions.left(PAGE, NOW)
    assert len(subscriptions) == 0
    assert subscriptions.verify(request.name, verification(request), NOW) is None


def test_a_page_that_names_no_hub_any_more_keeps_its_lease_only():
    subscriptions, _ = active()
    subscriptions.found(PAGE, None, NOW + 5)
    until = subscriptions.of_page(PAGE).lease_until
    assert subscriptions.due(subscriptions.next_at()) == []
    assert subscriptions.next_at() == until
    assert subscriptions.due(until) == []
    assert len(subscriptions) == 0


def test_another_topic_is_asked_for_at_most_once_an_hour():
    subscriptions, request = active()
    for k in range(10):
        subscriptions.found(PAGE, Links(f"{PAGE}?{k}", (HUB,)), NOW + k)
    assert len(subscriptions) == 1
    assert subscriptions.get(request.name) is None
    assert subscriptions.next_at() >= NOW + table.TOPIC_EVERY


def test_the_table_is_bounded(monkeypatch):
    monkeypatch.setattr(table, "MOST", 150)
    subscriptions = new_table()
    for k in range(300):
        url = f"https://h{k % 2}.example/{k}"
        subscriptions.found(url, Links(url, (HUB,)), NOW)
    assert len(subscriptions) == 150
    assert subscriptions.counts["beyond_limit"] == 150
    assert max(subscriptions._n_of_host.values()) <= table.MOST_OF_HOST
    assert len(subscriptions.due(NOW)) == 4


# --- deliveries ------------------------------------------------------------------------------------------------------


def test_deliveries_are_taken_once_and_only_if_signed():
    subscriptions, request = active()
    secret = request.fields["hub.secret"]
    assert not subscriptions.of_page(PAGE).speaks(NOW + 2)  # silent so far
    verdicts = [
        deliver(subscriptions, request.name, header, b"body", NOW + 2)
        for header in ("", "sha1=0", sign("other", b"body"), sign(secret, b"body"), sign(secret, b"body", "sha512"))
    ]
    assert verdicts == ["unsigned", "wrong", "wrong", "taken", "repeated"]
    assert deliver(subscriptions, "another", sign(secret, b"body"), b"body", NOW + 2) is None
    one = subscriptions.of_page(PAGE)
    assert (one.n_deliveries, one.delivered_at, one.speaks(NOW + 3)) == (1, NOW + 2, True)
    assert not one.speaks(one.lease_until)


def test_a_delivery_that_could_not_be_stored_is_no_repetition():
    subscriptions, request = active()
    signature = sign(request.fields["hub.secret"], b"body")
    assert subscriptions.judge(request.name, signature, b"body") == "taken"
    assert subscriptions.judge(request.name, signature, b"body") == "taken"


def test_only_the_last_bodies_are_remembered():
    subscriptions, request = active()
    secret = request.fields["hub.secret"]
    for k in range(100):
        body = str(k).encode()
        assert deliver(subscriptions, request.name, sign(secret, body), body, NOW) == "taken"
    assert len(subscriptions.of_page(PAGE).recent) == steps.REMEMBERED
    assert deliver(subscriptions, request.name, sign(secret, b"99"), b"99", NOW) == "repeated"


def feed(*entries):
    """An Atom feed of (id, link, date) entries, as a delivery."""
    parts = "".join(
        f"<entry><id>{k}</id><link href='{link}'/><updated>{at}</updated></entry>" for k, link, at in entries
    )
    return fetched(f"<feed xmlns='http://www.w3.org/2005/Atom'>{parts}</feed>", "application/atom+xml")


def told(memory, *entries):
    """What a delivery of these entries says; it is stored."""
    items = feed_items(feed(*entries))
    said = memory.news(PAGE, items)
    memory.keep(PAGE, items)
    return said


def test_items_that_are_new_or_moved_are_news():
    memory, old = ItemMemory(), "2020-01-01T00:00:00Z"
    first = told(memory, (1, "/1", old), (2, "https://b.example/2", old), (3, "", old), (4, "http://[", old))
    assert first == [Said("https://a.example/1", 1577836800.0, 0.0)]  # of its own host; by its date
    assert told(memory, (1, "/1", old)) == []
    assert told(memory, (5, "/5", "1999-01-01"), (1, "/1", old)) == [Said("https://a.example/5")]  # a wrong clock
    assert told(memory, (1, "/1", "2019-01-01T00:00:00Z")) == [Said("https://a.example/1")]
    assert told(memory, (5, "/5", "1999-01-01")) == []


def test_the_memory_of_items_is_bounded(monkeypatch):
    monkeypatch.setattr(items_module, "MOST_TOPICS", 5)
    monkeypatch.setattr(items_module, "MOST_ITEMS", 7)
    memory = ItemMemory()
    for k in range(30):
        memory.keep(f"{PAGE}/{k % 10}", feed_items(feed((k, f"/{k}", ""), (k + 100, "/x", ""))))
    assert len(memory._topics) == 5
    assert max(len(known) for known in memory._topics.values()) <= 7


@pytest.mark.parametrize(
    ("delivery", "content_type", "length", "whole"),
    [
        (fetched("<p>x</p>"), "text/html", 0, True),
        (fetched("<p>x</p>"), "TEXT/HTML; charset=latin-1", 0, True),
        (fetched("<p>x</p>"), "application/json", 0, False),
        (fetched("<p>x</p>"), None, 0, False),
        (fetched(" "), "text/html", 0, False),
        (fetched("x", ""), "", 0, False),
        (feed(*((k, f"/{k}", "") for k in range(10))), "application/atom+xml", 10, True),
        (feed(*((k, f"/{k}", "") for k in range(10))), "application/atom+xml", 11, True),
        (feed(*((k, f"/{k}", "") for k in range(10))), "application/atom+xml", 12, False),
        (feed(*((k, f"/{k}", "") for k in range(10))), "application/atom+xml", 0, False),
        (feed(), "application/atom+xml", 0, False),
    ],
)
def test_which_deliveries_hold_everything(delivery, content_type, length, whole):
    assert is_whole(delivery, content_type, length) is whole


# --- restarts --------------------------------------------------------------------------------------------------------


def restarted(subscriptions, now, public_url="https://me.example"):
    notes = {name: note for name, note in subscriptions.pending_notes().items() if note is not None}
    after = Subscriptions(public_url, random.Random(2))
    after.restore(notes, now)
    return after


def test_a_restart_keeps_lease_secret_and_what_was_delivered():
    subscriptions, request = active()
    deliver(subscriptions, request.name, sign(request.fields["hub.secret"], b"x"), b"x", NOW + 2)
    after = restarted(subscriptions, NOW + 60)
    assert after.of_page(PAGE) == subscriptions.of_page(PAGE)
    assert deliver(after, request.name, sign(request.fields["hub.secret"], b"x"), b"x", NOW + 61) == "repeated"


def test_another_public_url_asks_for_all_again():
    subscriptions, request = active()
    after = restarted(subscriptions, NOW + 60, "https://new.example/crawl/")
    (again,) = after.due(NOW + 60)
    assert again.fields["hub.callback"] == f"https://new.example/crawl/websub/{again.name}"
    assert again.name != request.name
    assert after.pending_notes()[table.PREFIX + request.name] is None


@pytest.mark.parametrize("back", [10.0, 3 * DAY, 1000 * DAY])
def test_a_clock_that_was_set_back_makes_the_renewal_due(back):
    subscriptions, _ = active()
    now = NOW - back
    after = restarted(subscriptions, now)
    assert after.of_page(PAGE).lease_until <= now + 864000
    (again,) = after.due(now)
    assert after.verify(again.name, verification(again), now + 1) == "echo me"
    assert after.of_page(PAGE).state(now + 1) == "active"


def test_a_clock_that_was_set_forward_ends_the_lease():
    subscriptions, request = active()
    after = restarted(subscriptions, NOW + 1000 * DAY)
    assert after.of_page(PAGE).state(NOW + 1000 * DAY) == "waiting"
    (again,) = after.due(NOW + 1000 * DAY)
    assert again.name != request.name


# --- any order of events ---------------------------------------------------------------------------------------------


def shape(one):
    """All that a restart keeps: a request that was not sent yet is due sooner."""
    return replace(one, next_at=0.0)


class Life(RuleBasedStateMachine):
    """Pages, a hub and a clock in any order: the table stays consistent and asks no more than it may."""

    @initialize()
    def begin(self):
        self.table, self.now, self.requests, self.active_before = new_table(), NOW, [], {}

    @rule(page=st.integers(0, 3), topic=st.integers(0, 2), hubs=st.integers(0, 2))
    def fetch(self, page, topic, hubs):
        url = f"{PAGE}/{page}"
        links = Links(f"{url}?{topic}", (HUB, OTHER)[:hubs]) if hubs else None
        self.table.found(url, links, self.now)

    @rule(page=st.integers(0, 3))
    def remove(self, page):
        self.table.left(f"{PAGE}/{page}", self.now)

    @rule(seconds=st.sampled_from([0.0, 1.0, 60.0, 3600.0, DAY, 8 * DAY]))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def ask(self):
        for request in self.table.due(self.now):
            assert request.name in {one.name for one in self.table}
            self.requests.append(request)

    @rule(k=st.integers(0, 99))
    @precondition(lambda self: self.requests)
    def send(self, k):
        self.table.sent(self.requests[k % len(self.requests)].name, self.now)

    @rule(accepted=st.booleans(), k=st.integers(0, 99))
    @precondition(lambda self: self.requests)
    def answer(self, accepted, k):
        self.table.answered(self.requests[k % len(self.requests)].name, accepted, self.now)

    @rule(
        mode=st.sampled_from(["subscribe", "unsubscribe", "denied"]), k=st.integers(0, 99), lease=st.integers(0, 10**7)
    )
    @precondition(lambda self: self.requests)
    def call_back(self, mode, k, lease):
        request = self.requests[k % len(self.requests)]
        before = self.table.get(request.name)
        got = self.table.verify(
            request.name, verification(request, mode, **{"hub.lease_seconds": str(lease)}), self.now
        )
        if mode != "denied" and got is not None:
            assert before is not None
            assert before.mode == mode
            assert self.now <= before.asked_at + VERIFY_WITHIN

    @rule(k=st.integers(0, 99), right=st.booleans(), body=st.binary(max_size=2))
    @precondition(lambda self: self.requests)
    def deliver(self, k, right, body):
        name = self.requests[k % len(self.requests)].name
        one = self.table.get(name)
        secret = one.secret if one is not None and right else "other"
        verdict = deliver(self.table, name, sign(secret, body), body, self.now)
        assert verdict in ((None, "taken", "repeated") if right else (None, "wrong"))

    @rule()
    def restart(self):
        self.notes = getattr(self, "notes", {}) | self.table.pending_notes()
        self.notes = {name: note for name, note in self.notes.items() if note is not None}
        after = new_table()
        after.restore({name: dict(note) for name, note in self.notes.items()}, self.now)
        assert {one.name: shape(one) for one in after} == {one.name: shape(one) for one in self.table}

    @invariant()
    def consistent(self):
        subscriptions = list(self.table)
        assert {one.page for one in subscriptions} == set(self.table._name_of)
        assert sum(self.table._n_of_host.values()) == len(subscriptions)
        for one in subscriptions:
            assert self.table.of_page(one.page) == one
            assert 0 <= one.hub < len(one.hubs)
            assert one.lease_until <= one.verified_at + steps.LONGEST_LEASE
            assert not one.active(self.now) or one.verified_at > 0
            assert one.next_at <= self.now + steps.LONGEST_LEASE
            assert shape(Subscription.of_note(one.as_note(), self.now)) == shape(one)


Life.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=30)
TestLife = Life.TestCase


# --- status ----------------------------------------------------------------------------------------------------------


def test_status_names_subscriptions_by_state():
    from recrawl.crawl.views.hub_report import hub_figures, hub_rows
    from recrawl.store import BlockingStore, MemoryStore

    subscriptions, request = active()
    subscriptions.found(PAGE + "/2", Links(PAGE + "/2", (OTHER,)), NOW)
    (second,) = subscriptions.due(NOW)
    subscriptions.verify(second.name, {"hub.mode": "denied", "hub.topic": PAGE + "/2"}, NOW)
    notes = subscriptions.pending_notes()
    notes["indexnow:a.example 0123456789"] = {"location": "x", "asked_at": NOW, "valid": True, "waiting": []}
    store = BlockingStore(MemoryStore())
    store.save(notes=notes)
    found = hub_figures(store, NOW + 2)
    assert found["states"] == {"active": 1, "denied": 1}
    assert (found["silent"], found["troubled"], found["keys_valid"]) == (1, {OTHER: 1}, 1)
    (hubs, keys) = hub_rows(found)
    assert hubs[1] == f"1 active, 1 denied; 0 deliveries; 1 silent so far; refused or failed by {OTHER}"
    assert keys == ("keys of pings", "1 valid, 0 refused")
    assert request.fields["hub.secret"] not in str(found)
