"""Verdict of a demo: the true freshness of a live crawl, the engine's estimate of it, and rivals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.demo.judge import Rival, as_dict
from recrawl.demo.web import PRIVATE, ServedRequest
from recrawl.engine.views.forecast import Forecast
from recrawl.simulate.tally import Run
from recrawl.simulate.trace import Trace
from recrawl.store.protocol import Outcome

Array = NDArray[np.float64]

_SLACK = 1e-3  # seconds: times since 1970 are rounded


class Renewal(NamedTuple):
    """A renewed copy: its page, the time of its answer, its version, and whether the crawler detected a change."""

    page: int
    at: float
    version: int
    changed: bool | None


class Sample(NamedTuple):
    """The engine's estimate of how fresh the copies were at a moment."""

    at: float
    freshness: float


class SecondHalf(NamedTuple):
    """The time from ``at`` to the end: what was forecast of it when it began, and the freshness that came true."""

    at: float
    forecast: Forecast
    freshness: float

    @property
    def holds(self) -> bool:
        """Whether the interval of the forecast holds what came true."""
        return self.forecast.low <= self.freshness <= self.forecast.high

    def as_dict(self) -> dict[str, Any]:
        """The figures, and whether the forecast holds them."""
        return {**asdict(self.forecast), "start": self.at, "true": self.freshness, "holds": self.holds}


@dataclass(frozen=True)
class Detection:
    """Errors of change detection: changes detected where there was none, and changes missed."""

    looks: int
    imagined: int
    missed: int


@dataclass(frozen=True, eq=False)
class WithoutSignals:
    """The same crawl at the same time with the same budget, by an engine that gets no signals and polls nothing."""

    run: Run
    requests: int  # that the server saw

    def as_dict(self) -> dict[str, Any]:
        """The figures."""
        return {"freshness": self.run.freshness, **self.run.as_dict(), "requests": self.requests}


@dataclass(frozen=True)
class SourceCounts:
    """A site that announces changes: how, the signals that were taken in, and what was learned of them at the end.

    ``crawls`` were made after signals, and found ``changes``. ``precision`` is the learned share of signals with a
    change behind them (None: nothing learned), ``trust`` whether they bring crawls forward, in words.
    """

    site: str
    says: str
    signals: int
    crawls: int = 0
    changes: int = 0
    precision: float | None = None
    trust: str = "not proven"

    @property
    def used(self) -> bool:
        """Whether the signals bring crawls forward."""
        return self.trust.startswith("counts")


@dataclass(frozen=True, eq=False)
class Verdict:
    """The figures of one demo."""

    seconds: float
    budget: float
    seed: int
    trace: Trace
    truth: Run
    samples: Sequence[Sample]
    half: SecondHalf | None  # None if the demo was ended before
    rivals: Sequence[Rival]
    detection: Detection
    requests: int  # that the server saw while it counted, robots.txt included
    failures: int
    not_modified: int
    forbidden: int
    without_copy: int
    polls: int = 0  # requests for sitemaps and feeds, which count as all others
    sources: Sequence[SourceCounts] = ()
    without_signals: WithoutSignals | None = None

    @property
    def changes(self) -> NDArray[np.int64]:
        """Changes of each page while it counted."""
        page = np.repeat(np.arange(len(self.trace)), self.trace.n_changes)
        return np.bincount(page[self.trace.changed_at > self.trace.start], minlength=len(self.trace))

    @property
    def estimate(self) -> float:
        """The engine's own estimate, over the time that counted."""
        return float(np.mean([sample.freshness for sample in self.samples])) if self.samples else float("nan")

    @property
    def expected(self) -> float:
        """The engine's own estimate over the second half."""
        half = [sample.freshness for sample in self.samples if self.half is not None and sample.at > self.half.at]
        return float(np.mean(half)) if half else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """All figures; the series by second are in ``over_time``."""
        plain = (
            "seconds",
            "budget",
            "seed",
            "requests",
            "polls",
            "failures",
            "not_modified",
            "forbidden",
            "without_copy",
        )
        series = {"recrawl": self.truth, **{rival.name: rival.run for rival in self.rivals}}
        without = self.without_signals
        if without is not None:
            series["without signals"] = without.run
        return {
            **{name: getattr(self, name) for name in plain},
            "pages": len(self.trace),
            "changes": int(self.changes.sum()),
            "freshness": self.truth.freshness,
            "freshness_second_half": None if self.half is None else self.half.freshness,
            **self.truth.as_dict(),
            "requests": self.requests,
            "estimate": None if math.isnan(self.estimate) else self.estimate,
            "estimate_second_half": None if math.isnan(self.expected) else self.expected,
            "forecast": None if self.half is None else self.half.as_dict(),
            "detection": asdict(self.detection),
            "sources": [asdict(source) for source in self.sources],
            "without_signals": None if without is None else without.as_dict(),
            "rivals": [as_dict(rival) for rival in self.rivals],
            "over_time": {name: run.window_freshness.round(6).tolist() for name, run in series.items()},
        }


def second_half(run: Run) -> float:
    """The mean freshness of the second half of a run's bins of time; NaN if there are fewer than two."""
    values = run.window_freshness
    return float(np.mean(values[len(values) // 2 :])) if len(values) > 1 else math.nan


def renewals(
    log: Iterable[ServedRequest], outcomes: Iterable[Outcome], page_of: dict[str, int], start: float
) -> list[Renewal]:
    """The renewed copies: answers of the server that became copies of the crawler, in the order of their times.

    ``start`` is when the server's time began, by the crawler's clock. A copy is as of the moment its answer was made.
    """
    shown: dict[int, list[ServedRequest]] = {}
    for request in log:
        if request.version >= 0:
            shown.setdefault(request.page, []).append(request)
    found = []
    for outcome in outcomes:
        if not outcome.fetched or outcome.url not in page_of:
            continue
        page, began = page_of[outcome.url], outcome.began_at - start
        fitting = [
            request for request in shown.get(page, ()) if began - _SLACK <= request.at <= began + outcome.took + _SLACK
        ]
        if not fitting:
            raise AssertionError(f"{outcome.url}: a copy that the server never gave")
        last = fitting[-1]
        found.append(Renewal(page, last.at, last.version, outcome.changed))
    return sorted(found, key=lambda renewal: renewal.at)


def detection(renewed: Iterable[Renewal]) -> Detection:
    """Count the errors of change detection.

    >>> detection([Renewal(0, 1.0, 0, None), Renewal(0, 2.0, 3, True), Renewal(0, 3.0, 3, True)])
    Detection(looks=2, imagined=1, missed=0)
    """
    last: dict[int, int] = {}
    looks = imagined = missed = 0
    for renewal in renewed:
        before = last.get(renewal.page)
        last[renewal.page] = renewal.version
        if before is None or renewal.changed is None:
            continue
        looks += 1
        imagined += renewal.changed and before == renewal.version
        missed += not renewal.changed and before != renewal.version
    return Detection(looks, imagined, missed)


def forbidden(log: Iterable[ServedRequest]) -> int:
    """How many requests robots.txt forbids."""
    return sum(request.path.startswith(PRIVATE) for request in log)


def copied_at(renewed: Iterable[Renewal], n: int) -> Array:
    """When the copies of n pages were last renewed; −infinity: never."""
    copied = np.full(n, -math.inf)
    for renewal in renewed:
        copied[renewal.page] = renewal.at
    return copied
