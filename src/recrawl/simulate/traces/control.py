"""The Poisson control of a trace: the same pages, with changes that come at constant rates and independently."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.simulate.trace import Past, Trace
from recrawl.simulate.worlds.events import Events, offsets, segment_events


def poisson_control(trace: Trace, rng: np.random.Generator) -> Trace:
    """A trace with the same pages, lifetimes and mean change rates, its changes drawn as Poisson processes.

    Its past is drawn with the same rates; it has no signals. As for the trace, ``known`` gets the mean rates of what
    was drawn. Where pages change at constant rates, a learner has nothing left to find out but these rates: the
    distance to ``known`` that remains there is one that no online learner can close.

    >>> trace = Trace(0.0, 100.0, offset=[0, 0, 3], changed_at=[1.0, 2.0, 3.0], deleted_at=[100.0, 50.0])
    >>> control = poisson_control(trace, np.random.default_rng(1))
    >>> int(control.n_changes[0]), bool(control.changed_at.max() < 50.0), len(control)
    (0, True, 2)
    """
    rate = trace.change_rate
    count, at = segment_events(rate, trace.created_at, trace.span, rng)
    past = trace.past
    if past is not None:
        length = np.maximum(trace.created_at - past.since, 0.0)
        n_before, before = segment_events(rate, past.since, length, rng)
        past = Past(Events(offsets(n_before), before), past.since)
    drawn = replace(trace, offset=offsets(count), changed_at=at, past=past)
    return replace(drawn, pages=None, signals=None, name=control_name(trace.name))


def control_name(name: str) -> str:
    """What the control of a trace is called."""
    return f"{name} (Poisson)"
