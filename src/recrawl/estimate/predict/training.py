"""Training of the network with JAX: proximal Adagrad over epochs of shuffled batches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.predict.network import NetworkSettings

Floats = NDArray[np.float32]
Array = NDArray[np.float64]


class Training:
    """The weights of the network during training."""

    def __init__(self, n_dense: int, n_values: list[int], settings: NetworkSettings, base: float, seed: int) -> None:
        try:
            import jax
            import optax
        except ImportError:
            raise ParameterError("the network needs JAX: install recrawl[deep]") from None
        self._settings = settings
        rng = np.random.default_rng([seed, 1])
        embeddings = [rng.normal(0.0, 0.05, (n + 1, settings.embedding)) for n in n_values]
        sizes = [n_dense + settings.embedding * len(n_values), *settings.hidden, 1]
        weights = [rng.normal(0.0, np.sqrt(2.0 / a), (a, b)) for a, b in pairwise(sizes)]
        weights[-1] *= 0.1
        self._parameters: Any = jax.tree.map(
            lambda a: jax.numpy.asarray(a, jax.numpy.float32),
            {"embeddings": embeddings, "weights": weights, "biases": [np.zeros(b) for b in sizes[1:]]},
        )
        rule = optax.scale_by_rss(initial_accumulator_value=0.1)
        self._state: Any = rule.init(self._parameters)
        self._run = jax.jit(_epoch_of(rule, settings, base))

    def epoch(
        self, dense: Floats, codes: Any, interval: Array, changed: NDArray[np.bool_], rng: np.random.Generator
    ) -> None:
        """Train on all rows once, in a new random order."""
        size = min(self._settings.batch, len(dense))
        steps = len(dense) // size
        order = rng.permutation(len(dense))[: steps * size]
        columns = (dense, codes + 1, np.log(interval).astype(np.float32), changed)
        batches = [column[order].reshape(steps, size, *column.shape[1:]) for column in columns]
        self._parameters, self._state = self._run(self._parameters, self._state, batches)

    def weights(self) -> tuple[tuple[Floats, ...], tuple[Floats, ...], tuple[Floats, ...]]:
        """The present embeddings, weights and biases."""
        found = self._parameters
        one, two, three = (
            tuple(np.asarray(a, np.float32) for a in found[name]) for name in ("embeddings", "weights", "biases")
        )
        return one, two, three


def _epoch_of(rule: Any, settings: NetworkSettings, base: float) -> Any:
    import jax
    import jax.numpy as jnp

    def loss(parameters: Any, dense: Any, codes: Any, log_interval: Any, changed: Any) -> Any:
        met = [table[codes[:, k]] for k, table in enumerate(parameters["embeddings"])]
        x = jnp.concatenate([dense, *met], axis=1)
        for w, b in zip(parameters["weights"][:-1], parameters["biases"][:-1], strict=True):
            x = jax.nn.relu(x @ w + b)
        f = base + log_interval + (x @ parameters["weights"][-1] + parameters["biases"][-1])[:, 0]
        m = jnp.exp(jnp.clip(f, -15.0, 4.0))
        return jnp.where(changed, -jnp.log(-jnp.expm1(-m)), m).sum()

    def shrunk(moved: Any, squares: Any, penalised: bool) -> Any:
        """The proximal step: shrink towards 0 by L1 and L2, with the step length of each weight."""
        if not penalised:
            return moved
        step = settings.learning_rate / jnp.sqrt(squares + 1e-7)
        return jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - step * settings.l1, 0.0) / (1.0 + step * settings.l2)

    def one(carried: Any, batch: Any) -> Any:
        parameters, state = carried
        gradient = jax.grad(loss)(parameters, *batch)
        update, state = rule.update(gradient, state)
        moved = jax.tree.map(lambda w, u: w - settings.learning_rate * u, parameters, update)
        held = {
            name: [shrunk(w, s, name != "biases") for w, s in zip(moved[name], state.sum_of_squares[name], strict=True)]
            for name in moved
        }
        return (held, state), None

    def epoch(parameters: Any, state: Any, batches: Any) -> Any:
        return jax.lax.scan(one, (parameters, state), tuple(batches))[0]

    return epoch
