"""Budget in, plan out: every optimum the papers define, through one multiplier."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.solver.plan import Plan as Plan
    from recrawl.solver.solving import solve as solve

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "plan": ["Plan"],
        "solving": ["solve"],
    },
)
