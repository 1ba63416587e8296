"""Bandits over rules: one rule chooses for a step of two hours; those whose crawls find changes are drawn more often.

Han et al. 2020, Algorithm 1, with the probabilities and rewards of `schedule.bandits`. A rule that needs readers'
requests is not drawn while none are known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.policies.choice import Ended
from recrawl.engine.policies.plan import STEPS_A_DAY, known_pages, requests_known, rule_pages_rates
from recrawl.engine.policies.rates import ByRates
from recrawl.model.pages import Pages
from recrawl.schedule.bandits.exp3 import Exp3
from recrawl.schedule.bandits.rewards import Account, Accounts, Earned
from recrawl.schedule.bandits.strategies import arms_of
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


class ByBandit(ByRates):
    """The rates of the rule that was drawn for this step."""

    def __init__(self, policy: str) -> None:
        super().__init__(policy)
        self.arms = arms_of(policy)
        self.exp3, self.accounts = Exp3(len(self.arms)), Accounts()
        self._step, self._n_begun, self._last = -1, 0, ""
        self._under_way: dict[int, int] = {}  # page -> number of the step that picked it

    @property
    def arm(self) -> int | None:
        """The rule of this step."""
        current = self.accounts.current
        return None if current is None else current.arm

    def begin(self, engine: Core, now: float) -> None:
        """At the end of a step, learn what its crawls found, draw the next rule and find its rates."""
        step = math.floor(max(now, engine.now) * STEPS_A_DAY / engine.settings.day)
        if step == self._step and self.arm is not None:
            super().begin(engine, now)
            return
        self._step = step
        self._learn(self.accounts.close())
        usable = self._usable_arms(engine)
        arm, probability = self.exp3.draw(self.rng, usable)
        self.accounts.begin(Account(self._n_begun, arm, probability, int(usable.sum())))
        self._n_begun, self._last = self._n_begun + 1, self.arms[arm]
        self.find(engine)

    def find(self, engine: Core) -> None:
        """Find the crawl rates by the rule of this step."""
        rows = engine.ids()
        if self.arm is None or len(rows) == 0:
            return
        pages = known_pages(engine, rows)
        self.crawl_rate[:] = 0.0
        self.crawl_rate[rows] = rule_pages_rates(engine, self.arms[self.arm], pages, self._budget(engine), rows)
        self.write_all(engine)

    def rates_at(self, engine: Core, pages: Pages, budget: float, rows: Ids) -> Array:
        """The mean of the rules' rates, by how often each is drawn now."""
        share = self.exp3.probability(self._usable_arms(engine))
        rates = [rule_pages_rates(engine, arm, pages, budget, rows) for arm in self.arms]
        return np.asarray(share @ np.array(rates))

    def picked(self, rows: Ids) -> None:
        """Crawls begin; those of a page whose lease ended before count for nothing."""
        if self.arm is None:
            return
        self.released(np.array([page for page in rows.tolist() if page in self._under_way], np.int64))
        self._under_way.update(dict.fromkeys(rows.tolist(), self.accounts.pick(len(rows))))

    def recorded(self, engine: Core, ended: Ended) -> None:
        """Crawls ended: their step is rewarded for the changes that they found."""
        importance = access.importance(engine.scheduler, ended.rows)
        self._end(ended.rows, ended.compared, importance, ended.changed.astype(np.float64))
        super().recorded(engine, ended)

    def released(self, rows: Ids) -> None:
        """Crawls did not happen."""
        nothing = np.zeros(len(rows))
        self._end(rows, np.zeros(len(rows), np.bool_), nothing, nothing)

    def _end(self, rows: Ids, known: Flags, importance: Array, changed: Array) -> None:
        number = np.array([self._under_way.pop(page, -1) for page in rows.tolist()], np.int64)
        mine = number >= 0
        if mine.any():
            self._learn(self.accounts.end(number[mine], known[mine], importance[mine], changed[mine]))

    def _learn(self, earned: list[Earned]) -> None:
        for arm, reward, probability, n_usable in earned:
            self.exp3.learn(arm, reward, probability, n_usable)

    def _usable_arms(self, engine: Core) -> Flags:
        known = requests_known(engine)
        return np.array([known or arm != "impression-weighted" for arm in self.arms])

    def _note(self, engine: Core) -> str:
        """The rule of this step, and how often each is drawn."""
        share = self.exp3.probability(self._usable_arms(engine))
        order = sorted(range(len(self.arms)), key=lambda at: -share[at])
        drawn = ", ".join(f"{self.arms[at]} {100 * share[at]:.0f}%" for at in order if share[at] > 0)
        return f" (now {self._last or 'none yet'}; drawn: {drawn})"

    def saved(self) -> dict[str, Any]:
        """What is saved beside the pages; crawls under way are lost with the process, and so are their steps."""
        exp3 = {name: np.asarray(value).tolist() for name, value in self.exp3.state().items()}
        return {**super().saved(), "exp3": exp3, "n_begun": self._n_begun, "last": self._last}

    def load(self, engine: Core, saved: Mapping[str, Any], pages: Mapping[str, Any]) -> None:
        """Go on with what was learned; a new step begins."""
        if saved.get("name") == self.policy:
            exp3 = dict(saved["exp3"])
            exp3 |= {name: np.asarray(exp3[name]) for name in ("score", "plays", "gain")}
            self.exp3, self._n_begun, self._last = Exp3.restore(exp3), int(saved["n_begun"]), str(saved["last"])
        super().load(engine, saved, pages)

    def state(self) -> dict[str, Any]:
        """Everything, to go on exactly."""
        mine = {"exp3": self.exp3.state(), "accounts": self.accounts.state(), "under_way": dict(self._under_way)}
        return {**super().state(), **mine, "step": self._step, "n_begun": self._n_begun, "last": self._last}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on exactly."""
        super().restore(state)
        self.exp3 = Exp3.restore(state["exp3"])
        self.accounts.load(state["accounts"])
        self._under_way = dict(state["under_way"])
        self._step, self._n_begun, self._last = state["step"], state["n_begun"], state["last"]
