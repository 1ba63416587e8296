"""Wrong use of the scheduler raises ParameterError and leaves its state untouched; faults that were found once."""

import copy
import math
import pickle

import numpy as np
import pytest

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.scheduler import Scheduler

NAN, INF = math.nan, math.inf
WRONG = {
    "unknown id": lambda s: s.record([99], 3.0),
    "negative id": lambda s: s.signal([-1], 3.0),
    "removed id": lambda s: s.record([0, 4], 3.0),
    "removed id in pause": lambda s: s.pause([4]),
    "removed id in remove": lambda s: s.remove([0, 4]),
    "removed id in value": lambda s: s.value([4], 3.0),
    "ids are fractions": lambda s: s.release([0.5], 3.0),
    "ids in two dimensions": lambda s: s.release([[0, 1]], 3.0),
    "ids repeat in update": lambda s: s.update([0, 0], importance=2.0),
    "ids repeat in resume": lambda s: s.resume([0, 0]),
    "n below 0": lambda s: s.pick(3.0, -1),
    "pick at nan": lambda s: s.pick(NAN, 1),
    "pick at infinity": lambda s: s.pick(INF, 1),
    "record at nan": lambda s: s.record([0], NAN),
    "signal at nan": lambda s: s.signal([0], NAN),
    "next_at nan": lambda s: s.next_at(NAN),
    "value at nan": lambda s: s.value([0], NAN),
    "add at nan": lambda s: s.add(Pages([1.0]), NAN),
    "fetched at nan": lambda s: s.add(Pages([1.0]), 3.0, fetched_at=NAN),
    "fetched_at of another length": lambda s: s.add(Pages([1.0, 2.0]), 3.0, fetched_at=[1.0, 2.0, 3.0]),
    "as_of nan": lambda s: s.record([0], 3.0, as_of=NAN),
    "as_of after now": lambda s: s.record([0], 3.0, as_of=4.0),
    "as_of of another length": lambda s: s.record([0, 1], 3.0, as_of=[1.0, 2.0, 3.0]),
    "failed of another length": lambda s: s.record([0, 1], 3.0, failed=[True, False, True]),
    "gone of another length": lambda s: s.record([0, 1], 3.0, gone=[True, False, True]),
    "changed of another length": lambda s: s.record([0, 1], 3.0, changed=[True, False, True]),
    "changed_at nan": lambda s: s.signal([0], 3.0, changed_at=NAN),
    "changed_at of another length": lambda s: s.signal([0, 1], 3.0, changed_at=[1.0, 2.0, 3.0]),
    "unknown source": lambda s: s.signal([0], 3.0, source=1),
    "source below 0": lambda s: s.signal([0], 3.0, source=-1),
    "nan rate": lambda s: s.update([0, 1], change_rate=[1.0, NAN]),
    "negative rate": lambda s: s.update([0], change_rate=-1.0),
    "negative importance": lambda s: s.update([0], importance=-1.0),
    "recall above 1": lambda s: s.update([0], recall=1.5),
    "nan cost": lambda s: s.update([0], cost=NAN),
    "column of another length": lambda s: s.update([0, 1], importance=[1.0, 2.0, 3.0]),
    "unknown column": lambda s: s.update([0], colour=1.0),
    "more sources": lambda s: s.update([0], recall=[[0.1, 0.2]]),
    "more sources in add": lambda s: s.add(Pages([1.0], recall=[[0.1, 0.2]]), 3.0),
    "evidence with signals": lambda s: s.update([0], recall=0.5, evidence=3.0),
    "hold until nan": lambda s: s.hold("new", NAN),
    "negative spacing": lambda s: s.host("new", spacing=-1.0),
    "no concurrency": lambda s: s.host("a", spacing=1.0, concurrency=0),
    "budget 0": lambda s: setattr(s, "budget", 0.0),
    "budget nan": lambda s: setattr(s, "budget", NAN),
}


def flat(value):
    if isinstance(value, dict):
        return {key: flat(inner) for key, inner in value.items()}
    return (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


@pytest.fixture
def scheduler():
    pages = Pages(np.linspace(0.5, 2, 6), recall=0.5, false_rate=0.1, host=["a", "b"] * 3)
    scheduler = Scheduler(pages, budget=3.0)
    scheduler.signal([0, 1, 1], 1.0)
    scheduler.pick(2.0, 2)
    scheduler.remove([4])
    return scheduler


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(scheduler, name):
    before = flat(scheduler.state())
    with pytest.raises(ParameterError):
        WRONG[name](scheduler)
    assert flat(scheduler.state()) == before
    scheduler._check()


@pytest.mark.parametrize(
    "options",
    [
        {"lease": 0.0},
        {"lease": NAN},
        {"start": NAN},
        {"floor": -1.0},
        {"policy": "best"},
        {"objective": "best"},
        {"budget": -1.0},
        {"delay_window": 1.0},
        {"policy": "signals-delayed"},
        {"policy": "signals-delayed", "delay_window": NAN},
        {"delay": ([1.0, 0.5], [0.5, 0.5])},
        {"delay": ([1.0], [0.5])},
    ],
)
def test_wrong_options(options):
    with pytest.raises(ParameterError):
        Scheduler(Pages([1.0]), **options)


# --- faults that were found once --------------------------------------------------------------------------------------


def test_update_leaves_a_paused_page_paused():
    scheduler = Scheduler(Pages([1.0, 2.0]))
    scheduler.pause([0])
    scheduler.update([0], importance=5.0)
    assert scheduler.pick(1.0, 2).tolist() == [1]


def test_a_complete_noisy_page_wakes_on_a_signal():
    """Recall 1, so its value grows with signals alone: one that arrives while it sleeps must bring it up."""
    scheduler = Scheduler(Pages([1.0, 1.0], recall=[1.0, 0.0], false_rate=[0.3, 0.0]))
    scheduler.pick(1.0, 2)
    scheduler.record([0, 1], 1.0)
    scheduler.signal([0], 1.1)
    assert scheduler.pick(1.1, 1).tolist() == [0]


def test_a_complete_page_wakes_on_a_signal_for_the_harmonic_objective():
    scheduler = Scheduler(Pages([1.0, 1.0], recall=[1.0, 0.0]), objective="harmonic")
    scheduler.pick(1.0, 2)
    scheduler.record([0, 1], 1.0)
    scheduler.signal([0], 1.1)
    assert scheduler.pick(1.1, 1).tolist() == [0]


def test_an_outdated_record_does_not_set_a_page_aside():
    scheduler = Scheduler(Pages([1.0]))
    scheduler.record([0], 3.0)
    scheduler.record([0], 4.0, as_of=2.0, gone=True)
    assert scheduler.pick(5.0, 1).tolist() == [0]


def test_pages_wake_after_a_stall_longer_than_the_wheel():
    """1e15 ticks at once: what slept in the upper wheels must be awake."""
    rng = np.random.default_rng(1)
    pages = Pages(rng.gamma(1.0, 1e-6, 3000), rng.uniform(0.5, 2.0, 3000))
    scheduler = Scheduler(pages, budget=1e6, floor=1e-7, lease=1e12)
    for now in (10.0, 11.0, 1e3, 1e6, 1e9):
        value = scheduler.value(np.arange(3000), now)
        value[scheduler._memory.state.rec["state"][:3000] == at.LEASED] = 0.0
        ids = scheduler.pick(now, 20)
        np.testing.assert_allclose(value[ids], np.sort(value)[::-1][:20], rtol=1e-12)
        scheduler._check()


def test_a_page_moves_to_another_host_while_parked_or_leased():
    scheduler = Scheduler(Pages([1.0, 2.0], host=["a", "a"]), lease=10.0)
    scheduler.host("a", concurrency=1)
    first = scheduler.pick(1.0, 2).tolist()
    scheduler.update([0, 1], host=["b", "b"])
    scheduler._check()
    assert first + scheduler.pick(1.0, 2).tolist() in ([0, 1], [1, 0])
    scheduler.record([0, 1], 2.0)
    scheduler._check()


def test_pages_without_a_host_stay_without_one():
    scheduler = Scheduler(Pages([1.0, 2.0], host=["a", "a"]))
    scheduler.add(Pages([3.0]), 0.0)
    scheduler.update([2], importance=4.0)
    assert scheduler.state()["columns"]["hosts"] == ["a"]


def test_optional_columns_grow_from_one_page():
    scheduler = Scheduler(delay=([0.5], [1.0]))
    scheduler.add(Pages([1.0], recall=0.5, cost=2.0), 0.0)
    scheduler.add(Pages([1.0, 1.0, 1.0], recall=0.5), 0.0)
    scheduler.signal([0, 1, 2, 3], 3.0)
    assert scheduler.value([0, 1, 2, 3], 3.0).tolist() == [0.5, 1.0, 1.0, 1.0]


def test_proof_from_several_sources_or_late_is_proof():
    several = Scheduler(Pages([2.0], recall=[[0.5, 0.5]]))
    several.signal([0], 1.0, source=1)
    late = Scheduler(Pages([2.0], recall=0.5), delay=([0.0, 9.0], [0.5, 0.5]))
    quiet = late.value([0], 1.0)[0]
    late.signal([0], 1.0)
    assert several.value([0], 1.0).tolist() == [0.5]
    assert quiet < late.value([0], 1.0)[0] < 0.5


def test_a_signal_dated_before_the_last_pick_counts_as_of_then():
    scheduler = Scheduler(Pages([1.0], recall=0.5))
    scheduler.record([0], 5.0)
    scheduler.pick(6.0, 0)
    scheduler.signal([0], 3.0)
    assert scheduler.value([0], 6.0).tolist() == [1.0]


def test_restored_with_a_window():
    scheduler = Scheduler(Pages([1.0], recall=0.5), policy="signals-delayed", delay_window=2.0)
    other = Scheduler.restore(scheduler.state())
    other.signal([0], 1.0)
    assert other.value([0], 1.0) < 1.0
    other.signal([0], 2.5)
    assert other.value([0], 2.5).tolist() == [1.0]


def test_time_that_went_back_is_counted_once():
    scheduler = Scheduler(Pages(np.ones(500)))
    scheduler.pick(2.0, 1)
    scheduler.pick(1.0, 400)
    assert scheduler.stats["time_went_back"] == 1


@pytest.mark.parametrize("options", [{}, {"delay": ([0.5], [1.0])}])
def test_nothing_to_do_is_fine(options):
    scheduler = Scheduler(Pages([1.0]), **options)
    none = np.zeros(0, np.int64)
    scheduler.signal(none, 1.0)
    scheduler.update(none, importance=3.0)
    scheduler.record(none, 1.0)
    scheduler.remove([])
    assert scheduler.value(none, 1.0).tolist() == []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_has_arrays_of_its_own(copied):
    rng = np.random.default_rng(6)
    scheduler = Scheduler(Pages(rng.uniform(0.1, 1, 500), recall=0.5, false_rate=0.2), budget=50.0)
    scheduler.signal(rng.integers(0, 500, 100), 0.5)
    other = copied(scheduler)
    picked = scheduler.pick(1.0, 20)
    scheduler.record(picked, 1.0)
    assert other.pick(1.0, 20).tolist() == picked.tolist()
    assert other.stats["leased"] == 20
    assert scheduler.stats["leased"] == 0
    scheduler._check()
    other._check()


def test_the_log_follows_the_signals():
    """It grows with a burst, is small again a lease later, and a record still tells what its copy has seen."""
    rng = np.random.default_rng(7)
    scheduler = Scheduler(Pages(np.full(1000, 1.0), recall=0.5, false_rate=0.2), lease=1.0)
    small = scheduler.nbytes
    scheduler.signal(rng.integers(0, 1000, 50_000), 1.0)
    assert scheduler.nbytes > small + 50_000 * 20
    scheduler._check()
    for k in range(30):
        scheduler.signal(rng.integers(0, 1000, 100), 2.0 + 0.1 * k)
        scheduler._check()
    assert scheduler.nbytes < small + 5_000 * 20
    scheduler.signal([3, 4, 3], 5.0)
    scheduler.record([3], 5.5, as_of=[4.95])
    assert scheduler._memory.state.rec["signals"][3] == 2
    scheduler._check()


def test_is_paused_names_the_pages_that_wait_for_resume():
    scheduler = Scheduler(Pages([1.0, 2.0, 3.0, 4.0]))
    scheduler.pause([1])
    scheduler.record(scheduler.pick(1.0, 1), 1.0, gone=[True])
    assert scheduler.is_paused([0, 1, 2, 3]).sum() == 2
    assert scheduler.is_paused([1, 1]).tolist() == [True, True]
    scheduler.resume(np.arange(4))
    assert not scheduler.is_paused(np.arange(4)).any()
    scheduler.remove([2])
    with pytest.raises(ParameterError, match="removed"):
        scheduler.is_paused([2])
