"""Subscriptions: the table of all subscriptions, what is to be sent to hubs and when, and what callbacks are answered.

The table is driven from outside: ``found`` when a page was fetched, ``due`` for the requests to send, ``sent`` and
``answered`` with what became of one, ``verify``, ``judge`` and ``took`` for what reaches a callback. It is bounded: at
most ``MOST`` subscriptions, ``MOST_OF_HOST`` for the pages of one host.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import xxhash

from recrawl.crawl.signals.websub import subscription as steps
from recrawl.crawl.signals.websub.discovery import Links
from recrawl.crawl.signals.websub.signature import is_signed
from recrawl.crawl.signals.websub.subscription import LEASE, SUBSCRIBE, UNSUBSCRIBE, Subscription
from recrawl.engine.names.addresses import host_of

PREFIX = "websub:"  # notes of subscriptions
MOST = 5000
MOST_OF_HOST = 100
PATH = "/websub/"  # of callbacks, after the public URL
LONGEST_CHALLENGE = 1024  # characters
TOPIC_EVERY = 3600.0  # seconds after a request until another topic or hub of the same page is asked for
TAKEN, UNSIGNED, WRONG, REPEATED = "taken", "unsigned", "wrong", "repeated"


class HubRequest(NamedTuple):
    """A request to a hub: a form to be sent by POST."""

    name: str
    hub: str
    fields: dict[str, str]


@dataclass
class Subscriptions:
    """All subscriptions; ``public_url`` is where others reach this crawler."""

    public_url: str
    rng: random.Random
    token: Callable[[], str] = lambda: secrets.token_urlsafe(32)

    def __post_init__(self) -> None:
        self._by_name: dict[str, Subscription] = {}
        self._name_of: dict[str, str] = {}  # of pages
        self._n_of_host: Counter[str] = Counter()
        self._changed: set[str] = set()
        self.counts: Counter[str] = Counter()  # deliveries by verdict, and what was refused

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(list(self._by_name.values()))

    def get(self, name: str) -> Subscription | None:
        """The subscription of a callback."""
        return self._by_name.get(name)

    def of_page(self, page: str) -> Subscription | None:
        """The subscription of a page."""
        name = self._name_of.get(page)
        return None if name is None else self._by_name[name]

    # --- notes ----------------------------------------------------------------------------------------------------

    def restore(self, notes: Mapping[str, Any], now: float) -> None:
        """Take up the notes of earlier runs; callbacks under another public URL are asked for again."""
        for note in notes.values():
            moved = note.pop("public_url") != self.public_url
            one = Subscription.of_note(note, now)
            self._keep(replace(steps.renamed(one, self.token(), self.token()), next_at=now) if moved else one)
            if moved:
                self._changed.add(one.name)

    def pending_notes(self) -> dict[str, Any]:
        """Notes of what changed since the last call; None where a subscription no longer exists."""
        changed, self._changed = self._changed, set()
        return {PREFIX + name: self._note(name) for name in changed}

    def _note(self, name: str) -> dict[str, Any] | None:
        one = self._by_name.get(name)
        return None if one is None else {**one.as_note(), "public_url": self.public_url}

    # --- what pages say -------------------------------------------------------------------------------------------

    def found(self, page: str, links: Links | None, now: float) -> None:
        """A page was fetched: the hubs it names, or none. A hub that is no longer named is left when its lease ends."""
        one = self.of_page(page)
        if links is None:
            if one is not None and one.advertised:
                self._keep(replace(one, advertised=False))
            return
        if one is None:
            self._add(page, links, now)
        elif one.topic != links.topic or one.hub_url not in links.hubs:
            new = replace(one, topic=links.topic, hubs=links.hubs, hub=0, failures=0, denied="", advertised=True)
            at = one.asked_at + TOPIC_EVERY if one.asked_at else one.next_at
            at = min(max(at, now), now + TOPIC_EVERY)
            self._rename(replace(new, mode=SUBSCRIBE, next_at=at, recent=()))
        elif one.hubs != links.hubs or not one.advertised or one.mode == UNSUBSCRIBE:
            at = now if one.mode == UNSUBSCRIBE else one.next_at
            hub = links.hubs.index(one.hub_url)
            self._keep(replace(one, hubs=links.hubs, hub=hub, advertised=True, mode=SUBSCRIBE, next_at=at))

    def _add(self, page: str, links: Links, now: float) -> None:
        host = host_of(page)
        if len(self) >= MOST or self._n_of_host[host] >= MOST_OF_HOST:
            self.counts["beyond_limit"] += 1
            return
        self._keep(Subscription(self.token(), self.token(), page, links.topic, links.hubs, next_at=now))

    def left(self, page: str, now: float) -> None:
        """A page was removed: its subscription is ended, at the hub too where one lasts."""
        one = self.of_page(page)
        if one is None:
            return
        if one.active(now):
            self._keep(replace(one, mode=UNSUBSCRIBE, asked_at=0.0, next_at=now, advertised=False))
        else:
            self._drop(one)

    # --- requests to hubs -----------------------------------------------------------------------------------------

    def next_at(self) -> float:
        """When the next request is due."""
        return min((one.next_at for one in self._by_name.values()), default=float("inf"))

    def due(self, now: float, most: int = 4) -> list[HubRequest]:
        """The requests to send now, each marked as asked for: a hub may verify before it answers."""
        requests: list[HubRequest] = []
        for one in sorted((one for one in self if one.next_at <= now), key=lambda one: one.next_at):
            if len(requests) >= most:
                break
            request = self._due(one, now)
            if request is not None:
                requests.append(request)
        return requests

    def _due(self, one: Subscription, now: float) -> HubRequest | None:
        if one.asked_at and one.verified_at < one.asked_at:  # the hub never verified it
            self._failed(one, now)
            return None
        if one.mode == UNSUBSCRIBE and not one.active(now):
            self._drop(one)
            return None
        if not one.advertised and one.mode == SUBSCRIBE:
            self._lapse(one, now)
            return None
        if one.mode == SUBSCRIBE and not one.active(now):
            one = self._rename(one)
        one = steps.asked(one, now)
        self._keep(one)
        return HubRequest(one.name, one.hub_url, self._fields(one))

    def _lapse(self, one: Subscription, now: float) -> None:
        """A page that no longer names its hub keeps the lease that it has."""
        if one.active(now):
            self._keep(replace(one, next_at=one.lease_until))
        else:
            self._drop(one)

    def _fields(self, one: Subscription) -> dict[str, str]:
        fields = {"hub.mode": one.mode, "hub.topic": one.topic, "hub.callback": self.callback(one.name)}
        if one.mode == SUBSCRIBE:
            fields |= {"hub.secret": one.secret, "hub.lease_seconds": str(int(LEASE))}
        return fields

    def callback(self, name: str) -> str:
        """The URL that a hub calls."""
        return self.public_url.rstrip("/") + PATH + name

    def sent(self, name: str, now: float) -> None:
        """A request is sent; before, it may have waited for the budget."""
        one = self._by_name.get(name)
        if one is not None and one.verified_at < one.asked_at:
            self._keep(steps.sent(one, now))

    def answered(self, name: str, accepted: bool, now: float, wait: float | None = None) -> None:
        """A hub has answered a request, or could not be asked; ``wait`` is the time that it asked for."""
        one = self._by_name.get(name)
        if one is not None and not accepted and one.verified_at < one.asked_at:
            self._failed(one, now, wait)

    def _failed(self, one: Subscription, now: float, wait: float | None = None) -> None:
        self.counts["failed_requests"] += 1
        if one.mode == UNSUBSCRIBE:  # deliveries are answered 410 from now on
            self._drop(one)
        else:
            self._keep(steps.failed(one, now, self.rng.uniform(0.5, 1.0), wait))

    # --- what reaches callbacks -----------------------------------------------------------------------------------

    def verify(self, name: str, query: Mapping[str, str], now: float) -> str | None:
        """Answer a hub's verification or denial: the text to send, None for 404."""
        one = self._by_name.get(name)
        mode, challenge = query.get("hub.mode", ""), query.get("hub.challenge", "")
        if one is None or query.get("hub.topic") != one.topic:
            self.counts["not_asked"] += 1
            return None
        if mode == "denied":
            if one.mode == UNSUBSCRIBE:
                self._drop(one)
            else:
                self._keep(steps.denied(one, query.get("hub.reason", ""), now))
            return ""
        if mode != one.mode or not one.awaits(now) or not 0 < len(challenge) <= LONGEST_CHALLENGE:
            self.counts["not_asked"] += 1
            return None
        if mode == UNSUBSCRIBE:
            self._drop(one)
        elif one.verified_at < one.asked_at or not one.verified_at:  # a repetition is answered and changes nothing
            part = self.rng.uniform(steps.RENEW_FROM, steps.RENEW_TO)
            self._keep(steps.verified(one, steps.lease_of(query.get("hub.lease_seconds")), now, part))
        return challenge

    def judge(self, name: str, signature: str, body: bytes) -> str | None:
        """Judge a delivery: ``taken``, ``unsigned``, ``wrong`` or ``repeated``; None if there is no such callback."""
        one = self._by_name.get(name)
        if one is None or one.mode == UNSUBSCRIBE:
            self.counts["unknown"] += 1
            return None
        verdict = TAKEN
        if not signature.strip():
            verdict = UNSIGNED
        elif not is_signed(one.secret, signature, body):
            verdict = WRONG
        elif _digest(body) in one.recent:
            verdict = REPEATED
        self.counts[verdict] += 1
        return verdict

    def took(self, name: str, body: bytes, now: float) -> None:
        """What a delivery said is stored: from now on the same body is a repetition."""
        one = self._by_name.get(name)
        if one is not None:
            self._keep(steps.delivered(one, _digest(body), now))

    # --- the table ------------------------------------------------------------------------------------------------

    def _keep(self, one: Subscription) -> None:
        if one.name not in self._by_name:
            self._n_of_host[host_of(one.page)] += 1
        self._by_name[one.name] = one
        self._name_of[one.page] = one.name
        self._changed.add(one.name)

    def _rename(self, one: Subscription) -> Subscription:
        """Give a subscription another callback and secret."""
        self._drop(one)
        new = steps.renamed(one, self.token(), self.token())
        self._keep(new)
        return new

    def _drop(self, one: Subscription) -> None:
        host = host_of(one.page)
        self._by_name.pop(one.name, None)
        self._name_of.pop(one.page, None)
        self._changed.add(one.name)
        self._n_of_host[host] -= 1
        if self._n_of_host[host] <= 0:
            del self._n_of_host[host]


def _digest(body: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(body)
