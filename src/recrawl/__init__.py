"""recrawl keeps copies of changing web pages as fresh as a request budget allows, and can prove it."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.engine import Engine as Engine
    from recrawl.errors import ParameterError as ParameterError
    from recrawl.errors import RecrawlError as RecrawlError
    from recrawl.estimate import Observations as Observations
    from recrawl.estimate import check_estimator as check_estimator
    from recrawl.estimate import estimate_change_rate as estimate_change_rate
    from recrawl.estimate import estimate_signal_quality as estimate_signal_quality
    from recrawl.model import Pages as Pages
    from recrawl.schedule import Pacer as Pacer
    from recrawl.schedule import Policy as Policy
    from recrawl.schedule import Scheduler as Scheduler
    from recrawl.solver import Plan as Plan
    from recrawl.solver import solve as solve

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "engine": ["Engine"],
        "errors": ["ParameterError", "RecrawlError"],
        "estimate": ["Observations", "check_estimator", "estimate_change_rate", "estimate_signal_quality"],
        "model": ["Pages"],
        "schedule": ["Pacer", "Policy", "Scheduler"],
        "solver": ["Plan", "solve"],
    },
)
