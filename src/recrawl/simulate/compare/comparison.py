"""Compare policies: the same traces and the same requests for all, repetitions in parallel, one row for each policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl._system.processes import worker_processes
from recrawl.errors import ParameterError
from recrawl.model.budget import parse_budget
from recrawl.simulate.compare.sources import Source, count_from, live_pages, rng_of, trace_of
from recrawl.simulate.rivals.registry import caps, rival, rival_names
from recrawl.simulate.run.policies import contender
from recrawl.simulate.run.run import Contender, simulate
from recrawl.simulate.trace import Trace

Progress = Callable[[int, int], None]

_MOST_REPETITIONS = 10_000


@dataclass(frozen=True)
class Task:
    """One policy on one trace: with a budget, or (None) at its own demand and ``others`` with as many requests.

    ``asked`` is the name it was asked for by, ``policy`` one way to run it.
    """

    source: Source
    repetition: int
    seed: int
    budget: str | None
    asked: str
    policy: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """Result of one policy on one trace; ``requests_of`` is the rival whose number of requests it had."""

    source: Source
    budget: str | None
    requests_of: str | None
    asked: str
    policy: str
    per_day: float | None
    pages: float
    figures: dict[str, Any]


def compare(
    sources: Sequence[Source],
    policies: Sequence[str],
    budgets: Sequence[str] | None,
    *,
    repetitions: int = 1,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Figures of every policy on every source with every budget, means and standard errors over the repetitions.

    Budgets are in words; ``/page`` counts the pages that exist on average. A rival is capped in every way it can be,
    and the one with the least staleness counts. Without budgets every rival runs at its own demand and the other
    policies (``learned`` if none is named) are given as many requests. The result does not depend on ``jobs``.
    """
    chosen = checked(policies)
    for name, value, least in (("repetitions", repetitions, 1), ("jobs", jobs, 1), ("seed", seed, 0)):
        if value < least:
            raise ParameterError(f"{name} is {value}: must be at least {least}")
    if repetitions > _MOST_REPETITIONS:
        raise ParameterError(f"repetitions is {repetitions}: must be at most {_MOST_REPETITIONS}")
    for budget in budgets or ():
        parse_budget(budget, 1.0)
    if not sources or (budgets is not None and not budgets):
        raise ParameterError(f"no {'budget' if sources else 'world or trace'} is named")
    each = [(source, repetition) for source in sources for repetition in range(repetitions)]
    kinds = _own_demand(chosen) if budgets is None else _capped(chosen, budgets)
    tasks = [Task(source, repetition, seed, *kind) for source, repetition in each for kind in kinds]
    rows = [row for found in _run_all(tasks, jobs, progress) for row in found]
    return summary(rows)


def checked(policies: Sequence[str]) -> list[str]:
    """The policies, each once, all known."""
    chosen = list(dict.fromkeys(policies))
    if not chosen:
        raise ParameterError("no policy is named")
    for name in chosen:
        contender(name)
    return chosen


def is_rival(policy: str) -> bool:
    """Whether a policy is the rule of another system."""
    return policy.partition(":")[0] in rival_names()


def _capped(policies: Sequence[str], budgets: Sequence[str]) -> list[tuple[str, str, str]]:
    named = [(name, one) for name in policies for one in (caps(name) if is_rival(name) else [name])]
    return [(budget, *one) for budget in dict.fromkeys(budgets) for one in named]


def _own_demand(policies: Sequence[str]) -> list[tuple[None, str, str, tuple[str, ...]]]:
    rivals = list(dict.fromkeys(name.partition(":")[0] for name in policies if is_rival(name)))
    if not rivals:
        raise ParameterError(f"no policy has a demand of its own; name one of {', '.join(rival_names())}")
    others = tuple(name for name in policies if not is_rival(name)) or ("learned",)
    return [(None, name, name, others) for name in rivals]


def _run_all(tasks: list[Task], jobs: int, progress: Progress | None) -> Iterator[list[Row]]:
    tell = progress or (lambda done, total: None)
    tell(0, len(tasks))
    if min(jobs, len(tasks)) == 1:
        yield from _counted(map(run_task, tasks), len(tasks), tell)
        return
    with worker_processes(min(jobs, len(tasks))) as pool:
        yield from _counted(pool.map(run_task, tasks), len(tasks), tell)


def _counted(results: Iterator[list[Row]], total: int, tell: Progress) -> Iterator[list[Row]]:
    for done, found in enumerate(results, 1):
        tell(done, total)
        yield found


def run_task(task: Task) -> list[Row]:
    """Run one task, in any process."""
    source, trace = task.source, trace_of(task.source, task.seed, task.repetition)
    pages = live_pages(source, trace)

    def run(asked: str, policy: str, per_day: float | None, requests_of: str | None = None) -> Row:
        rng = rng_of(source, task.seed, task.repetition, 1)
        budget = None if per_day is None else per_day / trace.day
        result = simulate(_contender(policy, trace), trace, budget, rng=rng, count_from=count_from(source, trace))
        return Row(source, task.budget, requests_of, asked, policy, per_day, pages, result.as_dict())

    if task.budget is not None:
        return [run(task.asked, task.policy, parse_budget(task.budget, pages, plain="day", per="day"))]
    own = run(task.asked, task.policy, None, task.policy)
    requests = own.figures["requests"]
    if requests == 0:
        raise ParameterError(f"{task.policy} requests nothing in {source.days:g} days: nothing to compare with")
    return [own, *(run(other, other, requests / source.days, task.policy) for other in task.others)]


def _contender(policy: str, trace: Trace) -> Contender:
    return rival(policy, day=trace.day) if is_rival(policy) else contender(policy)


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One object for each policy: means over repetitions, and of a rival the cap that kept copies freshest."""
    cases: dict[tuple[Any, ...], dict[str, list[Row]]] = {}
    for row in rows:
        case = cases.setdefault((row.source, row.budget, row.requests_of, row.asked), {})
        case.setdefault(row.policy, []).append(row)
    return [_best(list(case.values())) for case in cases.values()]


def _best(capped: list[list[Row]]) -> dict[str, Any]:
    rows = min(capped, key=lambda rows: float(np.mean([row.figures["staleness"] for row in rows])))
    first = rows[0]
    system, _, cap = first.policy.partition(":") if is_rival(first.policy) else (first.policy, "", "")
    columns = {name: [row.figures[name] for row in rows] for name in first.figures}
    return {
        **first.source.label,
        "days": first.source.days,
        "warm": first.source.warm,
        "pages": _mean([row.pages for row in rows]),
        "policy": system,
        "cap": cap or None,
        "budget": first.budget,
        "requests_of": first.requests_of,
        "per_page_day": _mean([_per_page_day(row) for row in rows]),
        **{name: _mean(column) for name, column in columns.items()},
        "repetitions": len(rows),
        "stderr": {name: _stderr(column) for name, column in columns.items()},
    }


def _per_page_day(row: Row) -> float:
    """Requests allowed per page and day; at its own demand, made."""
    per_day = row.figures["requests"] / row.source.days if row.per_day is None else row.per_day
    return float(per_day / row.pages)


def _mean(column: Sequence[float | None]) -> float | None:
    if any(value is None for value in column):
        return None
    if len(column) == 1:
        return column[0]
    return float(np.mean(np.asarray(column, np.float64)))


def _stderr(column: Sequence[float | None]) -> float | None:
    """The standard error of the mean; None where it cannot be known."""
    if len(column) < 2 or any(value is None for value in column):
        return None
    return float(np.std(np.asarray(column, np.float64), ddof=1) / np.sqrt(len(column)))
