"""A scheduler's memory checks itself: every page in one container, every link both ways, nothing asleep too long.

For tests: plain Python over the whole memory; AssertionError with a message that names the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.clock_check import check_clocks, levels_of
from recrawl.schedule.exact.layout import State

_TOLERANCE = 1e-9


def check_memory(state: State, now: float) -> None:
    """Raise AssertionError if anything in the memory of a scheduler contradicts anything else at time ``now``."""
    used = int(state.head[0]["n_pages"])
    status = state.rec["state"][:used]
    held: dict[int, str] = {}
    for name, want, members in (
        ("wheel or band", at.ASLEEP, np.flatnonzero(status == at.ASLEEP).tolist()),
        ("near set", at.NEAR, _near(state)),
        ("leases", at.LEASED, _leases(state)),
        ("parked lists", at.PARKED, _parked(state)),
    ):
        for i in members:
            assert 0 <= i < used, f"id {i} in the {name} was never given"
            assert i not in held, f"page {i} is in the {name} and in the {held[i]}"
            assert status[i] == want, f"page {i} is in the {name}, but its state is {status[i]}"
            held[i] = name
    for i in np.flatnonzero((status != at.GONE) & (status != at.PAUSED)).tolist():
        assert i in held, f"page {i} has state {status[i]} and is in no container"
    _check_counters(state, status)
    wheel, banded = _check_wheel(state), _check_bands(state)
    for i in wheel | banded:
        assert status[i] == at.ASLEEP, f"page {i} is in wheel or band, but its state is {status[i]}"
    _check_free_blocks(state)
    _check_log(state, used)
    _check_running(state, status)
    _check_mixtures(state, status)
    if state.head[0]["scan_at"] < 0:
        _check_levels(state, _not_due(state, np.flatnonzero(status == at.ASLEEP), now), now)
    if len(state.member):
        _check_bounds(state, now)
        check_clocks(state)


def _near(state: State) -> list[int]:
    n = int(state.head[0]["n_near"])
    ids: list[int] = state.near_id[:n].tolist()
    for place, i in enumerate(ids):
        assert state.rec["pos"][i] == place, f"near page {i} is at {place}, its pos says {state.rec['pos'][i]}"
    return ids


def _chain(links: Any, first: int, most: int, what: str) -> Iterator[int]:
    """The entries of a linked list, which may hold at most so many."""
    seen = 0
    while first >= 0:
        assert seen < most, f"{what}: a ring"
        yield int(first)
        seen += 1
        first = int(links[first])


def _leases(state: State) -> list[int]:
    slots = int(state.head[0]["n_leases"])
    assert slots <= len(state.leases)
    ids, before, until = [], -1, -np.inf
    chain = list(_chain(state.leases["next"], int(state.head[0]["first_lease"]), slots, "leases"))
    for slot in chain:
        entry = state.leases[slot]
        assert entry["prev"] == before, f"lease {slot} follows {before}, but its prev is {entry['prev']}"
        assert entry["until"] >= until, f"lease {slot} ends before the one ahead of it"
        assert state.rec["pos"][entry["id"]] == slot, f"leased page {entry['id']} does not know its lease"
        ids.append(int(entry["id"]))
        before, until = slot, float(entry["until"])
    assert state.head[0]["last_lease"] == before, "the last lease is not the end of the chain"
    free = list(_chain(state.leases["next"], int(state.head[0]["free_lease"]), slots, "free leases"))
    assert sorted(chain + free) == list(range(slots)), "a lease slot is lost, or both used and free"
    return ids


def _blocks(state: State, head: int, top: int, what: str) -> tuple[list[int], list[int]]:
    """(members, blocks) of a block list; every member knows its place."""
    ids: list[int] = []
    blocks = list(_chain(state.blocks[:, at.BLOCK], head, len(state.blocks), what))
    for block in blocks:
        filled = top if block == head else at.BLOCK
        assert 0 < filled <= at.BLOCK, f"{what}: a block with {filled} members"
        for place in range(filled):
            i = int(state.blocks[block, place])
            assert state.rec["pos"][i] == block * at.BLOCK + place, f"{what}: page {i} does not know its place"
            ids.append(i)
    return ids, blocks


def _parked(state: State) -> list[int]:
    ids: list[int] = []
    for h, row in enumerate(state.hosts):
        here, _ = _blocks(state, int(row["head"]), int(row["top"]), f"parked pages of host {h}")
        assert len(here) == row["size"], f"host {h} has {len(here)} parked pages and counts {row['size']}"
        for i in here:
            assert page_hosts(state)[i] == h, f"page {i} is parked at host {h}, but on host {page_hosts(state)[i]}"
        ids += here
    return ids


def page_hosts(state: State) -> Any:
    """The host of every page, −1 for none."""
    if "host" in (state.rec.dtype.names or ()):
        return state.rec["host"]
    column = getattr(state, "host", np.zeros(0, np.int32))
    return column if len(column) else np.full(len(state.rec), -1)


def _check_counters(state: State, status: Any) -> None:
    head = state.head[0]
    for name, want in (("asleep", at.ASLEEP), ("near", at.NEAR), ("leased", at.LEASED), ("parked", at.PARKED)):
        n = int((status == want).sum())
        assert head[f"n_{name}"] == n, f"{n} pages are {name}, the counter says {head[f'n_{name}']}"
    alive = int((status != at.GONE).sum())
    assert state.head[0]["n_alive"] == alive, f"{alive} pages live, the counter says {state.head[0]['n_alive']}"


def _check_wheel(state: State) -> set[int]:
    found: set[int] = set()
    used: list[int] = []
    for slot in np.flatnonzero(state.slots >= 0).tolist():
        end = int(state.slots[slot])
        while end >= 0:
            chunk = end - end % at.CHUNK
            assert end >= chunk + at.FIRST, f"slot {slot}: a chunk without members"
            assert end == state.slots[slot] or end == chunk + at.CHUNK - 1, f"slot {slot}: a chunk within is not full"
            assert state.wheel[chunk + 1] == slot, f"slot {slot} has a chunk of slot {state.wheel[chunk + 1]}"
            assert chunk not in used, f"slot {slot}: a chunk is used twice"
            used.append(chunk)
            for place in range(chunk + at.FIRST, end + 1):
                i = int(state.wheel[place])
                assert wheel_place(state, i) == place, f"page {i} in slot {slot} does not know its place"
                assert i not in found, f"page {i} is in two slots"
                found.add(i)
            end = int(state.wheel[chunk])
    total = len(state.wheel) // at.CHUNK
    free = list(_chain(state.wheel, int(state.head[0]["free_chunk"]), total, "free chunks"))
    assert sorted(used + free) == [at.CHUNK * k for k in range(total)], "a chunk is lost, or both used and free"
    asleep = np.flatnonzero(state.rec["state"][: int(state.head[0]["n_pages"])] == at.ASLEEP).tolist()
    loose = {i for i in asleep if wheel_place(state, i) >= 0} - found
    assert not loose, f"pages {sorted(loose)[:5]} think they are in the wheel"
    return found


def wheel_place(state: State, i: int) -> int:
    """Where a sleeping page lies in the wheel, −1 for one that never wakes."""
    place = int(state.rec["pos"][i])
    if state.rec["band"][i] == at.FAR:
        return place
    return int(state.blocks[place // at.BLOCK, at.WHEEL_PLACES + place % at.BLOCK])


def _check_bands(state: State) -> set[int]:
    found: set[int] = set()
    order = state.band_order[: int(state.head[0]["n_bands"])].tolist()
    assert len(set(order)) == len(order), f"a band stands twice in the order {order}"
    levels = [float(state.bands[slot]["level"]) for slot in order]
    ladder = [float(state.head[0]["near_level"]), *levels[1:], float(state.head[0]["far_level"])]
    assert all(a >= b for a, b in pairwise(ladder)), f"levels rise: {ladder}"
    if order:
        assert levels[0] <= state.head[0]["near_level"], "the uppermost band reaches above the near level"
    for slot in order:
        ids, _ = _blocks(state, int(state.bands[slot]["head"]), int(state.bands[slot]["top"]), f"band {slot}")
        size = int(state.bands[slot]["size"])
        assert len(ids) == size, f"band {slot} has {len(ids)} pages and counts {size}"
        for i in ids:
            assert state.rec["band"][i] == slot, f"page {i} is in band {slot}, its record says {state.rec['band'][i]}"
        found.update(ids)
    banded = np.flatnonzero((state.rec["band"] != at.FAR) & (state.rec["state"] == at.ASLEEP))
    loose = set(banded[banded < state.head[0]["n_pages"]].tolist()) - found
    assert not loose, f"pages {sorted(loose)[:5]} think they are in a band"
    return found


def _check_free_blocks(state: State) -> None:
    total = int(state.head[0]["n_blocks"])
    assert total <= len(state.blocks), "more blocks in use than there are"
    lists = [(int(row["head"]), int(row["top"])) for row in state.hosts]
    bands = state.band_order[: int(state.head[0]["n_bands"])].tolist()
    lists += [(int(state.bands[slot]["head"]), int(state.bands[slot]["top"])) for slot in bands]
    used = [block for head, top in lists for block in _blocks(state, head, top, "blocks")[1]]
    free = list(_chain(state.blocks[:, at.BLOCK], int(state.head[0]["free_block"]), total, "free blocks"))
    assert sorted(used + free) == list(range(total)), "a block is lost, or both used and free"
    assert len(free) == state.head[0]["n_free_blocks"], "the free blocks are not as many as counted"


def _check_log(state: State, used: int) -> None:
    size, n, first = len(state.log), int(state.head[0]["n_log"]), int(state.head[0]["log_first"])
    assert n <= size, "more logged signals than there is room for"
    logged: dict[int, int] = {}
    newest: dict[int, int] = {}
    for entry in ((first + k) % size for k in range(n)):
        i = int(state.log["id"][entry])
        bucket = (i if i >= 0 else ~i) % len(state.log_heads)
        if bucket in newest:
            assert state.log["next"][entry] == newest[bucket], f"log entry {entry} does not know the one before"
        newest[bucket] = entry
        if i >= 0:
            assert i < used, f"a signal of page {i} is logged, which was never given"
            assert state.rec["state"][i] != at.GONE, f"page {i} is gone and has logged signals"
            logged[i] = logged.get(i, 0) + 1
    for bucket, entry in newest.items():
        assert state.log_heads[bucket] == entry, f"the newest log entry of bucket {bucket} is not at its head"
    for i, count in logged.items():
        signals = int(state.rec["signals"][i])
        assert count <= signals or signals == 65535, f"page {i} logs too many signals"


def _check_running(state: State, status: Any) -> None:
    leased = page_hosts(state)[: len(status)][status == at.LEASED]
    for h, row in enumerate(state.hosts):
        n = int((leased == h).sum())
        assert row["running"] == n, f"host {h} has {n} leased pages and counts {row['running']}"


def _check_mixtures(state: State, status: Any) -> None:
    """Every mixture belongs to one page that lives, or is free."""
    head = state.head[0]
    row, total = int(head["mixture_row"]), int(head["n_mixtures"])
    assert total * at.COMPONENTS <= len(state.mixtures), "more mixtures in use than there are"
    column = state.extra[row, : len(status)] if row >= 0 else np.zeros(len(status))
    for i in np.flatnonzero(column).tolist():
        assert status[i] != at.GONE, f"page {i} is gone and has components"
        weight = state.mixtures[(int(column[i]) - 1) * at.COMPONENTS :][: at.COMPONENTS, 0]
        assert (weight >= 0).all(), f"page {i} has the components of a free mixture"
    following = np.concatenate([[0], state.mixtures[:: at.COMPONENTS, 1]])
    free: list[int] = []
    mixture = int(head["free_mixture"])
    while mixture > 0 and len(free) <= total:
        free.append(mixture)
        mixture = int(following[mixture])
    used = column[column > 0].astype(int).tolist()
    assert sorted(used + free) == list(range(1, total + 1)), "a mixture is lost, or used twice"
    assert len(free) == head["n_free_mixtures"], "the free mixtures are not as many as counted"


def _values(state: State, ids: Any, now: float) -> Any:
    from recrawl.schedule.exact.kernels.queries import fill_values

    value = np.empty(len(ids))
    fill_values(state.head.view(np.int64), ids.astype(np.int64), max(now, float(state.head[0]["now"])), value)
    return value


def _check_bounds(state: State, now: float) -> None:
    """A near page is worth no more than its bound says."""
    n, now = int(state.head[0]["n_near"]), max(now, float(state.head[0]["now"]))
    ids, bound = state.near_id[:n], state.near_bound[:n]
    passed = np.maximum(bound["pace"] * (now - bound["since"]), 0.0)
    held = passed <= bound["room"]
    most = (bound["most"] + bound["lift"] * passed)[held]
    value = _values(state, ids[held], now)
    for k in np.flatnonzero(~(value <= most * (1 + _TOLERANCE))):
        raise AssertionError(f"page {ids[held][k]} is said to be worth {most[k]} at most and is worth {value[k]}")


def _not_due(state: State, asleep: Any, now: float) -> Any:
    """Sleeping pages but for those that the next pick wakes: a publication moves the time on, but not the wheel."""
    if not len(state.member):
        return asleep
    head, wake = state.head[0], state.member["wake_at"][asleep]
    waiting = (wake - float(head["origin"])) / float(head["width"]) >= float(head["clock"]) + 1.0
    return asleep[~(waiting & (wake <= max(now, float(head["now"]))))]


def _check_levels(state: State, asleep: Any, now: float) -> None:
    """A sleeping page is worth less than the level of its layer."""
    value = _values(state, asleep, now)
    level = levels_of(state, asleep)
    late = np.flatnonzero(~(value <= level * (1 + _TOLERANCE)))
    if len(late):
        k = late[0]
        raise AssertionError(f"page {asleep[k]} sleeps below {level[k]} and is worth {value[k]}")
