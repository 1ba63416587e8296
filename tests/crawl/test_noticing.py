"""What the crawler makes of what detectors say: flapping, rules that change, texts that drift, feeds."""

import pytest

from recrawl import ParameterError
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.http.memory import Answer
from recrawl.store import BlockingStore, SqliteStore

from .driving import World

URL = "https://a.example/x"
EVERY = {"budget": 0.01, "delay": 1.0, "robots": False}


def outcomes(world):
    return list(world.store.observations(URL))


def in_turn(*bodies):
    """A page that shows the next of its bodies at every look, the last one for good."""
    left = list(bodies)

    def show(url, now):
        return left.pop(0) if len(left) > 1 else left[0]

    return show


def looked(show, n, *, rules=(), world=None, **options):
    world = world or World(show, [URL], **EVERY, rules=Rules([Rule("*", every=100.0), *rules]), **options)
    world.run(n=n)
    return world


A, B, C = "<main>red</main>", "<main>blue</main>", "<main>green</main>"


def test_variants_in_turn_are_flapping():
    world = looked(in_turn(A, B, A, B, A, C, C), 7)
    assert [(o.changed, o.flapping) for o in outcomes(world)] == [
        (None, False), (True, False), (False, True), (False, True), (False, True), (True, False), (False, False),
    ]  # fmt: skip
    assert world.engine.rows()["n_changes"].tolist() == [2]
    copy = world.store.copies([URL])[URL]
    assert copy.n_flaps == 3
    assert world.store.recent(0.0)["flapping"] == 3


def test_what_returned_is_kept_all_the_same():
    world = looked(in_turn(A, B, A), 3)
    version = world.store.versions(URL)[0]
    assert world.store.body(version.key) == A.encode()
    assert world.store.copies([URL])[URL].changed_at == outcomes(world)[1].began_at


def test_flapping_is_seen_across_restarts(tmp_path):
    store = BlockingStore(SqliteStore(tmp_path / "a.db"))
    world = looked(in_turn(A, B, A, B), 2, store=store)
    world.run(n=1)
    world.run(n=1)
    assert [o.flapping for o in outcomes(world)] == [False, False, True, True]
    store.close()


def test_a_rule_can_have_returns_count():
    world = looked(in_turn(A, B, A), 3, rules=[Rule("*", flapping=False)])
    assert [o.changed for o in outcomes(world)] == [None, True, True]


def test_content_from_long_ago_is_new():
    bodies = [f"<main>edition {'i' * k}</main>" for k in range(12)]
    world = looked(in_turn(*bodies, bodies[0]), 13)
    assert [o.changed for o in outcomes(world)] == [None] + [True] * 12


def test_another_rule_is_no_change():
    page = "<main><p class=price>5</p><p>{}</p></main>"
    show = in_turn(*(page.format(k) for k in range(4)))
    world = looked(show, 2)
    changed_at = world.store.copies([URL])[URL].changed_at
    world.rules = Rules([Rule("*", every=100.0), Rule("*", detector="css", select=".price")])
    world.run(n=2)
    assert [(o.changed, o.flapping) for o in outcomes(world)] == [
        (None, False),
        (True, False),
        (None, False),
        (False, False),
    ]
    assert world.engine.rows()["n_changes"].tolist() == [1]
    assert world.store.copies([URL])[URL].changed_at == changed_at
    assert outcomes(world)[-1].digest.startswith("css-1+")


def test_another_rule_is_no_change_where_the_server_says_not_modified():
    def show(url, now):
        return Answer("<main><p class=price>5</p></main>", headers={"etag": '"1"', "content-type": "text/html"})

    world = looked(show, 3)
    world.rules = Rules([Rule("*", every=100.0), Rule("*", detector="css", select=".price")])
    world.run(n=3)
    assert all(o.changed is not True for o in outcomes(world))
    after = outcomes(world)[3]
    assert (after.status, after.changed) == (200, None), "the body is asked for once, to have something to compare with"


def test_rules_choose_by_url():
    kind = {"content-type": "application/json"}
    pages = {
        "https://a.example/shop": in_turn(*(f"<b class=price>5</b> {'x' * k}" for k in range(3))),
        "https://a.example/api": in_turn(*(Answer(f'{{"v": 1, "t": {k}}}', headers=kind) for k in range(3))),
        "https://a.example/raw": in_turn(*(f"<p>a</p><!-- {k} -->" for k in range(3))),
        "https://a.example/rest": in_turn(*(f"<p>a</p><!-- {k} -->" for k in range(3))),
    }
    rules = Rules(
        [
            Rule("*", every=1000.0),
            Rule("*/shop", detector="css", select=".price"),
            Rule("*/api", detector="json", select="/v"),
            Rule("*/raw", detector="raw"),
        ]
    )
    world = World(lambda url, now: pages[url](url, now), list(pages), **EVERY, rules=rules)
    world.run(n=12)
    changed = {url.rsplit("/")[-1]: [o.changed for o in world.store.observations(url)] for url in pages}
    same = [None, False, False]
    assert changed == {"shop": same, "api": same, "raw": [None, True, True], "rest": same}


def test_texts_that_drift_change_in_the_end():
    """Each edition is nearly the one before; what is compared with stays, so the tenth is not."""
    words = [f"w{k * k % 9973}" for k in range(1600)]
    bodies = [" ".join(f"n{j}" if j % 400 < k else word for j, word in enumerate(words)) for k in range(40)]
    world = looked(in_turn(*(f"<main>{body}</main>" for body in bodies)), 40, rules=[Rule("*", similarity=6)])
    changed = [o.changed for o in outcomes(world)]
    assert changed[1] is False
    assert 1 <= changed.count(True) <= 20


def test_a_detector_of_ones_own_goes_with_rules():
    class Length:
        name, version = "length", "7"

        def digest(self, fetched):
            return str(len(fetched.body))

    world = looked(in_turn("aa", "bb", "ccc"), 3, detector=Length())
    assert [o.changed for o in outcomes(world)] == [None, False, True]
    assert outcomes(world)[0].digest == "length-7:2"
    world = looked(in_turn("aa1", "bb2", "bb3"), 3, detector=Length(), rules=[Rule("*", ignore=("[0-9]",))])
    assert [o.changed for o in outcomes(world)] == [None, True, False], "a rule with patterns looks at the main text"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"detector": "mian"}, "rule 1: detector 'mian' is not one of raw, text, main, css, json; did you mean main"),
        ({"detector": "css"}, "rule 1: detector css needs a CSS selector"),
        ({"detector": "json", "select": "a"}, "rule 1: select: 'a' is not a JSON pointer"),
        ({"select": ".p"}, "rule 1: select goes with detector"),
        ({"detector": 5}, "rule 1: detector is 5"),
        ({"ignore": "("}, "rule 1: ignore: '[(]' is not a pattern"),
        ({"ignore": [1]}, "rule 1: ignore: must be a pattern or a list"),
        ({"similarity": 33}, "rule 1: similarity is 33"),
        ({"similarity": 0.5}, "rule 1: similarity is 0.5"),
        ({"flapping": "no"}, "rule 1: flapping is 'no'"),
    ],
)
def test_rules_that_are_refused(table, message):
    with pytest.raises(ParameterError, match=message):
        Rule.parse({"match": "*", **table}, 1)


def test_rules_add_up():
    rules = Rules(
        [
            Rule.parse({"match": "*", "detector": "css", "select": "p", "ignore": "a", "similarity": 3}, 1),
            Rule.parse({"match": "*/x", "detector": "text", "ignore": ["b", "a"], "flapping": False}, 2),
        ]
    )
    found = rules.of(URL).detection
    assert (found.detector, found.select, found.ignore, found.similarity, found.flapping) == (
        "text",
        None,
        ("a", "b"),
        3,
        False,
    )
    assert rules.of("https://a.example/y").detection.select == "p"
