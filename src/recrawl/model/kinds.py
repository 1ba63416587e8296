"""Which curve each page follows, from the objective, the spacing of crawls and the page's signals."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.model.kernels import rates as kinds
from recrawl.model.pages import Pages
from recrawl.model.signals import Source, matched_source

Array = NDArray[np.float64]

Objective = Literal["freshness", "harmonic", "age"]
Spacing = Literal["even", "random", "steps"]
OBJECTIVES: tuple[Objective, ...] = ("freshness", "harmonic", "age")
SPACINGS: tuple[Spacing, ...] = ("even", "random", "steps")

_PLAIN = {
    ("freshness", "even"): kinds.EVEN,
    ("freshness", "random"): kinds.RANDOM,
    ("freshness", "steps"): kinds.STEPS,
    ("harmonic", "even"): kinds.HARMONIC_EVEN,
    ("harmonic", "random"): kinds.HARMONIC_RANDOM,
    ("age", "even"): kinds.AGE_EVEN,
    ("age", "random"): kinds.AGE_RANDOM,
}
# Pages whose every change is signalled, and nothing else is.
_COMPLETE = {
    ("freshness", "even"): kinds.COMPLETE,
    ("freshness", "random"): kinds.COMPLETE,
    ("harmonic", "even"): kinds.COMPLETE_HARMONIC_EVEN,
    ("harmonic", "random"): kinds.COMPLETE_HARMONIC,
}
_NOISY = {("freshness", "even"): kinds.SIGNALS}


def choose_kinds(pages: Pages, objective: str, spacing: str) -> tuple[NDArray[np.uint8], Source]:
    """(kind of every page, its matched signal source), or ParameterError where no theory covers the combination."""
    _check_combination(pages, objective, spacing)
    plain = np.array([_PLAIN[objective, spacing]], np.uint8)
    if not pages.has_signals:
        return plain, Source(np.zeros(1), np.zeros(1), np.zeros(1))
    source = matched_source(pages)
    useful = source.weight > 0
    complete = useful & (source.missed_rate == 0) & np.isinf(source.weight)
    noisy = useful & ~complete
    what = f"objective {objective!r} with spacing {spacing!r}"
    if (objective, spacing) not in _COMPLETE:
        first_row("recall", useful, f"no optimum is known for {what} and signals")
    if (objective, spacing) not in _NOISY:
        first_row("recall", noisy, f"no optimum is known for {what} and noisy signals")
    first_row("evidence", useful & np.isfinite(pages.evidence), "a page with signals needs a known rate")
    kind = np.full(len(pages), plain[0], np.uint8)
    kind[complete] = _COMPLETE.get((objective, spacing), 0)
    kind[noisy] = kinds.SIGNALS
    return kind, source


def _check_combination(pages: Pages, objective: str, spacing: str) -> None:
    if objective not in OBJECTIVES:
        raise ParameterError(f"objective {objective!r} is not one of {', '.join(OBJECTIVES)}")
    if spacing not in SPACINGS:
        raise ParameterError(f"spacing {spacing!r} is not one of {', '.join(SPACINGS)}")
    if (objective, spacing) not in _PLAIN:
        raise ParameterError(f"no optimum is known for objective {objective!r} with spacing {spacing!r}")
    if spacing == "steps":
        first_row("change_rate", pages.change_rate > 1, "is a probability per step with spacing 'steps': at most 1")
    if (objective, spacing) != ("freshness", "even"):
        uncertain = np.isfinite(one_if_constant(pages.evidence))
        first_row("evidence", uncertain, "only even spacing for freshness takes uncertain rates")


def first_row(name: str, bad: NDArray[np.bool_], rule: str) -> None:
    """Raise ParameterError that names the column and the first row where ``bad`` holds."""
    if bad.any():
        row = f", row {int(np.argmax(bad))}" if bad.size > 1 else ""
        raise ParameterError(f"{name}{row}: {rule}")


def one_if_constant(column: Array) -> Array:
    """A contiguous column, or one element where a single value stands for all rows.

    It cannot be written to, whichever of both it is, so that kernels that take it are compiled once.
    """
    found = column[:1].copy() if column.strides[0] == 0 else np.ascontiguousarray(column).view()
    found.flags.writeable = False
    return found
