"""Systems with simple rules: fixed intervals, tiers, the age of a page, its date in a sitemap."""

from __future__ import annotations

import math

from recrawl.simulate.rivals import kernels
from recrawl.simulate.rivals.rule import DAY, Rule


def fixed(*, day: float = DAY, interval: float = 30.0, retry: float = 1.0, max_errors: float = math.inf) -> Rule:
    """The same interval always: next = now + ``interval`` days.

    Nutch's default is 30 days, with failures tried again after 1. StormCrawler's is ``interval=1, retry=1/12,
    max_errors=3``; Frontera's 1 day, changedetection's 1/8, feed readers' 1/24. It sees nothing.
    """
    return Rule("fixed", kernels.FIXED, (interval * day, retry * day, max_errors))


def infomesh(*, day: float = DAY) -> Rule:
    """InfoMesh: f ← 0.3·[changed] + 0.7·f from f = 0; 30 d if f = 0, 7 d below 0.1, 24 h up to 0.5, else 6 h.

    It sees whether a page changed. The third failure in a row ends it; before that, the interval stands.
    """
    return Rule("infomesh", kernels.INFOMESH, (0.3, 30 * day, 7 * day, day, day / 4, 3))


def yacy(*, day: float = DAY) -> Rule:
    """YaCy: a page loaded at t is fresh until t + ½·(t − Last-Modified), and due once that is before yesterday.

    It sees the true time of the last change, as a server's Last-Modified would say; of a page that has not changed
    since it was first seen, the time of that. Days begin at multiples of ``day``. The longest not loaded comes first.
    A failed load is tried again the next day (its own rule is not about failures).
    """
    return Rule("yacy", kernels.YACY, (0.5, day), cap="oldest", n_dates=1)


def norconex(*, day: float = DAY, run: float = 1.0, least: float = 0.0) -> Rule:
    """Norconex: at each run, a page with a date in the sitemap is fetched iff that is later than its last crawl.

    Runs are every ``run`` days (its user's choice). Signals with ``changed_at`` are the sitemap's dates: from its first
    on, a page waits for the next. A page without is fetched at every run, at least ``least`` days apart. It does not
    see whether a page changed.
    """
    return Rule("norconex", kernels.NORCONEX, (run * day, least * day))
