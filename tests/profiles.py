"""How many examples a property test tries: all of them in ``make test-full``, a share of them in the others.

Every profile draws the same examples in every run, so that a test fails for everybody or for nobody. Examples that are
given with ``@example`` are tried by each profile.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # read when NumPy and LightGBM are imported; waiting threads only cost time

FULL = 200  # examples of a test that gives no number of its own
EXAMPLES = {"full": FULL, "default": FULL // 4, "fast": FULL // 10}
_LEAST = 10


def register() -> None:
    """Make the profiles known and choose the default one; ``--hypothesis-profile`` chooses another."""
    for name, n in EXAMPLES.items():
        settings.register_profile(
            name,
            deadline=None,  # kernels compile on first use
            derandomize=True,
            database=None,
            max_examples=n,
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile("default")


def few(values: Sequence[Any], n: int) -> list[Any]:
    """Values of a parameter: the first n as they are, the others for ``make test-full`` alone."""
    return [*values[:n], *(pytest.param(value, marks=pytest.mark.full) for value in values[n:])]


def few_tuples(values: Sequence[tuple[Any, ...]], n: int) -> list[Any]:
    """The same for several parameters at once."""
    return [*values[:n], *(pytest.param(*value, marks=pytest.mark.full) for value in values[n:])]


def examples(n: int, usual: int | None = None) -> int:
    """The part of ``n`` examples that the chosen profile tries, ten at least where there are as many.

    ``usual`` is the number of the profiles other than ``full``, for a test whose examples (worlds, seeds) take long.
    """
    if usual is not None:
        return n if settings.default.max_examples >= FULL else usual
    share = settings.default.max_examples / FULL
    return max(min(n, _LEAST), round(share * n))
