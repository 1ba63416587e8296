"""A plain twin of how fast folders' clocks run, and of the weights of their terms; it imports nothing of recrawl."""

from __future__ import annotations

import math
from collections import defaultdict

HELD_BY, LONG_RUN, LEVEL_HELD_BY = 0.03, 200.0, 10.0


class Group:
    """Changes found and expected in a group, by bin; only the newest bins count."""

    def __init__(self, bins, of_all=None):
        self.all = of_all or self
        self.found, self.expected, self.newest, self.bins = defaultdict(float), defaultdict(float), None, bins
        self.outcomes = []  # bin of the crawl, changes found and expected in it

    def has(self, b):
        return self.newest is not None and self.newest - self.bins < b <= self.newest

    def activity(self, b, usual, level):
        if not self.has(b):
            return usual
        return (self.found[b] + HELD_BY * usual) / (level * self.expected[b] + HELD_BY)

    def level(self):
        """Changes found over expected, in the long run."""
        age = [math.exp(-(self.newest - b) / LONG_RUN) for b, _, _ in self.outcomes]
        found, expected = (sum(w * row[k] for w, row in zip(age, self.outcomes, strict=True)) for k in (1, 2))
        return (found + LEVEL_HELD_BY) / (expected + LEVEL_HELD_BY)


class FolderClock:
    """The clock of a folder by its groups, from the widest to the narrowest."""

    def __init__(self, groups, weight, scale):
        self.groups, self.weight = groups, weight
        self.width, self.memory, self.bins = scale

    def terms(self, newest):
        """By bin, the parts of the pace: real time, then each group without memory and with it."""
        bins = range(newest - self.bins + 1, newest + 1)
        columns = [[1.0] * self.bins]
        for group in self.groups:
            level, lasting = group.all.level(), [1.0]  # memory starts at the usual pace
            for b in bins:
                lasting.append(group.activity(b, self.ahead(lasting[-1]), level))
            columns += [[group.activity(b, 1.0, level) for b in bins], lasting[1:]]
        return [list(row) for row in zip(*columns, strict=True)]

    def ahead(self, activity):
        return 1.0 + math.exp(-self.width / self.memory) * (activity - 1.0)

    def paces(self, newest):
        """Paces of the bins up to the newest one, and the pace just after it."""
        found = self.terms(newest)
        paces = [sum(w * term for w, term in zip(self.weight, terms, strict=True)) for terms in found]
        last = [1.0] + [x for group in found[-1][2::2] for x in (1.0, self.ahead(group))]
        return paces, sum(w * term for w, term in zip(self.weight, last, strict=True))

    def inside(self, b, begin, end):
        return max(min(end, (b + 1) * self.width) - max(begin, b * self.width), 0.0)

    def add(self, now, begin, end, hazard, per_time):
        """A crawl: what it expected evenly, what it found in proportion to the pace."""
        newest = math.floor(now / self.width)
        paces, _ = self.paces(newest)
        for group in self.groups:
            group.newest = newest if group.newest is None else max(group.newest, newest)
            total = [newest, 0.0, 0.0]
            for b, pace in zip(range(newest - self.bins + 1, newest + 1), paces, strict=True):
                expected, found = hazard * self.inside(b, begin, end), per_time * pace * self.inside(b, begin, end)
                group.expected[b] += expected
                group.found[b] += found
                total[1:] = total[1] + found, total[2] + expected
            group.outcomes.append(total)


def log_chance(weights, terms, changed):
    """Logarithm of the probability of crawls' outcomes; each has expected changes by term, were that term all."""
    total = 0.0
    for expected, found in zip(terms, changed, strict=True):
        x = sum(w * e for w, e in zip(weights, expected, strict=True))
        total += math.log(-math.expm1(-x)) if found else -x
    return total


def fitted_weights(slope, curvature, first, held_by):
    """The largest slope·w − w·curvature·w/2 + Σ held_by·first·ln w − held_by·w, one weight after the other; sum 1."""
    weights = list(first)
    for _ in range(300):
        for t, start in enumerate(first):

            def rises(w, t=t, start=start):
                others = sum(curvature[t][k] * (w if k == t else weights[k]) for k in range(len(weights)))
                return slope[t] - others + held_by * (start / w - 1.0) > 0.0

            low, high = 1e-12, 1e6
            for _ in range(60):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if rises(middle) else (low, middle)
            weights[t] = low
    return [w / sum(weights) for w in weights]
