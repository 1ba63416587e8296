"""WebSub: which deliveries are taken, and which of their items are news."""

import pytest

from recrawl.crawl.signals.websub import items as items_module
from recrawl.crawl.signals.websub import subscription as steps
from recrawl.crawl.signals.websub.items import ItemMemory, Said, feed_items, is_whole
from recrawl.crawl.signals.websub.signature import sign

from .websub_table import NOW, PAGE, active, deliver, fetched

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
    again = deliver(subscriptions, request.name, sign(secret, b"1"), b"1", NOW)
    assert again == "taken", "the limit that is documented"


def feed(*entries):
    """An Atom feed of (id, link, date) entries, as a delivery."""
    parts = "".join(
        f"<entry><id>{k}</id><link href='{link}'/><updated>{at}</updated></entry>" for k, link, at in entries
    )
    return fetched(f"<feed xmlns='http://www.w3.org/2005/Atom'>{parts}</feed>", "application/atom+xml")


def news_of(memory, *entries):
    """What a delivery of these entries says; it is stored."""
    items = feed_items(feed(*entries))
    said = memory.news(PAGE, items)
    memory.keep(PAGE, items)
    return said


def test_items_that_are_new_or_moved_are_news():
    memory, old = ItemMemory(), "2020-01-01T00:00:00Z"
    first = news_of(memory, (1, "/1", old), (2, "https://b.example/2", old), (3, "", old), (4, "http://[", old))
    assert first == [Said("https://a.example/1", 1577836800.0, 0.0)]  # of its own host; by its date
    assert news_of(memory, (1, "/1", old)) == []
    assert news_of(memory, (5, "/5", "1999-01-01"), (1, "/1", old)) == [Said("https://a.example/5")]  # a wrong clock
    assert news_of(memory, (1, "/1", "2019-01-01T00:00:00Z")) == [Said("https://a.example/1")]
    assert news_of(memory, (5, "/5", "1999-01-01")) == []


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
