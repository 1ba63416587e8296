"""The example of a vector index in step with a crawl: it holds what was fetched last, and embeds what has changed."""

import asyncio
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.store import Event

EXAMPLE = Path(__file__).parents[1] / "examples/index"
NAMES = ("chunks", "vectors", "keeper", "thirty_days")


@pytest.fixture(scope="module")
def example():
    """The modules of the example by name, imported as its script does."""
    from importlib import import_module

    sys.path.insert(0, str(EXAMPLE))
    try:
        return {name: import_module(name) for name in NAMES}
    finally:
        sys.path.remove(str(EXAMPLE))


@pytest.mark.slow
def test_after_thirty_days_the_index_is_what_was_fetched_last(example):
    found = asyncio.run(example["thirty_days"].follow(30.0, seed=1, part=10, budget=1.5))
    assert found.wrong == []
    assert found.per_change == pytest.approx(1.0, abs=0.01)
    assert found.changes > 500
    assert found.fetches > 1.3 * found.changes
    assert found.counts["replaced"] == found.changes
    assert found.counts["deleted"] >= 4
    assert found.counts["added"] == found.n_pages + found.counts["deleted"]
    assert len(list(found.lines())) == 5


def sentences(n, first=0):
    return [
        f"Sentence number {k} says something about thing {k * 7 % 13} at some length." for k in range(first, first + n)
    ]


def test_a_changed_sentence_changes_one_chunk(example):
    chunked, text = example["chunks"].chunked, sentences(40)
    before = chunked(" ".join(text))
    assert len(before) > 4
    for k in range(40):
        for new in (
            [*text[:k], "Another one.", *text[k + 1 :]],
            [*text[:k], "One more.", *text[k:]],
            [*text[:k], *text[k + 1 :]],
        ):
            after = chunked(" ".join(new), before)
            assert " ".join(after) == " ".join(new)
            assert len(set(after) - set(before)) <= 1


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=2, max_size=5))
def test_chunks_are_the_text(example, versions):
    before = []
    for words in versions:
        text = " ".join(f"{word * 60}." for word in words)
        before = example["chunks"].chunked(text, before)
        assert " ".join(before) == text
        assert all(before)


def test_what_is_there_is_not_embedded_again(example):
    index = example["vectors"].VectorIndex()
    text = " ".join(sentences(40))
    n = index.put("a", text)
    assert n == index.n_embedded == index.n_chunks == len(index.chunks("a"))
    assert index.put("a", text) == index.put("b", text) == 0  # unchanged, and the same text on another page
    assert index.delete("a")
    assert not index.delete("a")
    assert index.delete("b")
    assert (index.n_chunks, len(index)) == (0, 0)
    assert index.put("a", text) == 0  # a page that comes back
    index.check()


def test_retired_vectors_are_bounded(example):
    index = example["vectors"].VectorIndex(retired=3)
    text = " ".join(sentences(40))
    n = index.put("a", text)
    index.delete("a")
    assert index.put("a", text) == n - 3


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6)), max_size=30))
def test_any_order_of_puts_and_deletes(example, steps):
    index, pages = example["vectors"].VectorIndex(retired=2), {}
    for url, k in steps:
        if k == 0:
            assert index.delete(url) == (pages.pop(url, None) is not None)
        else:
            pages[url] = " ".join(sentences(3 * k, first=k % 3))
            index.put(url, pages[url])
        index.check()
    assert {url: " ".join(index.chunks(url)) for url in pages} == pages
    assert len(index) == len(pages)


def test_the_nearest_chunk_is_found(example):
    index = example["vectors"].VectorIndex()
    assert index.search("anything") == []
    topics = {"tea": "Green tea is brewed below boiling.", "rail": "The night train leaves from platform nine."}
    for url, text in topics.items():
        index.put(url, text)
    best, second = index.search("which platform has the night train", 5)
    assert (best.url, best.text) == ("rail", topics["rail"])
    assert best.score > second.score
    index.delete("rail")
    assert [hit.url for hit in index.search("night train")] == ["tea"]


def test_a_batch_delivered_twice_leaves_the_index_as_it_is(example):
    keeper = example["keeper"].IndexKeeper(example["vectors"].VectorIndex())
    batch = [
        Event(1, "s.1", "a", "new", 0.0, new_text="First text. More."),
        Event(2, "s.2", "b", "new", 0.0, new_text="Of b."),
        Event(3, "s.3", "a", "changed", 1.0, new_text="Second text. More."),
        Event(4, "s.4", "b", "gone", 2.0),
        Event(5, "s.5", "c", "new", 2.0),  # a picture: no text
    ]
    for _ in range(2):
        keeper(batch, 0)
        assert [keeper.index.chunks(url) for url in "a"] == [["Second text. More."]]
        assert len(keeper.index) == 1
    assert keeper.index.n_embedded == 3
    keeper([Event(6, "s.6", "a", "changed", 3.0)], 0)
    assert len(keeper.index) == 0, "the page has no text any more: what the index has is old"
    with pytest.raises(RuntimeError, match="2 events were dropped"):
        keeper([], 2)


def test_embeddings_have_length_one(example):
    vector = example["vectors"].hashed_words("some words of a text")
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert not example["vectors"].hashed_words("").any()
