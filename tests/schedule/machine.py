"""SchedulerMachine: a scheduler and its brute-force twin get the same events and must agree after every step."""

import math
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive.schedule import BruteForce, Copy

from recrawl.model.pages import Pages
from recrawl.schedule.exact.scheduler import Scheduler

from .reads import READS, assert_reading_changes_nothing

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.sampled_from([0, 1, 2, 3, 8, 30, 1000])
TOLERANCE = 1e-9


class SchedulerMachine(RuleBasedStateMachine):
    """Variants set what differs: policy, options, page parameters, sizes, hosts."""

    policy = "signals"
    objective = "freshness"
    options: ClassVar[dict] = {}
    lease = 20.0
    hosts: tuple = ()
    n_sources = 1
    sizes = (1, 2, 5, 20)
    most_pages = 60
    starts = (0.0, -40.0, 1.7e9)

    def columns(self, rng, n):
        """Parameters of n pages: override for other worlds."""
        return {
            "change_rate": rng.choice([0.0, 0.01, 0.3, 1.0, 1.0, 7.0], n),
            "importance": rng.choice([0, 0.5, 1, 1, 30], n),
        }

    # --- events ------------------------------------------------------------------------------------------------------

    @initialize(start=st.integers(0, 2), seed=SEEDS, n=st.integers(0, 3))
    def begin(self, start, seed, n):
        self.time = self.starts[start % len(self.starts)]
        given = {"policy": self.policy, "objective": self.objective, "lease": self.lease, "start": self.time}
        self.scheduler = Scheduler(**given, **self.options)
        named = {"window" if name == "delay_window" else name: value for name, value in self.options.items()}
        named.pop("budget", None)
        self.twin = BruteForce(**given, **named)
        self.removed = []
        self.prepare()
        if n:
            self.add(self.sizes[n % len(self.sizes)], seed, 0)

    def prepare(self):
        """What a variant does with the empty scheduler."""

    @rule(n=st.integers(0, 3), seed=SEEDS, back=st.sampled_from([0, 0, 1, 2]))
    def add_pages(self, n, seed, back):
        n = min(self.sizes[n % len(self.sizes)], self.most_pages - len(self.twin.pages))
        if n > 0:
            self.add(n, seed, back)

    def add(self, n, seed, back):
        rng = np.random.default_rng(seed)
        columns = self._draw(rng, n)
        last = self.time - rng.choice([0.0, 0.5, 3.0, 100.0], n) if back else np.full(n, self.time)
        pages = Pages(**columns)
        ids = self.scheduler.add(pages, self.time, fetched_at=last if back else None)
        if self.twin.pages or self.removed:
            assert ids.min() > max([*self.twin.pages, *self.removed])
        for k, i in enumerate(ids.tolist()):
            self.twin.pages[i] = self._copy(pages, k, float(last[k]))

    def _draw(self, rng, n):
        columns = self.columns(rng, n)
        if self.hosts:
            columns["host"] = np.array([self.hosts[k] for k in rng.integers(0, len(self.hosts), n)], dtype=object)
        return columns

    def _copy(self, pages, k, last):
        recall = np.atleast_2d(np.broadcast_to(pages.recall, (len(pages), *pages.recall.shape[1:])).T).T[k]
        false_rate = np.atleast_2d(np.broadcast_to(pages.false_rate, (len(pages), *pages.false_rate.shape[1:])).T).T[k]
        host = None if pages.host is None else pages.host[k]
        plain = (pages.change_rate, pages.importance, pages.cost, pages.evidence)
        change_rate, importance, cost, evidence = (float(np.broadcast_to(c, (len(pages),))[k]) for c in plain)
        return Copy(change_rate, importance, recall.tolist(), false_rate.tolist(), host, cost, evidence, last)

    def _some(self, seed, most=12, repeat=False, among=None):
        rng = np.random.default_rng(seed)
        pool = sorted(self.twin.pages) if among is None else among
        n = int(rng.integers(0, min(most, len(pool)) + 1))
        return rng, rng.choice(pool, n, replace=repeat) if n else np.zeros(0, np.int64)

    @rule(seed=SEEDS)
    def remove(self, seed):
        _, ids = self._some(seed, 4)
        self.scheduler.remove(ids)
        for i in ids.tolist():
            del self.twin.pages[i]
            self.removed.append(i)

    @rule(seed=SEEDS)
    def update(self, seed):
        rng, ids = self._some(seed)
        if not len(ids):
            return
        columns = self._draw(rng, len(ids))
        chosen = {
            name: column for name, column in columns.items() if rng.random() < 0.6 or "rate" in name or name == "recall"
        }
        self.scheduler.update(ids, **chosen)
        old = [self.twin.pages[i] for i in ids.tolist()]
        kept = {"importance": [p.importance for p in old], "cost": [p.cost for p in old]}
        kept |= {"evidence": [p.evidence for p in old], "host": None if not self.hosts else [p.host for p in old]}
        pages = Pages(**(kept | chosen))
        for k, i in enumerate(ids.tolist()):
            new = self._copy(pages, k, old[k].last)
            new.host = columns["host"][k] if "host" in chosen else old[k].host
            for name in ("signals", "lease_end", "paused", "group", "components"):
                setattr(new, name, getattr(old[k], name))
            self.twin.pages[i] = new

    @rule(seed=SEEDS, back=st.sampled_from([0.0, 0.0, 0.0, 1.0]), dated=st.booleans())
    def signal(self, seed, back, dated):
        rng, ids = self._some(seed, 20, repeat=True)
        source, now = int(rng.integers(self.n_sources)) if len(ids) else 0, self.time - back
        changed_at = now - rng.choice([0.0, 1.0, 50.0], len(ids)) if dated else np.full(len(ids), np.inf)
        self.scheduler.signal(ids, now, source=source, changed_at=changed_at if dated else None)
        for i, about in zip(ids.tolist(), changed_at.tolist(), strict=True):
            self.twin.signal(i, now, source, about)

    @rule(
        seed=SEEDS, leased=st.booleans(), ago=st.sampled_from([None, None, 0.0, 0.5, 5.0, 200.0]), fails=st.booleans()
    )
    def record(self, seed, leased, ago, fails):
        pool = [i for i, page in sorted(self.twin.pages.items()) if page.lease_end > self.twin.now] if leased else None
        rng, ids = self._some(seed, 40, among=pool)
        here = max(self.time, self.twin.now)
        as_of = np.full(len(ids), here) if ago is None else here - ago * rng.random(len(ids))
        last = np.array([self.twin.pages[i].last for i in ids.tolist()])
        as_of = np.where(
            (as_of < here - self.lease) & (as_of >= last), here, as_of
        )  # signals are kept for a lease only
        failed = rng.random(len(ids)) < (0.3 if fails else 0.0)
        gone = rng.random(len(ids)) < (0.1 if fails else 0.0)
        flags = {"failed": failed, "gone": gone} if fails else {}
        self.scheduler.record(ids, self.time, as_of=None if ago is None else as_of, **flags)
        for i, when, miss, lost in zip(ids.tolist(), as_of.tolist(), failed.tolist(), gone.tolist(), strict=True):
            self.twin.record(i, when, miss, lost)

    @rule(seed=SEEDS)
    def release(self, seed):
        _, ids = self._some(seed)
        self.scheduler.release(ids, self.time)
        for i in ids.tolist():
            self.twin.pages[i].lease_end = -math.inf

    @rule(seed=SEEDS, resume=st.booleans())
    def pause_or_resume(self, seed, resume):
        _, ids = self._some(seed, 60 if resume else 6)
        (self.scheduler.resume if resume else self.scheduler.pause)(ids)
        for i in ids.tolist():
            page = self.twin.pages[i]
            page.paused = not resume
            page.lease_end = page.lease_end if resume else -math.inf

    @rule(step=st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 0.1, 0.3, 1.0, 3.0, 20.0, 500.0, 1e7, -1e-6, -2.0, -1e6]))
    def wait(self, step):
        self.time = max(self.time, self.twin.now) + step

    @rule(budget=st.sampled_from([0.01, 1.0, 1e4]))
    def change_budget(self, budget):
        self.scheduler.budget = budget

    @precondition(lambda self: self.hosts)
    @rule(k=st.integers(0, 9), ahead=st.sampled_from([-1.0, 0.0, 0.2, 5.0, math.inf]))
    def hold(self, k, ahead):
        host = self.hosts[k % len(self.hosts)]
        self.scheduler.hold(host, self.time + ahead)
        self.twin.host(host)["until"] = self.time + ahead

    @precondition(lambda self: self.hosts)
    @rule(k=st.integers(0, 9), spacing=st.sampled_from([None, 0.0, 0.1, 2.0]), limit=st.sampled_from([None, 1, 2, 5]))
    def limit(self, k, spacing, limit):
        host = self.hosts[k % len(self.hosts)]
        self.scheduler.host(host, spacing=spacing, concurrency=limit)
        self.twin.host(host)["spacing"] = self.twin.host(host)["spacing"] if spacing is None else spacing
        self.twin.host(host)["limit"] = self.twin.host(host)["limit"] if limit is None else limit

    @rule()
    def save_and_restore(self):
        self.scheduler = Scheduler.restore(self.scheduler.state())

    @rule(n=COUNTS)
    def pick(self, n):
        ids = self.scheduler.pick(self.time, n)
        self.twin.forward(self.time)
        self.follow(ids.tolist(), n)

    @rule()
    def ask_when(self):
        due = self.scheduler.next_at(self.time)
        self.twin.now = max(self.time, self.twin.now)
        values = self.values()
        ready = any(values[i] > 0 and self.twin.eligible(i) for i in self.twin.pages)
        assert due >= self.twin.now
        assert (due == self.twin.now) == ready, (due, self.twin.now, ready)

    # --- what must hold ----------------------------------------------------------------------------------------------

    def values(self):
        ids = sorted(self.twin.pages)
        value = np.array([self.twin.value(self.twin.pages[i], self.twin.now) for i in ids])
        np.testing.assert_allclose(self.scheduler.value(ids, self.twin.now), value, rtol=TOLERANCE, atol=1e-290)
        return dict(zip(ids, value.tolist(), strict=True))

    def follow(self, ids, n):
        """Check a pick against the brute-force one, page by page; ties may go either way."""
        values = self.values()
        assert len(ids) <= n
        for i in [*ids, None][:n]:
            free = [j for j in values if self.twin.eligible(j)]
            best = max((values[j] for j in free), default=0.0)
            if i is None:
                assert best <= 1e-290, f"nothing more was picked, but a page worth {best} is eligible"
                return
            assert i in free, f"{i} was picked and is not eligible"
            assert values[i] >= best * (1 - TOLERANCE), f"{i} was picked, worth {values[i]}; the best is worth {best}"
            self.twin.take(i)

    @invariant()
    def memory_is_sound(self):
        if hasattr(self, "scheduler"):
            self.scheduler._check()
            stats = self.scheduler.stats
            assert stats["pages"] == len(self.scheduler) == len(self.twin.pages)
            assert (stats["late_records"], stats["time_went_back"]) == (self.twin.n_late, self.twin.n_back)

    @invariant()
    def reading_changes_nothing(self):
        """One method per step, in turn, compared alone."""
        self.n_steps = getattr(self, "n_steps", -1) + 1
        if hasattr(self, "scheduler"):
            name = list(READS)[self.n_steps % len(READS)]
            assert_reading_changes_nothing(self.scheduler, max(self.time, self.twin.now), [name])

    @invariant()
    def a_pick_now_would_be_right(self):
        if hasattr(self, "scheduler") and self.twin.pages:
            leases = {i: page.lease_end for i, page in self.twin.pages.items()}
            until = {name: host["until"] for name, host in self.twin.hosts.items()}
            now, n_back = self.twin.now, self.twin.n_back
            other, self.scheduler = self.scheduler, Scheduler.restore(self.scheduler.state())
            self.pick(1 + len(self.twin.pages) // 4)
            self.scheduler._check()
            self.scheduler, self.twin.now, self.twin.n_back = other, now, n_back
            for i, end in leases.items():
                self.twin.pages[i].lease_end = end
            for name, host in self.twin.hosts.items():
                host["until"] = until.get(name, -math.inf)
