"""Of check_store: what a store must keep to about events."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from dataclasses import replace

from recrawl.store.events import Subscriber
from recrawl.store.protocol import Outcome, Store
from recrawl.store.testing.rows import example_rows, listed, page_urls

_NOW = 1_700_000_000.0
_URL = "https://a.example/0"
_PAGE = Outcome(_URL, _NOW, status=200, digest="d1", content_type="text/html", text="one")
_STORY = [  # an outcome, and the kind of its event
    (_PAGE, "new"),
    (replace(_PAGE, began_at=_NOW + 1, changed=False, text=None), None),
    (Outcome(_URL, _NOW + 2, status=304, changed=False), None),
    (replace(_PAGE, began_at=_NOW + 3, changed=True, digest="d2", text="two"), "changed"),
    (Outcome(_URL, _NOW + 4, failure="timeout"), None),
    (replace(_PAGE, began_at=_NOW + 5, changed=None, digest="other-kind", text=None), None),
    (replace(_PAGE, began_at=_NOW + 6, changed=False, digest="d2", final_url="https://a.example/1"), "redirected"),
    (Outcome(_URL, _NOW + 7, status=404, gone=True), "gone"),
    (Outcome(_URL, _NOW + 8, status=410, gone=True), None),
    (Outcome(_URL, _NOW + 9, failure="reset"), None),
    (replace(_PAGE, began_at=_NOW + 10, changed=True, digest="d3", text="three"), "new"),
    (Outcome(_URL, _NOW + 11, status=301, gone=True, final_url="https://a.example/2"), "gone"),
]


async def check_story(store: Store) -> None:
    """Each outcome leads to its event, compared with the page's last event."""
    for outcome, _ in _STORY:
        await store.save([outcome])
    events = await store.events()
    expected = [(outcome.began_at, kind) for outcome, kind in _STORY if kind]
    assert [(event.at, event.kind) for event in events] == expected, [event.as_dict() for event in events]
    assert [event.number for event in events] == list(range(1, len(expected) + 1)), "numbers go up by one"
    assert len({event.id for event in events}) == len(events), "each event has an id of its own"
    digests = [(event.old_digest, event.new_digest) for event in events]
    assert digests == [(None, "d1"), ("d1", "d2"), ("d2", "d2"), ("d2", None), ("d2", "d3"), ("d3", None)]
    texts = [(event.old_text, event.new_text) for event in events]
    assert texts[:3] == [(None, "one"), ("one", "two"), ("two", "one")], "texts go with their digests"
    assert texts[3:] == [("one", None), ("one", "three"), ("three", None)]
    assert [event.reason for event in events if event.kind == "gone"] == ["not-found", "moved"]
    assert (events[2].old_final_url, events[2].new_final_url) == (None, "https://a.example/1")
    assert await store.events(3) == events[3:], "from any number on"
    assert await store.events(1, 2) == events[1:3], "and as many as asked for"
    assert await store.events(len(events)) == []
    assert await listed(store.snapshot()) == []


async def check_batch(store: Store) -> None:
    """Several outcomes of one page in one batch, and pages that are removed."""
    await store.save([outcome for outcome, _ in _STORY[:4]])
    assert [event.kind for event in await store.events()] == ["new", "changed"]
    (existing,) = await listed(store.snapshot())
    assert (existing.kind, existing.number, existing.new_digest, existing.new_text) == ("new", 2, "d2", "two")
    await store.save(removed=[_URL, "https://never.example/"], at=_NOW + 9)
    last = await store.events(2)
    assert [(one.kind, one.reason, one.at, one.old_digest) for one in last] == [("gone", "removed", _NOW + 9, "d2")]
    assert await listed(store.snapshot()) == [], "a removed page is not in the snapshot"


async def check_atomic(store: Store) -> None:
    """A save that fails leaves no event and takes no number."""
    await store.save([_PAGE])
    changed = replace(_PAGE, began_at=_NOW + 1, changed=True, digest="d2")
    with contextlib.suppress(TypeError):
        await store.save([changed], notes={"bad": object()})
    assert [event.kind for event in await store.events()] == ["new"], "no event without its outcome"
    await store.save([changed])
    assert [event.number for event in await store.events()] == [1, 2]
    counts = await store.event_counts()
    assert (counts["first"], counts["last"], counts["rows"]) == (1, 2, 2)
    assert counts["size"] > 0


async def check_subscribers(store: Store) -> None:
    """Positions of subscribers are kept; the store counts what was dropped."""
    assert await store.subscribers() == []
    one = Subscriber("one", cursor=3, taken=3, failures=2, failure="down", failed_at=_NOW, taken_at=_NOW - 1)
    await store.save_subscriber(one)
    await store.save_subscriber(Subscriber("another"))
    assert await store.subscribers() == [Subscriber("another"), one]
    await store.save_subscriber(replace(one, cursor=5, failures=0, dropped=7))
    assert (await store.subscribers())[1] == replace(one, cursor=5, failures=0), "dropped is the store's to count"
    await store.remove_subscriber("one")
    await store.remove_subscriber("never")
    assert [one.name for one in await store.subscribers()] == ["another"]


async def check_newest(store: Store) -> None:
    """The newest events, of one page or all, of some kinds or all."""
    assert await store.newest_events() == []
    for outcome, _ in _STORY:
        await store.save([outcome])
    await store.save(rows=example_rows(page_urls(2)))
    await store.save([replace(_PAGE, url=page_urls(2)[1], began_at=_NOW + 20)])
    events = (await store.events())[::-1]
    assert await store.newest_events() == events, "newest first"
    assert await store.newest_events(3) == events[:3], "and as many as asked for"
    assert await store.newest_events(url=_URL) == events[1:], "those of one page"
    assert await store.newest_events(url="https://never.example/") == []
    some = [event for event in events if event.kind in ("changed", "gone")]
    assert await store.newest_events(kinds=["gone", "changed"]) == some, "those of some kinds"
    assert await store.newest_events(1, kinds=["gone", "changed"]) == some[:1]
    assert await store.newest_events(2, url=_URL, kinds=["new"]) == [one for one in events[1:] if one.kind == "new"]


async def check_texts(store: Store) -> None:
    """Of each page only the newest 20 events keep their texts, and those that were not delivered to all."""

    async def change(times: int) -> list[bool]:
        for k in range(times):
            at = _NOW + (await store.event_counts())["last"]
            await store.save([replace(_PAGE, began_at=at, changed=True, digest=f"d{at}", text=f"text {k}")])
        return [event.new_text is not None for event in await store.newest_events(100)]

    assert await change(23) == [True] * 20 + [False] * 3, "the newest"
    await store.save_subscriber(Subscriber("slow", cursor=22))
    assert await change(21) == [True] * 22 + [False] * 22, "not delivered: kept"
    await store.save_subscriber(Subscriber("slow", cursor=44))
    assert await change(1) == [True] * 20 + [False] * 25, "delivered: deleted"


async def check_limits(store: Store) -> None:
    """A store made for at most 5 events deletes the oldest; undelivered ones are counted per subscriber."""
    await store.save_subscriber(Subscriber("quick", cursor=8))
    await store.save_subscriber(Subscriber("slow", cursor=2))
    for k in range(10):
        await store.save([replace(_PAGE, began_at=_NOW + k, changed=True, digest=f"d{k}")])
    assert [event.number for event in await store.events()] == [6, 7, 8, 9, 10], "the newest are kept"
    counts = await store.event_counts()
    assert (counts["first"], counts["last"], counts["rows"]) == (6, 10, 5)
    assert {one.name: one.dropped for one in await store.subscribers()} == {"quick": 0, "slow": 3}


async def check_age(store: Store) -> None:
    """A store made for 100 s of events keeps older ones until they are delivered to all."""
    await store.save_subscriber(Subscriber("slow", cursor=1))
    for k in range(4):
        await store.save([replace(_PAGE, began_at=_NOW + 200 * k, changed=True, digest=f"d{k}")])
    assert [event.number for event in await store.events()] == [2, 3, 4], "old and not delivered: kept"
    await store.save_subscriber(Subscriber("slow", cursor=3))
    await store.save([replace(_PAGE, began_at=_NOW + 700, changed=True, digest="x")])
    assert [event.number for event in await store.events()] == [4, 5], "old and delivered: deleted"
    assert (await store.subscribers())[0].dropped == 0


async def check_concurrent_events(store: Store) -> None:
    """Numbers are given once each, whoever saves."""

    async def work(first: int) -> None:
        for k in range(first, 40, 4):
            await store.save([replace(_PAGE, began_at=_NOW + k, changed=True, digest=f"d{k}")])

    await asyncio.gather(*(work(k) for k in range(4)))
    events = await store.events()
    assert [event.number for event in events] == list(range(1, 41)), "numbers go up by one"
    chain = itertools.pairwise(events)
    assert all(one.new_digest == two.old_digest for one, two in chain), "each is compared with the one before"
