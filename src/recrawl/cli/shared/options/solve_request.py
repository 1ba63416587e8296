"""The options of ``recrawl solve``, parsed into numbers per the file's unit of time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np

from recrawl import Pages, Plan, solve
from recrawl.errors import ParameterError
from recrawl.model.budget import parse_budget, unit_name
from recrawl.model.kinds import Objective, Spacing


@dataclass(frozen=True)
class Request:
    """The options of ``recrawl solve`` as written; exactly one of budget, target and price is given."""

    budget: str | None = None
    target: str | None = None
    price: float | None = None
    unit: str = "day"
    objective: str = "freshness"
    spacing: str = "even"
    floor: str | None = None
    ceiling: str | None = None
    host_limit: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", unit_name(self.unit))
        given = [name for name in ("budget", "target", "price") if getattr(self, name) is not None]
        if len(given) != 1:
            found = f", not {' and '.join('--' + name for name in given)}" if given else ""
            raise ParameterError(f"give one of --budget, --target and --price{found}")
        self.goal(n_pages=1)
        self.bounds()
        self.limits()

    def in_unit_of(self, unit: str | None, *, given: bool, path: Path) -> Request:
        """The same request in the unit that the table names; ``given``: whether the user named one as well."""
        if unit is None or unit == self.unit:
            return self
        if given:
            raise ParameterError(f"{path}: column unit says {unit}, but --unit says {self.unit}")
        return replace(self, unit=unit)

    def goal(self, n_pages: int) -> Mapping[str, float]:
        """The given one of budget, target and price, as a number."""
        if self.budget is not None:
            return {"budget": parse_budget(self.budget, n_pages, plain=self.unit, per=self.unit)}
        if self.target is not None:
            return {"target": _share(self.target)}
        price = float(self.price or 0.0)
        if not (0 < price < math.inf):
            raise ParameterError(f"--price is {price:g}: must be above 0 and finite")
        return {"price": price}

    def bounds(self) -> tuple[float, float | None]:
        """Floor and ceiling of every page's rate."""
        floor = 0.0 if self.floor is None else self._rate("--floor", self.floor)
        ceiling = None if self.ceiling is None else self._rate("--ceiling", self.ceiling)
        if ceiling is not None and ceiling < floor:
            raise ParameterError(f"--ceiling {self.ceiling} is below --floor {self.floor}")
        return floor, ceiling

    def limits(self) -> dict[str, float] | None:
        """Highest crawl rate of each limited host."""
        limits: dict[str, float] = {}
        for text in self.host_limit:
            host, sign, rate = text.rpartition("=")
            host = host.strip().lower()
            if not sign or not host:
                raise ParameterError(f"--host-limit {text!r}: write HOST=RATE, for example example.org=500/day")
            if host in limits:
                raise ParameterError(f"--host-limit: {host} is limited twice")
            limits[host] = self._rate("--host-limit", rate)
        return limits or None

    def solve(self, pages: Pages) -> Plan:
        """The best plan for these pages."""
        limits = self.limits()
        if limits is not None:
            known = set(np.unique(pages.host).tolist()) if pages.host is not None else set()
            unknown = next((host for host in limits if host not in known), None)
            if unknown is not None:
                raise ParameterError(f"--host-limit: no page is on {unknown}")
        return self.solve_at(pages, self.goal(len(pages)), limits)

    def solve_at(self, pages: Pages, goal: Mapping[str, float], limits: dict[str, float] | None = None) -> Plan:
        """A plan for another budget, target or price, and other host limits."""
        floor, ceiling = self.bounds()
        return solve(
            pages,
            **goal,
            objective=cast(Objective, self.objective),
            spacing=cast(Spacing, self.spacing),
            floor=floor,
            ceiling=ceiling,
            host_limit=limits,
        )

    def _rate(self, option: str, text: str) -> float:
        try:
            return parse_budget(text, 1, plain=self.unit, per=self.unit)
        except ParameterError as problem:
            raise ParameterError(f"{option}: {str(problem).removeprefix('budget ')}") from None


def _share(text: str) -> float:
    percent = text.strip().endswith("%")
    try:
        share = float(text.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        raise ParameterError(f"--target {text!r} is not a number; write for example 0.9 or 90%") from None
    if not (0 < share < 1):
        raise ParameterError(f"--target {text!r}: freshness must lie between 0 and 1")
    return share
