"""What can be seen of a bandit: a row per arm, and the same in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recrawl.schedule.bandits.arms import Arms
from recrawl.schedule.bandits.exp3 import Exp3


@dataclass(frozen=True)
class ArmView:
    """One arm: its probability now, steps learned from, mean reward (None before the first), failures and the last."""

    name: str
    probability: float
    log_weight: float
    plays: int
    mean_reward: float | None
    failures: int
    usable: bool
    error: str


@dataclass(frozen=True)
class BanditView:
    """A bandit's arms, the rule by which it learns, and the arm in use."""

    rule: str
    step: int
    arm: str | None
    arms: list[ArmView]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.rule}, {self.step} steps learned from, now: {self.arm or 'nothing drawn yet'}"]
        for arm in sorted(self.arms, key=lambda arm: -arm.probability):
            reward = "no reward yet" if arm.mean_reward is None else f"mean reward {arm.mean_reward:.3f}"
            words = f"  {arm.name}: drawn with {arm.probability:.3f}, {reward} in {arm.plays} steps"
            lines.append(words + (f"; failed {arm.failures} times, last {arm.error}" if arm.failures else ""))
        return "\n".join(lines)


def columns_of(arms: Arms, exp3: Exp3, step: int) -> dict[str, Any]:
    """A column per property, a row per arm."""
    left = np.array([not arm.dropped for arm in arms.all])
    usable = arms.usable(step) if left.any() else left
    plays, gain = exp3.plays, exp3.gain
    return {
        "name": [arm.name for arm in arms.all],
        "probability": exp3.probability(usable) if left.any() else np.zeros(len(arms)),
        "log_weight": exp3.log_weight,
        "plays": plays,
        "mean_reward": np.divide(gain, plays, out=np.full(len(arms), np.nan), where=plays > 0),
        "failures": np.array([arm.failures for arm in arms.all]),
        "usable": usable,
        "error": [arm.error for arm in arms.all],
    }


def view_of(rows: dict[str, Any], exp3: Exp3, current: str | None) -> BanditView:
    """The rows as objects."""
    arms = []
    for at, name in enumerate(rows["name"]):
        mean = float(rows["mean_reward"][at])
        numbers = (float(rows["probability"][at]), float(rows["log_weight"][at]), int(rows["plays"][at]))
        seen = None if np.isnan(mean) else mean
        arms.append(
            ArmView(name, *numbers, seen, int(rows["failures"][at]), bool(rows["usable"][at]), rows["error"][at])
        )
    return BanditView(exp3.rule, exp3.step, current, arms)
