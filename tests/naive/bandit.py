"""Naive twins of strategies and bandits: plain Python, importing nothing from the package."""

import math


def proportional(weight, budget):
    """Crawl probabilities in proportion to a weight, at most 1; what is cut off goes to the others, again and again."""
    rate = [0.0] * len(weight)
    free = {i for i, w in enumerate(weight) if w > 0}
    left = min(budget, len(free))
    while free:
        total = math.fsum(weight[i] for i in free)
        over = {i for i in free if left * weight[i] >= total * (1 - 1e-15)}
        if not over:
            for i in free:
                rate[i] = left * weight[i] / total
            return rate
        for i in over:
            rate[i] = 1.0
        left -= len(over)
        free -= over
    return rate


def freshness(rate, change, click):
    """Σ μ·p/(p + Δ − pΔ) over pages (Azar et al. 2018, problem 1); a page that never changes is always fresh."""
    total = 0.0
    for p, d, m in zip(rate, change, click, strict=True):
        total += m * (1.0 if d == 0 else p / (p + d - p * d))
    return total


class NaiveExp3:
    """Weights as they are printed; only for few steps."""

    def __init__(self, n, exploration, share=None):
        self.weight = [1.0] * n
        self.exploration, self.share = exploration, share

    def probability(self):
        n, total = len(self.weight), sum(self.weight)
        return [(1 - self.exploration) * w / total + self.exploration / n for w in self.weight]

    def learn(self, arm, reward):
        n, total, q = len(self.weight), sum(self.weight), self.probability()[arm]
        self.weight[arm] *= math.exp(self.exploration / n * reward / q)
        if self.share is not None:
            self.weight = [w + math.e * self.share / n * total for w in self.weight]


class NaiveLosses:
    """EXP3-IX and EXP3++: estimated losses as they are defined."""

    def __init__(self, n, gaps):
        self.loss, self.plays, self.seen, self.gaps, self.t = [0.0] * n, [0] * n, [0.0] * n, gaps, 1

    def eta(self):
        n = len(self.loss)
        return math.sqrt(math.log(n) / (n * self.t)) * (0.5 if self.gaps else 1.0)

    def probability(self):
        n, eta, t = len(self.loss), self.eta(), self.t
        weight = [math.exp(-eta * (loss - min(self.loss))) for loss in self.loss]
        q = [w / sum(weight) for w in weight]
        if not self.gaps:
            return q
        low, high = [], []
        for plays, seen in zip(self.plays, self.seen, strict=True):
            if plays == 0:
                low.append(0.0)
                high.append(1.0)
                continue
            width = math.sqrt(3 * math.log(t * n ** (1 / 3)) / (2 * plays))
            low.append(max(0.0, seen / plays - width))
            high.append(min(1.0, seen / plays + width))
        explore = []
        for each in low:
            gap = max(0.0, each - min(high))
            limit = math.inf if gap == 0 else 256 * math.log(t) / (t * gap**2)
            explore.append(min(1 / (2 * n), eta, limit))
        return [(1 - sum(explore)) * p + e for p, e in zip(q, explore, strict=True)]

    def learn(self, arm, reward):
        q = self.probability()[arm]
        self.loss[arm] += (1 - reward) / (q if self.gaps else q + self.eta() / 2)
        self.plays[arm] += 1
        self.seen[arm] += 1 - reward
        self.t += 1
