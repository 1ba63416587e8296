"""PlainGreedy: the greedy policy without signals, written plainly; a second policy for the contract suite to accept."""

import copy
import math

import numpy as np

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages


class PlainGreedy:
    """Crawls the largest (importance/change_rate)·(1 − e^{−x}(1 + x)), x = change_rate·elapsed, among all pages."""

    def __init__(self, pages, start=0.0, lease=300.0):
        self.lease, self.now, self.rows = lease, start, []
        self.stats = {"outdated": 0, "time_back": 0}
        self.add(pages, start)

    def _time(self, now):
        if not math.isfinite(now):
            raise ParameterError(f"now is {now}")
        self.stats["time_back"] += now < self.now
        self.now = max(now, self.now)

    def _ids(self, ids):
        for page in np.atleast_1d(ids):
            if not 0 <= page < len(self.rows) or self.rows[page] is None:
                raise ParameterError(f"id {page}")
        return [int(page) for page in np.atleast_1d(ids)]

    def add(self, pages, now, *, fetched_at=None):
        self._time(now)
        first = len(self.rows)
        columns = zip(pages.change_rate.tolist(), pages.importance.tolist(), strict=True)
        self.rows += [{"change": d, "weight": w, "at": self.now, "until": -math.inf, "gone": False} for d, w in columns]
        return np.arange(first, len(self.rows))

    def _value(self, row):
        x = row["change"] * (self.now - row["at"])
        return row["weight"] / row["change"] * (1 - math.exp(-x) * (1 + x))

    def pick(self, now, n):
        if n < 0:
            raise ParameterError(f"n is {n}")
        self._time(now)
        free = [i for i, row in enumerate(self.rows) if row and not row["gone"] and row["until"] <= self.now]
        best = sorted(free, key=lambda i: (-self._value(self.rows[i]), i))[:n]
        for i in best:
            self.rows[i]["until"] = self.now + self.lease
        return np.array(best, np.int64)

    def record(self, ids, now, *, changed=None, as_of=None, failed=None, gone=None):
        pages = self._ids(ids)
        given = [
            np.broadcast_to(v, (len(pages),)).tolist() for v in self._shaped(pages, now, as_of, failed, gone, changed)
        ]
        self._time(now)
        for i, began, missed, lost, _ in zip(pages, *given, strict=True):
            row = self.rows[i]
            if began < row["at"]:
                self.stats["outdated"] += 1
                continue
            row["until"], row["gone"] = -math.inf, row["gone"] or bool(lost)
            row["at"] = row["at"] if missed else began

    def _shaped(self, pages, now, as_of, failed, gone, changed):
        columns = [max(now, self.now) if as_of is None else as_of, failed or False, gone or False, changed or False]
        for column in columns:
            if np.ndim(column) and len(column) != len(pages):
                raise ParameterError("rows")
        if np.isnan(columns[0]).any() or math.isnan(now):
            raise ParameterError("NaN")
        return columns

    def release(self, ids, now):
        pages = self._ids(ids)
        self._time(now)
        for i in pages:
            self.rows[i]["until"] = -math.inf

    def signal(self, ids, now, *, source=0, changed_at=None):
        self._ids(ids)
        self._time(now)

    def update(self, ids, **columns):
        pages = self._ids(ids)
        old = Pages([self.rows[i]["change"] for i in pages], [self.rows[i]["weight"] for i in pages])
        new = old.replace(**columns)
        for k, i in enumerate(pages):
            self.rows[i] |= {"change": float(new.change_rate[k]), "weight": float(new.importance[k])}

    def remove(self, ids):
        for i in self._ids(ids):
            self.rows[i] = None

    def next_at(self, now):
        now = max(now, self.now)
        ends = [max(now, row["until"]) for row in self.rows if row and not row["gone"]]
        return min(ends, default=math.inf)

    def state(self):
        return copy.deepcopy({"lease": self.lease, "now": self.now, "rows": self.rows, "stats": self.stats})

    @classmethod
    def restore(cls, state):
        policy = cls.__new__(cls)
        vars(policy).update(copy.deepcopy(state))
        return policy
