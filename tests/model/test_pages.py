"""Pages: bad columns are refused with the column and the first bad row; columns, rows and sources are kept as given."""

import math

import numpy as np
import pytest

from recrawl import Pages, ParameterError
from recrawl.model import crawl_value, elapsed_at_value, fresh_probability, staleness_exponent


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"change_rate": [1.0, math.nan, math.nan]}, r"^change_rate, row 1 is nan: "),
        ({"change_rate": [1.0, 2.0, -3.0]}, r"^change_rate, row 2 is -3\.0: "),
        ({"change_rate": [math.inf, 1.0]}, r"^change_rate, row 0 is inf: "),
        ({"change_rate": -1.0}, r"^change_rate is -1\.0: "),
        ({"change_rate": []}, r"^change_rate is empty"),
        ({"change_rate": "often"}, r"^change_rate"),
        ({"change_rate": [1.0, "often"]}, r"^change_rate"),
        ({"change_rate": None}, r"^change_rate"),
        ({"change_rate": [[1.0, 2.0]]}, r"^change_rate"),
        ({"importance": [1.0, -1.0]}, r"^importance, row 1 is -1\.0: "),
        ({"importance": [math.nan, -1.0]}, r"^importance, row 0 is nan: "),
        ({"importance": [1.0, math.inf]}, r"^importance, row 1 is inf: "),
        ({"importance": [1.0, 1.0, 1.0]}, r"^importance has 3 rows but change_rate has 2"),
        ({"importance": [[1.0], [1.0]]}, r"^importance"),
        ({"recall": [0.5, 1.5]}, r"^recall, row 1 is 1\.5: "),
        ({"recall": 1 + 1e-15}, r"^recall is 1\.00"),
        ({"recall": [-0.1, 0.5]}, r"^recall, row 0 is -0\.1: "),
        ({"recall": [0.5, math.nan]}, r"^recall, row 1 is nan: "),
        ({"recall": [[0.5, 0.5], [0.5, 2.0]]}, r"^recall, row 1, source 1 is 2\.0: "),
        ({"recall": np.zeros((2, 0))}, r"^recall has no signal source"),
        ({"recall": np.zeros((2, 2, 2))}, r"^recall"),
        ({"recall": np.zeros((2, 2)), "false_rate": np.zeros((2, 3))}, "different number of signal sources"),
        ({"recall": [0.1, 0.2, 0.3]}, r"^recall has 3 rows"),
        ({"false_rate": [1.0, -1.0]}, r"^false_rate, row 1 is -1\.0: "),
        ({"false_rate": [1.0, math.inf]}, r"^false_rate, row 1 is inf: "),
        ({"host": ["a", "b", "c"]}, r"^host has 3 rows"),
        ({"cost": [1.0, 0.0]}, r"^cost, row 1 is 0\.0: "),
        ({"cost": [1.0, math.nan]}, r"^cost, row 1 is nan: "),
        ({"evidence": [0.0, 1.0]}, r"^evidence, row 0 is 0\.0: "),
        ({"evidence": [1.0, -2.0]}, r"^evidence, row 1 is -2\.0: "),
        ({"evidence": [1.0, math.nan]}, r"^evidence, row 1 is nan: "),
    ],
)
def test_bad_columns_are_named(columns, message):
    with pytest.raises(ParameterError, match=message):
        Pages(**{"change_rate": [1.0, 2.0], **columns})


def test_the_error_is_one_line_and_a_value_error():
    with pytest.raises(ValueError) as caught:
        Pages([1.0, math.nan])
    assert "\n" not in str(caught.value)


def test_scalars_stand_for_columns():
    pages = Pages([1.0, 2.0, 3.0], importance=4.0, recall=0.5, false_rate=0.25, cost=2.0)
    assert len(pages) == 3
    assert pages.importance.tolist() == [4.0, 4.0, 4.0]
    assert pages.missed_rate.tolist() == [0.5, 1.0, 1.5]
    assert pages.signal_rate.tolist() == [0.75, 1.25, 1.75]
    assert pages.precision == pytest.approx([2 / 3, 0.8, 6 / 7])
    assert len(Pages(1.0)) == 1
    assert len(Pages(1.0, importance=[1.0, 2.0])) == 2


def test_pages_are_read_only():
    given = np.array([1.0, 2.0])
    pages = Pages(given)
    with pytest.raises(AttributeError, match="read-only"):
        pages.change_rate = given
    with pytest.raises(ValueError, match="read-only"):
        pages.change_rate[0] = 5.0
    given[0] = 7.0  # the caller's own array stays writable


def test_rows():
    pages = Pages([1.0, 2.0, 3.0], importance=[4.0, 5.0, 6.0], recall=[[0.1, 0.2]] * 3, host=["a", "b", "a"])
    assert pages[[2, 0]].importance.tolist() == [6.0, 4.0]
    assert pages[pages.change_rate > 1].host.tolist() == ["b", "a"]
    assert pages[1:].change_rate.tolist() == [2.0, 3.0]
    assert pages[-1].change_rate.tolist() == [3.0]
    assert pages[1].recall.tolist() == [[0.1, 0.2]]
    with pytest.raises(ParameterError, match="empty"):
        pages[:0]


def test_replace():
    pages = Pages([1.0, 2.0], recall=0.5)
    changed = pages.replace(importance=[3.0, 4.0], recall=0.0)
    assert changed.importance.tolist() == [3.0, 4.0]
    assert changed.change_rate.tolist() == [1.0, 2.0]
    assert not changed.has_signals
    assert pages.has_signals
    with pytest.raises(ParameterError, match="rank is not a column of Pages"):
        pages.replace(rank=1.0)
    with pytest.raises(ParameterError, match="importance, row 1 is -1"):
        pages.replace(importance=[1.0, -1.0])


def test_several_sources():
    pages = Pages([2.0, 4.0], recall=[[0.5, 0.25], [0.0, 1.0]], false_rate=0.5)
    assert pages.n_sources == 2
    assert pages.false_rate.shape == (2, 2)
    assert pages.missed_rate.tolist() == [0.75, 0.0]
    assert pages.signal_rate.tolist() == [[1.5, 1.0], [0.5, 4.5]]
    assert "2 signal sources" in repr(pages)
    assert Pages([1.0], recall=[[0.5]]).n_sources == 1


@pytest.mark.parametrize("precision", [1e-12, 0.2, 1.0])
@pytest.mark.parametrize("recall", [1e-12, 0.5, 1.0])
def test_from_quality_is_what_pages_report(precision, recall):
    pages = Pages.from_quality([3.0, 5.0], precision=precision, recall=recall)
    assert pages.precision == pytest.approx([precision] * 2, rel=1e-12)
    assert pages.recall.tolist() == [recall] * 2


def test_from_quality_with_sources_and_without_signals():
    pages = Pages.from_quality([1.0, 2.0], precision=[[0.5, 0.25]], recall=[[0.5, 0.5]])
    assert pages.false_rate.tolist() == [[0.5, 1.5], [1.0, 3.0]]
    assert Pages.from_quality([1.0], precision=0.0, recall=0.0).false_rate.tolist() == [0.0]


@pytest.mark.parametrize(
    ("quality", "message"),
    [
        ({"precision": [0.5, 0.0], "recall": 0.5}, r"^precision, row 1 is 0\.0: must be above 0 where recall is"),
        ({"precision": [0.5, 1.5], "recall": 0.5}, r"^precision, row 1 is 1\.5: "),
        ({"precision": [0.5, math.nan], "recall": 0.5}, r"^precision, row 1 is nan: "),
        ({"precision": 0.5, "recall": [0.5, -1.0]}, r"^recall, row 1 is -1\.0: "),
        ({"precision": [0.5, 0.5, 0.5], "recall": 0.5}, "different lengths"),
    ],
)
def test_from_quality_refuses(quality, message):
    with pytest.raises(ParameterError, match=message):
        Pages.from_quality([1.0, 2.0], **quality)


@pytest.mark.parametrize("function", [crawl_value, fresh_probability, staleness_exponent, elapsed_at_value])
def test_bad_states_are_named(function):
    pages = Pages([1.0, 2.0], recall=0.5, false_rate=0.5)
    name = "value" if function is elapsed_at_value else "elapsed"
    with pytest.raises(ParameterError, match=rf"^{name}, row 1: must be at least 0"):
        function(pages, [1.0, -1.0])
    with pytest.raises(ParameterError, match=rf"^{name}, row 0: must be at least 0"):
        function(pages, [math.nan, 1.0])
    with pytest.raises(ParameterError, match=r"^signals, row 1: must be at least 0"):
        function(pages, 1.0, [0, -1])
    with pytest.raises(ParameterError, match=rf"^{name} has 3 rows but there are 2 pages"):
        function(pages, [1.0, 1.0, 1.0])


def test_uncertain_rates_with_signals_are_refused():
    pages = Pages([1.0, 2.0], recall=[0.0, 0.5], evidence=3.0)
    for function in (crawl_value, fresh_probability, elapsed_at_value):
        with pytest.raises(ParameterError, match="evidence, row 1"):
            function(pages, 0.1)


def test_one_value_for_all_rows_stays_one_value():
    pages = Pages(np.arange(1.0, 9.0), recall=0.5)
    for other in (pages.replace(importance=2.0), pages[::2], pages[pages.change_rate > 3], pages[[1, 2]]):
        for name in ("recall", "false_rate", "cost", "evidence"):
            column = getattr(other, name)
            assert column.strides == (0,)
            assert column.shape == (len(other),)
