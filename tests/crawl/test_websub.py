"""WebSub without input and output: subscribing, and what a restart keeps."""

import random

import pytest

from recrawl.crawl.signals.websub import subscriptions as table
from recrawl.crawl.signals.websub.discovery import Links
from recrawl.crawl.signals.websub.signature import sign
from recrawl.crawl.signals.websub.subscription import DAY, LEASE, VERIFY_WITHIN
from recrawl.crawl.signals.websub.subscriptions import Subscriptions

from .websub_table import HUB, LINKS, NOW, OTHER, PAGE, active, asked, deliver, new_table, verification

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
    [("3600", 3600.0), ("0", 100.0), ("-5", LEASE), ("", LEASE), ("soon", LEASE), ("9" * 18, 90 * DAY), ("²", LEASE)],
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


@pytest.mark.parametrize("granted", [80, 100, 299, 3600])
def test_short_leases_are_renewed_before_they_end(granted):
    subscriptions, request = asked()
    now = NOW
    for _ in range(20):
        query = verification(request, **{"hub.lease_seconds": str(granted)})
        assert subscriptions.verify(request.name, query, now) == "echo me"
        assert 60.0 <= subscriptions.next_at() - now <= granted
        now = subscriptions.next_at()
        (again,) = subscriptions.due(now)
        assert again == request, "the callback that the hub knows"
        subscriptions.sent(again.name, now)


def test_a_lease_without_length_costs_at_most_a_request_a_minute():
    subscriptions, request = asked()
    subscriptions.verify(request.name, verification(request, **{"hub.lease_seconds": "1"}), NOW)
    assert subscriptions.next_at() >= NOW + 60.0


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
