"""Subscription: the state of one topic at one hub, and the steps that lead from one state to the next.

Every step returns a new subscription; none reads a clock or sends anything. A subscription is *asked for* when a
request was handed out; the hub may verify it within ``VERIFY_WITHIN`` seconds after it was sent. It is *active* while
its lease lasts. A hub that refuses, fails or does not verify is asked again after a wait that doubles, the next hub of
the page first.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

DAY = 86400.0
LEASE = 10 * DAY  # seconds that are asked for
SHORTEST_LEASE, LONGEST_LEASE = 100.0, 90 * DAY  # what a granted lease counts as: at most a request a minute
SEND_WITHIN = 7 * DAY  # seconds that a request may wait for the budget
VERIFY_WITHIN = 3600.0  # seconds in which a request may be verified
RENEW_FROM, RENEW_TO = 0.6, 0.8  # parts of a lease, between which it is renewed
FIRST_WAIT, LONGEST_WAIT = 60.0, DAY  # seconds after a failure
DENIED_WAIT = DAY
SUBSCRIBE, UNSUBSCRIBE = "subscribe", "unsubscribe"
REMEMBERED = 32  # bodies whose repetition is recognized
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription; times in seconds since 1970, 0 where something has not happened."""

    name: str  # the last part of the callback URL: 256 random bits
    secret: str  # signs deliveries
    page: str  # the page that names the hub
    topic: str  # as the page writes it
    hubs: tuple[str, ...]
    hub: int = 0  # which of them
    mode: str = SUBSCRIBE  # what is wanted
    asked_at: float = 0.0  # of the request whose verification is awaited or was given
    verified_at: float = 0.0  # of the newest verification
    lease: float = 0.0  # seconds granted
    lease_until: float = 0.0
    next_at: float = 0.0  # when the next request is due
    failures: int = 0  # in a row
    denied: str = ""  # the hub's reason
    advertised: bool = True  # whether the page named the hub when it was last fetched
    n_deliveries: int = 0
    delivered_at: float = 0.0
    recent: tuple[str, ...] = ()  # digests of the last bodies

    @property
    def hub_url(self) -> str:
        """The hub that is asked."""
        return self.hubs[self.hub]

    def active(self, now: float) -> bool:
        """Whether a lease lasts."""
        return self.lease_until > now

    def awaits(self, now: float) -> bool:
        """Whether a request may be verified now."""
        return 0.0 < self.asked_at <= now <= self.asked_at + VERIFY_WITHIN

    def speaks(self, now: float) -> bool:
        """Whether the hub has delivered something under a lease that lasts; otherwise it is silent so far."""
        return self.active(now) and self.n_deliveries > 0

    def state(self, now: float) -> str:
        """``ending``, ``active``, ``denied``, ``asked`` or ``waiting``."""
        if self.mode == UNSUBSCRIBE:
            return "ending"
        if self.active(now):
            return "active"
        if self.denied:
            return "denied"
        return "asked" if self.awaits(now) else "waiting"

    def as_note(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {**asdict(self), "hubs": list(self.hubs), "recent": list(self.recent)}

    @classmethod
    def of_note(cls, note: dict[str, Any], now: float) -> Subscription:
        """The subscription of a note, as far as the clock that wrote it can have been right."""
        found = cls(**{**note, "hubs": tuple(note["hubs"]), "recent": tuple(note["recent"])})
        if found.asked_at > now or found.verified_at > now:  # the clock was set back: how long ago is unknown
            return replace(found, asked_at=0.0, lease_until=min(found.lease_until, now + found.lease), next_at=now)
        if found.verified_at < found.asked_at:  # whether it was sent is unknown
            return replace(found, next_at=min(found.next_at, now + VERIFY_WITHIN))
        return found


# --- steps -----------------------------------------------------------------------------------------------------------


def asked(one: Subscription, now: float) -> Subscription:
    """A request is handed out; it may have to wait before it is sent."""
    return replace(one, asked_at=now, next_at=now + SEND_WITHIN)


def sent(one: Subscription, now: float) -> Subscription:
    """A request is sent: the hub may verify it from now on."""
    return replace(one, asked_at=now, next_at=now + VERIFY_WITHIN)


def verified(one: Subscription, seconds: float | None, now: float, part: float) -> Subscription:
    """The hub has verified a subscription: it is renewed after a ``part`` of the lease."""
    granted = LEASE if seconds is None else seconds
    lease = min(max(granted, SHORTEST_LEASE), LONGEST_LEASE)
    return replace(
        one,
        verified_at=now,
        lease=lease,
        lease_until=now + lease,
        next_at=now + part * lease,
        failures=0,
        denied="",
    )


def failed(one: Subscription, now: float, part: float, wait: float | None = None) -> Subscription:
    """A request came to nothing: the next hub is asked after a while, no longer than a day.

    ``part`` (0.5 to 1) spreads requests; ``wait`` is what the hub asked for.
    """
    doubled = FIRST_WAIT * 2.0 ** min(one.failures // len(one.hubs), 20)
    seconds = max(part * min(doubled, LONGEST_WAIT), min(wait or 0.0, LONGEST_WAIT))
    after = replace(one, asked_at=0.0, failures=one.failures + 1, next_at=now + seconds)
    return after if one.active(now) else replace(after, hub=(one.hub + 1) % len(one.hubs))


def denied(one: Subscription, reason: str, now: float) -> Subscription:
    """The hub has refused or ended the subscription."""
    after = replace(one, asked_at=0.0, lease_until=0.0, next_at=now + DENIED_WAIT, failures=one.failures + 1)
    return replace(after, denied=reason[:_LONGEST_REASON] or "no reason given", hub=(one.hub + 1) % len(one.hubs))


def renamed(one: Subscription, name: str, secret: str) -> Subscription:
    """The same topic under another callback: no lease of the old one counts."""
    return replace(one, name=name, secret=secret, asked_at=0.0, verified_at=0.0, lease_until=0.0, lease=0.0)


def delivered(one: Subscription, digest: str, now: float) -> Subscription:
    """A signed delivery has come."""
    recent = (digest, *one.recent)[:REMEMBERED]
    return replace(one, n_deliveries=one.n_deliveries + 1, delivered_at=now, recent=recent)


def lease_of(text: str | None) -> float | None:
    """The seconds of a lease as a hub writes them; None where there is no such number.

    >>> lease_of("3600"), lease_of("0"), lease_of("soon"), lease_of(None)
    (3600.0, 0.0, None, None)
    """
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    seconds = float(text)
    return seconds if math.isfinite(seconds) else None
