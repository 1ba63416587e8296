"""``recrawl set``: the importance of pages, with and without a running crawl."""

import json

import pytest

from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.run.commands import CommandHooks, CommandQueue
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.store import BlockingStore, SqliteStore

from .test_crawl import here, refused  # noqa: F401

URLS = [f"https://a.example/{k}" for k in range(4)]


def given(path="recrawl.db"):
    with BlockingStore(SqliteStore(path, exclusive=False)) as store:
        rows = store.load()
    return dict(zip(rows["url"], rows["given"].tolist(), strict=True))


def test_importance_is_set_by_url_and_by_pattern(run, here):  # noqa: F811
    run("add", *URLS)
    result = run("set", URLS[1], "--importance", 5)
    assert (result.code, result.out) == (0, "importance 5 set for 1 page\n")
    found = json.loads(run("set", "*/2", URLS[3], "--importance", 0.5, "--json").out)
    assert (found["set"], found["ruled"], found["queued"], found["urls"]) == (2, 0, False, URLS[2:])
    assert list(given().values()) == [1.0, 5.0, 0.5, 0.5]
    assert json.loads(run("why", URLS[1], "--json").out)["importance"] == 5.0


def test_a_rule_wins(run, here):  # noqa: F811
    run("add", *URLS)
    (here / "recrawl.toml").write_text('[[rule]]\nmatch = "*/1"\nimportance = 9\n')
    assert "for 1 page a rule gives it" in run("set", "*", "--importance", 2).out
    assert "a rule gives its importance" in refused(run, "set", URLS[1], "--importance", 2)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([URLS[0]], "--importance"),
        ([URLS[0], "--importance", "nan"], "importance is nan"),
        ([URLS[0], "--importance", "-1"], "importance is -1"),
        ([URLS[0], "--importance", "inf"], "importance is inf"),
        ([URLS[0], "--importance", "much"], "valid number"),
        (["https://b.example/", "--importance", "1"], "no such page in recrawl.db"),
        (["*/none", "--importance", "1"], "no such page in recrawl.db"),
    ],
)
def test_bad_values_are_refused(run, here, arguments, line):  # noqa: F811
    run("add", *URLS)
    assert line in refused(run, "set", *arguments)
    assert set(given().values()) == {1.0}


def test_a_running_crawl_takes_the_importance_over(run, here):  # noqa: F811
    run("add", *URLS)
    rules = Rules([Rule("*/3", importance=2.0)])
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        engine = store.run(open_engine(store.store, 1.7e9, rules=rules))
        result = run("set", URLS[0], URLS[3], "--importance", 8)
        assert result.out == "importance 8 is queued for the running crawl, for 2 pages\n"
        store.run(CommandQueue(engine, store.store, rules, CommandHooks()).apply(1.7e9))
        assert store.commands() == []
    assert engine.given.tolist() == [8.0, 1.0, 1.0, 2.0], "the rule of the crawl wins"
    assert given()[URLS[0]] == 8.0
