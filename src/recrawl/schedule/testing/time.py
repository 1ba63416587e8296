"""Checks of how time, order and saved states are treated."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from recrawl.schedule.policy import Policy
from recrawl.schedule.testing.trial import N_PAGES, Trial, futures, picked, same


def _twins(policy: Policy) -> tuple[Policy, Policy]:
    state = policy.state()
    return type(policy).restore(copy.deepcopy(state)), type(policy).restore(copy.deepcopy(state))


def _used(trial: Trial) -> tuple[Policy, float]:
    """A policy some way on, with pages leased, recorded and signalled."""
    policy = trial.policy()
    ids, now = trial.first_picks(policy, 4)
    policy.record(ids[1:], now)
    policy.signal(ids[:1], now)
    futures(policy, now, trial.step, rounds=6)
    return policy, now + 20 * trial.step


def leases_end(trial: Trial) -> None:
    """A page whose lease ran out comes back."""
    if trial.lease is None:
        return
    policy = trial.policy(2)
    ids, now = trial.first_picks(policy, 1)
    assert trial.comes_back(policy, int(ids[0]), now + 1.001 * trial.lease), "the page did not come back"


def time_stands_still(trial: Trial) -> None:
    """A smaller now counts as the last one."""
    policy, now = _used(trial)
    picked(policy, now, 1)
    back, still = _twins(policy)
    a, b = picked(back, now - 7.0, 3), picked(still, now, 3)
    assert a.tolist() == b.tolist(), f"at an earlier time {a.tolist()} was picked, at the same time {b.tolist()}"
    assert back.next_at(now - 7.0) == still.next_at(now), "next_at differs at an earlier time"
    _assert_counted(policy, back, "a time that went back")
    back.record(a, now - 7.0)
    still.record(b, now)
    assert futures(back, now, trial.step) == futures(still, now, trial.step), "later picks differ"


def record_order_is_free(trial: Trial) -> None:
    """Records of different pages with the same times, in another order, come to the same."""
    policy = trial.policy()
    ids, now = trial.first_picks(policy, 3, wanted=2)
    one, two = _twins(policy)
    later = now + 5 * trial.step
    began = [now + i * trial.step for i in range(len(ids))]
    for i in range(len(ids)):
        one.record(ids[i : i + 1], later, as_of=[began[i]])
    for i in reversed(range(len(ids))):
        two.record(ids[i : i + 1], later, as_of=[began[i]])
    assert futures(one, later, trial.step) == futures(two, later, trial.step), "later picks depend on the order"


def outdated_record_is_ignored(trial: Trial) -> None:
    """An as_of older than the page's last crawl changes nothing and is counted."""
    policy = trial.policy(2)
    ids, now = trial.first_picks(policy, 1)
    policy.record(ids, now + 10 * trial.step, as_of=[now + 9 * trial.step])
    late, plain = _twins(policy)
    now += 11 * trial.step
    late.record(ids, now, as_of=[now - 10 * trial.step], changed=[True])
    plain.record(np.zeros(0, np.int64), now)
    _assert_counted(policy, late, "an outdated record")
    assert futures(late, now, trial.step) == futures(plain, now, trial.step), "later picks differ"


def _assert_counted(before: Policy, after: Policy, what: str) -> None:
    stats: Any = getattr(after, "stats", None)
    if stats is not None:
        assert not same(dict(stats), dict(getattr(before, "stats", {}))), f"{what} is not counted in stats"


def state_is_a_copy(trial: Trial) -> None:
    """What happens later does not show in a state saved before."""
    policy, now = _used(trial)
    state = policy.state()
    kept = copy.deepcopy(state)
    futures(policy, now, trial.step)
    assert same(state, kept), "a saved state changed when the policy went on"
    assert futures(type(policy).restore(state), now, trial.step) is not None
    assert same(state, kept), "a saved state changed when a policy restored from it went on"


def restored_policy_agrees(trial: Trial) -> None:
    """Saving and restoring at any time does not show in what is picked."""
    policy, now = _used(trial)
    picked(policy, now, 2)
    restored = type(policy).restore(copy.deepcopy(policy.state()))
    for rounds in (4, 25):
        a, b = futures(policy, now, trial.step, rounds), futures(restored, now, trial.step, rounds)
        assert a == b, f"picked {a}, the restored policy {b}"
        now += 200 * trial.step
        restored = type(policy).restore(copy.deepcopy(policy.state()))


def next_at_is_not_late(trial: Trial) -> None:
    """Before next_at nothing can be picked."""
    policy, now = _used(trial)
    for _ in range(30):
        due = policy.next_at(now)
        assert due >= now, f"next_at({now}) is {due}, in the past"
        last = due if math.isfinite(due) else now + 10.0
        for share in (0.0, 0.5, 0.999):
            before = now + share * (last - now)
            if before < last:
                probe = type(policy).restore(policy.state())
                early = picked(probe, before, N_PAGES)
                assert len(early) == 0, f"next_at({now}) is {due}, but a page is picked before"
        now = last if now < last else now + trial.step
        policy.record(picked(policy, now, 3)[1:], now)
