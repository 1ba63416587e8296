"""The grammar of budgets: units, scales, per-page amounts, and what is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import ParameterError
from recrawl.model.budget import format_rate, parse_budget, scaled_budget, unit_name, unit_seconds

UNITS = ["s", "min", "h", "day", "week", "month", "year"]
amounts = st.floats(min_value=1e-12, max_value=1e12)
units = st.sampled_from(UNITS)


@pytest.mark.parametrize(
    ("text", "per_second"),
    [
        ("2/s", 2.0),
        ("5000/day", 5000 / 86400),
        ("100k/month", 1e5 / (30.4375 * 86400)),
        ("1.5M/week", 1.5e6 / (7 * 86400)),
        ("1G/year", 1e9 / (365.25 * 86400)),
        (" 3 / hour ", 3 / 3600),
        ("1e3/Days", 1e3 / 86400),
        (".5/min", 0.5 / 60),
        (7, 7.0),
        (0.5, 0.5),
    ],
)
def test_reads_amounts_and_units(text, per_second):
    assert parse_budget(text) == pytest.approx(per_second, rel=1e-14)


@pytest.mark.parametrize("text", ["0.05/page/day", "0.05/day/page", "0.05/pages/day"])
def test_per_page_multiplies_by_the_number_of_pages(text):
    assert parse_budget(text, 400, per="day") == pytest.approx(20.0, rel=1e-15)
    with pytest.raises(ParameterError, match="number of pages"):
        parse_budget(text)


NONSENSE = ["", "abc", "/day", "5//day", "5/fortnight", "5/day/day", "5/page/page", "5/page/day/h", "5kk/day"]
UNREADABLE = ["5m/day", "1_000/day", "5,000/day", "٣/day", "five/day"]
OUT_OF_RANGE = ["0/day", "-3/day", "inf/day", "nan/day", "1e999/day", "0", "-3", "1e999", math.inf, math.nan, 0]


@pytest.mark.parametrize("text", NONSENSE + UNREADABLE + OUT_OF_RANGE)
def test_refuses_nonsense_zero_negative_and_infinite(text):
    with pytest.raises(ParameterError, match="budget"):
        parse_budget(text, 10)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("5000", "budget '5000': 5000 what? 5000/day or 5000/s"),
        (" 100k ", "budget ' 100k ': 100k what? 100k/day or 100k/s"),
        ("1e3", "budget '1e3': 1e3 what? 1e3/day or 1e3/s"),
        ("0.05/page", "budget '0.05/page': 0.05/page what? 0.05/page/day or 0.05/page/s"),
    ],
)
def test_text_without_a_unit_is_refused_with_a_suggestion(text, line):
    for plain in UNITS:
        with pytest.raises(ParameterError) as refused:
            parse_budget(text, 10, plain=plain)
        assert str(refused.value) == line


@given(amount=amounts, unit=units)
def test_a_plain_number_counts_per_the_plain_unit(amount, unit):
    assert parse_budget(amount, plain=unit, per=unit) == amount
    assert parse_budget(f"{amount!r}/{unit}", per=unit) == amount


@given(rate=amounts, per=units, digits=st.integers(3, 17))
def test_format_and_parse_are_inverse_to_the_digits_printed(rate, per, digits):
    text = format_rate(rate, per=per, digits=digits)
    assert parse_budget(text, per=per) == pytest.approx(rate, rel=max(10.0 ** (1 - digits), 1e-14))


@given(rate=amounts, per=units, unit=units)
def test_a_rate_is_the_same_in_every_unit(rate, per, unit):
    text = format_rate(rate, per=per, unit=unit, digits=17)
    assert text.endswith("/" + unit)
    assert parse_budget(text) == pytest.approx(rate / unit_seconds(per), rel=1e-14)


@given(amount=amounts, unit=units, n=st.integers(1, 10**9))
def test_per_page_is_linear(amount, unit, n):
    assert parse_budget(f"{amount!r}/page/{unit}", n) == pytest.approx(n * parse_budget(f"{amount!r}/{unit}"))


@given(amount=amounts, unit=units, page=st.sampled_from(["", "/page"]), factor=st.floats(0.01, 100.0))
def test_a_scaled_budget_keeps_its_unit(amount, unit, page, factor):
    before = f"{amount!r}{page}/{unit}"
    after = scaled_budget(before, factor)
    assert after.split("/")[1:] == before.split("/")[1:]
    assert parse_budget(after, 7) == pytest.approx(factor * parse_budget(before, 7), rel=1e-3)


@pytest.mark.parametrize(
    ("budget", "factor"), [("five", 2.0), ("5", 2.0), ("5/s", 0.0), ("5/s", math.inf), ("5/s", math.nan)]
)
def test_what_cannot_be_scaled_is_refused(budget, factor):
    with pytest.raises(ParameterError):
        scaled_budget(budget, factor)


def test_unit_spellings():
    assert [unit_name(text) for text in ("Seconds", "mins", "hr", "d", "wk", "mo", "yr")] == UNITS
    with pytest.raises(ParameterError, match="fortnight"):
        unit_name("fortnight")
