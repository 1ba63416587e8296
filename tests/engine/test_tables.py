"""Tables of change rates: sums of what pages add, a page's own part left out, and fits that invent nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import beliefs as naive
from profiles import examples

from recrawl import Engine
from recrawl.engine.beliefs.beliefs import Beliefs
from recrawl.engine.beliefs.posterior_kernels import fill_prior, spread_rates

GROUPS = [("a", "a/x"), ("a", "a/y"), ("b", "b"), ("a", "a/x"), ("b", "b/x"), ("c", "c")]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "crawl", "crawl", "crawl", "give", "fit", "forget"]),
        st.integers(0, 30),
        st.sampled_from([0.0, 1e-3, 1.0, 300.0]),
        st.booleans(),
    ),
    max_size=40,
)


def observe(beliefs: Beliefs, i: int, interval: float, changed: bool) -> None:
    """One crawl of a page, as the engine counts it."""
    b, kind = beliefs.belief, (0.0, 1.0, np.log(max(interval, 1e-9))) if changed else (interval, 0.0, 0.0)
    b.seen[i] += kind
    b.n_crawls[i] += 1
    beliefs.crawls += 1
    beliefs.believe(np.array([i]), count=True)


def assert_sums(beliefs: Beliefs, rows: list[int]) -> None:
    b = beliefs.belief
    tables = np.zeros_like(b.tables)
    for i in rows:
        for table in (0, *b.table[i].tolist()):
            tables[table] += b.share[i]
    assert b.tables.tolist() == tables.tolist()
    assert b.sizes.tolist() == tables.sum(axis=1).tolist()
    assert all(b.share[i].sum() == (naive.UNIT if b.n_crawls[i] else 0) for i in rows)


def assert_priors(beliefs: Beliefs, rows: list[int]) -> None:
    """The prior of each page is that of all others."""
    b, out = beliefs.belief, np.empty(32)
    pages = [
        SimpleNamespace(host=b.table[i, 0], folder=b.table[i, 1], share=b.share[i] if b.n_crawls[i] else None)
        for i in rows
    ]
    for i, page in zip(rows, pages, strict=True):
        fill_prior(b, i, out)
        assert out == pytest.approx(naive.prior_of(page, pages, naive.first_table(), b.strength), rel=1e-9, abs=1e-15)


def test_a_prior_spreads_and_the_first_distribution_stays() -> None:
    spread, first = Beliefs(None, 0, np.inf, 1.0).belief.spread, naive.first_table()
    for table in (first, np.eye(32)[0], np.eye(32)[20], np.eye(32)[31]):
        out = table.copy()
        spread_rates(spread, out)
        assert out == pytest.approx(naive.spread_over(first) @ table, rel=1e-12, abs=1e-290)
        assert out.sum() == pytest.approx(1.0)
    assert naive.spread_over(first) @ first == pytest.approx(first, rel=1e-12)


def test_pages_that_change_alike_do_not_hold_each_other_to_a_rate_that_none_shows() -> None:
    """Each of 20 pages makes the prior of the others: rounded tables alone hold all of them to 103 seconds."""
    rng, engine = np.random.default_rng(1), Engine(20 / 60.0, siblings=False, sources=0)
    ids = engine.add([f"https://a.example/{k}" for k in range(20)], 0.0, fetched_at=0.0)
    for crawl in range(1, 16):
        engine.record(ids, 60.0 * crawl, changed=rng.random(20) < -np.expm1(-60.0 / 30.0))
    assert 20.0 < 1.0 / engine.pages(ids).change_rate.mean() < 45.0


@given(STEPS)
@settings(max_examples=examples(60))
def test_tables_are_the_sums_of_shares_after_any_sequence(steps: list[tuple[str, int, float, bool]]) -> None:
    beliefs = Beliefs(None, 0, np.inf, 1.0)
    beliefs.append(GROUPS[:4], np.ones(4, bool))
    rows, n = list(range(4)), 4
    for what, k, interval, changed in steps:
        i = rows[k % len(rows)]
        if what == "add":
            beliefs.append([GROUPS[k % 6]], np.array([True]))
            rows.append(n)
            n += 1
        elif what == "crawl":
            observe(beliefs, i, interval, changed)
        elif what == "give":
            beliefs.belief.evidence[i] = (2.0, 2.0 / (interval + 1e-3))
            beliefs.believe(np.array([i]))
        elif what == "fit":
            seen = beliefs.belief.seen.copy()
            beliefs.fit(np.array(rows))
            assert np.array_equal(beliefs.belief.seen, seen)
        elif len(rows) > 1:
            rows.remove(i)
            beliefs.forget(np.array([i]))
    assert_sums(beliefs, rows)
    assert_priors(beliefs, rows)
    assert (beliefs.belief.gamma[rows] > 0).all()


def test_pages_that_came_later_have_a_folder_of_their_own() -> None:
    beliefs = Beliefs(None, 0, np.inf, 1.0)
    beliefs.append([("a", "a/x")], np.array([True]))
    beliefs.append([("a", "a/x")], np.array([True]))
    observe(beliefs, 0, 1.0, True)
    beliefs.append([("a", "a/x")], np.array([True]))
    table = beliefs.belief.table[:3]
    assert table[0].tolist() == table[1].tolist()
    assert table[2, 0] == table[0, 0]
    assert table[2, 1] != table[0, 1]


def crawled(rng: np.random.Generator, n: int = 120, days: int = 12) -> Engine:
    """Folders of fast and of slow pages; every fourth page is never crawled."""
    rate = np.where(np.arange(n) % 2, 0.02, 2.0)
    engine = Engine(n / 1.0, day=1.0, sources=0, siblings=False)
    ids = engine.add([f"https://a.example/{'fs'[k % 2]}/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    some = ids[ids % 8 < 6]
    for now in range(1, days + 1):
        engine.record(some, float(now), changed=rng.random(len(some)) < -np.expm1(-rate[some]))
    return engine


def refit(engine: Engine) -> None:
    engine.beliefs.refit_at = engine.beliefs.crawls
    assert engine.refit_if_due()


def test_a_page_without_crawls_is_believed_to_be_like_its_folder() -> None:
    engine = crawled(np.random.default_rng(1))
    refit(engine)
    rate = engine.pages().change_rate
    unseen = engine.beliefs.belief.n_crawls[:120] == 0
    fast = np.arange(120) % 2 == 0
    assert rate[unseen & fast].mean() == pytest.approx(2.0, rel=0.5)
    assert rate[unseen & ~fast].mean() < 0.1
    late = engine.add(["https://a.example/f/late", "https://a.example/s/late"], engine.now)
    assert 0.02 < engine.pages(late).change_rate[0] == pytest.approx(engine.pages(late).change_rate[1], rel=1e-9)


def test_fits_without_new_crawls_come_to_rest() -> None:
    """A refit moves no observation, multiplies no page's mean, and a second one changes hardly anything."""
    engine = crawled(np.random.default_rng(2))
    belief = engine.beliefs.belief
    seen, evidence = belief.seen.copy(), belief.evidence.copy()
    before = engine.pages().change_rate
    for _ in range(8):
        refit(engine)
        now = engine.pages().change_rate
        assert ((now < 3.0 * before) & (now > before / 3.0)).all()
        assert (now.max() < 1.5 * before.max()) & (now.max() < 10.0)
        before = now
    refit(engine)
    assert np.abs(np.log(engine.pages().change_rate / before)).max() < 0.1
    assert np.array_equal(belief.seen, seen)
    assert np.array_equal(belief.evidence, evidence)


def test_removed_pages_no_longer_count() -> None:
    engine = crawled(np.random.default_rng(3))
    fast = engine.ids()[engine.ids() % 2 == 0]
    engine.remove(fast)
    belief = engine.beliefs.belief
    left = engine.ids()
    assert belief.tables[0].tolist() == belief.share[left].sum(axis=0, dtype=float).tolist()
    refit(engine)
    new = engine.add(["https://b.example/"], engine.now, fetched_at=engine.now)
    assert engine.pages(new).change_rate[0] < 0.2


@pytest.mark.parametrize("seed", range(3))
def test_no_rate_is_far_above_the_fastest_true_one(seed: int) -> None:
    """Pages crawled once or twice, many of them changed each time: rates above the crawls' are not believed in."""
    rng = np.random.default_rng(seed)
    n, rate = 300, np.random.default_rng(seed).gamma(0.7, 0.5, 300) + 1e-3
    engine = Engine(n / 4.0, day=1.0, sources=0)
    ids = engine.add([f"https://{k % 5}.example/{k % 20}/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    last = np.zeros(n)
    for now in np.arange(1.0, 13.0):
        some = engine.pick(float(now), n // 4)
        engine.record(some, float(now), changed=rng.random(len(some)) < -np.expm1(-rate[some] * (now - last[some])))
        last[some] = now
        assert engine.pages(ids).change_rate.max() < 10.0 * rate.max()
    engine.scheduler._check()
