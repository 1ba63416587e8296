"""Shares of a budget: lowered before others are raised, so that no two owners together may spend more than all of it.

A share is published under a number that goes up. Its owner first takes a published share over, then acknowledges the
number. Until then the owner may still spend what was published before: that stays reserved. A rise is published only
as far as the budget is not reserved. All of it is data: a controller that dies leaves nothing behind that the next one
does not find. One call of `publish` belongs into one transaction that holds the rows of the leases still.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

GRACE = 5.0  # seconds for which the share of a shard without an owner is kept for the next one
_SAME = 0.002  # a share that differs by less is not published again
_SAFE = 1.0 - 1e-9  # of the budget is given, so that rounding never gives more than all of it


@dataclass(frozen=True, slots=True)
class Owner:
    """What is known of a shard's lease: its epoch, for how long it is over, the share that was acknowledged."""

    epoch: int = 0
    idle: float = 0.0  # seconds since the lease was over; 0: it is not
    acknowledged: int = 0  # number of a share

    @property
    def leased(self) -> bool:
        """Whether a worker may spend the share."""
        return self.idle <= 0.0

    @property
    def counts(self) -> bool:
        """Whether the shard gets a share: it has an owner, or had one a moment ago."""
        return self.idle < GRACE


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one shard, in requests per second."""

    number: int = 0  # of the publication
    rate: float = 0.0  # published: what the owner may spend once it has read it
    reserved: float = 0.0  # what the owner may still spend; never below ``rate``
    target: float = 0.0  # what the last round gave it
    epoch: int = 0  # of the lease when it was published

    def as_dict(self) -> dict[str, Any]:
        """For a table or JSON; `Share(**…)` is the way back."""
        return asdict(self)


def publish(
    shares: Mapping[int, Share], owners: Mapping[int, Owner], targets: Mapping[int, float], budget: float
) -> dict[int, Share]:
    """The shares after one step towards the targets: all that are to fall fall, others rise into what is free.

    The shares of all shards; those that differ from ``shares`` are to be written. With the same targets a later step
    goes on where acknowledgements were missing.

    >>> owned = {0: Owner(1), 1: Owner(1)}
    >>> before = {0: Share(1, 8.0, 8.0, epoch=1), 1: Share(1, 2.0, 2.0, epoch=1)}
    >>> shares = publish(before, owned, {0: 5.0, 1: 5.0}, 10.0)
    >>> [share.rate for share in shares.values()]
    [5.0, 2.0]
    >>> shares = publish(shares, {0: Owner(1, acknowledged=2), 1: Owner(1)}, {0: 5.0, 1: 5.0}, 10.0)
    >>> [round(share.rate, 6) for share in shares.values()]
    [5.0, 5.0]
    """
    found = {shard: _settled(shares.get(shard, Share()), owner) for shard, owner in owners.items()}
    missing = {shard: share for shard, share in shares.items() if shard not in owners}
    for shard, share in found.items():
        target = targets.get(shard, 0.0) if owners[shard].counts else 0.0
        found[shard] = _lowered(replace(share, target=target), owners[shard])
    taken = math.fsum(share.reserved for share in (*found.values(), *missing.values()))
    free = max(budget * _SAFE - taken, 0.0)
    wanted = {shard: max(share.target - share.reserved, 0.0) for shard, share in found.items() if owners[shard].leased}
    total = math.fsum(wanted.values())
    part = min(free / total, 1.0) if total > 0.0 else 0.0
    for shard, more in wanted.items():
        found[shard] = _raised(found[shard], part * more, owners[shard])
    return {**missing, **found}


def reserved(shares: Mapping[int, Share]) -> float:
    """What all owners together may spend."""
    return math.fsum(share.reserved for share in shares.values())


def _settled(share: Share, owner: Owner) -> Share:
    """What is reserved after acknowledgements: a later owner has read the share that was published before it came."""
    known = owner.acknowledged >= share.number or owner.epoch > share.epoch or not owner.leased
    return replace(share, reserved=share.rate) if known else share


def _lowered(share: Share, owner: Owner) -> Share:
    """Publish a lower share; without an owner nobody spends more from now on."""
    target = share.target
    if target >= share.rate or (target > share.rate * (1.0 - _SAME) and target > 0.0):
        return share
    left = target if not owner.leased else share.reserved
    return replace(share, number=share.number + 1, rate=target, reserved=left, epoch=owner.epoch)


def _raised(share: Share, more: float, owner: Owner) -> Share:
    """Publish a higher share, as far as it is reserved or free."""
    rate = min(share.target, share.reserved + more)
    if rate <= share.rate * (1.0 + _SAME):
        return share
    return replace(share, number=share.number + 1, rate=rate, reserved=max(share.reserved, rate), epoch=owner.epoch)
