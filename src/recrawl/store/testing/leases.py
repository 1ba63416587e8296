"""Of check_store: leases."""

from __future__ import annotations

from recrawl.store.leases import RECORDED, RELEASED, Lease
from recrawl.store.protocol import Outcome, Store
from recrawl.store.testing.rows import NOW, example_rows, listed, page_urls


async def check_leases(store: Store) -> None:
    """Leases are kept by id until they are deleted; they change in one transaction with outcomes."""
    a, b = page_urls(2)
    assert await store.leases() == [] and await store.leases(["x"]) == [], "a new store has no leases"
    await store.save(rows=example_rows([a, b]))
    one, two = Lease("x", a, NOW, NOW + 60.0), Lease("y", b, NOW, NOW + 90.5, conditional=True)
    await store.save(leases=[one, two])
    assert await store.leases() == [one, two], "held leases come back as they were, in the order of their ids"
    assert await store.leases(["y", "z", "y"]) == [two], "those of some ids"
    assert await store.leases(after=NOW + 60.0) == [two], "those that end after a time"
    ended = one._replace(state=RECORDED)
    await store.save([Outcome(a, NOW + 1.0, status=200, digest="1")], leases=[ended])
    assert await store.leases() == [two], "a recorded lease is no longer held"
    assert await store.leases(["x"]) == [ended], "but known"
    try:
        await store.save([Outcome(b, NOW + 2.0)], leases=[two._replace(state=RELEASED)], notes={"bad": object()})
    except TypeError:
        pass
    else:
        raise AssertionError("a note that is no JSON value is refused")
    assert await store.leases() == [two], "a save that fails changes no lease"
    assert len(await listed(store.observations())) == 1
    await store.save(removed=[b])
    assert await store.leases() == [two], "a lease outlives its page"
    await store.save(leases_before=NOW + 60.0)
    assert await store.leases(["x", "y"]) == [ended, two], "leases that end then stay"
    await store.save(leases_before=NOW + 60.5)
    assert await store.leases(["x", "y"]) == [two], "those that ended before are deleted"
