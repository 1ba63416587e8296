"""Worlds in which signals are worth something, nothing, or turn: what was true, and what knowing it is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model import Pages
from recrawl.simulate import Trace, world
from recrawl.simulate.trace import Signals
from recrawl.simulate.worlds.events import poisson_events

Array = NDArray[np.float64]

KINDS = ("noisy", "proof", "useless", "none", "liar", "mixed", "turned", "two")
N, DAYS, PER_HOST = 1000, 200.0, 20


@dataclass(frozen=True)
class Quality:
    """Per page and source: the share of changes that it tells, and signals without a change per day."""

    recall: Array
    false_rate: Array

    def pages(self, rate: Array, importance: Array) -> Pages:
        """As parameters of a scheduler that takes each change to be signalled by one source at most.

        A change that several sources tell counts for none of them: any one of them is enough to crawl the page.
        """
        n_sources = self.recall.shape[1]
        missed = rate * np.prod(1.0 - self.recall, axis=1)
        others = [np.prod(np.delete(1.0 - self.recall, k, axis=1), axis=1) for k in range(n_sources)]
        alone = np.stack([rate * self.recall[:, k] * others[k] for k in range(n_sources)], axis=1)
        total = np.maximum(missed + alone.sum(axis=1), 1e-9)
        recall, false_rate = alone / total[:, None], self.false_rate
        if n_sources == 1:
            recall, false_rate = recall[:, 0], false_rate[:, 0]
        return Pages(total, importance, recall, false_rate)


@dataclass(frozen=True)
class Drawn:
    """A trace and the quality of its sources, before and after half of the time."""

    trace: Trace
    rate: Array
    before: Quality
    after: Quality


def draw(kind: str, seed: int, delay: float = 0.0) -> Drawn:
    """One draw of a world; with ``delay``, signals come so many days after their changes, on average."""
    rng = np.random.default_rng(seed)
    if kind in ("none", "proof", "noisy"):
        late: dict[str, Any] = {"delay": partial(_delays, delay)} if delay else {}
        trace = world("uniform", N, **{**late, "signals": kind}).draw(DAYS, rng)
        assert trace.pages is not None
        quality = Quality(*(np.reshape(c, (N, -1)) for c in (trace.pages.recall, trace.pages.false_rate)))
        return Drawn(_named(trace, np.zeros(N, np.int64)), np.asarray(trace.pages.change_rate), quality, quality)
    rate, importance, host = rng.random(N), rng.random(N), np.arange(N) // PER_HOST
    before = _quality(kind, rate, host, rng)
    after = _turned(kind, before, rate, host, rng)
    trace = _trace(rate, importance, (before, after), rng)
    one_host = kind in ("useless", "liar")
    return Drawn(_named(trace, np.zeros(N, np.int64) if one_host else host), rate, before, after)


def _delays(mean: float, rng: np.random.Generator, n: int) -> Array:
    return rng.exponential(mean, n)


def _quality(kind: str, rate: Array, host: NDArray[np.int64], rng: np.random.Generator) -> Quality:
    if kind == "useless":
        return Quality(np.zeros((N, 1)), rng.uniform(0.1, 0.6, (N, 1)))
    if kind == "liar":
        return Quality(rng.uniform(0.7, 1.0, (N, 1)), rng.uniform(0.02, 0.1, (N, 1)))
    sources = [_by_host(rate, host, rng) for _ in range(2 if kind == "two" else 1)]
    return Quality(*(np.stack(column, axis=1) for column in zip(*sources, strict=True)))


def _by_host(rate: Array, host: NDArray[np.int64], rng: np.random.Generator) -> tuple[Array, Array]:
    """A fifth of the hosts is honest, two fifths are poor, the others useless: (recall, false rate) of each page."""
    n = int(host.max()) + 1
    kinds = rng.permutation(np.repeat([0, 1, 2], [n // 5, 2 * n // 5, n - n // 5 - 2 * n // 5]))[host]
    recall, precision = np.array([0.9, 0.5, 0.0])[kinds], np.array([0.9, 0.2, 1.0])[kinds]
    return recall, np.where(kinds < 2, recall * rate * (1.0 - precision) / precision, rng.uniform(0.1, 0.6, len(rate)))


def _turned(kind: str, before: Quality, rate: Array, host: NDArray[np.int64], rng: np.random.Generator) -> Quality:
    """The source (liar) or that of half of the hosts (turned) goes on at the same rate, but at random."""
    if kind not in ("liar", "turned"):
        return before
    lies = np.ones(N, np.bool_) if kind == "liar" else (rng.random(host.max() + 1) < 0.5)[host]
    at_random = before.false_rate + before.recall * rate[:, None]
    return Quality(np.where(lies[:, None], 0.0, before.recall), np.where(lies[:, None], at_random, before.false_rate))


def _trace(rate: Array, importance: Array, halves: tuple[Quality, Quality], rng: np.random.Generator) -> Trace:
    changes = poisson_events(rate, 0.0, DAYS, rng)
    at, page, source = [], [], []
    for half, quality in enumerate(halves):
        begin, end = half * DAYS / 2, (half + 1) * DAYS / 2
        inside = (changes.at >= begin) & (changes.at < end)
        for k in range(quality.recall.shape[1]):
            true = inside & (rng.random(len(changes.at)) < quality.recall[changes.page, k])
            false = poisson_events(quality.false_rate[:, k], begin, end, rng)
            at += [changes.at[true], false.at]
            page += [changes.page[true], false.page]
            source.append(np.full(int(true.sum()) + len(false.at), k))
    signals = Signals.of(*(np.concatenate(column) for column in (at, page, source)))
    pages = halves[0].pages(rate, importance)
    return Trace(0.0, DAYS, changes.offset, changes.at, importance=importance, pages=pages, signals=signals)


def _named(trace: Trace, host: NDArray[np.int64]) -> Trace:
    urls = np.array([f"https://host{h}.example/{i}" for i, h in enumerate(host.tolist())], dtype=object)
    return replace(trace, url=urls)
