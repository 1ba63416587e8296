"""ContextualBandit: a bandit for each class of pages, so that each class can prefer a strategy of its own."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError, PolicyError, unknown
from recrawl.schedule.bandits.arms import no_ids
from recrawl.schedule.bandits.bandit import Bandit
from recrawl.schedule.bandits.view import BanditView
from recrawl.schedule.outcomes import Outcomes, ended_of
from recrawl.schedule.table import Ids, Table, column_of, count_of, ids_of, positive
from recrawl.schedule.table import time_of as instant

_ALIVE, _REMOVED = 0, 2
_SPLITS = ("pages", "importance")
Make = Callable[[str], Bandit]


class ContextualBandit:
    """A ``Policy`` that keeps one bandit per class of pages and divides the budget between the classes.

    ``make(label)`` makes the bandit of a class when its first page comes; ``label`` in ``add`` says the class of each
    page (default: all the same). A crawl goes to the class that is furthest behind its share of all crawls picked so
    far: its part of the ``pages`` or of the ``importance``, or the number that a mapping from labels gives. What a
    class cannot use goes to the others, without being owed later. With a ``budget``, the bandit of each class is given
    its share of it.

    >>> from recrawl import Pages
    >>> from recrawl.schedule import RatePolicy
    >>> policy = ContextualBandit(lambda label: Bandit({"even": RatePolicy(budget=9.0)}, step=1.0))
    >>> ids = policy.add(Pages([0.1] * 4), 0.0, label=["shop", "shop", "news", "shop"])
    >>> policy.pick(0.0, 4).tolist(), policy.shares()
    ([0, 1, 3, 2], {'shop': 0.75, 'news': 0.25})
    """

    def __init__(
        self, make: Make | None, *, split: str | Mapping[str, float] = "pages", budget: float | None = None
    ) -> None:
        if isinstance(split, str) and split not in _SPLITS:
            raise unknown("split", split, _SPLITS)
        self._make = make
        self._split = split if isinstance(split, str) else {str(k): _weight(v) for k, v in split.items()}
        self._bandits: dict[str, Bandit] = {}
        self._behind: dict[str, float] = {}  # crawls that a class is behind its share
        self._members: dict[str, Table] = {}  # for each class, its pages by the ids of its bandit
        self._table = Table(label=np.int64, inner=np.int64, status=np.uint8, importance=float)
        self._budget = None if budget is None else positive("budget", budget)
        self._now, self._time_back = -math.inf, 0
        self._given: dict[str, float] = {}  # the shares by which the bandits' budgets were set

    def add(
        self, pages: Any, now: float, *, fetched_at: ArrayLike | None = None, label: Any = "all", **columns: Any
    ) -> Ids:
        """New pages; ``label`` is the class of all, or of each."""
        at, n = max(instant(now), self._now), len(pages)
        names = np.broadcast_to(np.asarray(label, dtype=object), (n,)).astype(str)
        fetched = None if fetched_at is None else column_of("fetched_at", fetched_at, n, 0.0)
        columns = {key: np.broadcast_to(np.asarray(value), (n,)) for key, value in columns.items()}
        if fetched is not None:
            columns["fetched_at"] = fetched
        rows_of = {name: np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())}
        added: dict[str, Ids] = {}
        try:
            for name, rows in rows_of.items():
                own = {key: value[rows] for key, value in columns.items()}
                added[name] = self._bandit(name).add(pages[rows], at, **own)
        except Exception:
            for name, inner in added.items():  # a class has refused: the others forget theirs
                self._bandits[name].remove(inner)
                self._members[name].append(len(inner), page=-1)
            raise
        self._advance(now)
        ids = np.arange(len(self._table), len(self._table) + n)
        self._table.append(n, importance=getattr(pages, "importance", 1.0))
        for name, inner in added.items():
            mine = ids[rows_of[name]]
            self._members[name].append(len(mine), page=mine)
            self._table["label"][mine], self._table["inner"][mine] = list(self._bandits).index(name), inner
        return ids

    def pick(self, now: float, n: int) -> Ids:
        """At most n pages; each from the class that is furthest behind its share."""
        n, at = count_of(n), self._advance(instant(now))
        share = self._hand_out()
        for label, part in share.items():
            self._behind[label] += n * part
        open_ = {label for label, part in share.items() if part > 0}
        picked: list[NDArray[np.int64]] = []
        left = n
        while left and open_:
            for label, wanted in self._divide(left, open_).items():
                inner = self._bandits[label].pick(at, wanted)
                self._behind[label] -= len(inner)
                left -= len(inner)
                picked.append(self._members[label]["page"][inner])
                if len(inner) < wanted:
                    open_.discard(label)
        for label, part in share.items():  # what nobody could use is owed to nobody
            self._behind[label] = min(max(self._behind[label] - left * part, -1e6), n + 1.0)
        return np.concatenate(picked) if picked else no_ids()

    def record(self, ids: ArrayLike, now: float, **outcomes: Unpack[Outcomes]) -> None:
        """Crawls that ended."""
        rows, at = self._ids(ids, repeated=True), instant(now)
        ended = ended_of(outcomes, len(rows))._asdict()
        given = {name: ended[name] for name, value in outcomes.items() if value is not None}
        at = self._advance(at)
        for bandit, which, inner in self._parts(rows, everyone=True):
            bandit.record(inner, at, **{name: value[which] for name, value in given.items()})

    def release(self, ids: ArrayLike, now: float) -> None:
        """Leased crawls that did not happen."""
        rows = self._ids(ids)
        at = self._advance(instant(now))
        for bandit, _, inner in self._parts(rows):
            bandit.release(inner, at)

    def signal(self, ids: ArrayLike, now: float, *, source: int = 0, changed_at: ArrayLike | None = None) -> None:
        """Change signals."""
        rows, at = self._ids(ids, repeated=True), instant(now)
        when = None if changed_at is None else column_of("changed_at", changed_at, len(rows), 0.0)
        at = self._advance(at)
        for bandit, which, inner in self._parts(rows):
            bandit.signal(inner, at, source=source, changed_at=None if when is None else when[which])

    def update(self, ids: ArrayLike, **columns: ArrayLike) -> None:
        """New parameters of some pages; a page stays in its class."""
        rows = self._ids(ids)
        given = {name: np.broadcast_to(np.asarray(value), (len(rows),)) for name, value in columns.items()}
        for name in given.keys() & {"importance", "change_rate"}:  # refused before any class is called
            bad = ~((given[name] >= 0) & np.isfinite(given[name]))
            if bad.any():
                raise ParameterError(f"{name}, row {int(np.argmax(bad))}: must be finite and at least 0")
        for bandit, which, inner in self._parts(rows):
            bandit.update(inner, **{name: value[which] for name, value in given.items()})
        if "importance" in given:
            self._table["importance"][rows] = given["importance"]

    def remove(self, ids: ArrayLike) -> None:
        """Pages that are no longer crawled."""
        rows = self._ids(ids)
        for bandit, _, inner in self._parts(rows):
            bandit.remove(inner)
        self._table["status"][rows] = _REMOVED

    def next_at(self, now: float) -> float:
        """When some class can next pick, at the earliest."""
        at = max(instant(now), self._now)
        return min(
            (self._bandits[label].next_at(at) for label, part in self.shares().items() if part > 0), default=math.inf
        )

    def shares(self) -> dict[str, float]:
        """The part of all crawls that each class is meant to get."""
        if isinstance(self._split, str):
            weight = (self._table["status"] == _ALIVE) * (1.0 if self._split == "pages" else self._table["importance"])
            sums = np.bincount(self._table["label"], weight, len(self._bandits)).tolist()
        else:
            sums = [self._split.get(label, 0.0) for label in self._bandits]
        total = math.fsum(sums)
        return {label: part / total if total else 0.0 for label, part in zip(self._bandits, sums, strict=True)}

    def explain(self) -> dict[str, BanditView]:
        """What each class's bandit believes."""
        return {label: bandit.explain() for label, bandit in self._bandits.items()}

    @property
    def budget(self) -> float | None:
        """Crawls per time of all classes; setting it gives each class its share at the next pick."""
        return self._budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._budget = positive("budget", budget)
        self._given = {}

    @property
    def stats(self) -> dict[str, int]:
        """The bandits' counts together."""
        total = {"time_back": self._time_back}
        for bandit in self._bandits.values():
            for name, count in bandit.stats.items():
                total[name] = total.get(name, 0) + count
        return total

    def state(self) -> dict[str, Any]:
        """The split, the pages' classes, and the state of every bandit."""
        return {
            "split": self._split if isinstance(self._split, str) else dict(self._split),
            "budget": self._budget,
            "behind": dict(self._behind),
            "given": dict(self._given),
            "now": self._now,
            "time_back": self._time_back,
            "pages": self._table.copy(),
            "members": {label: table.copy() for label, table in self._members.items()},
            "bandits": {label: bandit.state() for label, bandit in self._bandits.items()},
        }

    @classmethod
    def restore(cls, state: dict[str, Any], make: Make | None = None, kinds: Mapping[str, Any] | None = None) -> Self:
        """The policy whose state was saved; without ``make`` it takes no pages of new classes."""
        policy = cls(make, split=state["split"], budget=state["budget"])
        policy._behind, policy._now, policy._time_back = dict(state["behind"]), state["now"], state["time_back"]
        policy._given = dict(state["given"])
        policy._table.load(state["pages"])
        for label, saved in state["bandits"].items():
            policy._bandits[label] = Bandit.restore(saved, kinds)
            policy._members[label] = Table(page=np.int64)
            policy._members[label].load(state["members"][label])
        return policy

    def _bandit(self, label: str) -> Bandit:
        if label not in self._bandits:
            if self._make is None:
                raise ParameterError(f"label {label!r} is new, and a restored policy without make takes no new classes")
            bandit = self._make(label)
            if not isinstance(bandit, Bandit):
                raise PolicyError(f"make({label!r}) gave a {type(bandit).__name__}, not a Bandit")
            self._bandits[label], self._members[label], self._behind[label] = bandit, Table(page=np.int64), 0.0
        return self._bandits[label]

    def _hand_out(self) -> dict[str, float]:
        """The shares; where they have changed, each class's budget."""
        share = self.shares()
        if self._budget is not None and share != self._given:
            for label, part in share.items():
                if part > 0:
                    self._bandits[label].budget = self._budget * part
            self._given = share
        return share

    def _divide(self, n: int, among: set[str]) -> dict[str, int]:
        """n crawls, one by one, to the class that is then furthest behind; the first of equals."""
        heap = [(-behind, at, label) for at, (label, behind) in enumerate(self._behind.items()) if label in among]
        heapq.heapify(heap)
        counts = dict.fromkeys((label for _, _, label in heap), 0)
        for _ in range(n):
            ahead, at, label = heap[0]
            heapq.heapreplace(heap, (ahead + 1.0, at, label))
            counts[label] += 1
        return {label: count for label, count in counts.items() if count}

    def _advance(self, now: float) -> float:
        self._time_back += now < self._now
        self._now = max(now, self._now)
        return self._now

    def _ids(self, ids: ArrayLike, *, repeated: bool = False) -> Ids:
        return ids_of(ids, self._table["status"], _REMOVED, repeated=repeated)

    def _parts(self, rows: Ids, *, everyone: bool = False) -> list[tuple[Bandit, NDArray[np.int64], Ids]]:
        """Rows by class: the bandit, which of the rows are its own, and their ids there."""
        label = self._table["label"][rows]
        parts = [(bandit, np.flatnonzero(label == at)) for at, bandit in enumerate(self._bandits.values())]
        return [(bandit, which, self._table["inner"][rows[which]]) for bandit, which in parts if everyone or len(which)]


def _weight(value: float) -> float:
    number = float(value)
    if not (0 <= number < math.inf):
        raise ParameterError(f"split: {number} is not finite and at least 0")
    return number
