"""Of check_store: pending signals."""

from __future__ import annotations

from recrawl.store.protocol import Outcome, Store
from recrawl.store.signals import PendingSignal
from recrawl.store.testing.rows import NOW, example_rows, page_urls


async def check_signals(store: Store) -> None:
    """Of each page and source the newest signal is kept; signals of strangers are ignored."""
    a, b = page_urls(2)
    assert await store.signals() == [], "a new store has no signals"
    await store.save(rows=example_rows([a, b]))
    one = PendingSignal(b, 3, NOW, NOW - 5.0, 86400.0)
    await store.save(signals=[one, PendingSignal(b, 0, NOW), PendingSignal("https://never.example/", 0, NOW)])
    assert await store.signals() == [PendingSignal(b, 0, NOW), one], "signals come back as they were"
    newer = one._replace(at=NOW + 1.0, changed_at=None, resolution=0.0)
    await store.save(signals=[newer, PendingSignal(a, 3, NOW)], notes={"sources": ["sitemap"]})
    assert await store.signals() == [PendingSignal(a, 3, NOW), PendingSignal(b, 0, NOW), newer], "the newest is kept"
    some = await store.signals([b, "https://never.example/", b])
    assert some == [PendingSignal(b, 0, NOW), newer], "those of some pages"
    assert await store.notes("sources") == {"sources": ["sitemap"]}, "notes are written in the same transaction"


async def check_signals_end(store: Store) -> None:
    """Signals go with the first good outcome that began after them, in its transaction."""
    a, b = page_urls(2)
    signals = [PendingSignal(a, 0, NOW), PendingSignal(a, 1, NOW + 10.0), PendingSignal(b, 0, NOW)]
    await store.save(rows=example_rows([a, b]), signals=signals)
    gone = Outcome(a, NOW + 5.0, status=404, failure="http-4xx", gone=True)
    await store.save([Outcome(a, NOW + 5.0, failure="timeout"), gone, Outcome(b, NOW, status=200)])
    assert await store.signals() == signals, "not with a failure, nor with a crawl that began before the signal"
    await store.save([Outcome(a, NOW + 5.0, status=304, changed=False)])
    assert await store.signals() == signals[1:], "with a good outcome that began later"
    await store.save([Outcome(a, NOW + 10.0, status=200)])
    assert await store.signals() == signals[1:], "a signal of the same moment stays"
    try:
        await store.save([Outcome(a, NOW + 20.0, status=200)], notes={"bad": object()})
    except TypeError:
        pass
    else:
        raise AssertionError("a note that is no JSON value is refused")
    assert await store.signals() == signals[1:], "an outcome that is not saved ends no signal"
    await store.save(removed=[a])
    assert await store.signals() == signals[2:], "nothing of a removed page stays"
    assert await store.urls("https://a.example/", most=1) == [b] and len(await store.urls(most=0)) == 0
