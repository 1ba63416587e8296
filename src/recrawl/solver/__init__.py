"""Budget in, plan out: every optimum the papers define, through one multiplier."""

from recrawl.solver.plan import Plan
from recrawl.solver.solve import solve

__all__ = ["Plan", "solve"]
