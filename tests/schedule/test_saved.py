"""The saved form: a schema with a version, the same bytes again, and one clear line for state of another form."""

import numpy as np
import pytest

from recrawl import Pages, Scheduler
from recrawl.errors import ParameterError
from recrawl.schedule.exact import layout as at

from .reads import every_byte


def used() -> Scheduler:
    rng = np.random.default_rng(4)
    pages = Pages(rng.gamma(1.0, 0.3, 50), recall=0.5, false_rate=0.1, cost=2.0, host=[f"h{k % 3}" for k in range(50)])
    scheduler = Scheduler(pages, budget=5.0, delay=([0.0, 1.0], [0.5, 0.5]))
    scheduler.relate(1.0, 5.0)
    scheduler.join(np.arange(50), np.arange(50) % 4)
    scheduler.host("h1", spacing=0.5, concurrency=2)
    for step in range(30):
        picked = scheduler.pick(0.2 * step, 2)
        scheduler.signal(rng.integers(0, 50, 3), 0.2 * step)
        scheduler.record(picked, 0.2 * step)
        scheduler.publish(step % 4, [1.5, 0.5], 2.0, 0.2 * step)
    return scheduler


def test_every_array_has_the_dtype_of_the_schema():
    scheduler = used()
    saved = scheduler.state()["memory"]
    assert list(saved) == list(at.SCHEMA) == list(at.State._fields)
    assert {name: (array.dtype, array.ndim) for name, array in saved.items()} == at.SCHEMA
    assert not saved["head"]["places"].any()  # addresses mean nothing elsewhere
    assert {at.HEAD[k].itemsize for k in range(len(at.HEAD) - 1)} == {8}  # kernels read it as 8-byte numbers


def test_memory_per_page_does_not_grow_unnoticed():
    assert (at.PAGE.itemsize, at.MEMBER.itemsize, at.BIN.itemsize) == (36, 40, 12)


def test_a_restored_scheduler_saves_the_same_bytes():
    scheduler = used()
    again = Scheduler.restore(scheduler.state())
    heads = [each.state()["memory"]["head"].tobytes() for each in (scheduler, again)]  # without addresses
    assert heads[0] == heads[1]
    assert {**every_byte(scheduler), "head": b""} == {**every_byte(again), "head": b""}
    again._check()


def form_1() -> dict:
    """What recrawl 0.1 saved: numbered columns, without a version."""
    memory = {"ints": np.zeros(164, np.int64), "flts": np.zeros(234), "hosts": np.zeros((0, 7)), "kin": np.zeros(0)}
    columns = {"hosts": [], "sources": None, "floor": 0.0}
    return {"policy": "signals", "objective": "freshness", "budget": None, "memory": memory, "columns": columns}


NEXT = at.VERSION + 1


@pytest.mark.parametrize(("state", "form"), [(form_1(), 1), ({**Scheduler().state(), "version": NEXT}, NEXT)])
def test_state_of_another_form_is_refused_in_one_line(state, form):
    with pytest.raises(ParameterError, match=f"state has form {form}: this version reads form {at.VERSION}") as problem:
        Scheduler.restore(state)
    assert "\n" not in str(problem.value)
