"""Methods that read leave every byte of an engine as it was, with clocks in use and with several signal sources."""

import numpy as np
import pytest
from profiles import examples

from recrawl import Engine
from recrawl.engine.questions import Questions

from .snapshot import READS, assert_reading_changes_nothing, snapshot

pytestmark = pytest.mark.slow

DAY = 86400.0


def running_engine(seed=3, n=120, **settings):
    """An engine with clocks in use: pages of a folder change together, and all were crawled many times."""
    rng = np.random.default_rng(seed)
    engine = Engine(n / (5 * DAY), **settings)
    urls = [f"https://{k % 3}.example/{k // 3 % 8}/{k}" for k in range(n)]
    engine.add(urls, 0.0, fetched_at=0.0, importance=rng.choice([1.0, 2.0, 7.0], n))
    edited = np.sort(rng.uniform(0, 90 * DAY, (24, 12)), axis=1)  # when each folder is edited as a whole
    folder = np.array([k % 24 for k in range(n)])
    last = np.zeros(n)
    for k in range(1, 60 * 24):
        now = k * DAY / 24
        ids = engine.pick(now, 1)
        changed = [bool(((edited[folder[i]] > last[i]) & (edited[folder[i]] <= now)).any()) for i in ids.tolist()]
        last[ids] = now
        engine.record(ids, now, changed=changed)
        if settings.get("sources", 1) and k % 7 == 0:
            engine.signal(rng.integers(0, n, 2), now, source=int(rng.integers(settings.get("sources", 1))))
    return engine, 60 * DAY


def test_every_question_is_among_them():
    asked = {name for name in vars(Questions) if not name.startswith("_")}
    assert asked <= set(READS)


@pytest.fixture(scope="module", params=[0, 1, 2], ids=lambda n: f"{n} sources")
def running(request):
    return running_engine(sources=request.param)


def test_clocks_are_in_use(running):
    engine, now = running
    paces = [engine.explain(page, now).clock.pace for page in engine.ids().tolist()]
    assert np.ptp(paces) > 0.2


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("ahead", [0.0, DAY / 3, 40 * DAY])
def test_reading_changes_nothing(running, name, ahead):
    engine, now = running
    assert_reading_changes_nothing(engine, engine.ids(), now + ahead, [name])


def test_explaining_every_page_leaves_the_memory_sound(running):
    """A wake time that was asked for at another level than the page sleeps below was kept with the page."""
    engine, now = running
    other = Engine.restore(engine.state())
    for k in range(examples(20, usual=8)):
        time = now + k * DAY / 6
        for page in engine.ids().tolist():
            engine.explain(page, time)
        engine.scheduler._check()
        ids = engine.pick(time, 2)
        assert ids.tolist() == other.pick(time, 2).tolist()
        for one in (engine, other):
            one.record(ids, time, changed=np.arange(len(ids)) == k % 3)
    before, after = (one.state()["scheduler"]["memory"] for one in (other, engine))
    assert {name: array.tobytes() for name, array in before.items()} == {
        name: array.tobytes() for name, array in after.items()
    }


def test_a_changed_byte_is_noticed(running):
    engine, _ = running
    other = Engine.restore(engine.state())
    before = snapshot(other)
    other.beliefs.belief.signals.heard_at[:1] = 17.0
    changed = [path for path, value in snapshot(other).items() if before[path] != value]
    assert bool(changed) == (engine.settings.sources > 0)
    assert all(path.endswith("heard_at") for path in changed)
