"""WebSub: any order of events leaves the table of subscriptions sound."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from profiles import examples

from recrawl.crawl.signals.websub import subscription as steps
from recrawl.crawl.signals.websub.discovery import Links
from recrawl.crawl.signals.websub.signature import sign
from recrawl.crawl.signals.websub.subscription import DAY, VERIFY_WITHIN, Subscription

from .websub_table import HUB, NOW, OTHER, PAGE, deliver, new_table, verification


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
