"""Kernels in pure Python, from their source text, with one piece of it exchanged; and what they are compared at."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import naive
import numpy as np
from draws import Page, State

import recrawl.model

FOLDER = Path(recrawl.model.__file__).parent
# In the order in which they import each other; everything else comes from the package itself.
KERNELS = ["fresh", "signals", "pages", "rates", "outcomes"]
NAMES = ["pages", "signals", *(f"kernels.{name}" for name in KERNELS)]


@contextmanager
def loaded(file: str = "", old: str = "", new: str = "") -> Iterator[SimpleNamespace]:
    """The kernel modules, not compiled, with `old` in `file` exchanged for `new`; KeyError where it is not there."""
    jit = ModuleType("mutant._jit")
    jit.jit = jit.jit_sum = jit.inline = lambda function: function
    parents = {name: ModuleType(name) for name in ("mutant", "mutant.model", "mutant.model.kernels")}
    parents["mutant._jit"] = jit
    for parent in parents.values():
        parent.__path__ = []
    sys.modules.update(parents)
    made = {}
    try:
        for name in NAMES:
            path = f"{name.replace('.', '/')}.py"
            text = (FOLDER / path).read_text()
            if path == file:
                if old not in text:
                    raise KeyError(f"{file} no longer holds: {old}")
                text = text.replace(old, new)
            for other in NAMES:
                text = text.replace(f"from recrawl.model.{other} import", f"from mutant.model.{other} import")
            module = ModuleType(f"mutant.model.{name}")
            sys.modules[module.__name__] = made[name.replace(".", "_")] = module
            exec(
                compile(text.replace("from recrawl._compile.jit import", "from mutant._jit import"), name, "exec"),
                module.__dict__,
            )
        yield SimpleNamespace(**made)
    finally:
        for name in [*parents, *(f"mutant.model.{name}" for name in NAMES)]:
            sys.modules.pop(name, None)


Kernels = SimpleNamespace
Probe = tuple[str, Callable[[Kernels], float], Callable[[], float]]  # what, its figure, its twin

# States that between them take every branch of the noisy-signal value.
STATES = [
    State(Page(1.0), 1e-6),
    State(Page(2.0), 0.2),
    State(Page(2.0), 3.0),
    State(Page(1.0, 1.0, 0.5, 0.5), 1.0),
    State(Page(1.0, 1.0, 0.5, 0.5), 4.0, 2),
    State(Page(1.0, 1.0, 0.5, 0.5), 60.0, 40),
    State(Page(1.0, 1.0, 0.6, 2.0), 1e-6),
    State(Page(1.0, 1.0, 0.3, 0.0), 2.0),
    State(Page(1.0, 1.0, 0.5, 5e11), 1.0),  # precision 1e-12
    State(Page(1.0, 1.0, 1 - 1e-16, 0.5), 3.0, 3),
    State(Page(1.0, 1.0, 1 - 1e-16, 0.5), 3.0),
    State(Page(1.0, 1.0, 1.0, 0.5), 3.0, 3),
    State(Page(1.0, 1.0, 0.97, 20.0), 30.0, 5),
    State(Page(1.0, 1.0, 0.999, 200.0), 400.0, 90),
    State(Page(1.0, 1.0, 1 - 1e-9, 1e5), 3e5, 25_000),  # incomplete gammas of shapes above 10,000
    State(Page(1.0, 1.0, 1 - 1e-12, 1e6), 1e3, 300_000),  # a long run of settled terms below s = 0.5
    State(Page(1.0, 1.0, 0.9, 1e3), 8.0, 100),  # the linear regime
    State(Page(1.0, 1.0, 1 - 1e-16, 0.5), 100.0),  # one settled term, α/γ = 1e-16
    State(Page(1.0, 1.0, 0.1, 1.0), 1.0, 3),  # a band of terms that fall slowly
    State(Page(1.0, 1.0, 1 - 1e-9, 50.0), 4.0, 20),  # twenty settled terms below s = 0.5
]


def _row(kernels: Kernels, page: Page) -> tuple[float, float, float]:
    pages = kernels.pages.Pages([page.change_rate], page.importance, page.recall, page.false_rate)
    source = kernels.signals.matched_source(pages)
    return tuple(float(column[0]) for column in source)


def value_probe(state: State, terms: int | None = None) -> Probe:
    page, elapsed, signals = state

    def figure(kernels: Kernels) -> float:
        every = kernels.kernels_signals.ALL_TERMS
        row = _row(kernels, page)
        count = every if terms is None else terms
        return kernels.kernels_pages.page_value(0, page.change_rate, math.inf, *row, elapsed, float(signals), count)

    return f"value at {state}", figure, lambda: naive.value(*page, elapsed, signals, terms)


def interval_probe(state: State) -> Probe:
    page = state.page
    exponent = page.missed_rate * state.elapsed

    def figure(kernels: Kernels) -> float:
        return kernels.kernels_signals.signal_interval(*_row(kernels, page), exponent, 0.0)

    rates = (page.change_rate, page.recall, page.false_rate)
    return f"interval at {state}", figure, lambda: naive.interval(*rates, exponent)


def plain_probe(module: str, function: str, args: tuple, twin: Callable[[], float]) -> Probe:
    return f"{function}{args}", lambda kernels: getattr(getattr(kernels, module), function)(*args), twin


def _sources(kernels: Kernels) -> float:
    pages = kernels.pages.Pages([1.0], 1.0, [[0.5, 0.3]], [[0.5, 0.2]])
    rates, weights = kernels.signals.lone_sources(pages)
    return kernels.kernels_pages.sources_value(float(pages.missed_rate[0]), rates[0], weights[0], 1.0, 2.5, 10**6)


def _sources_twin() -> float:
    lone = [0.5 * 0.7, 0.3 * 0.5]
    pairs = [(lone[0] + 0.5, math.log1p(lone[0] / 0.5)), (lone[1] + 0.2, math.log1p(lone[1] / 0.2)), (0.15, math.inf)]
    return naive.value_sources(1.0, 1.0, pairs, 0.35, 2.5)


def probes() -> list[Probe]:
    """Everything that is compared: twins are asked only once."""
    plain = [
        *(
            plain_probe("kernels_fresh", "harmonic_value", (x,), lambda x=x: naive.value_harmonic(1, 1, x))
            for x in (0.3, 2.0)
        ),
        *(plain_probe("kernels_fresh", "age_value", (x,), lambda x=x: naive.value_age(1, 1, x)) for x in (0.3, 2.0)),
        *(
            plain_probe("kernels_fresh", "posterior_value", (x, a), lambda x=x, a=a: naive.value_posterior(1, 1, a, x))
            for x, a in ((0.2, 1.5), (0.5, 2.0), (2.0, 0.4), (9.0, 2.0), (4.0, 7.0), (0.7, 1e7))
        ),
        *(
            plain_probe("kernels_fresh", "fresh_inverse", (y,), lambda y=y: naive.refresh_ratio(y, 1.0, 1.0))
            for y in (1e-9, 0.05, 0.5, 0.95, 0.9999)
        ),
        *(
            plain_probe("kernels_rates", "_mean_harmonic", (x,), lambda x=x: naive.harmonic_cost(1.0, 1 / x, "even"))
            for x in (3.0, 64.0)
        ),
        ("two sources", _sources, _sources_twin),
    ]
    some = [
        State(Page(1.0, 1.0, 0.999, 1e5), 300.0),
        State(Page(1.0, 1.0, 0.5, 0.5), 9.0),
        State(Page(1.0, 1.0, 0.9, 1e3), 8.0),
        State(Page(1.0, 1.0, 0.99, 5.0), 70.0),
    ]
    return [
        *map(value_probe, STATES),
        value_probe(State(Page(1.0, 1.0, 0.5, 0.5), 4.0, 2), terms=2),
        *map(interval_probe, some),
        *plain,
    ]


def worst(kernels: Kernels, wanted: list[tuple[Callable[[Kernels], float], float]]) -> float:
    """The largest relative difference from the twins; infinity for a figure that is no number or none at all."""
    errors = []
    for figure, expected in wanted:
        try:
            with np.errstate(all="ignore"):
                error = abs(float(figure(kernels)) / expected - 1)
        except (ArithmeticError, ValueError):
            error = math.inf
        errors.append(error if error == error else math.inf)
    return max(errors)
