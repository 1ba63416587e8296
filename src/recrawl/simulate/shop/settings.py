"""What a shop is like: its parameters, and the shops by name, one of them for each claim that should fail in it.

The shop is synthetic. The data of Han et al. (WWW 2020) are private; only the shares of offer-days with a change, a
click and an impression are theirs. The other figures were chosen so that predictors of the next day come near the
paper's table 4, before any policy ran on it (docs/reference/shop.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from recrawl.errors import ParameterError, unknown

# Weights of the metadata's part of a rate; their squares are scaled to sum to 1.
COLUMNS = ("brand", "condition", "country", "language", "merchant", "category")
_CHANGE = {"brand": 0.55, "condition": 0.25, "country": 0.2, "language": 0.0, "merchant": 0.6, "category": 0.5}
_SEEN = {"brand": 0.6, "condition": 0.2, "country": 0.3, "language": 0.1, "merchant": 0.4, "category": 0.6}


@dataclass(frozen=True)
class Spread:
    """How the logarithm of a rate varies: by metadata, by offer, and how many days the offer's part lasts (1/e)."""

    explained: float
    own: float
    memory: float = math.inf

    def __post_init__(self) -> None:
        if not (0 <= self.explained < math.inf and 0 <= self.own < math.inf and self.memory > 0):
            raise ParameterError("spread: explained and own must be finite and at least 0, memory above 0")

    @property
    def untold(self) -> Spread:
        """The same variation, none of it by metadata."""
        return Spread(0.0, math.hypot(self.explained, self.own), self.memory)


@dataclass(frozen=True)
class ShopSettings:
    """Everything that a shop is drawn with; times in days, shares of offer-days."""

    change_share: float = 1 / 21  # 1 : 20
    click_share: float = 1 / 76  # 1 : 75
    impression_share: float = 1 / 7  # 1 : 6
    n_brands: int = 2000
    n_merchants: int = 400
    n_categories: int = 200
    change: Spread = field(default_factory=lambda: Spread(1.8, 0.4, 30.0))
    impression: Spread = field(default_factory=lambda: Spread(1.4, 2.1, 150.0))
    click_through: Spread = field(default_factory=lambda: Spread(1.3, 0.6))
    seasons: float = 1.0  # 0: every hour and weekday alike
    merchant_weekday: float = 18.0  # how much more often a merchant changes prices on a weekday of its own
    sale_every: int = 45  # days from one sale of the whole shop to the next
    sale_days: int = 4
    sale_factor: float = 2.0  # of change rates during a sale
    campaign_every: float = 90.0  # mean days between two campaigns of a merchant; infinity: none
    campaign_days: tuple[int, int] = (3, 10)
    campaign_joins: float = 0.15  # share of a merchant's offers in a campaign
    campaign_views: float = 2.0  # factor of impressions while an offer is in one
    arriving: float = 0.3  # share of offers that come after day 0, evenly up to day `arrive_until`
    arrive_until: int = 253
    coupling: float = 0.0  # how far popular offers change more often: of the log rate, per standard deviation
    shift_at: int | None = None  # the day from which the coupling has the other sign

    def __post_init__(self) -> None:
        for name in ("change_share", "click_share", "impression_share"):
            if not 0 < getattr(self, name) < 1:
                raise ParameterError(f"{name} is {getattr(self, name):g}: must lie between 0 and 1")
        if self.click_share >= self.impression_share:
            raise ParameterError("click_share must be below impression_share: who clicks has seen the offer")
        for name in ("n_brands", "n_merchants", "n_categories", "arrive_until", "sale_every"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} is {getattr(self, name)}: must be at least 1")
        for name in ("seasons", "arriving", "campaign_joins"):
            if not 0 <= getattr(self, name) <= 1:
                raise ParameterError(f"{name} is {getattr(self, name):g}: must lie between 0 and 1")
        for name in ("merchant_weekday", "sale_factor", "campaign_every", "campaign_views"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name} is {getattr(self, name):g}: must be above 0")
        if not 1 <= self.campaign_days[0] <= self.campaign_days[1]:
            raise ParameterError("campaign_days: the least must be at least 1 and not above the most")

    @property
    def steady(self) -> ShopSettings:
        """The same offers in a constant world: no seasons, sales, campaigns, arrivals or drift."""
        return replace(
            self,
            change=replace(self.change, memory=math.inf),
            impression=replace(self.impression, memory=math.inf),
            click_through=replace(self.click_through, memory=math.inf),
            seasons=0.0,
            merchant_weekday=1.0,
            sale_factor=1.0,
            campaign_every=math.inf,
            arriving=0.0,
        )


def explained_weights(what: str) -> dict[str, float]:
    """How much each column of the metadata says about changes, or about impressions and clicks; squares sum to 1."""
    weight = _CHANGE if what == "change" else _SEEN
    length = math.sqrt(sum(value**2 for value in weight.values()))
    return {name: value / length for name, value in weight.items()}


_SHOP = ShopSettings()
_SHOPS: dict[str, ShopSettings] = {
    "shop": _SHOP,
    # metadata say nothing: a model on them cannot beat chance, nor history with them history alone
    "shop-untold": replace(
        _SHOP,
        change=_SHOP.change.untold,
        impression=_SHOP.impression.untold,
        click_through=_SHOP.click_through.untold,
        merchant_weekday=1.0,
    ),
    # nothing moves: one strategy is best all the time, and history of enough days is as good as a model
    "shop-steady": _SHOP.steady,
    # hardly anybody looks, and metadata say who: a month of history cannot tie with metadata and history for clicks
    "shop-sparse": replace(
        _SHOP,
        impression_share=1 / 200,
        click_share=1 / 1000,
        impression=Spread(2.0, 0.3, 150.0),
        click_through=Spread(1.3, 0.2),
    ),
    # popularity is mostly drawn again each day: clicks of yesterday say little of tomorrow's
    "shop-fickle": replace(_SHOP, impression=Spread(1.6, 1.6, 0.5), click_through=Spread(1.3, 0.6, 0.5)),
    # popular offers are those that change, seldom against a daily crawl: crawling by change rate is not the worst
    "shop-coupled": replace(_SHOP.steady, coupling=1.5, change=Spread(0.5, 0.3)),
    # every offer is clicked alike: LambdaCrawl for clicks is LambdaCrawl for offers, and uniform is not the best
    "shop-alike": replace(_SHOP.steady, impression=Spread(0.0, 0.0), click_through=Spread(0.0, 0.0)),
    # the best strategy becomes the worst: popular offers change most, then least
    "shop-shift": replace(_SHOP, coupling=2.0, shift_at=120),
}


def shop_settings(name: str = "shop", **changes: Any) -> ShopSettings:
    """The settings of a shop by name, some of them changed.

    >>> shop_settings("shop-steady", n_brands=50).seasons
    0.0
    """
    if name not in _SHOPS:
        raise unknown("shop", name, list(_SHOPS))
    known = {each.name for each in fields(ShopSettings)}
    for setting in changes:
        if setting not in known:
            raise ParameterError(f"{setting} is not a setting of a shop ({', '.join(sorted(known))})")
    return replace(_SHOPS[name], **changes)


def shop_names() -> list[str]:
    """The shops by name."""
    return list(_SHOPS)
