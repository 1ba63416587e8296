"""Broken requests: bodies and headers that nobody should send raise nothing but documented refusals.

`experiments/fuzz.py --what requests` runs more of them and writes what came of it.
"""

import random

import fuzz_requests as requests
import pytest


@pytest.mark.parametrize("n", [1000, pytest.param(100_000, marks=pytest.mark.full)])
def test_broken_bodies_are_refused_by_field_and_row(n):
    rng = random.Random(7)
    taken = sum(requests.take_body(requests.broken_body(rng)) for _ in range(n))
    assert 0.01 * n < taken < 0.9 * n, "both happen"


@pytest.mark.parametrize("n", [1000, pytest.param(100_000, marks=pytest.mark.full)])
def test_broken_hosts_and_origins_are_refused(n):
    rng, guard = random.Random(7), requests.guard()
    taken = sum(requests.take_headers(guard, requests.broken_headers(rng)) for _ in range(n))
    assert 0 < taken < n, "both happen"
