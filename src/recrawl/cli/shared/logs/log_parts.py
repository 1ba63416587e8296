"""Crawl logs in several files: all rows of a page are in one of them. Each is read when it is asked, and forgotten.

Priors are fitted to a sample of all parts, as they are to a sample of a large log. Everything else is sums of parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recrawl.cli.shared.logs.crawl_log import CrawlLog, read_crawl_log
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.estimate import GroupPriors, Observations, fit_group_priors

SAMPLE = 20_000  # pages of all parts together that priors are fitted to


@dataclass(frozen=True)
class LogPart:
    """One file of a log, and which of its pages share a prior. ``until`` is the end of all parts, once it is known."""

    path: Path
    options: LogOptions
    group: str
    until: float | None = None

    def log(self) -> CrawlLog:
        """The rows of the file."""
        found = read_crawl_log(self.path, self.options)
        return found if self.until is None else replace(found, left_at=np.where(found.gone, found.left_at, self.until))

    def labels(self, log: CrawlLog) -> list[str]:
        """The group of every page."""
        return group_labels(log, self.group)


def group_labels(log: CrawlLog, group: str) -> list[str]:
    """The group of every page of a log: its host, its folder, or one for all."""
    return {"host": log.hosts, "folder": log.folders, "all": ["all"] * len(log.urls)}[group]


@dataclass(frozen=True)
class Sample:
    """Evenly spaced pages of a part, with their groups; and the times of its first and last row."""

    observations: Observations
    labels: list[str]
    began: float
    ended: float


def sample_of(most: int, part: LogPart) -> Sample:
    """At most so many pages of a part."""
    log = part.log()
    n = len(log.urls)
    some = np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)
    seen, labels = log.observations[some], part.labels(log)
    plain = Observations(seen.offset, seen.interval, seen.changed)
    return Sample(plain, [labels[k] for k in some], float(log.rows.time.min()), float(log.rows.time.max()))


def fitted(samples: Sequence[Sample]) -> GroupPriors:
    """Priors of the groups of all parts."""
    seen = [one.observations for one in samples]
    offset = np.concatenate([[0], np.cumsum(np.concatenate([one.n_crawls for one in seen]))])
    joined = Observations(
        offset, np.concatenate([one.interval for one in seen]), np.concatenate([one.changed for one in seen])
    )
    return fit_group_priors(joined, [label for one in samples for label in one.labels])
