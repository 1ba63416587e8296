"""Words into numbers: spans, rules, hours, budgets in hours, settings."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl import ParameterError
from recrawl.crawl.config.rules import Rule, Rules, span
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.polite.budget import catch_up_for
from recrawl.crawl.polite.hours import Hours, rates
from recrawl.schedule import Pacer

HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15 min", 900), ("1.5 h", 5400), ("7 days", 7 * DAY), (3, 3)]
)
def test_spans(text, seconds):
    assert span(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 fortnights", "-3 s", "0 s", "1 h 5 min", True, "inf"])
def test_what_is_no_span_is_refused(text):
    with pytest.raises(ParameterError, match=r"span of time|above 0|unit of time"):
        span(text)


def test_the_last_rule_that_says_something_holds():
    rules = Rules(
        [
            Rule("*", importance=2.0, min_interval=60.0, headers={"A": "1"}, cookies={"x": "1"}),
            Rule("https://a.example/*", importance=5.0, headers={"B": "2"}, cookies={"y": "2"}),
            Rule("https://a.example/x*", every=HOUR, never=True),
            Rule("https://a.example/xy", never=False),
        ]
    )
    one = rules.of("https://a.example/xy")
    assert (one.importance, one.min_interval, one.max_interval, one.never) == (5.0, HOUR, HOUR, False)
    assert one.headers == {"A": "1", "B": "2", "Cookie": "x=1; y=2"}
    assert rules.of("https://a.example/xz").never
    other = rules.of("https://b.example/")
    assert (other.importance, other.min_interval, other.max_interval) == (2.0, 60.0, None)


def test_patterns_are_no_regular_expressions():
    rules = Rules([Rule("https://a.example/(x|y)?q=.*", importance=3.0)])
    assert rules.of("https://a.example/(x|y)?q=.5").importance == 3.0
    assert rules.of("https://a.example/x?q=5").importance is None


def test_secrets_are_not_shown():
    rule = Rule("*", headers={"A": "hush"}, cookies={"b": "hush"})
    assert "hush" not in repr(rule) + repr(Rules([rule]).of("https://a.example/"))
    with pytest.raises(ParameterError) as problem:
        Rule.parse({"match": "*", "headers": {"A": "hush\r\nX: y"}}, 1)
    assert "hush" not in str(problem.value)


@given(minute=st.integers(0, 1439), zone=st.integers(-12, 14))
def test_hours_open_and_close_when_they_say(minute, zone):
    hours = Hours("22:30-6, 12-13", timezone(timedelta(hours=zone)))
    now = (minute * 60.0 + 1.7e9 // DAY * DAY) - zone * HOUR
    expected = minute >= 22 * 60 + 30 or minute < 6 * 60 or 12 * 60 <= minute < 13 * 60
    assert hours.open(now) == expected
    change = hours.next_change(now)
    assert now < change <= now + 12 * HOUR
    assert hours.open(change) != expected
    assert hours.open(change - 1.0) == expected
    assert hours.share == pytest.approx(8.5 / 24)


def test_hours_over_a_change_of_clocks():
    berlin = ZoneInfo("Europe/Berlin")
    hours = Hours("1:30-4", berlin)
    night = datetime(2026, 3, 29, 0, 0, tzinfo=berlin).timestamp()  # 2:00 to 3:00 does not exist
    first = hours.next_change(night)
    assert first == night + 1.5 * HOUR
    assert hours.next_change(first) == first + 1.5 * HOUR


def test_all_day_never_changes():
    hours = Hours("0-24", UTC)
    assert hours.open(5.0)
    assert hours.next_change(5.0) == float("inf")
    assert hours.share == 1.0


@pytest.mark.parametrize("text", ["", "22", "25-3", "22:75-3", "a-b", "22-6,", "22–6"])
def test_what_are_no_hours_is_refused(text):
    with pytest.raises(ParameterError, match="hours"):
        Hours(text)


def test_quotas_are_spent_in_the_open_hours_and_rates_hold_in_them():
    nights = Hours("22-6", UTC)
    assert rates("100k/month", 1, nights)[0] == pytest.approx(3 * rates("100k/month", 1, None)[0])
    assert rates("0.05/page/day", 1000, nights) == pytest.approx((150 / DAY, 50 / DAY))
    assert rates("2/s", 1, nights) == pytest.approx((2.0, 2 / 3))
    assert rates("2/s", 1, nights) == pytest.approx((2.0, 2 / 3))


@given(budget=st.floats(1.0, 1e4), asked=st.lists(st.floats(0.0, 3.0), max_size=60))
def test_no_window_of_one_run_sees_more_than_budget_times_w_plus_1(budget, asked):
    pacer, now, starts = Pacer(budget, 0.0, catch_up=catch_up_for(budget)), 0.0, []
    for wait in asked:
        now += wait
        starts.append((now, pacer.due(now)))
    for i, (first, _) in enumerate(starts):
        seen = 0
        for at, n in starts[i:]:
            seen += n
            assert seen <= budget * (at - first + 1.0) * (1 + 1e-9)


def test_settings_from_all_three_places(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('budget = "5/day"\nkeep = 3\nrobots = false\ndelay = 2\n[[rule]]\nmatch = "*"\nimportance = 2\n')
    environment = {"RECRAWL_KEEP": "4", "RECRAWL_HOURS": "22-6", "RECRAWL_ROBOTS": "yes", "HOME": "/"}
    settings = Settings.read(file, environment, budget="7/day", delay=None)
    assert (settings.budget, settings.keep, settings.hours, settings.robots) == ("7/day", 4, "22-6", True)
    assert settings.seconds("delay") == 2.0
    assert settings.rules().of("https://a.example/").importance == 2


def test_a_delay_of_0_is_allowed_and_a_contact_needed():
    assert Settings(delay="0").seconds("delay") == 0.0
    with pytest.raises(ParameterError, match="no contact is given"):
        Settings().agent("1")
    assert Settings(contact="a@example.org").agent("1") == "recrawl/1 (+a@example.org)"
    assert Settings(user_agent="mine/2 (+b@example.org)").agent("1") == "mine/2 (+b@example.org)"


def test_rules_say_which_pages_are_rendered():
    tables = [
        {"match": "*", "render": "auto"},
        {"match": "*/app*", "render": True, "wait_for": "#done"},
        {"match": "*/app/old*", "render": False},
    ]
    rules = Rules([Rule.parse(table, k) for k, table in enumerate(tables, 1)])
    found = [rules.of(f"https://a.example/{path}") for path in ("x", "app", "app/old")]
    assert [(one.render, one.wait_for) for one in found] == [("auto", None), ("always", "#done"), (None, None)]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"render": "yes"}, "rule 1: render is 'yes': must be true, false or \"auto\""),
        ({"render": 1.0}, "render is 1.0"),
        ({"render": True, "wait_for": 3}, "wait_for is 3: must be a CSS selector"),
        ({"wait_for": "#a"}, "wait_for goes with render"),
        ({"render": False, "wait_for": "#a"}, "wait_for goes with render"),
    ],
)
def test_bad_rules_of_rendering_are_refused(given, line):
    with pytest.raises(ParameterError, match=line):
        Rule.parse({"match": "*", **given}, 1)
