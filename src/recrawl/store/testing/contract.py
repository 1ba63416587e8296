"""check_store: what every store must keep to, whatever it is made of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from recrawl.store.protocol import Copy, Outcome, Store
from recrawl.store.testing import events

_NOW = 1_700_000_000.0


def check_store(make: Callable[[], Store]) -> None:
    """Raise AssertionError where a store breaks the protocol; ``make`` gives a new, empty one each time.

    >>> from recrawl.store import MemoryStore
    >>> check_store(MemoryStore)
    """
    for check in (
        _check_empty,
        _check_rows,
        _check_rows_are_replaced,
        _check_strange_columns,
        _check_outcomes,
        _check_failing,
        _check_copies,
        _check_bodies,
        _check_atomic,
        _check_removal,
        _check_notes,
        _check_posts,
        _check_threads,
        *(_with_a_page(check) for check in (events.check_story, events.check_batch, events.check_atomic)),
        *(_with_a_page(check) for check in (events.check_followers, events.check_event_threads)),
    ):
        _checked(make, check)


def check_event_limits(few: Callable[[], Store], young: Callable[[], Store]) -> None:
    """The same for limits of events: ``few`` makes stores of at most 5 events, ``young`` of events of 100 s."""
    _checked(few, _with_a_page(events.check_limits))
    _checked(young, _with_a_page(events.check_age))


def _checked(make: Callable[[], Store], check: Callable[[Store], None]) -> None:
    store = make()
    try:
        assert isinstance(store, Store), f"{type(store).__name__} lacks a method of Store"
        check(store)
        assert store.check() == [], f"{check.__name__}: {store.check()}"
    finally:
        store.close()


def _with_a_page(check: Callable[[Store], None]) -> Callable[[Store], None]:
    """A check of a store that has a page."""

    def checked(store: Store) -> None:
        store.save(rows=example_rows(_urls(1)))
        check(store)

    checked.__name__ = check.__name__
    return checked


def example_rows(urls: list[str], *, sources: int = 1, seed: int = 0) -> dict[str, Any]:
    """Rows of the form that an engine gives, with drawn numbers."""
    rng = np.random.default_rng(seed)
    n = len(urls)
    one = ("given", "change_rate", "importance", "cost", "evidence", "watched", "own")
    asked = ("request_weight", "requested_at", "watched_from")
    per_source = (n,) if sources <= 1 else (n, sources)
    return {
        "settings": {"budget": 2.0, "sources": sources, "host_spacing": None},
        "prior": rng.random((1 + sources, 2)),
        "scores": rng.random(13),
        "crawls": int(rng.integers(1000)),
        "refit_at": 2000,
        "hosts": {"a.example": (1.0, float("inf"), _NOW + 5.0)},
        "url": list(urls),
        "fetched_at": _NOW + rng.random(n),
        **{name: rng.random(n) for name in (*one, *asked)},
        "recall": rng.random(per_source) * (sources > 0),
        "false_rate": rng.random(per_source) * (sources > 0),
        "gamma": rng.random((n, 1 + sources, 2)),
        "heard": rng.integers(0, 5, (n, sources)).astype(float),
        "signals": rng.integers(0, 5, (n, sources)).astype(float),
        "prior_at": rng.integers(0, 3, n),
        "n_crawls": rng.integers(0, 100, n),
        "n_changes": rng.integers(0, 100, n),
        "told": rng.random(n) < 0.5,
        "paused": rng.random(n) < 0.5,
        "failures": rng.integers(0, 3, n),
        "times_gone": rng.integers(0, 3, n),
        "wait_until": np.where(rng.random(n) < 0.5, -np.inf, _NOW),
    }


def same_rows(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The names under which two sets of rows differ (pages in the order of a)."""
    order = [b["url"].index(url) for url in a["url"]] if sorted(a["url"]) == sorted(b["url"]) else None
    if order is None:
        return ["url"]
    different = []
    for name in a:
        mine, other = a[name], b.get(name)
        if name in ("settings", "hosts"):
            other = {key: tuple(rule) for key, rule in other.items()} if name == "hosts" and other else other
            equal = mine == other
        elif isinstance(mine, np.ndarray):
            whole = name in ("prior", "scores")
            found = np.asarray(other) if whole or other is None else np.asarray(other)[order]
            equal = found.shape == mine.shape and bool((found == mine).all())
        else:
            equal = mine == ([other[j] for j in order] if name == "url" and other else other)
        different += [] if equal else [name]
    return different


def _urls(n: int, host: str = "a.example") -> list[str]:
    return [f"https://{host}/{k}" for k in range(n)]


def _check_empty(store: Store) -> None:
    assert store.load() is None, "an empty store has no rows"
    assert store.copies(_urls(2)) == {} and list(store.observations()) == []
    assert store.versions("https://a.example/0") == [] and store.body(bytes(16)) is None
    assert set(store.counts().values()) == {0}, "an empty store counts nothing"
    assert store.last_observation() is None and set(store.recent(0.0).values()) == {0}
    store.save()
    assert store.load() is None, "saving nothing makes no rows"


def _check_rows(store: Store) -> None:
    for sources in (0, 1, 3):
        rows = example_rows(_urls(7), sources=sources)
        store.save(rows=rows)
        found = store.load()
        assert found is not None and not same_rows(rows, found), f"{sources} sources: {same_rows(rows, found or rows)}"
    store.save(rows=example_rows([], sources=3))
    assert len((store.load() or {"url": ()})["url"]) == 7, "no rows are no reason to forget any"


def _check_rows_are_replaced(store: Store) -> None:
    urls = _urls(9)
    old, new = example_rows(urls), example_rows(urls[3:6], seed=1)
    store.save(rows=old)
    store.save(rows={**new, "hosts": {"b.example": (2.0, 3.0, 0.0)}})
    found = store.load()
    assert found is not None and found["crawls"] == new["crawls"], "what belongs to the engine is the newest"
    assert store.urls() == urls, "pages in the order in which they came"
    assert set(found["hosts"]) == {"a.example", "b.example"}, "rules of other hosts stay"
    by_url = {url: j for j, url in enumerate(found["url"])}
    for rows, some in ((old, (0, 1, 2, 6, 7, 8)), (new, (3, 4, 5))):
        for j in some:
            at = rows["url"].index(urls[j])
            assert found["fetched_at"][by_url[urls[j]]] == rows["fetched_at"][at], "each page has its newest row"


def _check_strange_columns(store: Store) -> None:
    rows = {**example_rows(_urls(4)), "group": np.arange(4), "pair": np.arange(8.0).reshape(4, 2)}
    store.save(rows=rows)
    found = store.load()
    assert found is not None and not same_rows(rows, found), "columns that are not known yet are kept"


def _outcomes() -> list[Outcome]:
    first = Outcome("https://a.example/0", _NOW, 0.25, 200, None, "d1", etag='"e"', last_modified="L", content_type="t")
    return [
        first,
        replace(first, began_at=_NOW + 1, status=304, changed=False, digest=None, etag=None, last_modified=None),
        replace(first, began_at=_NOW + 2, changed=True, digest="d2", etag=None, last_modified=None, final_url="f"),
        Outcome("https://a.example/0", _NOW + 3, 9.0, None, failure="timeout", requests=3),
        Outcome("https://a.example/1", _NOW + 4, 0.5, 404, failure="http-4xx", gone=True),
    ]


def _check_outcomes(store: Store) -> None:
    outcomes = _outcomes()
    stranger = Outcome("https://b.example/", _NOW, status=200)
    store.save([*outcomes[:3], stranger], example_rows(_urls(2)))
    store.save(outcomes[3:], None)
    assert list(store.observations()) == outcomes, "outcomes come back as they were, in order, without strangers"
    assert list(store.observations("https://a.example/1")) == outcomes[4:]
    assert list(store.observations(since=_NOW + 3)) == outcomes[3:]
    assert store.counts() == {"pages": 2, "copies": 1, "observations": 5, "bodies": 0}
    assert store.last_observation() == outcomes[4]
    assert store.recent(_NOW + 2) == {"crawls": 3, "changes": 1, "failures": 2, "flapping": 0, "rolled_off": 0}
    store.save([replace(outcomes[2], began_at=_NOW + 5, changed=False, flapping=True, rolled_off=True)])
    last = store.last_observation()
    assert last is not None and last.flapping and last.rolled_off, "what was noticed is kept"
    assert store.recent(_NOW + 5) == {"crawls": 1, "changes": 0, "failures": 0, "flapping": 1, "rolled_off": 1}


def _check_failing(store: Store) -> None:
    urls = _urls(6)
    rows = {**example_rows(urls), "failures": np.array([1, 2, 0, 0, 0, 3])}
    words = ["timeout", None, "robots", "robots", "reset", "busy"]
    store.save([Outcome(url, _NOW, failure="dns") for url in urls], rows)
    store.save([Outcome(url, _NOW + k, failure=word) for k, (url, word) in enumerate(zip(urls, words, strict=True))])
    found = [(outcome.url, outcome.failure) for outcome in store.failing(_NOW + 3)]
    assert found == [(urls[0], "timeout"), (urls[3], "robots"), (urls[5], "busy")], found


def _check_copies(store: Store) -> None:
    outcomes, url = _outcomes(), "https://a.example/0"
    store.save(outcomes[:1], example_rows(_urls(2)))
    known = Copy(url, _NOW, _NOW, 200, "d1", '"e"', "L", "t", None, "d1")
    assert store.copies(_urls(2)) == {url: known}
    store.save(outcomes[1:2], None)
    not_modified = replace(known, fetched_at=_NOW + 1, status=304)
    assert store.copies([url])[url] == not_modified, "not modified: the copy stays, its age is new"
    store.save(outcomes[2:], None)
    changed = Copy(url, _NOW + 2, _NOW + 2, 200, "d2", None, None, "t", "f", "d2 d1")
    assert store.copies([url]) == {url: changed}, "failures leave the copy as it was, an answer replaces validators"
    store.save([replace(outcomes[2], began_at=_NOW + 9, changed=False, digest="d1", flapping=True)])
    back = store.copies([url])[url]
    assert (back.digest, back.recent, back.n_flaps, back.changed_at) == ("d1", "d1 d2", 1, _NOW + 2), "content returned"
    store.save([replace(outcomes[2], began_at=_NOW + 10 + k, digest=f"x{k}") for k in range(20)])
    assert store.copies([url])[url].recent.split() == [f"x{k}" for k in range(19, 11, -1)], "the last eight contents"
    store.save([replace(outcomes[2], began_at=_NOW + 40, changed=None, digest="css-1:x19")])
    again = store.copies([url])[url]
    assert (again.recent, again.changed_at) == ("x19", _NOW + 29), "by another detector: not compared, no change"


def _check_bodies(store: Store) -> None:
    a, b = _urls(2)
    store.save([Outcome(a, _NOW, status=200, body=b"one" * 500)], example_rows([a, b]))
    store.save([Outcome(b, _NOW + 1, status=200, body=b"one" * 500)])
    (version,) = store.versions(a)
    assert (version.size, store.body(version.key)) == (1500, b"one" * 500)
    assert store.counts()["bodies"] == 1, "equal bodies are kept once"
    store.save([Outcome(a, _NOW + 2 + k, status=200, body=b"%d" % k) for k in range(5)])
    kept = store.versions(a)
    assert kept and store.body(kept[0].key) == b"4", "the newest body is kept"
    assert store.body(store.versions(b)[0].key) == b"one" * 500, "a body that another page has is kept"
    assert store.counts()["bodies"] == len(kept) + 1, "bodies that no page has are let go"


def _check_atomic(store: Store) -> None:
    rows = example_rows(_urls(3))
    store.save([_outcomes()[0]], rows, notes={"n": 1})
    before = (list(store.observations()), store.counts(), store.noted())
    try:
        store.save([_outcomes()[1]], example_rows(_urls(5), seed=2), notes={"n": 2, "bad": object()})
    except TypeError:
        pass
    else:
        raise AssertionError("a note that is no JSON value is refused")
    found = store.load()
    assert found is not None and not same_rows(rows, found), "a save that fails leaves the rows as they were"
    assert (list(store.observations()), store.counts(), store.noted()) == before, "and everything else"


def _check_removal(store: Store) -> None:
    urls = _urls(4)
    outcomes = [Outcome(url, _NOW, status=200, body=url.encode()) for url in urls]
    store.save(outcomes, example_rows(urls))
    store.save(removed=[urls[1], "https://never.example/"])
    found = store.load()
    assert found is not None and sorted(found["url"]) == [urls[0], *urls[2:]]
    assert store.counts() == {"pages": 3, "copies": 3, "observations": 3, "bodies": 3}, "nothing of a page stays"
    assert store.copies(urls[1:2]) == {} and store.versions(urls[1]) == []


def _check_notes(store: Store) -> None:
    store.save(notes={"a:1": {"x": [1, 2.5, None]}, "a:2": "é", "b": float("inf")})
    assert store.noted("a:") == {"a:1": {"x": [1, 2.5, None]}, "a:2": "é"}
    store.save(notes={"a:1": None, "b": 3, "never": None})
    assert store.noted() == {"a:2": "é", "b": 3}


def _check_posts(store: Store) -> None:
    store.post([{"add": ["u"]}, {"remove": ["v"]}])
    store.post([{"add": ["w"]}])
    posts = store.posts()
    assert [value for _, value in posts] == [{"add": ["u"]}, {"remove": ["v"]}, {"add": ["w"]}]
    store.save(taken=[posts[0][0], posts[1][0]])
    store.post([{"add": ["x"]}])
    assert [value for _, value in store.posts()] == [{"add": ["w"]}, {"add": ["x"]}], "numbers are not used again"


def _check_threads(store: Store) -> None:
    urls = _urls(40)
    store.save(rows=example_rows(urls))
    problems: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for k in range(first, 40, 4):
                store.save([Outcome(urls[k], _NOW + k, status=200, digest=str(k))])
                store.copies(urls[:5])
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, f"calls from several threads: {problems[0]!r}"
    assert sorted(outcome.began_at for outcome in store.observations()) == [_NOW + k for k in range(40)]
