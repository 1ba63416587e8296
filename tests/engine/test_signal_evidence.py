"""What decides whether repetitions count, how signal rates are counted, and which prior several sources share."""

import math

import numpy as np
import pytest

from recrawl._compile.plain import plain
from recrawl.engine.signals.arrays import COUNTED, COUNTED_TIME, N_EVIDENCE, SQUARES, SignalArrays, empty
from recrawl.engine.signals.learning import add_outcome, begin_row
from recrawl.engine.signals.posterior import signal_rate
from recrawl.engine.signals.tables import count_rows, set_tables

RATES = np.geomspace(0.003, 0.003 * 2.0**11, 12)
GROUPS = np.array([0, 1, 1, 2, 2, 3, 3, 3])


def watched(n: int) -> tuple[SignalArrays, np.ndarray]:
    """Pages of one host after some intervals with two signals each, and their totals."""
    b = empty(RATES, 1, n, 1, GROUPS)
    b.log_base[:] = -math.log(len(RATES))
    set_tables(b, np.zeros(b.log_table.shape))
    totals, rng = np.zeros((n, 5)), np.random.default_rng(3)
    for row in range(n):
        begin_row(b, row, 0, totals[row])
        for _ in range(5):
            changed = bool(rng.random() < 0.6)
            b.heard[row, 0], b.first[row, 0], b.last[row, 0] = 2.0, 1.0, 3.0
            add_outcome(b, row, 4.0, changed, 1.0)
            b.heard[row, 0] = 0.0
            totals[row] += (0.0, 1.0, math.log(4.0), 0.0, 0.0) if changed else (4.0, 0.0, 0.0, 0.0, 0.0)
    return b, totals


def evidence_of(b: SignalArrays, totals: np.ndarray, *rows: int) -> np.ndarray:
    """Of some pages, or of all."""
    some = np.array(rows or range(len(totals)))
    return count_rows(b, some, totals, np.zeros(len(totals)), np.zeros(b.log_table.shape), b.out)


def test_what_a_host_says_is_no_evidence_for_or_against_repetitions():
    b, totals = watched(6)
    alone = evidence_of(b, totals)
    assert alone.shape == (N_EVIDENCE, 1)
    b.host_share[0, 0, 3], b.host_prior[0, 0] = 30.0, b.classes[0, 0] * 30.0  # the host's other pages are of one class
    assert evidence_of(b, totals) == pytest.approx(alone, rel=1e-6)


def test_squares_are_those_of_the_differences_by_page():
    b, totals = watched(6)
    each = [evidence_of(b, totals, row) for row in range(6)]
    differences = np.array([float(one[1, 0] - one[0, 0]) for one in each])
    assert evidence_of(b, totals)[SQUARES, 0] == pytest.approx(float(differences @ differences))


@pytest.mark.parametrize("repeats", [0.0, 1.0])
def test_all_signals_tell_their_rate_whether_or_not_repetitions_count(repeats):
    b, _ = watched(1)
    b.repeats[0], b.mean_rate[0], b.heard[0, 0] = repeats, 0.5, 2.0
    st = b.statistics[0, 0]
    assert (st[COUNTED], st[COUNTED_TIME]) == (10.0, 20.0)
    assert plain(signal_rate)(b, 0, 0, 4.0) == pytest.approx((10.0 + 2.0 + 1.0) / (20.0 + 4.0 + 2.0))


def test_the_prior_that_sources_share_is_that_of_missed_rates():
    b, _ = watched(1)
    assert b.log_missed[:, 0] == pytest.approx(np.tile(b.log_base, (2, 1)))  # before anything is known
    counts = np.zeros(b.log_table.shape)
    counts[:, 0, 4, 2, 5] = 85.0
    set_tables(b, counts)
    expected = 15.0 / len(RATES) + 85.0 * (np.arange(len(RATES)) == 2)
    assert np.exp(b.log_missed[0, 0]) == pytest.approx(expected / 100.0)
