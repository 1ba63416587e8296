"""Every byte of an engine's state, by the path of attributes that leads to it; and all methods that only read."""

import numpy as np

from recrawl.engine.views.expected import expected_fresh, expected_pages
from recrawl.engine.views.sources import lost_trust, source_facts

SKIPPED = {"header"}  # holds addresses of the arrays; the arrays themselves are looked at
PLAIN = {int, float, str, bytes, bool, type(None)}


def snapshot(thing, path="engine", found=None):
    """A dictionary from paths to bytes or values, of all that hangs on a thing."""
    found = {} if found is None else found
    if isinstance(thing, np.ndarray):
        found[path] = (thing.dtype.str, thing.shape, thing.tobytes())
    elif isinstance(thing, dict) and PLAIN.issuperset(map(type, thing.values())):
        found[path] = list(thing.items())
    elif isinstance(thing, dict):
        found[path] = list(thing)
        for name, value in thing.items():
            snapshot(value, f"{path}[{name!r}]", found)
    elif hasattr(thing, "_asdict"):
        for name, value in thing._asdict().items():
            snapshot(value, f"{path}.{name}", found)
    elif isinstance(thing, list | tuple) and PLAIN.issuperset(map(type, thing)):
        found[path] = list(thing)
    elif isinstance(thing, list | tuple):
        found[path] = len(thing)
        for k, value in enumerate(thing):
            snapshot(value, f"{path}[{k}]", found)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type):
        for name, value in vars(thing).items():
            if name not in SKIPPED:
                snapshot(value, f"{path}.{name}", found)
    else:
        found[path] = set(thing) if isinstance(thing, set) else thing
    return found


def important(engine):
    """Whether there is anything to forecast for."""
    return len(engine) > 0 and engine.pages().importance.any()


READS = {
    "explain": lambda engine, ids, now: [str(engine.explain(page, now)) for page in ids.tolist()],
    "fresh": lambda engine, ids, now: engine.fresh(ids, now),
    "forecast": lambda engine, ids, now: engine.forecast(0.5) if important(engine) else None,
    "forecast of a window": lambda engine, ids, now: (
        engine.forecast(0.5, start=max(now, engine.now), duration=5.0) if important(engine) else None
    ),
    "value": lambda engine, ids, now: engine.scheduler.value(ids, now),
    "pages": lambda engine, ids, now: (engine.pages(), engine.pages(ids)) if len(ids) else None,
    "ledger": lambda engine, ids, now: (engine.ledger(now), engine.ledger(now, ids)),
    "rows": lambda engine, ids, now: (engine.rows(), engine.rows(ids)),
    "state": lambda engine, ids, now: engine.state(),
    "source_facts": lambda engine, ids, now: (source_facts(engine), lost_trust(engine)),
    "stats": lambda engine, ids, now: engine.stats,
    "lessons": lambda engine, ids, now: engine.lessons(),
    "threshold_curve": lambda engine, ids, now: engine.threshold_curve(0.1, 9.0, now, horizon=3.0) if len(ids) else 0,
    "threshold": lambda engine, ids, now: (engine.threshold, engine.budget, engine.now, len(engine)),
    "url": lambda engine, ids, now: (engine.url(ids), engine.id(engine.url(ids)), engine.ids()),
    "hosts": lambda engine, ids, now: [engine.held_until(host) for host in [*engine.hosts(), "unknown.example"]],
    "is_paused": lambda engine, ids, now: engine.is_paused(ids),
    "deferred_until": lambda engine, ids, now: engine.deferred_until(ids),
    "has_copy": lambda engine, ids, now: engine.has_copy(ids),
    "live_state": lambda engine, ids, now: (engine.live_state(), repr(engine)),
    "id": lambda engine, ids, now: [engine.id(url) for url in engine.url(ids)],
    "expected_fresh": lambda engine, ids, now: (
        (expected_fresh(engine, ids, now), expected_pages(engine, ids)) if len(ids) else None
    ),
}


def assert_reading_changes_nothing(engine, ids, now, names=tuple(READS)):
    """Call methods that read; every byte must be as it was before them. What they returned, by name."""
    before = snapshot(engine)
    results = {name: READS[name](engine, ids, now) for name in names}
    after = snapshot(engine)
    changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    assert not changed, f"{' or '.join(names)} changed {', '.join(sorted(changed)[:5])}"
    return results
