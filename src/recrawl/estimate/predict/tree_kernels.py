"""Trees walked row by row."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit

Array = NDArray[np.float64]
Codes = NDArray[np.int32]


@jit
def add_trees(
    features: Array,
    root: Codes,
    feature: Codes,
    threshold: Array,
    left: Codes,
    right: Codes,
    missing: Codes,
    out: Array,
) -> None:
    """Add the leaf values of all trees to each row's output.

    A node whose feature is −1 is a leaf, its threshold the value. ``missing`` says where nan goes: 0 left, 1 right,
    2 wherever 0 goes. Children come after their parents, so that every walk ends.
    """
    for i in range(features.shape[0]):
        total = 0.0
        for t in range(root.size):
            node = root[t]
            while feature[node] >= 0:
                value = features[i, feature[node]]
                if math.isnan(value):
                    go_left = threshold[node] >= 0.0 if missing[node] == 2 else missing[node] == 0
                else:
                    go_left = value <= threshold[node]
                node = left[node] if go_left else right[node]
            total += threshold[node]
        out[i] += total
