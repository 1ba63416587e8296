"""What is kept between runs: pages, observations, copies, bodies, events."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.store.blocking import BlockingStore as BlockingStore
    from recrawl.store.events import Event as Event
    from recrawl.store.events import EventLimits as EventLimits
    from recrawl.store.events import Subscriber as Subscriber
    from recrawl.store.leases import Lease as Lease
    from recrawl.store.listings import StoredListing as StoredListing
    from recrawl.store.memory.store import MemoryStore as MemoryStore
    from recrawl.store.opening import OwnedStore as OwnedStore
    from recrawl.store.opening import open_store as open_store
    from recrawl.store.postgres.store import PostgresStore as PostgresStore
    from recrawl.store.protocol import Copy as Copy
    from recrawl.store.protocol import Outcome as Outcome
    from recrawl.store.protocol import Store as Store
    from recrawl.store.protocol import Totals as Totals
    from recrawl.store.protocol import Version as Version
    from recrawl.store.signals import PendingSignal as PendingSignal
    from recrawl.store.sqlite.store import SqliteStore as SqliteStore
    from recrawl.store.testing.contract import check_store as check_store

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "blocking": ["BlockingStore"],
        "events": ["Event", "EventLimits", "Subscriber"],
        "leases": ["Lease"],
        "listings": ["StoredListing"],
        "memory.store": ["MemoryStore"],
        "opening": ["OwnedStore", "open_store"],
        "postgres.store": ["PostgresStore"],
        "protocol": ["Copy", "Outcome", "Store", "Totals", "Version"],
        "signals": ["PendingSignal"],
        "sqlite.store": ["SqliteStore"],
        "testing.contract": ["check_store"],
    },
)
