"""Systems whose interval grows by a factor when a page did not change and shrinks when it did."""

from __future__ import annotations

from recrawl.simulate.rivals import kernels
from recrawl.simulate.rivals.rule import DAY, Rule


def nutch(*, day: float = DAY, grow: float = 0.4, shrink: float = 0.2, sync: float = 0.3, start: float = 30.0) -> Rule:
    """Nutch's AdaptiveFetchSchedule with the values of its nutch-default.xml.

    From ``start`` days (30): I ← (1 − ``shrink``)·I if changed, (1 + ``grow``)·I if not. With Δ = now − last detected
    change, I ← Δ if that is more, and next = now − ``sync``·Δ + I (0: off). I stays within 1 min and 365 d; above 90 d
    it becomes 81 d and the page is fetched as if never seen; a due date more than 90 d ahead is due now. Failures:
    again in 1 d, after the third I ← 1.5·I. It sees whether a page changed. Its generator takes the due pages of the
    highest score.
    """
    setting = (1 + grow, 1 - shrink, day / 1440, 365 * day, start * day, sync, 90 * day, day, 3)
    return Rule("nutch", kernels.NUTCH, setting, cap="score")


def stormcrawler(
    *,
    day: float = DAY,
    grow: float = 0.5,
    shrink: float = 0.5,
    least: int = 60,
    most: int = 20_160,
    start: int = 1440,
    retry: int = 120,
    name: str = "stormcrawler",
) -> Rule:
    """StormCrawler's AdaptiveScheduler, in whole minutes.

    From ``start``: I ← ⌊(1 − ``shrink``)·I + ``shrink``·``least``⌋ if changed, min(⌊(1 + ``grow``)·I⌋, ``most``) if
    not. A failure erases I and is tried again after ``retry`` minutes; the third in a row ends it. It sees whether a
    page changed.
    """
    return Rule(
        name, kernels.STORMCRAWLER, (1 + grow, 1 - shrink, least, most, start, day / 1440, retry * day / 1440, 3)
    )


def commoncrawl_news(*, day: float = DAY) -> Rule:
    """CommonCrawl's news crawler: StormCrawler's rule from 12 h, within 90 min and 90 d, factors 1.5 and 0.8.

    Failures are tried again after 3 d.
    """
    most, retry = 90 * 1440, 3 * 1440
    return stormcrawler(day=day, shrink=0.2, least=90, most=most, start=720, retry=retry, name="commoncrawl-news")


def heritrix(*, day: float = DAY) -> Rule:
    """Heritrix 1's WaitEvaluator: from 1 d, I ← I/1.5 if changed, 1.5·I if not, within 1 h and 28 d.

    A failure leaves I as it is and waits 3 d. It sees whether a page changed.
    """
    return Rule("heritrix", kernels.HERITRIX, (1.5, 1 / 1.5, day / 24, 28 * day, day, 3 * day))
