"""The check of politeness finds what is impolite."""

import pytest

from recrawl.demo.politeness import manners
from recrawl.demo.web import ServedRequest


def seen(*requests):
    return [ServedRequest(at, at, host, path, -1, -1, 200) for at, host, path in requests]


POLITE = seen(
    (0.0, "a", "/robots.txt"), (1.0, "a", "/1"), (1.2, "b", "/robots.txt"), (2.0, "a", "/2"), (2.2, "b", "/1")
)


def test_a_polite_log():
    found = manners(POLITE, {"a": 1.0, "b": 1.0})
    assert found.is_polite
    assert (found.requests, found.hosts, found.shortest) == (5, 2, 1.0)


@pytest.mark.parametrize(
    ("extra", "name"),
    [
        ((2.99, "a", "/3"), "too_soon"),
        ((9.0, "a", "/private/x"), "forbidden"),
        ((9.0, "c", "/1"), "before_robots"),
    ],
)
def test_each_rule_can_be_broken(extra, name):
    found = manners(POLITE + seen(extra), {"a": 1.0, "b": 1.0, "c": 1.0})
    assert getattr(found, name) == 1
    assert not found.is_polite


def test_five_milliseconds_are_forgiven_and_no_more():
    assert manners(POLITE + seen((2.996, "a", "/3")), {"a": 1.0, "b": 1.0}).too_soon == 0
    assert manners(POLITE + seen((2.994, "a", "/3")), {"a": 1.0, "b": 1.0}).too_soon == 1


def test_robots_can_be_left_out():
    log = seen((0.0, "a", "/robots.txt"), (0.1, "a", "/1"), (1.1, "a", "/2"))
    assert manners(log, {"a": 1.0}).too_soon == 1
    assert manners(log, {"a": 1.0}, with_robots=False).too_soon == 0
