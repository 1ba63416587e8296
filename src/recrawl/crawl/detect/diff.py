"""A readable difference of two texts, in lines; its time is bounded whatever the texts.

Lines are compared by the greedy algorithm of E. Myers, "An O(ND) difference algorithm and its variations"
(Algorithmica 1, 1986). Texts that differ in more than ``_MOST_EDITS`` lines count as wholly replaced between their
equal beginnings and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

REMOVED, ADDED, SAME, GAP = "-", "+", " ", "…"
_LONG = 160  # characters of a line that is split into sentences
_LONGEST = 400  # characters of a line
_MOST_EDITS = 600  # removed and added lines that are looked for
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+")
_WORDS = re.compile(rf"\S.{{0,{_LONGEST - 1}}}(?=\s|$)|\S{{{_LONGEST}}}|\S+")


class DiffLine(NamedTuple):
    """One line of a difference: ``sign`` is ``-`` removed, ``+`` added, blank in both, ``…`` lines left out."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between two texts; ``left_out`` changed lines are not among the lines."""

    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    left_out: int = 0

    def as_text(self) -> str:
        """The lines with their signs; at the end, how many were left out."""
        found = [f"{line.sign} {line.text}".rstrip() for line in self.lines]
        return "\n".join([*found, f"… {self.left_out} further changed lines"] if self.left_out else found)


def diff(old: str, new: str, *, context: int = 1, most: int = 60) -> Diff:
    """The difference of two texts, with lines of context; at most so many changed lines are shown.

    >>> print(diff("Prices\\nTea 3.00\\nMilk 1.00\\n", "Prices\\nTea 3.20\\nMilk 1.00\\n").as_text())
      Prices
    - Tea 3.00
    + Tea 3.20
      Milk 1.00
    """
    lines = list(_edits(_lines(old), _lines(new)))
    added, removed = (sum(line.sign == sign for line in lines) for sign in (ADDED, REMOVED))
    changed_at = [k for k, line in enumerate(lines) if line.sign != SAME]
    shown, left_out = changed_at[:most], len(changed_at[most:])
    found, end = list[DiffLine](), 0  # lines before end are shown, or left out
    stop = changed_at[most] if left_out else len(lines)
    for k in shown:
        if k >= end:
            first = max(k - context, end)
            found += [DiffLine(GAP, "")] if first > end else []
            end = first
        last = min(k + context + 1, stop)
        found += lines[end:last]
        end = max(end, last)
    if shown and end < len(lines) and not left_out:
        found.append(DiffLine(GAP, ""))
    return Diff(tuple(found), added, removed, left_out)


def _lines(text: str) -> list[str]:
    """The lines of a text without blank ones; long ones are split into sentences, then between words."""
    found: list[str] = []
    for line in text.splitlines():
        stripped = " ".join(line.split())
        for part in _SENTENCE.split(stripped) if len(stripped) > _LONG else [stripped]:
            found += [part] if len(part) <= _LONGEST else _WORDS.findall(part)
    return [line for line in found if line]


def _edits(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """All lines of two texts, each with its sign."""
    head = _common(old, new)
    tail = min(_common(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    yield from (DiffLine(SAME, line) for line in old[:head])
    yield from _middle(old[head : len(old) - tail], new[head : len(new) - tail])
    yield from (DiffLine(SAME, line) for line in old[len(old) - tail :])


def _common(one: Sequence[str], two: Sequence[str]) -> int:
    """How many lines two texts have in common at their beginnings."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(one), len(two)))


def _middle(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """All lines of two texts, in each place the removed ones before the added ones."""
    trace = _trace(old, new)
    if trace is None:
        lines = [*(DiffLine(REMOVED, line) for line in old), *(DiffLine(ADDED, line) for line in new)]
    else:
        lines = _backward(old, new, trace)[::-1]
    for _, run in groupby(lines, key=lambda line: line.sign == SAME):
        yield from sorted(run, key=lambda line: line.sign == ADDED)


def _trace(old: Sequence[str], new: Sequence[str]) -> list[dict[int, int]] | None:
    """Per number of edits, how far each diagonal reaches before them; None if there are too many edits."""
    reach, trace = {1: 0}, list[dict[int, int]]()
    for d in range(_MOST_EDITS + 1):
        trace.append(dict(reach))
        for k in range(-d, d + 1, 2):
            x = reach[k + 1] if _adds(reach, k, d) else reach[k - 1] + 1
            while x < len(old) and x - k < len(new) and old[x] == new[x - k]:
                x += 1
            reach[k] = x
            if x >= len(old) and x - k >= len(new):
                return trace
    return None


def _adds(reach: dict[int, int], k: int, d: int) -> bool:
    """Whether the last of d edits on a diagonal adds a line; else it removes one."""
    return k == -d or (k != d and reach[k - 1] < reach[k + 1])


def _backward(old: Sequence[str], new: Sequence[str], trace: list[dict[int, int]]) -> list[DiffLine]:
    """The lines from the last to the first, along the shortest path."""
    found, x, y = list[DiffLine](), len(old), len(new)
    for d, reach in reversed(list(enumerate(trace))):
        k = x - y
        added = _adds(reach, k, d)
        before = k + 1 if added else k - 1
        px, py = reach[before], reach[before] - before
        while x > px and y > py:
            x, y = x - 1, y - 1
            found.append(DiffLine(SAME, old[x]))
        if d > 0:
            found.append(DiffLine(ADDED, new[py]) if added else DiffLine(REMOVED, old[px]))
        x, y = px, py
    return found
