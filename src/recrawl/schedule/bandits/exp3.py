"""Exp3: which of several arms to try next, when their rewards may be anything between 0 and 1."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError, unknown
from recrawl.schedule.bandits import kernels

Array = NDArray[np.float64]
BanditRule = Literal["exp3", "exp3-s", "exp3-ix", "exp3++"]
_KINDS = {"exp3": kernels.EXP3, "exp3-s": kernels.SHARED, "exp3-ix": kernels.IMPLICIT, "exp3++": kernels.GAPS}
BANDIT_RULES: tuple[str, ...] = tuple(_KINDS)


class Exp3:
    """Probabilities of arms, learned from the rewards of those that were drawn.

    ``exp3`` (Auer et al. 2002; Han et al. 2020, Algorithm 1): q = (1 − γ)·w/Σw + γ/K, then w ← w·exp(γ/K · x/q) for the
    arm drawn; γ is ``exploration``. ``exp3-s`` gives, after each step, every arm e·``share``/K of all weight, so that
    an arm that fell behind can come back soon. ``exp3-ix`` (Neu 2015) and ``exp3++`` (Seldin and Lugosi 2017) learn
    from losses 1 − x at rates that fall with time and need no ``exploration``: the first adds half its learning rate to
    the probability by which it divides, the second explores an arm the less the larger its estimated gap. Weights are
    kept as logarithms: nothing overflows, however many steps.

    >>> bandit = Exp3(2, exploration=0.1)
    >>> bandit.learn(0, 1.0)
    >>> bandit.probability().round(4).tolist()
    [0.5225, 0.4775]
    """

    def __init__(self, n_arms: int, rule: str = "exp3", *, exploration: float = 0.1, share: float = 0.003) -> None:
        if isinstance(n_arms, bool) or not isinstance(n_arms, (int, np.integer)) or n_arms < 1:
            raise ParameterError(f"n_arms is {n_arms!r}: at least one arm is needed")
        if rule not in _KINDS:
            raise unknown("rule", rule, BANDIT_RULES)
        self.rule = rule
        self.exploration, self.share = _share("exploration", exploration), _share("share", share)
        if self.exploration == 0 and rule in ("exp3", "exp3-s"):
            raise ParameterError(f"exploration is 0: {rule} learns by it, so it must be above 0")
        self._kind = _KINDS[rule]
        self._score = np.zeros(int(n_arms))
        self._plays = np.zeros(int(n_arms), np.int64)
        self._gain = np.zeros(int(n_arms))

    def __len__(self) -> int:
        return len(self._score)

    @property
    def step(self) -> int:
        """Rewards learned from, so far."""
        return int(self._plays.sum())

    @property
    def plays(self) -> NDArray[np.int64]:
        """How often each arm's reward was learned from."""
        return self._plays.copy()

    @property
    def gain(self) -> Array:
        """The sum of each arm's rewards."""
        return self._gain.copy()

    @property
    def log_weight(self) -> Array:
        """The logarithm of each arm's weight beside the largest, without exploration."""
        if self._kind in (kernels.IMPLICIT, kernels.GAPS):
            eta = kernels.learning_rate(self._kind, len(self), self.step + 1)
            return np.asarray(-eta * self._score)
        return self._score.copy()

    def probability(self, usable: ArrayLike | None = None) -> Array:
        """The probability with which each arm should be drawn now; an arm that is not usable gets 0."""
        out = np.empty(len(self))
        args = (self._score, self._plays, self._gain, self.exploration)
        kernels.probabilities(self._kind, self.step + 1, *args, self._usable(usable), out)
        return out

    def draw(self, rng: np.random.Generator, usable: ArrayLike | None = None) -> tuple[int, float]:
        """An arm, and the probability that it had."""
        probability = self.probability(usable)
        arm = int(kernels.draw(probability, float(rng.random())))
        return arm, float(probability[arm])

    def learn(self, arm: int, reward: float, probability: float | None = None, n_usable: int | None = None) -> None:
        """The reward of an arm that was drawn with a probability (default: the one it has now), among ``n_usable``.

        A reward outside [0, 1], or one that is not a number, raises ``ParameterError`` and changes nothing.
        """
        if not 0 <= arm < len(self):
            raise ParameterError(f"arm is {arm!r}: there are {len(self)}")
        x = _share("reward", reward)
        drawn = float(self.probability()[arm]) if probability is None else float(probability)
        if not 0 < drawn <= 1 + 1e-9:
            raise ParameterError(f"probability is {drawn}: must be above 0 and at most 1")
        n = len(self) if n_usable is None else int(n_usable)
        args = (self._score, self._plays, self._gain, int(arm), x, drawn, self.exploration, self.share, n)
        kernels.learn(self._kind, self.step + 1, *args)

    def play(self, reward: ArrayLike, rng: np.random.Generator, n_steps: int | None = None) -> NDArray[np.int64]:
        """Draw and learn many steps from a table of rewards (a row per step, repeated if short); the arms drawn."""
        table = np.ascontiguousarray(reward, np.float64)
        if table.ndim != 2 or table.shape[1] != len(self) or not len(table):
            raise ParameterError(f"reward: a table with {len(self)} columns is needed")
        if not ((table >= 0) & (table <= 1)).all():
            raise ParameterError(
                f"reward, row {int(np.argmin(((table >= 0) & (table <= 1)).all(1)))}: must be in [0, 1]"
            )
        n = len(table) if n_steps is None else int(n_steps)
        chosen = np.empty(min(n, len(table)), np.int64)
        draws = rng.random(min(n, 1 << 20))
        args = (self._score, self._plays, self._gain, self.exploration, self.share, chosen)
        if self.step:
            raise ParameterError("play begins with a bandit that has learned nothing")
        kernels.play(self._kind, table, draws, n, *args)
        return chosen

    def state(self) -> dict[str, Any]:
        """Settings, scores, counts and sums."""
        settings = {"rule": self.rule, "exploration": self.exploration, "share": self.share}
        return {**settings, "score": self._score.copy(), "plays": self.plays, "gain": self.gain}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The bandit whose state was saved."""
        bandit = cls(len(state["score"]), state["rule"], exploration=state["exploration"], share=state["share"])
        bandit._score[:], bandit._plays[:], bandit._gain[:] = state["score"], state["plays"], state["gain"]
        return bandit

    def _usable(self, usable: ArrayLike | None) -> NDArray[np.bool_]:
        mask = np.ones(len(self), np.bool_) if usable is None else np.asarray(usable, np.bool_)
        if mask.shape != (len(self),) or not mask.any():
            raise ParameterError(f"usable: a flag for each of the {len(self)} arms, one of them true")
        return mask


def regret_bound(
    rule: str, n_arms: int, n_steps: ArrayLike, *, exploration: float = 0.1, share: float = 0.003, shifts: int = 0
) -> Array:
    """What the theory allows a bandit to lose, in expectation, against the best fixed arm after so many steps.

    exp3: (e − 1)γT + K ln K/γ; exp3-s against the best sequence with ``shifts`` changes of arm:
    (K/γ)((shifts + 1) ln(K/α) + eαT) + (e − 1)γT (Auer et al. 2002, α the share); exp3-ix and exp3++: 4√(KT ln K).

    >>> regret_bound("exp3", 2, 100).round(2).tolist()
    31.05
    """
    steps, k = np.asarray(n_steps, np.float64), n_arms
    if rule not in _KINDS:
        raise unknown("rule", rule, BANDIT_RULES)
    if rule == "exp3":
        return np.asarray((math.e - 1) * exploration * steps + k * math.log(k) / exploration)
    if rule == "exp3-s":
        lost = (k / exploration) * ((shifts + 1) * math.log(k / share) + math.e * share * steps)
        return np.asarray(lost + (math.e - 1) * exploration * steps)
    return np.asarray(4 * np.sqrt(k * steps * math.log(k)))


def _share(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {value!r}: a number is needed") from None
    if not 0 <= number <= 1:
        raise ParameterError(f"{name} is {number}: must be in [0, 1]")
    return number
