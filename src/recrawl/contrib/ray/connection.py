"""The connection of this process to a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import ray

from recrawl._system.sockets import knock
from recrawl.errors import ParameterError

LOCAL = "local"  # a cluster of this machine alone, for as long as the command runs


@contextmanager
def connected(address: str = LOCAL) -> Iterator[int]:
    """Join the Ray cluster at an address; how many processors it has.

    ``auto`` is the cluster that this machine belongs to, ``local`` one of this machine alone that ends with the
    context. A process that has joined a cluster already stays in it.
    """
    joined = ray.is_initialized()
    if not joined:
        options = {"include_dashboard": False} if address == LOCAL else {}
        if address not in (LOCAL, "auto"):
            knock(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error", **options)
        except (OSError, ValueError, RuntimeError) as problem:
            raise ParameterError(f"no Ray cluster answers at {address}: {_first_line(problem)}") from None
    try:
        yield max(int(ray.cluster_resources().get("CPU", 1)), 1)
    finally:
        if not joined:
            ray.shutdown()


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]
