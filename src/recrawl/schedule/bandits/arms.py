"""The arms of a bandit: policies that hold the same pages, kept in step; one that fails is left out and reported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError, PolicyError
from recrawl.schedule.table import Ids

_LONGEST = 64  # steps for which an arm that keeps failing rests
_OWN = ("impression", "crawl_rate")  # columns that rate policies take and others do not


@dataclass
class Arm:
    """A policy, and how it has failed."""

    name: str
    policy: Any
    failures: int = 0
    in_a_row: int = 0
    rests_until: int = 0  # the step from which it may be drawn again
    dropped: bool = False  # it no longer knows what the others know
    error: str = ""

    def fail(self, error: Exception, step: int, *, drop: bool = False) -> None:
        """Note a failure: the arm rests for 1, 2, 4 … steps, or is left out for good."""
        self.failures += 1
        self.in_a_row += 1
        self.dropped |= drop
        self.error = f"{type(error).__name__}: {error}"
        self.rests_until = step + min(2 ** (self.in_a_row - 1), _LONGEST)

    def state(self) -> dict[str, Any]:
        """What to save: the policy's kind and state, and how the arm has failed."""
        names = ("name", "failures", "in_a_row", "rests_until", "dropped", "error")
        known = {name: getattr(self, name) for name in names}
        return {**known, "kind": type(self.policy).__name__, "state": self.policy.state()}


class Arms:
    """Several policies that get the same calls; their ids must agree."""

    def __init__(self, policies: Mapping[str, Any]) -> None:
        if not policies:
            raise ParameterError("arms: at least one policy is needed")
        self.all = [Arm(str(name), policy) for name, policy in policies.items()]
        self._own = [_own_columns(arm.policy) for arm in self.all]
        self._order = sorted(range(len(self.all)), key=lambda at: _leniency(self.all[at].policy))

    def __len__(self) -> int:
        return len(self.all)

    def state(self) -> list[dict[str, Any]]:
        """What to save of each arm."""
        return [arm.state() for arm in self.all]

    @classmethod
    def restore(cls, state: list[dict[str, Any]], kinds: Mapping[str, Any]) -> Self:
        """The arms that were saved; ``kinds`` are classes by name besides those of this package."""
        arms = cls({entry["name"]: _policy_of(entry, kinds) for entry in state})
        for arm, entry in zip(arms.all, state, strict=True):
            for name in ("failures", "in_a_row", "rests_until", "dropped", "error"):
                setattr(arm, name, entry[name])
        return arms

    def usable(self, step: int) -> NDArray[np.bool_]:
        """Which arms may be drawn at a step; where all that are left rest, all that are left."""
        left = np.array([not arm.dropped for arm in self.all])
        if not left.any():
            raise PolicyError(f"every arm failed: {self.report()}")
        awake = left & np.array([arm.rests_until <= step for arm in self.all])
        return awake if awake.any() else left

    def call_all(self, step: int, call: str, *args: Any, **columns: Any) -> Any:
        """Call a method of every arm; what the first one gave.

        Arms that refuse most are called first. A ``ParameterError`` of the first one goes to the caller: no arm has
        changed yet. An arm that raises later is behind the others and is left out for good, except for a signal that
        it cannot take.
        """
        given: Any = None
        called = False
        for arm, own in ((self.all[at], self._own[at]) for at in self._order):
            if arm.dropped:
                continue
            wanted = {name: value for name, value in columns.items() if name not in _OWN or name in own}
            try:
                answer = getattr(arm.policy, call)(*args, **wanted)
                if called and isinstance(given, np.ndarray) and not np.array_equal(given, answer):
                    raise ParameterError("gives out other ids than the arms before it")
            except ParameterError as error:
                if not called:
                    raise
                arm.fail(error, step, drop=call != "signal")
            except Exception as error:
                arm.fail(error, step, drop=call != "signal")
            else:
                given, called = (given, True) if called else (answer, True)
        if not called:
            raise PolicyError(f"every arm failed: {self.report()}")
        return given

    def ask(self, at: int, step: int, call: Callable[[Any], Any]) -> tuple[bool, Any]:
        """Whether one arm answered, and what; a failure makes it rest."""
        arm = self.all[at]
        try:
            answer = call(arm.policy)
        except Exception as error:
            arm.fail(error, step)
            return False, None
        return True, answer

    def report(self) -> str:
        """The last error of each arm that failed."""
        return "; ".join(f"{arm.name}: {arm.error}" for arm in self.all if arm.error)

    def takes(self, name: str) -> bool:
        """Whether some arm knows a column that policies in general do not."""
        return any(name in own for own in self._own)


def no_ids() -> Ids:
    """An empty answer."""
    return np.zeros(0, np.int64)


def _policy_of(entry: dict[str, Any], kinds: Mapping[str, Any]) -> Any:
    from recrawl.schedule.bandits.bandit import Bandit
    from recrawl.schedule.bandits.contextual import ContextualBandit
    from recrawl.schedule.exact.scheduler import Scheduler
    from recrawl.schedule.rates.policy import RatePolicy

    known: dict[str, Any] = {kind.__name__: kind for kind in (RatePolicy, Scheduler, Bandit, ContextualBandit)}
    known |= kinds
    if entry["kind"] not in known:
        raise ParameterError(f"state: arm {entry['name']!r} is a {entry['kind']}; give its class in kinds")
    nested = {"kinds": kinds} if entry["kind"] in ("Bandit", "ContextualBandit") else {}
    return known[entry["kind"]].restore(entry["state"], **nested)


def _leniency(policy: Any) -> int:
    """Which arms are called first: those that refuse what others take (`lambda`: more than one change a step)."""
    from recrawl.schedule.rates.policy import RatePolicy

    if not isinstance(policy, RatePolicy):
        return 1
    return 0 if policy.rule == "lambda" else 2


def _own_columns(policy: Any) -> set[str]:
    arms = getattr(policy, "_arms", None)  # a bandit as an arm takes what its own arms take
    if isinstance(arms, Arms):
        return {name for name in _OWN if arms.takes(name)}
    return set(inspect.signature(policy.add).parameters) & set(_OWN)
