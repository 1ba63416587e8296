"""Slow, plain twins of what the schedule part computes; they import nothing from the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from naive.clocks import Clock
from naive.float_value import OVERDUE, noisy, plain
from naive.mixture import mixture


def proportional(weight: Sequence[float], budget: float, ceiling: Sequence[float]) -> list[float]:
    """Rates in proportion to weight, by repeated passes: who would exceed the ceiling gets it, the rest go on."""
    rate = [0.0] * len(weight)
    open_pages = [i for i, w in enumerate(weight) if w > 0]
    left = budget
    while open_pages:
        total = sum(weight[i] for i in open_pages)
        over = [i for i in open_pages if left * weight[i] / total >= ceiling[i]]
        if not over:
            for i in open_pages:
                rate[i] = left * weight[i] / total
            break
        for i in over:
            rate[i] = ceiling[i]
            left -= ceiling[i]
        open_pages = [i for i in open_pages if i not in over]
        if left <= 0:
            break
    return rate


def deadline_schedule(rates: Sequence[Fraction], slots: Sequence[Fraction]) -> list[int | None]:
    """Which page each slot goes to: of the crawls released by then, the one due first (lowest page)."""
    done = [0] * len(rates)
    order: list[int | None] = []
    for now in slots:
        released = [k for k, rate in enumerate(rates) if rate > 0 and done[k] / rate <= now]
        best = min(released, key=lambda k: ((done[k] + 1) / rates[k], k), default=None)
        if best is not None:
            done[best] += 1
        order.append(best)
    return order


def integral(times: Sequence[Fraction], budgets: Sequence[Fraction], first: Fraction, last: Fraction) -> Fraction:
    """∫ budget dt from first to last, where budgets[i] holds from times[i] on."""
    total = Fraction(0)
    for i, budget in enumerate(budgets):
        begin = max(first, times[i])
        end = min(last, times[i + 1]) if i + 1 < len(times) else last
        if end > begin:
            total += budget * (end - begin)
    return total


def worst_window(
    starts: Sequence[Fraction],
    times: Sequence[Fraction],
    budgets: Sequence[Fraction],
    catch_up: Fraction = Fraction(0),
) -> Fraction:
    """The largest excess, over all windows, of starts over the budget's integral + catch_up·(its maximum there)."""
    worst = Fraction(-1)
    for i, first in enumerate(starts):
        for j in range(i, len(starts)):
            last = starts[j]
            inside = [
                b for k, b in enumerate(budgets) if times[k] <= last and (k + 1 == len(times) or times[k + 1] >= first)
            ]
            allowed = integral(times, budgets, first, last) + catch_up * max(inside)
            worst = max(worst, j - i + 1 - allowed)
    return worst


def equal_slope_split(curves: Sequence[tuple[float, float]], budget: float) -> list[float]:
    """Budgets b_i = (a_i/Λ)^(1/p_i) of thresholds Λ = a_i·b_i^(−p_i) that are equal and add up, by bisection."""
    low, high = 1e-30, 1e30
    for _ in range(400):
        middle = (low * high) ** 0.5
        if sum((a / middle) ** (1 / p) for a, p in curves) > budget:
            low = middle
        else:
            high = middle
    return [(a / high) ** (1 / p) for a, p in curves]


class Copy:
    """One page of `BruteForce`: parameters (recall and false_rate per source), last fetch, signals, lease, pause."""

    def __init__(self, change_rate, importance, recall, false_rate, host, cost, evidence, last):
        self.change_rate, self.importance, self.recall, self.false_rate = change_rate, importance, recall, false_rate
        self.host, self.cost, self.evidence, self.last = host, cost, evidence, last
        self.signals: list[list[float]] = []  # time, weight, 1 while a late record may still ask for it
        self.lease_end = -math.inf
        self.paused = False
        self.group = -1
        self.components: list[list[float]] = []  # none: the parameters hold


class BruteForce:
    """The scheduler by definition: every value computed at every pick, the largest eligible one taken, n times."""

    def __init__(
        self, policy="signals", objective="freshness", lease=300.0, window=0.0, delay=None, floor=0.0, start=0.0
    ):
        self.policy, self.objective, self.lease, self.window = policy, objective, lease, window
        self.delay = [] if delay is None else list(zip(*delay, strict=True))
        self.floor, self.now = floor, start
        self.terms = float(policy[-1]) if policy.startswith("approx-") else math.inf
        self.pages: dict[int, Copy] = {}
        self.clocks: dict[int, Clock] = {}
        self.hosts: dict[object, dict[str, float]] = {}
        self.n_late = self.n_back = 0

    def host(self, name):
        return self.hosts.setdefault(name, {"until": -math.inf, "spacing": 0.0, "limit": math.inf})

    def forward(self, now):
        self.n_back += now < self.now
        self.now = max(now, self.now)

    def _source(self, page):
        """(missed rate, signal rate, weight) of all sources together, as the policy believes them."""
        silent = math.prod(1 - r for r in page.recall)
        true_rate = page.recall[0] * page.change_rate if len(page.recall) == 1 else (1 - silent) * page.change_rate
        false_rate = sum(page.false_rate)
        if self.policy == "no-signals":
            return page.change_rate, 0.0, 0.0
        if self.policy == "trusting-plus":
            caught = true_rate / page.change_rate
            if not (true_rate > 0.7 * (true_rate + false_rate) and caught > 0.6):
                return page.change_rate, 0.0, 0.0
        if self.policy.startswith("trusting"):
            false_rate = 0.0
        return silent * page.change_rate, true_rate + false_rate, _weight(true_rate, false_rate)

    def _lone_weight(self, page, source):
        if self.policy.startswith("trusting"):
            return math.inf if page.recall[source] > 0 else 0.0
        others = math.prod(1 - r for k, r in enumerate(page.recall) if k != source)
        return _weight(page.change_rate * page.recall[source] * others, page.false_rate[source])

    def value(self, page, now):
        elapsed = max(now - page.last, 0.0)
        if self.floor > 0 and elapsed * self.floor >= 1:
            return OVERDUE * elapsed * self.floor
        if page.importance == 0 or page.change_rate == 0:
            return 0.0
        alpha, gamma, kappa = self._source(page)
        time = self.clocks[page.group].between(page.last, now) if page.group in self.clocks else elapsed
        if page.components:
            unit = mixture(page.components, time)
        elif not (gamma > 0 and kappa > 0):
            unit = plain(self.objective, page.change_rate, page.evidence, time)
        elif self.objective == "harmonic":
            unit = len(page.signals) / page.change_rate
        else:
            late = sum(share * min(elapsed, delay) for delay, share in self.delay)
            offset = alpha * time + (page.change_rate - alpha) * late
            if len(page.recall) > 1 or self.delay:
                heard = sum(signal[1] for signal in page.signals)
            else:
                heard = len(page.signals) * kappa if page.signals else 0.0
            unit = noisy(alpha, gamma, kappa, page.change_rate, offset, heard, self.terms)
        return page.importance * unit / page.cost

    def signal(self, i, now, source, changed_at):
        page, now = self.pages[i], max(now, self.now)
        if changed_at <= page.last or now - page.last < self.window:
            return
        weight = self._lone_weight(page, source)
        if self.delay:
            within = sum(share for delay, share in self.delay if delay <= now - page.last)
            weight = weight if within >= 1 - 1e-12 else -math.log1p(within * math.expm1(-weight))
        page.signals.append([now, weight, 1.0])
        for old in page.signals:
            if old[0] < now - self.lease:
                old[2] = 0.0

    def record(self, i, as_of, failed, gone):
        page = self.pages[i]
        if not failed and as_of < page.last:
            self.n_late += 1
            return
        page.lease_end = -math.inf
        page.paused = page.paused or gone
        if not failed:
            page.last = as_of
            page.signals = [signal for signal in page.signals if signal[0] > as_of and signal[2]]

    def eligible(self, i):
        page = self.pages[i]
        if page.paused or page.lease_end > self.now:
            return False
        if page.host is None:
            return True
        host = self.host(page.host)
        running = sum(other.host == page.host and other.lease_end > self.now for other in self.pages.values())
        return host["until"] <= self.now and running < host["limit"]

    def take(self, i):
        """Page i is picked now."""
        page = self.pages[i]
        page.lease_end = self.now + self.lease
        if page.host is not None:
            host = self.host(page.host)
            if host["spacing"] > 0:
                host["until"] = max(host["until"], self.now + host["spacing"])


def _weight(true_rate, false_rate):
    if true_rate <= 0:
        return 0.0
    return math.inf if false_rate <= 0 else math.log1p(true_rate / false_rate)
