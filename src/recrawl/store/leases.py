"""Leases: pages that were handed to a crawler, and until when nobody else gets them."""

from __future__ import annotations

from typing import NamedTuple

HELD, RECORDED, RELEASED = "held", "recorded", "released"


class Lease(NamedTuple):
    """A page that a crawler has; times are seconds since 1970.

    ``id`` names the lease and cannot be guessed. ``state`` is ``held`` until its outcome is ``recorded`` or it is
    ``released``; a held lease whose time ``until`` has passed is lost: its page may be picked again, and an outcome
    that still comes counts once. ``conditional``: validators were given, so that the answer may be "not modified".
    """

    id: str
    url: str
    picked_at: float
    until: float
    state: str = HELD
    conditional: bool = False
