"""Seeded runs of a checkout, one digest per case: picks, times, beliefs and results, compared byte by byte.

    PYTHONPATH=../before/src python experiments/structure/same.py before     # one column of same.json
    PYTHONPATH=../after/src python experiments/structure/same.py after
    python experiments/structure/same.py --compare before after

The script runs on the code of today, before the restructuring (commit 0209ca8) and after it (9666431); names that moved
are looked for under both paths. It ends with 1 if a case cannot be run. A digest is the first 16 hexadecimal digits of
a SHA-256 of the bytes of all arrays of a case: ids and times of every pick, believed rates, freshness, counts and
staleness of every page.
"""

import argparse
import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).with_name("same.json")
TRACES = Path(__file__).parents[3] / "shared" / "data" / "changes"
RECORDED = ("ota-contrib", "dotnet-docs")  # one without and one with signals
EFFECTS = ("none", "siblings")
NO_PROTOCOL = ("clairvoyant", "trailing")  # references that know the trace: the simulator alone drives them
CASES: dict[str, Callable[[], list[Any]]] = {}


def found(name: str, *modules: str) -> Any:
    """A name under the first of these modules that has it."""
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"{name} is in none of {', '.join(modules)}")


def digest(parts: list[Any]) -> str:
    """The digest of arrays, numbers and texts, in order."""
    sha = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        if array.dtype.hasobject:
            raise TypeError(f"{type(part).__name__} has no bytes to compare")
        sha.update(str((array.dtype.str, array.shape)).encode())
        sha.update(array.tobytes())
    return sha.hexdigest()[:16]


# --- policies against traces -----------------------------------------------------------------------------------------


class Recording:
    """A policy whose picks are written down; the simulator drives it by the protocol alone."""

    def __init__(self, policy: Any) -> None:
        self.__dict__.update(policy=policy, picks=[])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.policy, name, value)

    def pick(self, now: float, n: int) -> Any:
        """Pick, and write it down."""
        ids = self.policy.pick(now, n)
        self.picks += [np.float64(now), ids.copy()]
        return ids


def judged(run: Any) -> list[Any]:
    """All figures of a run."""
    plain = [run.staleness, run.staleness_unweighted, run.requests, run.changes_found]
    return [*plain, run.crawls, run.found, run.page_staleness, run.window_freshness]


def believed(policy: Any) -> list[Any]:
    """What an engine believes at the end."""
    if not hasattr(policy, "forecast"):
        return []
    pages = policy.pages()
    columns = [pages.change_rate, pages.evidence, pages.recall, pages.false_rate, pages.importance]
    return [policy.ids(), *columns, policy.fresh(policy.ids(), policy.now + 1.0), policy.threshold]


def compiled(name: str, trace: Any, budget: float) -> list[Any]:
    """A policy in the fastest loop there is for it."""
    from recrawl.simulate import contender, simulate

    chosen, made = contender(name), []

    def make(*given: Any) -> Any:
        made.append(chosen.make(*given))
        return made[0]

    run = simulate(replace(chosen, make=make), trace, budget, rng=np.random.default_rng(5), bins=7)
    return [*judged(run), *believed(made[0])]


def by_protocol(name: str, trace: Any, budget: float) -> list[Any]:
    """The same policy by pick and record, two pages at a time."""
    from recrawl.simulate import contender, simulate

    chosen, made = contender(name), []

    def make(*given: Any) -> Recording:
        made.append(Recording(chosen.make(*given)))
        return made[0]

    run = simulate(replace(chosen, make=make), trace, budget, rng=np.random.default_rng(5), bins=7, batch=2)
    return [*made[0].picks, *judged(run), *believed(made[0].policy)]


def policies() -> list[str]:
    """All policies by name, the engine with several sets of effects."""
    names = found("names", "recrawl.simulate.run.policies", "recrawl.simulate.policies")()
    return [*names, *(f"learned:{effects}" for effects in EFFECTS)]


def worlds() -> Iterator[tuple[str, Any, float]]:
    """Drawn worlds and the last months of recorded traces, each with a budget."""
    from recrawl.simulate import read_trace, world

    for name, n, signals in (("poisson", 120, "noisy"), ("together", 120, None), ("bursty", 80, None)):
        drawn = world(name, n, signals=signals) if signals else world(name, n)
        yield f"world {name}", drawn.draw(30.0, np.random.default_rng(11)), n / 4
    for name in RECORDED:
        if not (TRACES / name).exists():
            print(f"{TRACES / name} is absent: no case of it")
            continue
        trace = read_trace(TRACES / name, days=60.0)
        yield f"trace {name}", trace, len(trace) / 20 / 86400.0


def add_policies() -> None:
    """A case per policy and world; by the protocol on drawn worlds only, and not for references that know the trace."""
    for label, trace, budget in worlds():
        for name in policies():
            CASES[f"{label}, {name}"] = lambda n=name, t=trace, b=budget: compiled(n, t, b)
            if label.startswith("world") and name.partition(":")[0] not in NO_PROTOCOL:
                CASES[f"{label}, {name}, by the protocol"] = lambda n=name, t=trace, b=budget: by_protocol(n, t, b)


# --- the engine and the scheduler by their protocols ---------------------------------------------------------------


def engine_story(seed: int, explains: bool = False, **settings: Any) -> list[Any]:
    """An engine that lives through everything its protocol offers; ``explains``: every page is explained on the way."""
    from recrawl import Engine

    rng = np.random.default_rng(seed)
    engine = Engine(0.02, day=3600.0, lease=60.0, **settings)
    urls = [f"https://h{k % 5}.example/f{k % 3}/{k}" for k in range(90)]
    engine.add(urls[:60], 0.0, importance=rng.exponential(1.0, 60))
    engine.host("h1.example", spacing=40.0, concurrency=1)
    engine.set_floor([3, 4], 1e-4)
    rate, seen = rng.gamma(0.5, 2e-3, 200), []
    for k in range(700):
        now = 25.0 * (k + 1)
        ids = engine.pick(now, int(rng.integers(1, 4)))
        seen += [np.float64(now), ids.copy(), engine.next_at(now)]
        changed, chance = rng.random(len(ids)) < 1 - np.exp(-rate[ids] * 600.0), rng.random(len(ids))
        engine.record(ids, now + 1.0, changed=changed, as_of=now, failed=chance < 0.05, gone=chance > 0.98)
        if settings.get("sources", 1) and k % 3 == 0:
            source = int(rng.integers(settings.get("sources", 1)))
            engine.signal(rng.choice(engine.ids(), 2), now + 2.0, source=source)
        if k % 50 == 49:
            seen += happen(engine, rng, urls, now + 3.0, k)
        if k == 400:
            engine = Engine.restore(engine.state())
        if explains and k % 50 == 0:
            for page in engine.ids().tolist():
                engine.explain(page, now + 2.0)
    forecast = engine.forecast(0.05)
    return [*seen, *believed(engine), forecast.freshness, forecast.low, forecast.high]


def happen(engine: Any, rng: np.random.Generator, urls: list[str], now: float, k: int) -> list[Any]:
    """Everything that happens to an engine beside crawls; what it believes then."""
    live = engine.ids()
    some = rng.choice(live, 3, replace=False)
    kind = (k // 50) % 6
    if kind == 0:
        first = 60 + (k // 50) // 6 * 10
        engine.add(urls[first : first + 10], now, importance=2.0)
    elif kind == 1:
        engine.pause(some)
    elif kind == 2:
        engine.resume(live)
        engine.request(some, now)
    elif kind == 3:
        engine.defer(some, now + 500.0)
        engine.hold("h2.example", now + 200.0)
    elif kind == 4:
        engine.update(some, importance=rng.exponential(1.0, 3))
    else:
        engine.remove(some[:1])
    return believed(engine)


def scheduler_story(policy: str, objective: str) -> list[Any]:
    """A scheduler with hosts, leases and signals; ids and times of its picks and the values of its pages."""
    from recrawl import Pages, Scheduler

    rng, n = np.random.default_rng(3), 200
    columns = {"change_rate": rng.gamma(0.6, 1.0, n), "importance": rng.exponential(1.0, n)}
    hosts = np.array([f"h{k}" for k in rng.integers(0, 9, n)], dtype=object)
    pages = Pages(**columns, recall=rng.random(n), false_rate=rng.gamma(0.5, 0.2, n), host=hosts)
    scheduler = Scheduler(budget=20.0, policy=policy, objective=objective, lease=1.0)
    scheduler.add(pages, 0.0)
    scheduler.host("h3", spacing=0.4, concurrency=1)
    seen: list[Any] = []
    for k in range(900):
        now = 0.05 * (k + 1)
        ids = scheduler.pick(now, 1 + k % 3)
        seen += [np.float64(now), ids.copy(), scheduler.threshold, scheduler.next_at(now)]
        scheduler.record(ids, now + 0.01, as_of=now)
        if k % 2:
            scheduler.signal(rng.integers(0, n, 2), now + 0.02)
        if k % 100 == 99:
            scheduler.update(np.arange(5), change_rate=rng.gamma(0.6, 1.0, 5))
            seen.append(scheduler.value(np.arange(n), now + 0.02))
    return seen


def add_stories() -> None:
    """Cases of the engine's and the scheduler's protocols."""
    for label, settings in {
        "without signals": {"sources": 0},
        "with signals": {"sources": 2},
        "without effects": {"sources": 1, "siblings": False},
        "for age": {"sources": 0, "objective": "age"},
    }.items():
        CASES[f"engine {label}"] = lambda s=settings: engine_story(1, **s)
        CASES[f"engine {label}, explained on the way"] = lambda s=settings: engine_story(1, True, **s)
    for policy, objective in (("signals", "freshness"), ("no-signals", "freshness"), ("no-signals", "age")):
        CASES[f"scheduler {policy}, {objective}"] = lambda p=policy, o=objective: scheduler_story(p, o)


# --- a live crawl in memory, plans and estimates --------------------------------------------------------------------


def live(seed: int) -> list[Any]:
    """The demo's crawl under the manual clock: every request in order, expected freshness over time, the verdict.

    The forecast is that of the second half; earlier code forecast the whole time. The number of "not modified" answers
    is left out: it differs from run to run of one checkout.
    """
    from recrawl.demo.live import LiveDemo
    from recrawl.store import MemoryStore

    demo = LiveDemo(MemoryStore(), seconds=20.0, budget=20.0, seed=seed)
    verdict = asyncio.run(demo.run_in_memory())
    rows = [(one.at, one.page, one.version, one.status) for one in demo._web.log]
    samples = [(one.at, one.freshness) for one in verdict.samples]
    engine = demo._crawler.engine  # type: ignore[union-attr]
    forecast = verdict.half.forecast if hasattr(verdict, "half") else verdict.forecast
    figures = [verdict.requests, verdict.failures, forecast.freshness]
    texts = [f"{one.host}{one.path}" for one in demo._web.log]
    return [np.array(rows), np.array(texts), np.array(samples), *figures, *judged(verdict.truth), *believed(engine)]


def plans() -> list[Any]:
    """Plans of all kinds, and estimated rates."""
    from recrawl import Observations, Pages, estimate_change_rate, solve

    rng = np.random.default_rng(2)
    pages = Pages(rng.gamma(0.6, 1.0, 500), rng.exponential(1.0, 500))
    signalled = Pages(pages.change_rate, pages.importance, recall=rng.random(500), false_rate=rng.gamma(0.5, 0.2, 500))
    out: list[Any] = [solve(pages, 100.0, spacing=spacing).crawl_rate for spacing in ("even", "random")]
    out += [solve(pages, 100.0, objective="age").crawl_rate, solve(signalled, 100.0).crawl_rate]
    log = Observations(np.arange(0, 3001, 60), rng.exponential(1.0, 3000), rng.random(3000) < 0.3)
    return [*out, estimate_change_rate(log).change_rate]


def add_rest() -> None:
    for seed in (1, 2):
        CASES[f"live crawl in memory, seed {seed}"] = lambda s=seed: live(s)
    CASES["plans and estimates"] = plans


# --- columns and their comparison -----------------------------------------------------------------------------------


def add_cases() -> None:
    """All cases."""
    add_policies()
    add_stories()
    add_rest()


def run(label: str, only: str) -> list[str]:
    """Make digests of the cases whose names contain a text a column of the results; the cases that could not be run."""
    add_cases()
    table = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    column, failed = table.setdefault(label, {}), []
    for name, case in CASES.items():
        if only not in name:
            continue
        try:
            column[name] = digest(case())
        except Exception as problem:  # the other cases are still of use
            failed.append(name)
            column[name] = f"{type(problem).__name__}: {problem}"[:120]
        print(f"{name:70} {column[name]}", flush=True)
        RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    return failed


def compare(first: str, second: str) -> None:
    """Cases whose digests differ between two columns, among those that both have; how many only one has."""
    table = json.loads(RESULTS.read_text())
    before, after = table[first], table[second]
    names = [name for name in before if name in after]
    differing = [name for name in names if before[name] != after[name]]
    for name in differing:
        print(f"{name:70} {before[name]} -> {after[name]}")
    print(f"{len(names) - len(differing)} of {len(names)} cases are the same, bit for bit")
    if alone := len(before | after) - len(names):
        print(f"{alone} cases are in one column alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("label", nargs="?", help="run all cases, and write their digests to this column")
    parser.add_argument("--only", default="", help="run cases whose names contain this text")
    parser.add_argument("--compare", nargs=2, metavar="COLUMN", help="list the cases that differ between two columns")
    given = parser.parse_args()
    failed = run(given.label, given.only) if given.label else []
    if given.compare:
        compare(*given.compare)
    if failed:
        raise SystemExit(f"{len(failed)} cases could not be run")


if __name__ == "__main__":
    main()
