"""The self-check of clocks: their bins, the buckets of their members, no page that wakes late."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.layout import State

_TOLERANCE = 1e-9


def check_clocks(state: State) -> None:
    """Raise AssertionError if clocks, buckets and what sleeping pages rely on contradict each other."""
    for g in range(len(state.groups)):
        if not math.isinf(state.groups[g]["newest"]):
            _check_bins(state, g)
        _check_buckets(state, g)
    status = state.rec["state"][: int(state.head[0]["n_pages"])]
    asleep = np.flatnonzero((status == at.ASLEEP) & (state.member["group"][: len(status)] >= 0))
    _check_wakes(state, asleep)


def levels_of(state: State, asleep: Any) -> Any:
    """The levels below which pages sleep."""
    band = state.rec["band"][asleep].astype(np.int64)
    levels = np.append(state.bands["level"], state.head[0]["far_level"])
    return levels[np.where(band == at.FAR, at.BANDS, band)]


def _check_bins(state: State, g: int) -> None:
    """Each bin knows the clock time from its end to the publication."""
    group, span, after = state.groups[g], float(state.head[0]["span"]), 0.0
    newest = int(group["newest"])
    assert newest == math.floor(group["updated_at"] / span), f"clock {g}: its newest bin is not that of its publication"
    assert group["updated_at"] <= state.head[0]["now"], f"clock {g} was published in the future"
    for b in range(newest, newest - at.BINS, -1):
        here = state.bins[g, b % at.BINS]
        assert here["pace"] > 0, f"clock {g} stands still in bin {b}"
        assert abs(here["after"] - after) <= 1e-6 * span, f"clock {g}: {here['after']} after bin {b} instead of {after}"
        after += float(here["pace"]) * (min((b + 1) * span, float(group["updated_at"])) - b * span)


def _check_buckets(state: State, g: int) -> None:
    """Links go both ways; each member is examined before its slack is used up, and relies on no more than it has."""
    from recrawl.schedule.exact.kernels.queries import clock_time

    group, least = state.groups[g], at.LEAST_SLACK * float(state.head[0]["span"])
    for k, first in enumerate(state.buckets[g].tolist()):
        i, before = first, -1
        while i >= 0:
            p = state.member[i]
            assert (p["group"], p["bucket"], p["prev"]) == (g, k, before), f"page {i} does not know its bucket"
            if state.rec["state"][i] == at.ASLEEP and group["risen"] == group["reinserted"]:
                width = least * (1 << k)
                due = (math.floor(group["reinserted"] / width) + 1) * width
                assert due <= p["key"] * (1 + _TOLERANCE), f"page {i} is examined at {due}, after {p['key']}"
                last, wake = float(state.rec["last"][i]), float(p["wake_at"])
                left = p["limit"] - clock_time(state.head.view(np.int64), i, last, wake)
                claimed = p["key"] - group["risen"]
                assert left >= claimed - _TOLERANCE * (1 + abs(p["key"])), f"page {i} has {left} left, not {claimed}"
            i, before = int(p["next"]), i


def _check_wakes(state: State, asleep: Any) -> None:
    """Also when it wakes, a page with a clock is worth no more than its level."""
    from recrawl.schedule.exact.kernels.queries import fill_values

    pending = (state.groups["risen"] != state.groups["reinserted"])[state.member["group"][asleep]]
    asleep = asleep[~pending & np.isfinite(state.member["wake_at"][asleep])]
    value = np.empty(1)
    for i, level in zip(asleep.tolist(), levels_of(state, asleep).tolist(), strict=True):
        wake = float(state.member["wake_at"][i])
        fill_values(state.head.view(np.int64), np.array([i]), wake, value)
        worth = float(value[0])
        assert worth <= level * (1 + _TOLERANCE), f"page {i} wakes at {wake}, worth {worth}: too late for {level}"
