"""An engine and one that schedules every page by itself live through one story: their picks must be the same pages."""

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from profiles import examples

from recrawl import Engine
from recrawl.engine import upkeep
from recrawl.engine.eligibility.cohorts import Cohorts

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**32 - 1)
HOSTS, FOLDERS = ("a.example", "b.example", "c.example"), ("", "x/", "x/y/")
FEW = settings(
    deadline=None, max_examples=examples(40, usual=6), stateful_step_count=25, suppress_health_check=list(HealthCheck)
)


class SinglePages(Cohorts):
    """No cohorts: each page is scheduled by itself."""

    def form(self, scheduler, rows, by, no_copy_at):
        return np.zeros(len(rows), np.bool_)


def single(engine):
    """The engine without cohorts; it must be empty."""
    engine.eligibility.cohorts = SinglePages()
    return engine


class TwinMachine(RuleBasedStateMachine):
    """Importances are all different, so that no two pages of a cohort are worth the same."""

    options = {}  # noqa: RUF012

    @initialize(budget=st.sampled_from([None, 0.01]), seed=SEEDS)
    def begin(self, budget, seed):
        self.now, self.budget, self.n_urls, self.leased = 0.0, budget, 0, []
        self.pair = [Engine(budget, **self.options), single(Engine(budget, **self.options))]
        self.add(40, seed, "none")

    def both(self, call):
        """Call both; what they return is the same."""
        found = [call(engine) for engine in self.pair]
        np.testing.assert_array_equal(found[0], found[1])
        return found[0]

    def some(self, seed, most):
        rng, ids = np.random.default_rng(seed), self.pair[0].ids()
        return rng, rng.choice(ids, min(int(rng.integers(1, most + 1)), len(ids)), replace=False)

    @rule(n=st.sampled_from([1, 2, 9, 40]), seed=SEEDS, copied=st.sampled_from(["none", "none", "now", "old"]))
    def add(self, n, seed, copied):
        rng = np.random.default_rng(seed)
        n = min(n, 150 - self.n_urls)
        folders = [f"https://{HOSTS[rng.integers(3)]}/{FOLDERS[rng.integers(3)]}" for _ in range(n)]
        urls = [f"{folder}{self.n_urls + k}" for k, folder in enumerate(folders)]
        importance = rng.lognormal(0.0, 1.5, n)
        fetched = {"none": None, "now": self.now, "old": self.now - 3e5}[copied]
        self.n_urls += n
        self.both(lambda engine: engine.add(urls, self.now, importance=importance, fetched_at=fetched))

    @rule(n=st.sampled_from([1, 1, 3, 10, 200]))
    def pick(self, n):
        self.leased += self.both(lambda engine: engine.pick(self.now, n)).tolist()

    @rule(seed=SEEDS, share=st.sampled_from([0.3, 1.0]), refit=st.booleans())
    def record(self, seed, share, refit):
        rng = np.random.default_rng(seed)
        known = set(self.pair[0].ids().tolist())
        ids = np.array([page for page in dict.fromkeys(self.leased) if page in known and rng.random() < share], int)
        outcome = {"changed": rng.random(len(ids)) < 0.5, "failed": rng.random(len(ids)) < 0.2}
        self.leased = [page for page in self.leased if page not in ids]
        for engine in self.pair:
            engine.beliefs.refit_at = 0 if refit else engine.beliefs.refit_at
            engine.record(ids, self.now, **outcome)

    @rule(seed=SEEDS, what=st.sampled_from(["signal", "request", "pause", "resume", "remove", "defer", "end", "rate"]))
    def event(self, seed, what):
        rng, ids = self.some(seed, 5)
        calls = {
            "signal": lambda engine: engine.signal(ids, self.now),
            "request": lambda engine: engine.request(ids, self.now),
            "pause": lambda engine: engine.pause(ids),
            "resume": lambda engine: engine.resume(ids),
            "remove": lambda engine: engine.remove(ids),
            "defer": lambda engine: engine.defer(ids, self.now + 50.0),
            "end": lambda engine: engine.end_deferral(ids),
            "rate": lambda engine: engine.update(ids, change_rate=rate),
        }
        rate = rng.lognormal(-11.0, 1.0, len(ids))
        for engine in self.pair:
            calls[what](engine)

    @rule(seed=SEEDS)
    def weigh(self, seed):
        rng, ids = self.some(seed, 5)
        importance = rng.lognormal(0.0, 1.5, len(ids))
        for engine in self.pair:
            engine.update(ids, importance=importance)

    @rule(host=st.sampled_from(HOSTS), ahead=st.sampled_from([-1.0, 50.0, 1e4]), limit=st.sampled_from([None, 1, 5]))
    def hold(self, host, ahead, limit):
        for engine in self.pair:
            engine.host(host, concurrency=limit)
            engine.hold(host, self.now + ahead)

    @rule(step=st.sampled_from([0.0, 1.0, 60.0, 500.0, 1e5]))
    def wait(self, step):
        self.now += step

    @rule()
    def save_and_restore(self):
        again = [Engine.restore(copy.deepcopy(engine.state())) for engine in self.pair]
        again[1].eligibility.cohorts.__class__ = SinglePages
        self.pair = again

    @rule()
    def build_again_from_rows(self):
        rows = [engine.rows() for engine in self.pair]
        kept, Cohorts.form = Cohorts.form, SinglePages.form
        try:
            alone = Engine.restore(rows[1], self.now)
        finally:
            Cohorts.form = kept
        alone.eligibility.cohorts.__class__ = SinglePages
        self.pair, self.leased = [Engine.restore(rows[0], self.now), alone], []

    @rule()
    def ask_when(self):
        self.both(lambda engine: engine.next_at(self.now))

    @invariant()
    def sound(self):
        for engine in getattr(self, "pair", ()):
            engine.scheduler._check()
            engine.eligibility._check()


VARIANTS = {
    "default": {},
    "any page": {"min_change_probability": 0.0},
    "price": {"price": 3e5},
    "no siblings": {"siblings": False},
    "hosts": {"host_concurrency": 1},
    "spacing": {"host_spacing": 20.0},
    "age": {"objective": "age", "sources": 0},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_any_story(name):
    run_state_machine_as_test(type("Variant", (TwinMachine,), {"options": VARIANTS[name]}), settings=FEW)


def test_a_page_of_equal_importance_comes_in_the_order_of_ids_whatever_its_folder():
    engine = Engine(1.0)
    urls = [f"https://{HOSTS[k % 3]}/{FOLDERS[k % 2]}{k}" for k in range(60)]
    engine.add(urls, 0.0, importance=np.where(np.arange(60) < 20, 1.0, 2.0))
    order = [*range(20, 60), *range(20)]
    assert [int(engine.pick(60.0, 1)[0]) for _ in range(5)] == order[:5]
    assert engine.pick(60.0, 50).tolist() == order[5:55]


def test_few_pages_are_looked_at_however_many_there_are():
    counts = []
    for n in (2_000, 20_000):
        engine, rng = Engine(1.0), np.random.default_rng(0)
        urls = [f"https://host{k % 50}.example/{k % 3}/{k}" for k in range(n)]
        engine.add(urls, 0.0, importance=rng.lognormal(size=n))
        for k in range(10):
            engine.record(engine.pick(60.0 + k, 20), 60.0 + k)
        counts.append(engine.scheduler.stats["evaluated"])
    assert counts[1] < 2 * counts[0] < 20_000


def test_pages_with_folders_of_their_own_wait_for_each_other():
    engine, n = Engine(1.0), 5_000
    engine.add([f"https://host{k}.example/{k}" for k in range(n)], 0.0)
    assert engine.pick(60.0, 20).tolist() == list(range(20))
    assert engine.pick(61.0, 20).tolist() == list(range(20, 40))
    assert engine.stats["evaluated"] < 500
    engine.eligibility._check()


def test_many_pages_of_many_hosts_are_evaluated_once_for_a_pick():
    engine, n = Engine(1.0, host_concurrency=2), 2_000
    engine.add([f"https://host{k % 500}.example/{k}" for k in range(n)], 0.0)
    engine.pick(60.0, 1)
    before = engine.stats["evaluated"]
    assert len(engine.pick(61.0, 200)) == 200
    assert engine.stats["evaluated"] - before <= 2 * n, "not for each page that is picked"


def test_pages_of_busy_hosts_stay_behind_one_page_of_their_host():
    engine, n = Engine(1.0, host_concurrency=1), 6_000
    urls = [f"https://host{k % 30}.example/{k % 7}/{k}" for k in range(n)]
    engine.add(urls, 0.0, importance=np.random.default_rng(0).lognormal(size=n))
    assert [len(engine.pick(60.0, 20)) for _ in range(3)] == [20, 10, 0]
    assert engine.stats["parked"] <= 30
    assert engine.stats["evaluated"] < 2_000


def test_a_refit_in_pieces_keeps_every_cohort_alike(monkeypatch):
    for name, value in (("_COHORTS", 1), ("_PLACED", 7)):
        monkeypatch.setattr(upkeep, name, value)
    engine, rng = Engine(1.0), np.random.default_rng(0)
    urls = [f"https://{HOSTS[k % 3]}/{FOLDERS[k % 2]}{k}" for k in range(300)]
    engine.add(urls, 0.0, importance=rng.lognormal(size=300))
    crawled, now = np.arange(30), 1e5
    engine.record(crawled, 50.0)
    engine.record(crawled, now, changed=crawled % 3 == 0)
    engine.refits_in_pieces, engine.beliefs.refit_at = True, 0
    engine.record(crawled, 2e5, changed=crawled % 3 == 1)
    pieces, leased = 1, set()
    while engine.maintain():
        pieces += 1
        engine.scheduler._check()
        engine.eligibility._check()
        free = [page for page in engine.ids().tolist() if page not in leased]
        best = int(engine.pick(2e5, 1)[0])
        assert engine.scheduler.value([best], 2e5)[0] == engine.scheduler.value(free, 2e5).max()
        leased.add(best)
    assert pieces > 20
    assert engine.stats["refits"] == 1
