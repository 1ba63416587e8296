"""Mixtures: pages whose rate and signals are known only as a few weighted components."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kernels.mixture import FIELDS
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.kernels.state import mixtures
from recrawl.schedule.exact.relations import Relations

_NAMES = ("weight", "mean", "shape", "signal rate", "signal weight", "heard", "repeated")


class Mixtures(Relations):
    """The methods of a scheduler for pages that have components."""

    def set_components(self, ids: ArrayLike, components: ArrayLike | None) -> None:
        """Value pages by the mean over components instead of their own parameters; None or none: no longer.

        ``components`` is (components, 7) for all ids, or (ids, components, 7), with at most 6 components: weight, mean
        and shape of a gamma belief about the rate of changes that no signal tells, signal rate, what a signal adds to
        the exponent, what the signals since the copy have added to it (heard), and whether repeated signals add again.
        Signals and records do not change them: the caller sets them again.

        >>> from recrawl import Pages
        >>> from recrawl.schedule import Scheduler
        >>> s = Scheduler(Pages([0.1, 0.1]))
        >>> s.set_components([1], [[0.5, 0.1, 2.0, 0.0, 0.0, 0.0, 0.0], [0.5, 0.1, 2.0, 0.2, 1.0, 1.0, 0.0]])
        >>> s.pick(1.0, 1).tolist()
        [1]
        """
        rows = self._columns.check(ids, distinct=True)
        given = np.zeros((0, FIELDS)) if components is None else np.asarray(components, np.float64)
        given = given.reshape(0, FIELDS) if given.size == 0 else given
        _check(given, len(rows))
        self._memory.add_mixtures(0)
        state = self._memory.state
        without = state.extra[int(state.head[0]["mixture_row"]), rows] == 0.0
        self._memory.add_mixtures(int(without.sum()) if given.size else 0)
        mixtures.write_all(self._memory.header, rows, np.ascontiguousarray(given.reshape(-1, FIELDS)), given.shape[-2])
        self._place_waiting(rows, self._now)


def _check(components: NDArray[np.float64], n: int) -> None:
    shape = components.shape
    if len(shape) not in (2, 3) or shape[-1] != FIELDS or (len(shape) == 3 and shape[0] != n):
        raise ParameterError(
            f"components has the shape {shape} for {n} ids: (components, 7) per id or for all is needed"
        )
    if shape[-2] > at.COMPONENTS:
        raise ParameterError(f"components: {shape[-2]} of a page, at most {at.COMPONENTS} are possible")
    used = components[components[..., 0] != 0.0]
    for k, name in enumerate(_NAMES):
        column = used[:, k]
        positive = (column > 0 if name in ("weight", "mean", "shape") else column >= 0) & ~np.isnan(column)
        if not (positive & (np.isfinite(column) | (name == "shape"))).all():
            rule = "finite and at least 0" if k > 2 else "above 0" if name == "shape" else "finite and above 0"
            raise ParameterError(f"components: {name} must be {rule}")
