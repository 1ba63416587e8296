"""Offers of a shop: their metadata, how it relates to their rates, and when each is added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.simulate.shop.settings import COLUMNS, ShopSettings, explained_weights

Array = NDArray[np.float64]
Codes = NDArray[np.int32]

CONDITIONS = ("new", "used", "refurbished")
COUNTRIES = ("us", "gb", "de", "fr", "it", "es", "nl", "ch", "at", "ca", "au", "br")
LANGUAGES = ("en", "de", "fr", "it", "es", "nl", "pt")
_SPOKEN = {"us": "en", "gb": "en", "de": "de", "fr": "fr", "it": "it", "es": "es", "nl": "nl", "at": "de", "au": "en"}
_SPOKEN_IN_SEVERAL = {"ch": ("de", "fr", "it"), "ca": ("en", "fr"), "br": ("pt",)}
_CONDITION_SHARES = (0.85, 0.1, 0.05)
_COUNTRY_SHARES = (0.34, 0.12, 0.12, 0.08, 0.06, 0.06, 0.05, 0.03, 0.03, 0.05, 0.04, 0.02)


@dataclass(frozen=True)
class Offers:
    """Metadata as codes, one row per offer in the order of ``born`` (the day an offer comes; 0: it was there)."""

    brand: Codes
    condition: Codes
    country: Codes
    language: Codes
    merchant: Codes
    category: Codes
    born: Codes
    base_price: Codes  # in cents, on day 0

    def __len__(self) -> int:
        return len(self.brand)

    def metadata(self, n: int | None = None) -> dict[str, Codes]:
        """The columns that a predictor may use, of the first n offers."""
        return {name: getattr(self, name)[:n] for name in COLUMNS}

    def url(self, n: int | None = None) -> NDArray[np.str_]:
        """URLs: the merchant is the host, language and category are folders, the brand is in the name."""
        shown = (getattr(self, name)[:n].tolist() for name in ("merchant", "language", "category", "brand"))
        return np.array(
            [
                f"https://m{m}.example/{LANGUAGES[spoken]}/c{c}/b{b}-{i}"
                for i, (m, spoken, c, b) in enumerate(zip(*shown, strict=True))
            ]
        )


def draw_offers(n: int, settings: ShopSettings, rng: np.random.Generator) -> Offers:
    """Offers whose brands, merchants and categories are of very different sizes; merchants sell in one country."""
    merchant = _by_size(n, settings.n_merchants, rng)
    country_of = rng.choice(len(COUNTRIES), settings.n_merchants, p=_COUNTRY_SHARES).astype(np.int32)
    home = _by_size(settings.n_merchants, settings.n_categories, rng)  # half of a merchant's offers are of one category
    category = np.where(rng.random(n) < 0.5, home[merchant], _by_size(n, settings.n_categories, rng))
    near = (category.astype(np.int64) * 7919 + _by_size(n, max(1, settings.n_brands // 20), rng)) % settings.n_brands
    brand = np.where(rng.random(n) < 0.7, near, _by_size(n, settings.n_brands, rng))
    late = rng.random(n) < settings.arriving
    born = np.sort(np.where(late, rng.integers(1, settings.arrive_until + 1, n), 0))
    level = rng.normal(8.0, 0.8, settings.n_categories)  # logarithm of cents
    cents = np.exp(level[category] + rng.normal(0.0, 0.5, n))
    return Offers(
        brand=brand.astype(np.int32),
        condition=rng.choice(len(CONDITIONS), n, p=_CONDITION_SHARES).astype(np.int32),
        country=country_of[merchant],
        language=_languages(country_of[merchant], rng),
        merchant=merchant,
        category=category.astype(np.int32),
        born=born.astype(np.int32),
        base_price=np.clip(cents, 300, 5_000_000).astype(np.int32),
    )


def explained_part(
    offers: Offers, settings: ShopSettings, what: str, explained: float, rng: np.random.Generator
) -> Array:
    """The part of log rates that metadata explain: a normal draw per value, mean 0, deviation ``explained``."""
    total = np.zeros(len(offers))
    for name, weight in explained_weights(what).items():
        effect = rng.normal(0.0, 1.0, int(getattr(offers, name).max()) + 1)
        total += weight * _standard(effect[getattr(offers, name)])
    return explained * _standard(total)


def _standard(column: Array) -> Array:
    deviation = float(column.std())
    return np.asarray((column - column.mean()) / deviation if deviation > 0 else np.zeros_like(column))


def _by_size(n: int, n_values: int, rng: np.random.Generator) -> Codes:
    """Values drawn with probabilities that fall with their rank, like the sizes of brands."""
    share = 1.0 / (np.arange(n_values) + 5.0) ** 0.9
    edge = np.cumsum(share / share.sum())
    return np.minimum(np.searchsorted(edge, rng.random(n), side="right"), n_values - 1).astype(np.int32)


def _languages(country: Codes, rng: np.random.Generator) -> Codes:
    number = {name: k for k, name in enumerate(LANGUAGES)}
    language = np.zeros(len(country), np.int32)
    for code, name in enumerate(COUNTRIES):
        spoken = _SPOKEN_IN_SEVERAL.get(name) or (_SPOKEN[name],)
        here = country == code
        language[here] = rng.choice([number[each] for each in spoken], int(here.sum()))
    return language
