"""How pages are chosen, live: objectives and prices on a web in memory."""

import numpy as np
import pytest

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.polite.unspent import NOTE as UNSPENT
from recrawl.crawl.polite.unspent import figures_of
from recrawl.engine.policies.names import POLICIES
from recrawl.errors import ParameterError

from .driving import DAY, URLS, World, changing

FEW = URLS[:40]


@pytest.mark.parametrize("objective", ["harmonic", "age"])
def test_an_objective_is_used_and_stays_with_the_database(objective):
    world = World(changing, FEW, budget=0.002, choices={"objective": objective})
    counts = world.run(0.3 * DAY)
    assert counts.ended > len(FEW)
    assert counts.failed == 0
    world.choices = {}
    engine = world.opened()
    assert engine.settings.objective == engine.scheduler.objective == objective
    explained = engine.explain(0, world.clock.now())
    assert explained.objective == objective
    assert str(explained).splitlines()[-1].startswith("crawl value by ")
    assert 0 < engine.forecast(0.002).freshness < 1
    waited = np.array([world.clock.now() - engine.fetched_at(np.array([k]))[0] for k in range(len(FEW))])
    assert waited.max() < 0.3 * DAY, "a page was starved"


def test_another_objective_starts_without_the_threshold_of_the_last():
    world = World(changing, FEW, budget=0.002)
    world.run(0.1 * DAY)
    assert world.opened().threshold > 0
    world.choices = {"objective": "age"}
    assert world.opened().threshold == 0


def test_settings_name_the_objective():
    assert Settings().choices() == {}
    assert Settings(objective="harmonic").choices() == {"objective": "harmonic"}
    with pytest.raises(ParameterError, match="objective 'beauty' is not one of freshness, harmonic, age"):
        Settings(objective="beauty")


@pytest.mark.slow
def test_a_price_leaves_budget_unspent_and_says_so():
    world = World(changing, FEW, budget=0.02, choices={"price": 3600.0})
    counts = world.run(0.5 * DAY)
    assert len(FEW) < counts.ended < 0.7 * 0.02 * 0.5 * DAY
    figures = figures_of(world.store.notes(UNSPENT).get(UNSPENT), world.clock.now())
    assert max(figures["why"], key=figures["why"].get) == "price"
    world.choices = {}
    assert world.opened().price == 3600.0


def test_settings_name_price_and_bound():
    found = Settings(price="2 h", very_stale="8 h", very_stale_share="5%").choices()
    assert found == {"price": 7200.0, "very_stale": 28800.0, "very_stale_share": 0.05}
    assert Settings(price="0").choices() == {"price": 0.0, "very_stale": 0.0, "very_stale_share": 0.0}
    for given, words in (({"price": "dear"}, "price is 'dear'"), ({"very_stale": "8 h"}, "belong together")):
        with pytest.raises(ParameterError, match=words):
            Settings(**given)


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "value"])
def test_every_policy_runs_and_goes_on_after_a_restart(policy):
    world = World(changing, FEW[:20], budget=0.004, choices={"policy": policy})
    assert world.run(0.1 * DAY).ended > 20
    learned = world.engine.choice.saved().get("exp3")
    world.choices = {}
    counts = world.run(0.1 * DAY)
    engine = world.engine
    assert engine.settings.policy == policy
    assert counts.ended > 5
    assert counts.changed > 0
    assert counts.failed == 0
    if learned is not None:
        assert sum(engine.choice.exp3.plays) >= sum(learned["plays"])
    explained = str(world.opened().explain(3, world.clock.now())).splitlines()[-1]
    assert (f"by the policy {policy}" in explained) == (policy != "no-signals")


def test_settings_refuse_what_does_not_go_together():
    assert Settings(policy="poisson", objective="harmonic").choices()["policy"] == "poisson"
    with pytest.raises(ParameterError, match="the policy kab5 has no objective age"):
        Settings(policy="kab5", objective="age")
    with pytest.raises(ParameterError, match="the policy lambda takes no price"):
        Settings(policy="lambda", price="2 h")
