"""Broken inputs: detectors, feeds, listings, robots and charset raise nothing; `experiments/fuzz.py` runs many more."""

import fuzzing as fuzz
import pytest
from fuzz_inputs import TYPES, all_detectors
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples, few_tuples

from recrawl.crawl.formats.feed_items import read_feed
from recrawl.crawl.http.charset import decode
from recrawl.crawl.http.fetched import Fetched


@pytest.mark.slow
@pytest.mark.parametrize(
    ("makes", "n"),
    few_tuples(
        [
            *((fuzz.detector_calls, 2000), (fuzz.robots_calls, 3000), (fuzz.charset_calls, 4000)),
            *((fuzz.detector_calls, 6000), (fuzz.robots_calls, 6000), (fuzz.charset_calls, 9000)),
        ],
        3,
    ),
)
def test_broken_inputs_raise_nothing(makes, n):
    found = fuzz.run(makes, n, seed=7)
    assert found["inputs"] == n
    assert found["first_errors"] == []


@pytest.mark.parametrize("n", [500, pytest.param(100_000, marks=pytest.mark.full)])
def test_broken_listings_raise_nothing(n):
    found = fuzz.run(fuzz.listing_calls, n, seed=7)
    assert found["inputs"] == n
    assert found["first_errors"] == []


@pytest.mark.parametrize("n", [500, pytest.param(100_000, marks=pytest.mark.full)])
def test_broken_requests_of_hubs_and_pings_raise_nothing(n):
    found = fuzz.run(fuzz.receiver_calls, n, seed=7)
    assert found["inputs"] == n
    assert found["first_errors"] == []


def test_the_fuzzer_finds_what_raises():
    """A detector that stumbles over one byte is found out."""

    def makes(rng):
        for calls in fuzz.charset_calls(rng):
            ((name, call),) = calls
            yield [(name, call), ("stumbles", lambda: 1 / (rng.random() > 0.05))]

    found = fuzz.run(makes, 300, seed=7)
    assert found["errors"] > 0
    assert "ZeroDivisionError" in found["first_errors"][0]


@settings(max_examples=examples(300))
@given(st.binary(max_size=300), st.sampled_from(TYPES))
def test_any_bytes_are_a_page(body, kind):
    page = Fetched("http://a.example/", "http://a.example/", 200, 0.0, 0.0, {"content-type": kind}, body)
    for detector in all_detectors():
        assert detector.digest(page) == detector.digest(page)
    read_feed(body)
    decode(body, kind).encode("utf-8")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
)


@settings(max_examples=examples(200))
@given(JSON)
def test_any_json_is_a_page(document):
    import json

    bodies = [
        json.dumps(document).encode(),
        json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "replace"),
    ]
    kind = {"content-type": "application/json"}
    pages = [Fetched("http://a.example/", "http://a.example/", 200, 0.0, 0.0, kind, body) for body in bodies]
    for detector in all_detectors():
        digests = {detector.digest(page) for page in pages}
        if detector.name == "main" and "\\ud" not in bodies[0].decode():
            assert len(digests) == 1, "the same document, written differently"
