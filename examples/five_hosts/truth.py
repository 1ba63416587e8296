"""What the server's log proves: requests, gaps, budget, changes and the true freshness of the copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from serve import Request
from world import PRIVATE, Page, World

Log = Sequence[Request]


def least_gap(log: Log, host: str) -> float:
    """Least time from an answer of a host to the next request, in seconds."""
    there = sorted((one for one in log if one.host == host), key=lambda one: one.came_at)
    return min((after.came_at - before.answered_at for before, after in pairwise(there)), default=float("inf"))


def fullest_window(log: Log, budget: float) -> float:
    """Most requests of any W seconds, as a share of what the budget allows in them: budget · (W + 1)."""
    at = sorted(one.came_at for one in log)
    return max(
        ((j - i + 1) / (budget * (at[j] - at[i] + 1.0)) for i in range(len(at)) for j in range(i, len(at))), default=0.0
    )


def disallowed(log: Log) -> int:
    """Requests that robots.txt disallows."""
    return sum(one.path.startswith(PRIVATE) for one in log)


def by_page(log: Iterable[Request]) -> dict[tuple[str, str], list[Request]]:
    """The answers that showed a page's state, by host and path, in order."""
    found = defaultdict[tuple[str, str], list[Request]](list)
    for one in log:
        if one.state:
            found[one.host, one.path].append(one)
    return found


def first_copies(log: Log) -> int:
    """Pages that answered with content at least once."""
    return sum(any(one.status == 200 for one in answers) for answers in by_page(log).values())


def shown_changes(log: Log) -> int:
    """Answers with another version of a page than the answer before."""
    looks = ([one.state for one in answers if one.status in (200, 304)] for answers in by_page(log).values())
    return sum(before != after for states in looks for before, after in pairwise(states))


def made_changes(world: World, begin: float, end: float) -> int:
    """Changes of all pages in a span of time."""
    return sum(page.version(end) - page.version(begin) for page in world.pages if page.odd != "private")


def _spans(page: Page, answers: list[Request], end: float) -> list[tuple[float, float, float]]:
    """When a page's state was known: from, until when it was the present one, to. To be gone is a state."""
    times = [*(one.answered_at for one in answers), end]
    return [
        (begin, min(page.until(begin), stop) if one.state == page.state(begin) else begin, stop)
        for one, (begin, stop) in zip(answers, pairwise(times), strict=True)
        if begin < end
    ]


def freshness_at(world: World, log: Log, at: float) -> float:
    """True share of pages with a fresh copy at a time, by importance; a page that never answered has none."""
    answers = by_page(one for one in log if one.answered_at <= at)
    fresh = total = 0.0
    for page in world.pages:
        spans = _spans(page, answers[page.host.address, page.path], at)
        fresh += page.host.importance * bool(spans and spans[-1][1] >= at)
        total += page.host.importance
    return fresh / total


def mean_freshness(world: World, log: Log, begin: float, end: float, *, from_first_copy: bool = False) -> float:
    """True freshness over a span of time; ``from_first_copy`` leaves out the time before each page's first copy."""
    answers, fresh, total = by_page(log), 0.0, 0.0
    for page in world.pages:
        spans = [one for one in _spans(page, answers[page.host.address, page.path], end) if one[2] > begin]
        fresh += page.host.importance * sum(max(good, begin) - max(start, begin) for start, good, _ in spans)
        start = max(spans[0][0], begin) if spans else end
        total += page.host.importance * (end - (start if from_first_copy else begin))
    return fresh / total if total else float("nan")
