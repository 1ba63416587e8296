"""Pages of skewed hosts that change by themselves: the world of the simulations in shards."""

from __future__ import annotations

import numpy as np

from recrawl import Pages
from recrawl.simulate import Trace
from recrawl.simulate.worlds.events import Events, segment_events


def skewed_pages(n_pages: int, n_hosts: int, rng: np.random.Generator) -> Pages:
    """Few large hosts, many small ones; pages of a host resemble each other in change rate (per day) and importance."""
    share = 1 / np.arange(1, n_hosts + 1)
    host = np.sort(rng.choice(n_hosts, n_pages, p=share / share.sum()))
    change, importance = rng.lognormal(0.0, 1.0, (2, n_hosts))
    rate = 0.1 * rng.lognormal(0.0, 0.7, n_pages) * change[host]
    return Pages(rate, rng.lognormal(0.0, 0.5, n_pages) * importance[host], host=host)


def urls_of(pages: Pages) -> np.ndarray:
    """A URL per page, by its host."""
    return np.array([f"https://h{host}.example/{k}" for k, host in enumerate(pages.host.tolist())], dtype=object)


def draw(pages: Pages, days: float, rng: np.random.Generator, faster: np.ndarray | None = None) -> Trace:
    """Changes at the pages' rates; those that ``faster`` names change ten times as often in the second half."""
    n, half = len(pages), days / 2
    later = pages.change_rate * np.where(np.zeros(n, bool) if faster is None else faster, 10.0, 1.0)
    parts = [
        segment_events(rate, np.full(n, a), np.full(n, half), rng)
        for rate, a in ((pages.change_rate, 0.0), (later, half))
    ]
    page = np.concatenate([np.repeat(np.arange(n), count) for count, _ in parts])
    events = Events.of(page, np.concatenate([at for _, at in parts]), n)
    return Trace(0.0, days, events.offset, events.at, pages.importance, pages=pages, url=urls_of(pages))
