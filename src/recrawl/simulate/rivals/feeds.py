"""Feed readers: a page is a feed, its changes are items, and every poll shows the dates of the latest of them."""

from __future__ import annotations

from recrawl.simulate.rivals import kernels
from recrawl.simulate.rivals.rule import DAY, Rule


def miniflux(*, day: float = DAY, factor: float = 1.0, items: int = 500) -> Rule:
    """Miniflux, entry_frequency: n = ⌈week / mean gap⌉ over the items of the last 7 d; I = week/(n·``factor``).

    I stays within 5 min and 24 h; 24 h with fewer than two items. Feeds are polled at the full hour from when they are
    due. It sees the dates of all changes up to the poll (it stores items; the last ``items``). The third failure in a
    row ends it. What a server says of caching is left out.
    """
    hour = day / 24
    return Rule("miniflux", kernels.MINIFLUX, (7 * day, factor, hour / 12, day, hour, 3), n_dates=items)


def commafeed(*, day: float = DAY, items: int = 20) -> Rule:
    """CommaFeed: last item ≥ 30 d old: 4 h; ≥ 14 d: 2 h; ≥ 7 d: 1 h; else half the mean gap within 5 min and 1 h.

    4 h with fewer than two items. It sees the dates of the last ``items`` changes up to the poll, as a feed lists them
    (20 is our guess). Failures: 5 min, from the third on 1 h, 2 h, … up to 4 h. Cache-Control is left out.
    """
    hour = day / 24
    return Rule("commafeed", kernels.COMMAFEED, (hour / 12, 4 * hour, hour, day), n_dates=items)


def newsblur(*, day: float = DAY, audience: float = 1.0, items: int = 500) -> Rule:
    """NewsBlur's table over items per day in the last 30 d, and subscribers.

    Subscribers (premium + a tenth of the others) are ``audience`` · importance: our mapping. Its random delay, up to a
    quarter of the interval, is taken at its mean. It sees the dates of all changes up to the poll (it stores items; the
    last ``items``). The interval is multiplied by the failures in a row, up to 7 d. No push, no notifications.
    """
    return Rule("newsblur", kernels.NEWSBLUR, (day / 1440, audience, day), n_dates=items)
