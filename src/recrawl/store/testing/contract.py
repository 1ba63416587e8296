"""check_store: what every store must keep to, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from recrawl.store.protocol import Outcome, Store
from recrawl.store.testing import events, leases, listings, outcomes, rows, signals
from recrawl.store.testing.rows import NOW, example_rows, listed, page_urls

Check = Callable[[Store], Awaitable[None]]


async def check_store(make: Callable[[], Store]) -> None:
    """Raise AssertionError where a store breaks the protocol; ``make`` gives a new, empty one each time.

    >>> from recrawl.store import MemoryStore
    >>> asyncio.run(check_store(MemoryStore))
    """
    for check in (
        rows.check_empty,
        rows.check_rows,
        rows.check_rows_are_replaced,
        rows.check_strange_columns,
        rows.check_long_texts,
        rows.check_parts,
        outcomes.check_outcomes,
        outcomes.check_failing,
        outcomes.check_requests,
        outcomes.check_copies,
        outcomes.check_bodies,
        outcomes.check_atomic,
        outcomes.check_removal,
        signals.check_signals,
        signals.check_signals_end,
        listings.check_listings,
        leases.check_leases,
        check_notes,
        check_commands,
        check_concurrent_calls,
        *(_with_a_page(check) for check in (events.check_story, events.check_batch, events.check_atomic)),
        *(_with_a_page(check) for check in (events.check_subscribers, events.check_concurrent_events)),
        _with_a_page(events.check_newest),
    ):
        await _checked(make, check)


async def check_event_limits(
    few: Callable[[], Store], young: Callable[[], Store], short: Callable[[], Store] | None = None
) -> None:
    """The same for limits of events: ``few`` makes stores of at most 5 events, ``young`` of events of 100 s, ``short``
    of events of which the newest 20 of each page keep their texts.
    """
    await _checked(few, _with_a_page(events.check_limits))
    await _checked(young, _with_a_page(events.check_age))
    if short is not None:
        await _checked(short, _with_a_page(events.check_texts))


async def _checked(make: Callable[[], Store], check: Check) -> None:
    store = make()
    try:
        assert isinstance(store, Store), f"{type(store).__name__} lacks a method of Store"
        await check(store)
        problems = await store.check()
        assert problems == [], f"{getattr(check, '__name__', check)}: {problems}"
    finally:
        await store.close()


def _with_a_page(check: Check) -> Check:
    """A check of a store that has a page."""

    async def checked(store: Store) -> None:
        await store.save(rows=example_rows(page_urls(1)))
        await check(store)

    return checked


async def check_notes(store: Store) -> None:
    """Notes are kept by name until they are set to None."""
    await store.save(notes={"a:1": {"x": [1, 2.5, None]}, "a:2": "é", "b": float("inf")})
    assert await store.notes("a:") == {"a:1": {"x": [1, 2.5, None]}, "a:2": "é"}
    await store.save(notes={"a:1": None, "b": 3, "never": None})
    assert await store.notes() == {"a:2": "é", "b": 3}


async def check_commands(store: Store) -> None:
    """Commands are kept in order until they are applied."""
    await store.queue([{"add": ["u"]}, {"remove": ["v"]}])
    await store.queue([{"add": ["w"]}])
    queued = await store.commands()
    assert [value for _, value in queued] == [{"add": ["u"]}, {"remove": ["v"]}, {"add": ["w"]}]
    await store.save(applied=[queued[0][0], queued[1][0]])
    await store.queue([{"add": ["x"]}])
    assert [value for _, value in await store.commands()] == [{"add": ["w"]}, {"add": ["x"]}], (
        "numbers are not used again"
    )


async def check_concurrent_calls(store: Store) -> None:
    """Calls may be made while others are awaited."""
    urls = page_urls(40)
    await store.save(rows=example_rows(urls))

    async def work(first: int) -> None:
        for k in range(first, 40, 4):
            await store.save([Outcome(urls[k], NOW + k, status=200, digest=str(k))])
            await store.copies(urls[:5])

    await asyncio.gather(*(work(k) for k in range(4)))
    assert sorted(outcome.began_at for outcome in await listed(store.observations())) == [NOW + k for k in range(40)]
