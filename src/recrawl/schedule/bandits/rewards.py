"""Accounts: what the crawls of each step found, until all of them are known and the step has its reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Earned(NamedTuple):
    """The reward of a step."""

    arm: int
    reward: float
    probability: float
    n_usable: int


@dataclass
class Account:
    """A step: the arm drawn, with which probability among how many, and what its crawls have found so far."""

    number: int
    arm: int
    probability: float
    n_usable: int
    open: int = 0  # crawls under way
    picked: int = 0
    seen: int = 0  # crawls whose outcome is known
    asked: bool = False
    weight: float = 0.0
    changed: float = 0.0

    def earned(self, most: Callable[[int], float] | None) -> Earned | None:
        """Σ importance·[changed] / Σ importance over the crawls whose outcome is known.

        With ``most``, what it gives for so many crawls stands below the line. An arm that was asked and gave nothing
        earns 0; where nothing was asked or is known, nothing is learned.
        """
        if self.seen == 0 and not (self.asked and self.picked == 0):
            return None
        whole = self.weight if most is None else most(self.seen)
        reward = self.changed / whole if whole > 0 else 0.0
        return Earned(self.arm, min(reward, 1.0), self.probability, self.n_usable)


class Accounts:
    """The step in progress and those before it that still wait for outcomes."""

    def __init__(self, most: Callable[[int], float] | None = None) -> None:
        self._most = most
        self._by_number: dict[int, Account] = {}
        self.current: Account | None = None

    def begin(self, account: Account) -> None:
        """A new step is in progress."""
        self.current = self._by_number[account.number] = account

    def close(self) -> list[Earned]:
        """The step in progress is over; what it earned, if all is known."""
        ended, self.current = self.current, None
        return [] if ended is None else self._settle([ended.number])

    def pick(self, n: int) -> int:
        """Crawls that begin in the step in progress; its number."""
        assert self.current is not None
        self.current.asked = True
        self.current.open += n
        self.current.picked += n
        return self.current.number

    def end(self, number: Numbers, known: NDArray[np.bool_], importance: Array, changed: Array) -> list[Earned]:
        """Crawls that ended, with the step each belongs to; rewards of steps that are over and now complete."""
        steps = np.unique(number).tolist()
        for step in steps:
            account = self._by_number.get(step)
            if account is not None:
                here = number == step
                account.open -= int(np.count_nonzero(here))
                here &= known
                account.seen += int(np.count_nonzero(here))
                account.weight += float(importance[here].sum())
                account.changed += float((importance * changed)[here].sum())
        return self._settle(steps)

    def _settle(self, numbers: list[int]) -> list[Earned]:
        earned = []
        for number in numbers:
            account = self._by_number.get(number)
            if account is None or account is self.current or account.open > 0:
                continue
            del self._by_number[number]
            found = account.earned(self._most)
            if found is not None:
                earned.append(found)
        return earned

    def state(self) -> dict[str, Any]:
        """All accounts, and which is the current one."""
        return {
            "accounts": [asdict(account) for account in self._by_number.values()],
            "current": None if self.current is None else self.current.number,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Fill with what was saved."""
        self._by_number = {entry["number"]: Account(**entry) for entry in state["accounts"]}
        self.current = None if state["current"] is None else self._by_number[state["current"]]
