"""Kernels of runs on a shop: prices move, copies are made, clicks see the right price or a wrong one."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit


@jit
def move(
    live: NDArray[np.int32], at: NDArray[np.float64], offer: NDArray[np.int32], price: NDArray[np.int32], first: int,
    until: float,
) -> int:  # fmt: skip
    """Changes of prices up to a time, from a place in the day's list on; the place reached."""
    while first < len(at) and at[first] <= until:
        live[offer[first]] = price[first]
        first += 1
    return first


@jit
def sample(probability: NDArray[np.float64], u: float, out: NDArray[np.int64]) -> int:
    """Offers drawn with given probabilities, as many as these add up to: those at which their sum passes u, u + 1, …"""
    n, total, mark = 0, 0.0, 1.0 - u
    for i in range(len(probability)):
        total += probability[i]
        if total >= mark and probability[i] > 0.0:
            out[n] = i
            n += 1
            mark += 1.0
    return n


@jit
def crawl(
    ids: NDArray[np.int64], live: NDArray[np.int32], local: NDArray[np.int32], changed: NDArray[np.bool_]
) -> None:
    """Copy the prices of some offers; which were not the same."""
    for k, i in enumerate(ids):
        changed[k] = local[i] != live[i]
        local[i] = live[i]


@jit
def clicks_right(
    offer: NDArray[np.int32], count: NDArray[np.int32], live: NDArray[np.int32], local: NDArray[np.int32]
) -> int:
    """How many clicks saw the right price."""
    right = 0
    for k in range(len(offer)):
        if local[offer[k]] == live[offer[k]]:
            right += count[k]
    return right


@jit
def offers_right(live: NDArray[np.int32], local: NDArray[np.int32], n: int) -> int:
    """How many of the first n copies are right."""
    right = 0
    for i in range(n):
        right += local[i] == live[i]
    return right


@jit
def expected_reward(
    probability: NDArray[np.float64], click: NDArray[np.float64], live: NDArray[np.int32], local: NDArray[np.int32]
) -> float:
    """Σ μρ[local ≠ live] / Σ μρ: what a strategy would earn on average at this moment."""
    stale = total = 0.0
    for i in range(len(probability)):
        weight = click[i] * probability[i]
        total += weight
        if local[i] != live[i]:
            stale += weight
    return stale / total if total > 0.0 else 0.0
