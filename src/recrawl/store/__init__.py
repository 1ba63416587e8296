"""What is kept between runs: pages, observations, copies, bodies, events."""

from recrawl.store.base import Copy, Outcome, Store, Version
from recrawl.store.checks import check_store
from recrawl.store.events import Event, EventLimits, Follower
from recrawl.store.memory import MemoryStore
from recrawl.store.sqlite import SqliteStore

__all__ = [
    "Copy",
    "Event",
    "EventLimits",
    "Follower",
    "MemoryStore",
    "Outcome",
    "SqliteStore",
    "Store",
    "Version",
    "check_store",
]
