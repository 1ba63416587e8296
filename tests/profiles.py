"""How many examples a property test tries: all of them in ``make test-full``, a share of them in the others.

Every profile draws the same examples in every run, so that a test fails for everybody or for nobody. Examples that are
given with ``@example`` are tried by each profile.
"""

import os

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


def examples(n: int) -> int:
    """The part of ``n`` examples that the chosen profile tries, ten at least where there are as many."""
    share = settings.default.max_examples / FULL
    return max(min(n, _LEAST), round(share * n))
