"""The contract suite: it accepts the policies that are shipped and finds the faults it is made to find."""

import math

import numpy as np
import pytest

from recrawl.schedule import CHECKS, RatePolicy, check_policy

from .plain_policy import PlainGreedy


def factory(execution="deadline", rates="change-weighted", lease=300.0, kind=RatePolicy):
    return lambda pages, start: kind(
        pages, budget=10.0, rates=rates, execution=execution, start=start, lease=lease, rng=np.random.default_rng(3)
    )


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("execution", ["deadline", "poisson"])
@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_rate_policies_keep_the_contract(name, execution, start):
    check_policy(factory(execution), start=start, names=[name])


@pytest.mark.parametrize("rates", ["uniform", "click-weighted", "lambda"])
@pytest.mark.parametrize("lease", [2.0, math.inf])
def test_every_rule_keeps_the_contract(rates, lease):
    check_policy(factory("deadline", rates, lease), lease=None if lease == math.inf else lease)


@pytest.mark.parametrize("start", [0.0, 1.7e9])
@pytest.mark.parametrize("lease", [2.0, 300.0])
def test_a_greedy_policy_keeps_the_contract(start, lease):
    check_policy(lambda pages, start: PlainGreedy(pages, start, lease), lease=lease, start=start)


class PicksTwice(RatePolicy):
    def pick(self, now, n):
        ids = super().pick(now, n)
        return np.concatenate([ids, ids])[:n]


class PicksTooMany(RatePolicy):
    def pick(self, now, n):
        return super().pick(now, n + 1)


class ForgetsLeases(RatePolicy):
    def pick(self, now, n):
        ids = super().pick(now, n)
        self.release(ids, now)
        return ids


class NeverEndsLeases(RatePolicy):
    def _advance(self, now):
        self._run.wake = lambda now: 0
        super()._advance(now)


class IgnoresRelease(RatePolicy):
    def release(self, ids, now):
        pass


class IgnoresFailure(RatePolicy):
    def record(self, ids, now, *, failed=None, **others):
        if failed is None:
            super().record(ids, now, **others)


class IgnoresGone(RatePolicy):
    def record(self, ids, now, *, gone=None, **others):
        super().record(ids, now, **others)


class KeepsRemoved(RatePolicy):
    def remove(self, ids):
        pass


class ReusesIds(RatePolicy):
    def add(self, pages, now, **others):
        return super().add(pages, now, **others) % 12


class ChangesBeforeItChecks(RatePolicy):
    def update(self, ids, **columns):
        self._stale = True
        super().update(ids, **columns)
        self._settle()


class ForgetsTheClock(RatePolicy):
    def _advance(self, now):
        self._now = now
        self._run.wake(now)


class TakesAnyRecord(RatePolicy):
    def record(self, ids, now, *, as_of=None, **others):
        super().record(ids, now, **others)


class SharesItsState(RatePolicy):
    def state(self):
        state = super().state()
        state["pages"]["crawled_at"] = self._table["crawled_at"]
        return state


class ForgetsLeasesWhenSaved(RatePolicy):
    def state(self):
        state = super().state()
        state["crawls"]["lease_ends"][:] = np.nan
        return state


class WakesLate(RatePolicy):
    def next_at(self, now):
        due = super().next_at(now)
        return due if due <= now else due + 1.0


class TakesNegativeCounts(RatePolicy):
    def pick(self, now, n):
        return super().pick(now, max(n, 0))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (PicksTwice, "pick returns distinct known ids, at most n"),
        (PicksTooMany, "pick returns distinct known ids, at most n"),
        (ForgetsLeases, "leased pages are not picked again"),
        (NeverEndsLeases, "a lease ends"),
        (IgnoresRelease, "released pages come back"),
        (IgnoresFailure, "failed crawls end the lease"),
        (IgnoresGone, "pages that are gone never return"),
        (KeepsRemoved, "removed pages never return"),
        (ReusesIds, "ids are never reused"),
        (ChangesBeforeItChecks, "wrong use raises and leaves the state"),
        (TakesNegativeCounts, "wrong use raises and leaves the state"),
        (ForgetsTheClock, "time going back stands still"),
        (TakesAnyRecord, "an outdated record changes nothing"),
        (SharesItsState, "a saved state is a copy"),
        (ForgetsLeasesWhenSaved, "a restored policy picks the same"),
        (WakesLate, "next_at is not late"),
    ],
)
def test_faults_are_found(kind, name):
    with pytest.raises(AssertionError, match=name):
        check_policy(factory(kind=kind), names=[name])


def test_every_fault_fails_the_whole_suite():
    for kind in (PicksTwice, ForgetsLeases, KeepsRemoved, WakesLate):
        with pytest.raises(AssertionError):
            check_policy(factory(kind=kind))
