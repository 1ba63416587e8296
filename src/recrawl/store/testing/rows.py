"""Of check_store: rows of the engine, as examples and as they must come back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import numpy as np

from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Outcome, Store

T = TypeVar("T")

NOW = 1_700_000_000.0


async def listed(items: AsyncIterator[T]) -> list[T]:
    """All items of an asynchronous iterator."""
    return [item async for item in items]


def page_urls(n: int, host: str = "a.example") -> list[str]:
    """Addresses of pages, for examples."""
    return [f"https://{host}/{k}" for k in range(n)]


def example_rows(urls: list[str], *, sources: int = 1, seed: int = 0) -> dict[str, Any]:
    """Rows of the form that an engine gives, with drawn numbers."""
    rng = np.random.default_rng(seed)
    n = len(urls)
    one = ("given", "change_rate", "importance", "cost", "evidence", "watched", "own")
    asked = ("request_weight", "requested_at", "watched_from")
    observed = rng.random((n, 4 * sources)).tolist()
    return {
        "settings": {"budget": 2.0, "sources": sources, "host_spacing": None},
        "prior": rng.random(2),
        "scores": rng.random(13),
        "crawls": int(rng.integers(1000)),
        "refit_at": 2000,
        "hosts": {"a.example": (1.0, float("inf"), NOW + 5.0)},
        "url": list(urls),
        "fetched_at": NOW + rng.random(n),
        **{name: rng.random(n) for name in (*one, *asked)},
        "gamma": rng.random((n, 2)),
        "signalled": [row if sources and k % 2 else None for k, row in enumerate(observed)],
        "prior_at": rng.integers(0, 3, n),
        "n_crawls": rng.integers(0, 100, n),
        "n_changes": rng.integers(0, 100, n),
        "fixed_rate": rng.random(n) < 0.5,
        "paused": rng.random(n) < 0.5,
        "failures": rng.integers(0, 3, n),
        "times_gone": rng.integers(0, 3, n),
        "wait_until": np.where(rng.random(n) < 0.5, -np.inf, NOW),
    }


def same_rows(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The names under which two sets of rows differ (pages in the order of a)."""
    order = [b["url"].index(url) for url in a["url"]] if sorted(a["url"]) == sorted(b["url"]) else None
    if order is None:
        return ["url"]
    different = []
    for name in a:
        mine, other = a[name], b.get(name)
        if name in ("settings", "hosts"):
            other = {key: tuple(rule) for key, rule in other.items()} if name == "hosts" and other else other
            equal = mine == other
        elif isinstance(mine, np.ndarray):
            whole = name in ("prior", "scores")
            found = np.asarray(other) if whole or other is None else np.asarray(other)[order]
            equal = found.shape == mine.shape and bool((found == mine).all())
        elif isinstance(mine, list):
            equal = other is not None and mine == [_plain(other[j]) for j in order]
        else:
            equal = mine == other
        different += [] if equal else [name]
    return different


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


async def check_empty(store: Store) -> None:
    """A new store is empty, and stays so when nothing is saved."""
    assert await store.load() is None, "an empty store has no rows"
    assert await store.copies(page_urls(2)) == {} and await listed(store.observations()) == []
    assert await store.versions("https://a.example/0") == [] and await store.body(bytes(16)) is None
    assert set((await store.counts()).values()) == {0}, "an empty store counts nothing"
    assert await store.last_observation() is None and set((await store.recent(0.0)).values()) == {0}
    await store.save()
    assert await store.load() is None, "saving nothing makes no rows"


async def check_rows(store: Store) -> None:
    """Rows come back as they were saved, with any number of signal sources."""
    for sources in (0, 1, 3):
        rows = example_rows(page_urls(7), sources=sources)
        await store.save(rows=rows)
        found = await store.load()
        assert found is not None and not same_rows(rows, found), f"{sources} sources: {same_rows(rows, found or rows)}"
    await store.save(rows=example_rows([], sources=3))
    assert len((await store.load() or {"url": ()})["url"]) == 7, "no rows are no reason to forget any"


async def check_rows_are_replaced(store: Store) -> None:
    """Each page has its newest row; the engine's state is the newest; other hosts' rules stay."""
    urls = page_urls(9)
    old, new = example_rows(urls), example_rows(urls[3:6], seed=1)
    await store.save(rows=old)
    await store.save(rows={**new, "hosts": {"b.example": (2.0, 3.0, 0.0)}})
    found = await store.load()
    assert found is not None and found["crawls"] == new["crawls"], "what belongs to the engine is the newest"
    assert await store.urls() == urls, "pages in the order in which they came"
    assert set(found["hosts"]) == {"a.example", "b.example"}, "rules of other hosts stay"
    by_url = {url: j for j, url in enumerate(found["url"])}
    for rows, some in ((old, (0, 1, 2, 6, 7, 8)), (new, (3, 4, 5))):
        for j in some:
            at = rows["url"].index(urls[j])
            assert found["fetched_at"][by_url[urls[j]]] == rows["fetched_at"][at], "each page has its newest row"


async def check_parts(store: Store) -> None:
    """Rows of some pages, samples and totals of all."""
    urls = [*page_urls(30), *page_urls(30, "b.example")]
    rows = example_rows(urls)
    await store.save(rows=rows)
    some = [urls[k] for k in (40, 3, 17)]
    found = await store.load([*some, some[0], "https://c.example/"])
    assert found is not None and found["url"] == [urls[k] for k in (3, 17, 40)], "some rows, in the order of urls"
    assert found["crawls"] == rows["crawls"] and set(found["hosts"]) == {"a.example"}, "the engine's state is read too"
    for name in ("fetched_at", "gamma", "importance"):
        assert (np.asarray(found[name]) == rows[name][[3, 17, 40]]).all(), f"{name} of some rows"
    signalled = [_plain(found["signalled"][j]) for j in range(3)]
    assert signalled == [rows["signalled"][k] for k in (3, 17, 40)], "lists of numbers, or None, of some rows"
    assert len((await store.load([]) or {"url": [""]})["url"]) == 0, "no URLs, no rows"
    assert await store.urls("https://b.example/1") == [f"https://b.example/{k}" for k in (1, *range(10, 20))]
    drawn, stands_for = await store.sample(20)
    assert len(drawn) <= 21 and len(set(drawn)) == len(drawn) and set(drawn) <= set(urls), "a sample of the pages"
    assert (stands_for >= 1.0).all() and 30 < stands_for.sum() < 120, "a sample stands for all pages"
    assert (await store.sample(60))[0] == urls, "a sample of all pages is in their order"
    totals = await store.totals(importance=0.5)
    assert (totals.pages, totals.failing) == (60, int((rows["failures"] > 0).sum())), "totals of all pages"
    assert totals.gone == int((rows["times_gone"] > 0).sum()) and totals.fetched_at == rows["fetched_at"].max()
    assert totals.as_important == int((rows["importance"] >= 0.5).sum()), "pages that are as important"


async def check_long_texts(store: Store) -> None:
    """URLs, and names of notes and listings, of any length differ by their last character alone."""
    rng = np.random.default_rng(0)
    long = "https://a.example/" + "".join(rng.choice(list("abcdefghijklmnop0123456789é"), 9000))
    urls = [long + "1", long + "2", "https://a.example/short"]
    await store.save([Outcome(url, NOW, status=200, digest=url[-1]) for url in urls], example_rows(urls))
    await store.save(notes={url: k for k, url in enumerate(urls)}, listings=[StoredListing(long, {}, b"x")])
    assert await store.urls() == urls and await store.urls(long) == urls[:2], "long URLs are kept"
    assert [copy.digest for copy in (await store.copies(urls)).values()] == ["1", "2", "t"]
    assert await store.notes(long) == {urls[0]: 0, urls[1]: 1} and await store.listing_entries(long) == b"x"
    assert (await store.load([urls[1]]) or {"url": ()})["url"] == [urls[1]]
    await store.save(removed=[urls[0]])
    assert await store.urls() == urls[1:]


async def check_strange_columns(store: Store) -> None:
    """Columns that the store does not know are kept."""
    rows = {**example_rows(page_urls(4)), "group": np.arange(4), "pair": np.arange(8.0).reshape(4, 2)}
    await store.save(rows=rows)
    found = await store.load()
    assert found is not None and not same_rows(rows, found), "columns that are not known yet are kept"
