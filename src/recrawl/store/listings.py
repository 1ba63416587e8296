"""Listings as they are stored: sitemaps, feeds and index pages that a crawl polls, which are no pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredListing:
    """A listing: its state (JSON values by name) and the table of its entries at the last poll, packed.

    To be saved: ``state`` None deletes it, ``entries`` None leaves the entries as they are. As it is read:
    ``entries`` is None, `Store.listing_entries` reads them.
    """

    url: str
    state: Mapping[str, Any] | None
    entries: bytes | None = None
