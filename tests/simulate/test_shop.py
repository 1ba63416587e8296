"""The shop has the published ratios, the seasons and campaigns of its settings, the same from the same seed."""

import math
import tracemalloc

import numpy as np
import pytest

from recrawl.errors import ParameterError
from recrawl.simulate import world
from recrawl.simulate.shop.history import HISTORY, METADATA, History, examples, midnights
from recrawl.simulate.shop.settings import ShopSettings, Spread, shop_names, shop_settings
from recrawl.simulate.shop.shop import Shop

pytestmark = pytest.mark.slow


def ratios(shop, n_days):
    """Offer-days without over those with a change, a click, an impression."""
    found = [(d.n_changes > 0, d.n_clicks > 0, d.impressions > 0) for d in shop.days(n_days)]
    shares = [np.concatenate(column).mean() for column in zip(*found, strict=True)]
    return [1.0 / share - 1.0 for share in shares]


@pytest.mark.parametrize("name", shop_names())
def test_ratios_are_the_published_ones(name):
    wanted = [20, 999, 199] if name == "shop-sparse" else [20, 75, 6]
    assert ratios(Shop(20_000, name, seed=3), 45) == pytest.approx(wanted, rel=0.12)


def test_the_same_seed_draws_the_same_days():
    one, two, other = (list(Shop(800, seed=seed).days(12)) for seed in (7, 7, 8))
    for a, b in zip(one, two, strict=True):
        for x, y in zip((*a.changes, *a.clicks, a.impressions), (*b.changes, *b.clicks, b.impressions), strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(a.impression_hours().times, b.impression_hours().times)
    assert any(len(a.changes.at) != len(c.changes.at) for a, c in zip(one, other, strict=True))


def test_days_may_be_drawn_twice():
    shop = Shop(500, seed=2)
    first, second = ([d.changes.at.sum() for d in shop.days(5)] for _ in range(2))
    assert first == second


def test_prices_go_from_change_to_change():
    shop = Shop(3000, seed=4)
    price = None
    for day in shop.days(40):
        if price is not None:
            np.testing.assert_array_equal(day.price[: len(price)], price)
        assert (np.diff(day.changes.offer.astype(np.int64) * 1000 + (day.changes.at - day.day)) > 0).all()
        np.testing.assert_array_equal(day.price_at(0.0), day.price)
        before = day.price.copy()
        for offer, at, new in zip(*day.changes, strict=True):
            assert day.day <= at < day.day + 1
            assert new != before[offer]
            before[offer] = new
        price = day.price_at(24.0)
        np.testing.assert_array_equal(price, before)
        assert (price > 0).all()


def test_campaigns_bring_the_old_price_back():
    quiet = shop_settings("shop", change_share=1e-9, campaign_joins=1.0, campaign_every=10.0, arriving=0.0)
    shop = Shop(500, quiet, seed=1)
    seen = [set() for _ in range(500)]
    for day in shop.days(60):
        for offer, price in enumerate(day.price.tolist()):
            seen[offer].add(price)
    returned = [max(prices) for prices in seen]
    np.testing.assert_array_equal(returned, shop.offers.base_price)
    assert np.mean([len(prices) > 1 for prices in seen]) > 0.9


def test_hours_weekdays_and_merchants_have_their_seasons():
    shop = Shop(20_000, seed=3)
    hours, views, weekdays = np.zeros(24), np.zeros(24), np.zeros(7)
    for day in shop.days(42):
        hours += np.bincount((day.changes.at % 1.0 * 24).astype(int), minlength=24)
        seen = day.impression_hours()
        assert seen.times.sum() == day.impressions.sum()
        views += np.bincount(seen.hour, weights=seen.times, minlength=24)
        weekdays[day.weekday] += len(day.changes.at) / day.n_live
    assert hours.argmax() in (5, 6, 7)
    assert views.argmax() in (19, 20, 21)
    assert weekdays[:5].mean() > 1.3 * weekdays[5:].mean()
    flat = np.zeros(24)
    for day in Shop(20_000, "shop-steady", seed=3).days(30):
        flat += np.bincount((day.changes.at % 1.0 * 24).astype(int), minlength=24)
    assert flat.std() / flat.mean() < 4 / math.sqrt(flat.mean())


def test_sales_raise_changes():
    shop = Shop(10_000, seed=3)
    per_day = np.array([len(day.changes.at) / day.n_live for day in shop.days(90)])
    sale = np.arange(90) % 45 < 4
    same_weekdays = np.isin(np.arange(90) % 7, np.flatnonzero(sale) % 7)
    assert per_day[sale].mean() > 1.3 * per_day[same_weekdays & ~sale].mean()


def explained_share(name):
    """How much of the variance of log change rates lies between merchants and brands, beyond chance."""
    day = next(Shop(20_000, name, seed=5).days(1))
    shop = Shop(20_000, name, seed=5)
    log = np.log(day.rates.change)
    merchant = shop.offers.merchant[: day.n_live]
    size = np.bincount(merchant)
    mean = np.bincount(merchant, weights=log) / np.maximum(size, 1)
    between = (size * (mean - log.mean()) ** 2).sum() / len(log)
    return (between - log.var() * (size > 0).sum() / len(log)) / log.var()


def test_metadata_tell_rates_unless_they_say_nothing():
    assert explained_share("shop") > 0.2
    assert explained_share("shop-untold") < 0.02


def test_coupling_turns_at_the_shift():
    settings = shop_settings("shop-shift", shift_at=3)
    links = [np.corrcoef(np.log(d.rates.change), np.log(d.rates.click))[0, 1] for d in Shop(5000, settings).days(5)]
    assert min(links[:3]) > 0.4
    assert max(links[3:]) < -0.4


def test_history_counts_what_happened():
    shop = Shop(400, seed=6)
    days = list(shop.days(40))
    history = History(len(shop))
    for day in days:
        history.update(day)
    n = days[-1].n_live
    table = history.features(n)
    old = np.flatnonzero(shop.offers.born == 0)
    for window, length in (("1d", 1), ("1w", 7), ("2w", 14), ("1m", 30)):
        clicks = sum(d.n_clicks[old] for d in days[-length:]) / length
        np.testing.assert_allclose(table[f"clicks_{window}"][old], clicks)
        views = sum(d.impressions[old] for d in days[-length:]) / length
        np.testing.assert_allclose(table[f"impressions_{window}"][old], views)
    np.testing.assert_allclose(table["change_days_1m"][old], sum(d.n_changes[old] > 0 for d in days[-30:]) / 30)
    for offer in old[:50].tolist():
        at = [t for d in days for o, t in zip(d.changes.offer, d.changes.at, strict=True) if o == offer]
        assert table["days_since_change"][offer] == pytest.approx(40 - max(at)) if at else True
    np.testing.assert_allclose(history.rates(n)["clicks"][old], table["clicks_1m"][old])


def test_history_of_new_offers_is_of_their_own_days():
    shop = Shop(300, seed=6)
    for midnight in midnights(shop, 20):
        born = shop.offers.born[: midnight.day.n_live]
        new = born == midnight.day.day
        assert np.isnan(midnight.table["clicks_1m"][new]).all()
        assert set(midnight.table) == {*METADATA, *HISTORY}
        views = midnight.table["impressions_1m"]
        assert not np.isnan(views[~new]).any()


def test_history_wants_days_in_order():
    days = list(Shop(50, seed=1).days(3))
    history = History(50)
    with pytest.raises(ParameterError, match="day 1 comes where day 0"):
        history.update(days[1])


def test_examples_are_next_day_labels():
    shop = Shop(500, seed=2)
    table, labels = examples(shop, 5, 9, 100, np.random.default_rng(0), clicked=0.3)
    assert {len(column) for column in (*table.values(), *labels.values())} == {400}
    days = list(shop.days(9))
    for offer, day, changed in zip(labels["offer"], labels["day"], labels["changed"], strict=True):
        assert changed == (days[day].n_changes[offer] > 0)


def test_a_million_offers_fit():
    """Memory per offer does not grow with offers or days: what a million need follows from a hundredth of them."""
    tracemalloc.start()
    shop = Shop(50_000, seed=1)
    for _ in shop.days(3):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * 50_000 + 40e6


def test_the_shop_is_a_world():
    trace = world("shop", 2000).draw(30.0, np.random.default_rng(1))
    again = world("shop", 2000).draw(30.0, np.random.default_rng(1))
    np.testing.assert_array_equal(trace.changed_at, again.changed_at)
    assert len(trace.url) == len(trace) == len(set(trace.url.tolist()))
    assert (np.repeat(trace.created_at, trace.n_changes) <= trace.changed_at).all()
    assert (np.repeat(trace.created_at, np.diff(trace.request_offset)) <= trace.requested_at).all()
    assert trace.n_changes.sum() / trace.span.sum() == pytest.approx(
        (trace.pages.change_rate * trace.span).sum() / trace.span.sum(), rel=0.15
    )
    later = world("shop", 500).draw(10.0, np.random.default_rng(1), start=20.0)
    assert later.start == 20.0
    assert later.changed_at.min() >= 20.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shop(0), "at least one offer"),
        (lambda: Shop(5, seed=-1), "seed is -1"),
        (lambda: Shop(5, "shoop"), "shoop"),
        (lambda: shop_settings("shop", seazons=1), "seazons is not a setting"),
        (lambda: ShopSettings(change_share=0.0), "change_share is 0"),
        (lambda: ShopSettings(click_share=0.5), "who clicks has seen"),
        (lambda: ShopSettings(arriving=2.0), "arriving is 2"),
        (lambda: ShopSettings(n_brands=0), "n_brands is 0"),
        (lambda: ShopSettings(campaign_days=(5, 2)), "campaign_days"),
        (lambda: ShopSettings(sale_factor=0.0), "sale_factor is 0"),
        (lambda: Spread(-1.0, 1.0), "spread"),
        (lambda: list(Shop(5).days(-1)), "n_days is -1"),
        (lambda: examples(Shop(5), 3, 3, 1, np.random.default_rng(0)), "no day lies between 3 and 3"),
        (lambda: world("shop", 5, requests=1.0), "readers"),
        (lambda: world("shop", 5).draw(5.0, np.random.default_rng(0), start=0.5), "whole day"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
