"""Pages of a store as an engine opens them."""

import numpy as np

from recrawl import Engine
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.store import BlockingStore, MemoryStore

NOW, YEAR = 1.7e9, 365 * 86400.0


def test_pages_that_an_earlier_version_saved_as_a_year_old_have_no_copy():
    engine = Engine(1.0, start=NOW)
    urls = [f"https://a.example/{k}" for k in range(4)]
    engine.add(urls, NOW, fetched_at=[NOW - YEAR, NOW - YEAR, NOW - 60.0, -np.inf])
    engine.record([1], NOW - 1000.0, changed=[False], as_of=NOW - 1000.0)
    store = BlockingStore(MemoryStore())
    store.save(rows=engine.rows())
    opened = store.run(open_engine(store.store, NOW + 50.0))
    assert opened.has_copy(opened.id(urls)).tolist() == [False, True, True, False]
