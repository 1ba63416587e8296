"""What is kept between runs: pages, observations, copies, bodies."""

from recrawl.store.base import Copy, Outcome, Store, Version
from recrawl.store.checks import check_store
from recrawl.store.memory import MemoryStore
from recrawl.store.sqlite import SqliteStore

__all__ = ["Copy", "MemoryStore", "Outcome", "SqliteStore", "Store", "Version", "check_store"]
