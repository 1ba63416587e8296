"""Engines whose kernels are not compiled yet decide as those whose kernels are."""

import math
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import first_use_story
import numpy as np
import pytest

from recrawl._compile import first_use, plain
from recrawl._compile.first_use import FirstUse
from recrawl._compile.jit import jit
from recrawl._compile.plain import uncompiled


def run(words, folder, **options):
    """A process without compiled kernels that does not wait for them."""
    environment = {name: value for name, value in os.environ.items() if name != first_use.COMPILE_FIRST}
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    given = {**environment, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": paths}
    return subprocess.run([sys.executable, *words], env=given, check=True, timeout=600, **options)


def flat(state, name=""):
    """The arrays and numbers of a state by their names."""
    if isinstance(state, dict):
        return {key: one for part in state for key, one in flat(state[part], f"{name}.{part}").items()}
    if isinstance(state, list | tuple) and not all(isinstance(one, int | float | str) for one in state):
        return {key: one for k, part in enumerate(state) for key, one in flat(part, f"{name}.{k}").items()}
    if isinstance(state, np.ndarray) and state.dtype.names:
        return {key: one for part in state.dtype.names for key, one in flat(state[part], f"{name}.{part}").items()}
    return {name: state}


@pytest.fixture(scope="module")
def story_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    run([first_use_story.__file__, str(folder / "plain")], folder / "cache")
    return pickle.loads((folder / "plain").read_bytes())


@pytest.mark.parametrize("seed", first_use_story.SEEDS)
def test_picks_beliefs_and_reasons_are_those_of_compiled_kernels(story_run, seed):
    stories, compiled = story_run
    assert compiled == []
    found, state = first_use_story.story(seed)
    assert stories[seed][0] == found
    ours, theirs = flat(state), flat(stories[seed][1])
    assert ours.keys() == theirs.keys()
    for name, one in ours.items():
        if isinstance(one, np.ndarray) and one.dtype.kind == "f":
            # compiled code divides numbers of single precision, which beliefs about signals have, in that precision
            bound = (1e-3, 1e-6) if ".signals." in name else (1e-12, 1e-13)
            np.testing.assert_allclose(theirs[name], one, *bound, err_msg=name)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(theirs[name], one, err_msg=name)
        elif not isinstance(one, float):
            assert theirs[name] == one, name


@jit
def _rules(a: float, b: float, out: np.ndarray) -> int:
    out[0] = a / b
    out[1] = math.exp(a)
    out[2] = math.log(b)
    out[3] = math.log1p(b - 1.0)
    out[4] = math.expm1(a)
    out[5] = math.sqrt(b)
    out[6:8] = 3.0
    out[6:8] /= 2.0
    out[8] = a ** abs(b)
    return int(min(a, 1e9))


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 2.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (1e6, 4.0), (2.0, 0.0), (5.0, -3.0)]
)
def test_arithmetic_follows_the_compiler(a, b):
    with np.errstate(all="ignore"):
        expected, found = np.zeros(9), np.zeros(9)
        assert uncompiled(_rules)(a, b, found) == _rules(a, b, expected)
        np.testing.assert_array_equal(found, expected)


def test_numbers_of_arrays_have_64_bits():
    seen = plain._seen(np.array([0.1], np.float32))
    assert seen[0] * 3.0 == float(np.float32(0.1)) * 3.0
    rows = np.zeros(2, [("count", "u1"), ("at", "f8")])
    table = plain._seen(rows)
    table[1].at, table[1].count = 2.5, 7
    table[0] = table[1]
    assert rows.tolist() == [(7, 2.5)] * 2
    assert (type(table[0].count), type(table[0].at)) == (int, float)


def test_large_engines_wait_for_the_compiler():
    use = FirstUse()
    use.is_over = False
    before, first_use.first_use = first_use.first_use, use
    try:
        first_use.grown(first_use.SMALL)
        assert not use.is_over
        first_use.grown(first_use.SMALL + 1)
        assert use.is_over
    finally:
        first_use.first_use = before


def test_the_process_that_compiles_ends_with_the_one_that_started_it(tmp_path):
    code = "from recrawl._compile.first_use import first_use; first_use._begin(); "
    code += "print(first_use._compiler.pid, flush=True); "
    done = run(["-c", code + "import os; os._exit(0)"], tmp_path, stdout=subprocess.PIPE, text=True)
    status = Path(f"/proc/{int(done.stdout)}/stat")
    for _ in range(6000):
        if not status.exists() or status.read_text().split()[2] == "Z":  # gone, or nobody has asked how it ended
            return
        time.sleep(0.01)
    pytest.fail("it still runs")
