"""The timeline of a page: its crawls, what changed, and its signals in one list, the newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from recrawl.serve.crawls.view import kind_of
from recrawl.serve.dashboard.pages.contents import Change
from recrawl.store.protocol import Outcome

_MERGED = 3  # so many crawls in a row without a change are one entry
SIGNAL = "signal"


@dataclass(frozen=True)
class Entry:
    """One line of the timeline: a crawl, ``n`` crawls since a time that found nothing new, or a signal."""

    at: float
    kind: str  # one of KINDS, or signal
    detail: str = ""
    status: int | None = None
    took: float | None = None
    change: Change | None = None
    n: int = 1
    since: float | None = None


def timeline(
    crawls: Sequence[Outcome],
    changes: Iterable[Change],
    signals: Iterable[Entry] = (),
    source_name: Callable[[int], object] = str,
) -> list[Entry]:
    """The entries of a page; a change belongs to the crawl that found it, earlier signals to the crawl after them."""
    found = {change.after_at: change for change in changes}
    entries = [replace(entry_of(one, source_name), change=found.pop(one.began_at, None)) for one in crawls]
    entries += [Entry(at, "changed", change=change) for at, change in found.items()]
    entries = sorted([*entries, *signals], key=lambda one: one.at, reverse=True)
    return [one for quiet, run in groupby(entries, _is_quiet) for one in (_merged(list(run)) if quiet else run)]


def entry_of(one: Outcome, source_name: Callable[[int], object] = str) -> Entry:
    """A crawl as an entry."""
    detail = one.failure or (f"redirects to {one.final_url}" if one.final_url else "")
    if one.flapping:
        detail = "returned to content seen before"
    sources = [str(source_name(k)) for k in range(one.signalled.bit_length()) if one.signalled >> k & 1]
    if sources:
        detail = f"{detail}{', ' if detail else ''}after a signal of {' and of '.join(sources)}"
    return Entry(one.began_at, kind_of(one), detail, one.status, one.took)


def counts(crawls: Iterable[Outcome]) -> str:
    """Crawls in words: how many there were, and what they found.

    >>> counts([Outcome("u", 0.0, changed=True), Outcome("u", 1.0, changed=False), Outcome("u", 2.0, changed=False)])
    '3 crawls: 1 changed, 2 unchanged'
    """
    kinds = Counter(kind_of(one) for one in crawls)
    total = kinds.total()
    return f"{total} crawl{'s' if total != 1 else ''}: {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}"


def _is_quiet(one: Entry) -> bool:
    return one.kind == "unchanged" and not one.detail and one.change is None


def _merged(run: list[Entry]) -> list[Entry]:
    if len(run) < _MERGED:
        return run
    return [replace(run[0], n=len(run), since=run[-1].at, status=None, took=None)]
