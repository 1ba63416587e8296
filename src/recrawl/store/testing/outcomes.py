"""Of check_store: outcomes, and the copies and bodies that follow from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.store.protocol import Copy, Outcome, Store
from recrawl.store.testing.rows import NOW, example_rows, listed, page_urls, same_rows


def outcome_story() -> list[Outcome]:
    """Outcomes of two pages: fetched, not modified, changed, failed, gone."""
    first = Outcome("https://a.example/0", NOW, 0.25, 200, None, "d1", etag='"e"', last_modified="L", content_type="t")
    return [
        first,
        replace(first, began_at=NOW + 1, status=304, changed=False, digest=None, etag=None, last_modified=None),
        replace(first, began_at=NOW + 2, changed=True, digest="d2", etag=None, last_modified=None, final_url="f"),
        Outcome("https://a.example/0", NOW + 3, 9.0, None, failure="timeout", requests=3),
        Outcome("https://a.example/1", NOW + 4, 0.5, 404, failure="http-4xx", gone=True),
    ]


async def check_outcomes(store: Store) -> None:
    """Outcomes come back as they were saved, in order, and are counted."""
    outcomes = outcome_story()
    stranger = Outcome("https://b.example/", NOW, status=200)
    await store.save([*outcomes[:3], stranger], example_rows(page_urls(2)))
    await store.save(outcomes[3:], None)
    assert await listed(store.observations()) == outcomes, (
        "outcomes come back as they were, in order, without strangers"
    )
    assert await listed(store.observations("https://a.example/1")) == outcomes[4:]
    assert await listed(store.observations(since=NOW + 3)) == outcomes[3:]
    assert await store.counts() == {"pages": 2, "copies": 1, "observations": 5, "bodies": 0}
    assert await store.last_observation() == outcomes[4]
    assert await store.recent(NOW + 2) == {"crawls": 3, "changes": 1, "failures": 2, "flapping": 0, "rolled_off": 0}
    noticed = replace(outcomes[2], began_at=NOW + 5, changed=False, flapping=True, rolled_off=True, signalled=0b101)
    await store.save([noticed])
    last = await store.last_observation()
    assert last is not None and last.flapping and last.rolled_off and last.signalled == 0b101, (
        "what was noticed is kept"
    )
    assert await store.recent(NOW + 5) == {"crawls": 1, "changes": 0, "failures": 0, "flapping": 1, "rolled_off": 1}


async def check_failing(store: Store) -> None:
    """The last outcomes of pages that fail, or that robots.txt forbids."""
    urls = page_urls(6)
    rows = {**example_rows(urls), "failures": np.array([1, 2, 0, 0, 0, 3])}
    words = ["timeout", None, "robots", "robots", "reset", "busy"]
    await store.save([Outcome(url, NOW, failure="dns") for url in urls], rows)
    await store.save(
        [Outcome(url, NOW + k, failure=word) for k, (url, word) in enumerate(zip(urls, words, strict=True))]
    )
    found = [(outcome.url, outcome.failure) for outcome in await store.failing(NOW + 3)]
    assert found == [(urls[0], "timeout"), (urls[3], "robots"), (urls[5], "busy")], found


async def check_requests(store: Store) -> None:
    """Requests of pages since a time, and since a later one."""
    urls = page_urls(3)
    made = [(0, 1), (10, 2), (20, 3), (30, 4)]
    await store.save([Outcome(urls[0], NOW + at, requests=n) for at, n in made], example_rows(urls))
    await store.save([Outcome(urls[1], NOW + 5, requests=7)])
    assert sorted(await store.requests(NOW + 5, NOW + 20)) == [(urls[0], 9, 7), (urls[1], 7, 0)]
    assert await store.requests(NOW + 99, NOW + 99) == []


async def check_copies(store: Store) -> None:
    """The newest copy of a page after each kind of outcome."""
    outcomes, url = outcome_story(), "https://a.example/0"
    await store.save(outcomes[:1], example_rows(page_urls(2)))
    known = Copy(url, NOW, NOW, 200, "d1", '"e"', "L", "t", None, "d1")
    assert await store.copies(page_urls(2)) == {url: known}
    await store.save(outcomes[1:2], None)
    not_modified = replace(known, fetched_at=NOW + 1, status=304)
    assert (await store.copies([url]))[url] == not_modified, "not modified: the copy stays, its age is new"
    await store.save(outcomes[2:], None)
    changed = Copy(url, NOW + 2, NOW + 2, 200, "d2", None, None, "t", "f", "d2 d1")
    assert await store.copies([url]) == {url: changed}, (
        "failures leave the copy as it was, an answer replaces validators"
    )
    await store.save([replace(outcomes[2], began_at=NOW + 9, changed=False, digest="d1", flapping=True)])
    back = (await store.copies([url]))[url]
    assert (back.digest, back.recent, back.n_flaps, back.changed_at) == ("d1", "d1 d2", 1, NOW + 2), "content returned"
    await store.save([replace(outcomes[2], began_at=NOW + 10 + k, digest=f"x{k}") for k in range(20)])
    assert (await store.copies([url]))[url].recent.split() == [f"x{k}" for k in range(19, 11, -1)], (
        "the last eight contents"
    )
    await store.save([replace(outcomes[2], began_at=NOW + 40, changed=None, digest="css-1:x19")])
    again = (await store.copies([url]))[url]
    assert (again.recent, again.changed_at) == ("x19", NOW + 29), "by another detector: not compared, no change"


async def check_bodies(store: Store) -> None:
    """Equal bodies are kept once, the newest of each page are kept, others are deleted."""
    a, b = page_urls(2)
    await store.save([Outcome(a, NOW, status=200, body=b"one" * 500)], example_rows([a, b]))
    await store.save([Outcome(b, NOW + 1, status=200, body=b"one" * 500)])
    (version,) = await store.versions(a)
    assert (version.size, await store.body(version.key)) == (1500, b"one" * 500)
    assert (await store.counts())["bodies"] == 1, "equal bodies are kept once"
    await store.save([Outcome(a, NOW + 2 + k, status=200, body=b"%d" % k) for k in range(5)])
    kept = await store.versions(a)
    assert kept and await store.body(kept[0].key) == b"4", "the newest body is kept"
    assert await store.body((await store.versions(b))[0].key) == b"one" * 500, "a body that another page has is kept"
    assert (await store.counts())["bodies"] == len(kept) + 1, "bodies that no page has are let go"


async def check_atomic(store: Store) -> None:
    """A save that fails changes nothing."""
    rows = example_rows(page_urls(3))
    await store.save([outcome_story()[0]], rows, notes={"n": 1})
    before = (await listed(store.observations()), await store.counts(), await store.notes())
    try:
        await store.save([outcome_story()[1]], example_rows(page_urls(5), seed=2), notes={"n": 2, "bad": object()})
    except TypeError:
        pass
    else:
        raise AssertionError("a note that is no JSON value is refused")
    found = await store.load()
    assert found is not None and not same_rows(rows, found), "a save that fails leaves the rows as they were"
    assert (await listed(store.observations()), await store.counts(), await store.notes()) == before, (
        "and everything else"
    )


async def check_removal(store: Store) -> None:
    """Nothing of a removed page stays."""
    urls = page_urls(4)
    outcomes = [Outcome(url, NOW, status=200, body=url.encode()) for url in urls]
    await store.save(outcomes, example_rows(urls))
    await store.save(removed=[urls[1], "https://never.example/"])
    found = await store.load()
    assert found is not None and sorted(found["url"]) == [urls[0], *urls[2:]]
    assert await store.counts() == {"pages": 3, "copies": 3, "observations": 3, "bodies": 3}, "nothing of a page stays"
    assert await store.copies(urls[1:2]) == {} and await store.versions(urls[1]) == []
