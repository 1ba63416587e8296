"""Of check_store: listings."""

from __future__ import annotations

from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Store
from recrawl.store.testing.rows import example_rows, page_urls


async def check_listings(store: Store) -> None:
    """Listings are kept by URL, apart from pages; their entries are read one by one."""
    a, b = "https://a.example/sitemap.xml", "https://a.example/feed"
    assert await store.listings() == [] and await store.listing_entries(a) == b"", "a new store has no listings"
    await store.save(rows=example_rows(page_urls(2)))
    state = {"kind": "sitemap", "polled_at": 1.5, "etag": None}
    await store.save(listings=[StoredListing(a, state, b"\x00\x01"), StoredListing(b, {"kind": "feed"})])
    assert await store.listings() == [StoredListing(b, {"kind": "feed"}), StoredListing(a, state)]
    assert await store.listing_entries(a) == b"\x00\x01" and await store.listing_entries(b) == b""
    await store.save(listings=[StoredListing(a, {**state, "polled_at": 2.0})])
    assert await store.listing_entries(a) == b"\x00\x01", "entries stay where none are given"
    assert (await store.counts())["pages"] == 2 and await store.urls() == page_urls(2), "listings are no pages"
    try:
        await store.save(listings=[StoredListing(a, None), StoredListing(b, {"bad": object()})])
    except TypeError:
        pass
    else:
        raise AssertionError("a state that is no JSON value is refused")
    assert len(await store.listings()) == 2, "a save that fails changes nothing"
    await store.save(listings=[StoredListing(a, None), StoredListing("https://never.example/", None)])
    assert await store.listings() == [StoredListing(b, {"kind": "feed"})]
    assert await store.listing_entries(a) == b"", "nothing of a deleted listing stays"
