"""Checks of how ids, leases and wrong use are treated."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.schedule.policy import Policy
from recrawl.schedule.testing.trial import N_PAGES, Trial, futures, picked, same


def has_all_methods(trial: Trial) -> None:
    """The protocol's methods exist."""
    assert isinstance(trial.policy(), Policy), "some method of Policy is missing"


def add_gives_new_ids(trial: Trial) -> None:
    """Each page gets an id of its own."""
    policy = trial.policy()
    ids = policy.add(Pages([0.3, 0.6, 0.9]), trial.start, fetched_at=trial.start)
    assert len(ids) == 3, f"add of 3 pages returned {len(ids)} ids"
    more = policy.add(Pages([0.5]), trial.start)
    assert len({*map(int, ids), *map(int, more)}) == 4, "add returned an id twice"


def pick_is_distinct(trial: Trial) -> None:
    """At most n, none twice, only pages that exist."""
    policy = trial.policy()
    added = policy.add(Pages([0.4, 0.8]), trial.start)
    now, seen = trial.start, set[int]()
    assert len(picked(policy, now, 0)) == 0, "pick(now, 0) returned a page"
    for n in (1, 3, 1000):
        now += trial.step
        ids = picked(policy, now, n)
        assert not seen & set(ids.tolist()), "a leased page was picked again"
        assert ids.max(initial=0) <= added.max(), "pick returned an id that add did not give out"
        seen |= set(ids.tolist())


def leased_pages_stay_away(trial: Trial) -> None:
    """Until its lease ends, a picked page is not picked again."""
    policy = trial.policy()
    ids, now = trial.first_picks(policy, 3)
    length = 50.0 if trial.lease is None else trial.lease
    trial.stays_away(policy, ids, now, now + 0.99 * length)


def recorded_pages_return(trial: Trial) -> None:
    """A recorded crawl ends the lease."""
    policy = trial.policy(2)
    ids, now = trial.first_picks(policy, 1)
    policy.record(ids, now + trial.step, changed=[True])
    assert trial.comes_back(policy, int(ids[0]), now + trial.step), "the page was not picked again after record"


def failed_pages_return(trial: Trial) -> None:
    """A failed crawl ends the lease as well."""
    policy = trial.policy(2)
    ids, now = trial.first_picks(policy, 1)
    policy.record(ids, now + trial.step, failed=[True])
    assert trial.comes_back(policy, int(ids[0]), now + trial.step), "the page was not picked again after it failed"


def released_pages_return(trial: Trial) -> None:
    """A released page is eligible again."""
    policy = trial.policy(2)
    ids, now = trial.first_picks(policy, 1)
    policy.release(ids, now + trial.step)
    assert trial.comes_back(policy, int(ids[0]), now + trial.step), "the page was not picked again after release"
    policy.release([int(ids[0])], now)


def removed_pages_stay_away(trial: Trial) -> None:
    """Leased or not, a removed page is not picked."""
    policy = trial.policy()
    ids, now = trial.first_picks(policy, 1)
    other = (int(ids[0]) + 1) % N_PAGES
    gone = np.array([int(ids[0]), other])
    policy.remove(gone)
    trial.stays_away(policy, gone, now, now + 3 * (trial.lease or 50.0))


def gone_pages_stay_away(trial: Trial) -> None:
    """A page that was found to be gone is not picked."""
    policy = trial.policy()
    ids, now = trial.first_picks(policy, 1)
    policy.record(ids, now, gone=[True])
    trial.stays_away(policy, ids, now, now + 3 * (trial.lease or 50.0))


def ids_are_not_reused(trial: Trial) -> None:
    """A new page does not get the id of a removed one."""
    policy = trial.policy()
    first = policy.add(Pages([0.3, 0.6]), trial.start)
    policy.remove(first)
    second = policy.add(Pages([0.3, 0.6, 0.9]), trial.start)
    assert not np.isin(second, first).any(), "add returned the id of a removed page"
    assert second.min() >= N_PAGES, "add returned the id of a page that exists"


def wrong_use_raises(trial: Trial) -> None:
    """ParameterError, and the state is what it was."""
    policy = trial.policy()
    policy.remove([3])
    now = trial.start + trial.step
    picked(policy, now, 2)
    for name, call in _wrong_calls(policy, now).items():
        before = policy.state()
        try:
            call()
        except ParameterError:
            pass
        except Exception as error:
            raise AssertionError(f"{name} raised {type(error).__name__}, not ParameterError") from error
        else:
            raise AssertionError(f"{name} did not raise")
        assert same(before, policy.state()), f"{name} raised but changed the state"


def _wrong_calls(policy: Policy, now: float) -> dict[str, Callable[[], Any]]:
    calls: dict[str, Callable[[], Any]] = {
        "pick with a negative n": lambda: policy.pick(now, -1),
        "pick at NaN": lambda: policy.pick(math.nan, 1),
        "record at NaN": lambda: policy.record([0], math.nan),
        "record with as_of NaN": lambda: policy.record([0], now, as_of=[math.nan]),
        "record with too many flags": lambda: policy.record([0], now, changed=[True, False]),
        "add at NaN": lambda: policy.add(Pages([0.5]), math.nan),
        "update with a rate of NaN": lambda: policy.update([0], change_rate=[math.nan]),
        "update with a negative importance": lambda: policy.update([0, 1], importance=[1.0, -1.0]),
        "update of an unknown column": lambda: policy.update([0], no_such_column=[1.0]),
    }
    for page, what in ((10**6, "an unknown id"), (-1, "a negative id"), (3, "a removed id")):
        ids = [0, page]
        calls |= {
            f"record of {what}": partial(policy.record, ids, now),
            f"release of {what}": partial(policy.release, ids, now),
            f"signal for {what}": partial(policy.signal, ids, now),
            f"update of {what}": partial(policy.update, ids, change_rate=[0.5, 0.5]),
            f"remove of {what}": partial(policy.remove, ids),
        }
    return calls


def signals_are_accepted(trial: Trial) -> None:
    """Signals, also repeated ones and those for leased pages, do not disturb."""
    policy = trial.policy()
    ids, now = trial.first_picks(policy, 1)
    policy.signal(np.concatenate([ids, ids, [(int(ids[0]) + 1) % N_PAGES]]), now)
    policy.signal(ids, now, changed_at=[now])
    futures(policy, now, trial.step)


def updates_are_accepted(trial: Trial) -> None:
    """One value for all ids, or one each; leased pages too."""
    policy = trial.policy()
    ids, now = trial.first_picks(policy, 1)
    policy.update(np.arange(N_PAGES), change_rate=0.5)
    policy.update([int(ids[0])], importance=[2.0])
    futures(policy, now, trial.step)
