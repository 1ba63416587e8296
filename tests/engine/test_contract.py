"""The engine keeps the contract of policies, and wrong use leaves it as it was."""

import math

import numpy as np
import pytest

from recrawl import Engine, Pages, ParameterError
from recrawl.schedule import CHECKS, check_policy
from recrawl.schedule.testing.trial import same

pytestmark = pytest.mark.slow

KINDS = {
    "no sources": {"sources": 0},
    "one source": {},
    "two sources": {"sources": 2},
    "harmonic": {"objective": "harmonic"},
    "age": {"objective": "age"},
    "host rules": {"host_spacing": 1e-3, "host_concurrency": 50},
    "floor": {"floor": 1e-3},
    "no copies": {},
    "lambda": {"policy": "lambda"},
    "poisson": {"policy": "poisson"},
    "kab3": {"policy": "kab3"},
}
AT_ZERO = ("two sources", "host rules", "kab3")  # kinds whose clocks start at 0 in make test, too


def factory(kind):
    def make(pages, start):
        engine = Engine(10.0, start=start, lease=300.0, **KINDS[kind])
        engine.add(pages, start, fetched_at=None if kind == "no copies" else start)
        return engine

    return make


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        *((kind, 1.7e9) for kind in KINDS),
        *((kind, 0.0) for kind in AT_ZERO),
        *(pytest.param(kind, 0.0, marks=pytest.mark.full) for kind in KINDS if kind not in AT_ZERO),
    ],
)
def test_contract(kind, start):
    check_policy(factory(kind), lease=300.0, start=start, names=CHECKS)


def used():
    """An engine with pages in a cohort, leased, failed, removed, signalled and asked for."""
    engine = Engine(1.0, start=100.0)
    engine.add([f"https://a.example/{k}" for k in range(20)], 100.0, fetched_at=100.0)
    engine.add(["https://b.example/1", "https://b.example/2"], 100.0, fetched_at=100.0, importance=[2.0, 3.0])
    engine.remove([3])
    ids = engine.pick(200.0, 4)
    engine.record(ids[:1], 201.0, failed=True)
    engine.record(ids[1:2], 201.0, changed=True)
    engine.request([5], 202.0)
    engine.signal([6], 202.0)
    return engine


WRONG = {
    "pick at infinity": lambda e: e.pick(math.inf, 1),
    "pick of -1 after pages waited": lambda e: e.pick(1e9, -1),
    "pick of a text": lambda e: e.pick(1e9, "many"),
    "next_at infinity": lambda e: e.next_at(math.inf),
    "record after now": lambda e: e.record([10], 300.0, as_of=[301.0]),
    "record twice, once after now": lambda e: e.record([10, 10], 300.0, as_of=[250.0, 301.0]),
    "record with a flag that is NaN": lambda e: e.record([10], 300.0, changed=[math.nan]),
    "add of no text": lambda e: e.add([3], 300.0),
    "add of an empty URL": lambda e: e.add(["https://c.example/", ""], 300.0),
    "add with a negative importance": lambda e: e.add(["https://c.example/"], 300.0, importance=-1.0),
    "add with a rate of NaN": lambda e: e.add(["https://c.example/"], 300.0, change_rate=math.nan),
    "add fetched at infinity": lambda e: e.add(["https://c.example/"], 300.0, fetched_at=math.inf),
    "add with too many columns": lambda e: e.add(["https://c.example/"], 300.0, importance=[1.0, 2.0]),
    "signal of an unknown source": lambda e: e.signal([10], 300.0, source=1),
    "signal at NaN": lambda e: e.signal([10], math.nan),
    "request at NaN": lambda e: e.request([10], math.nan),
    "request of a removed id": lambda e: e.request([3], 300.0),
    "host with a negative spacing": lambda e: e.host("a.example", spacing=-1.0),
    "host with no crawl at once": lambda e: e.host("a.example", concurrency=0),
    "hold until NaN": lambda e: e.hold("a.example", math.nan),
    "pause of a removed id": lambda e: e.pause([10, 3]),
    "resume of a removed id": lambda e: e.resume([10, 3]),
    "update with an evidence of 0": lambda e: e.update([10], change_rate=1.0, evidence=0.0),
    "update of another column": lambda e: e.update([10], recall=0.5),
    "update of one page twice": lambda e: e.update([10, 10], importance=1.0),
    "remove twice": lambda e: e.remove([10, 10]),
    "a budget of 0": lambda e: setattr(e, "budget", 0.0),
    "a budget of None": lambda e: setattr(e, "budget", None),
    "rows of a removed id": lambda e: e.rows([3]),
    "explain of a removed id": lambda e: e.explain(3, 300.0),
    "id of an unknown URL": lambda e: e.id("https://c.example/"),
    "id of a removed URL": lambda e: e.id("https://a.example/3"),
    "forecast at no level": lambda e: e.forecast(1.0, level=1.0),
    "forecast of a budget that is NaN": lambda e: e.forecast(math.nan),
    "restore of rows without a time": lambda e: Engine.restore(e.rows()),
    "restore of rows without a column": lambda e: Engine.restore({"settings": {}, "url": []}, 300.0),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_raises_and_leaves_the_state(name):
    engine = used()
    before = engine.state()
    with pytest.raises(ParameterError):
        WRONG[name](engine)
    assert same(before, engine.state())


@pytest.mark.parametrize(
    "settings",
    [
        {"sources": -1},
        {"sources": 17},
        {"sources": 1.5},
        {"half_life": 0.0},
        {"half_life": math.nan},
        {"day": math.inf},
        {"lease": 0.0},
        {"floor": -1.0},
        {"objective": "beauty"},
        {"host_spacing": -1.0},
        {"host_concurrency": 0},
        {"no_such_setting": 1},
        {"budget": 0.0},
    ],
    ids=str,
)
def test_wrong_settings(settings):
    with pytest.raises(ParameterError):
        Engine(**settings)


def test_nothing_is_something():
    engine = Engine()
    assert engine.add([], 0.0, fetched_at=0.0).tolist() == []
    assert engine.pick(1.0, 5).tolist() == []
    assert engine.next_at(1.0) == math.inf
    assert engine.url([]) == []
    engine.record([], 2.0)
    engine.signal([], 2.0)
    engine.request([], 2.0)
    engine.update([], change_rate=[])
    engine.pause([])
    engine.resume([])
    engine.remove([])
    assert len(Engine.restore(engine.rows(), 3.0)) == len(Engine.restore(engine.state())) == 0
    with pytest.raises(ParameterError):
        engine.forecast(1.0)


def test_repeated_urls_are_one_page():
    engine = Engine(1.0)
    ids = engine.add(["x.example/", "y.example/", "x.example/"], 0.0, fetched_at=0.0, importance=[1.0, 2.0, 3.0])
    assert ids.tolist() == [0, 1, 0]
    assert engine.add(["y.example/", "z.example/"], 5.0, fetched_at=5.0, importance=9.0).tolist() == [1, 2]
    assert engine.pages().importance.tolist() == [1.0, 2.0, 9.0]
    engine.remove([0])
    assert engine.add("x.example/", 6.0, fetched_at=6.0).tolist() == [3]
    assert engine.id(["x.example/", "z.example/"]).tolist() == [3, 2]


def test_a_long_url_costs_no_more_than_itself():
    urls = [f"https://a.example/{k}" for k in range(1000)]
    assert len(Engine().add([*urls, "https://a.example/" + "x" * 200_000], 0.0, fetched_at=0.0)) == 1001


def test_copies_from_the_future_are_from_now():
    engine = Engine(1.0)
    ids = engine.add(["a.example/", "b.example/"], 10.0, fetched_at=[50.0, 5.0])
    assert [engine.explain(i, 20.0).fetched_at for i in ids.tolist()] == [10.0, 5.0]


def test_time_that_went_back_is_the_largest_seen():
    engine = Engine(1.0)
    engine.add("a.example/", 0.0, fetched_at=0.0)
    engine.pick(100.0, 1)
    late = int(engine.add("b.example/", 30.0, fetched_at=101.0)[0])
    assert engine.explain(late, 100.0).fetched_at == 100.0


def test_importance_of_zero_is_never_picked():
    engine = Engine(1.0)
    engine.add([f"a.example/{k}" for k in range(30)], 0.0, fetched_at=0.0, importance=0.0)
    engine.add("b.example/", 0.0, fetched_at=0.0)
    assert engine.url(engine.pick(1e6, 40)) == ["b.example/"]
    assert engine.next_at(1e6) == pytest.approx(1e6 + 300.0)


def test_epoch_seconds_and_many_crawls_a_second():
    now, engine = 1.7e9, Engine(50.0, min_change_probability=0.0)
    engine.add([f"a.example/{k}" for k in range(300)], now, fetched_at=now)
    seen = []
    for k in range(1, 601):
        ids = engine.pick(now + k * 0.02, 1)
        engine.record(ids, now + k * 0.02, changed=[False])
        seen += ids.tolist()
    assert np.bincount(seen, minlength=300).tolist() == [2] * 300
    engine.scheduler._check()


def test_pages_as_of_the_model_can_be_added():
    engine = Engine(1.0, day=1.0)
    ids = engine.add(Pages([0.5, 2.0], [1.0, 3.0], evidence=[4.0, np.inf]), 0.0, fetched_at=0.0)
    pages = engine.pages(ids)
    assert pages.change_rate.tolist() == [pytest.approx(0.5, rel=0.15), pytest.approx(2.0)]
    assert pages.evidence.tolist() == [pytest.approx(4.0, rel=0.15), pytest.approx(1e6, rel=0.01)]
