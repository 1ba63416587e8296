"""recrawl keeps copies of changing web pages as fresh as a request budget allows, and can prove it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.engine import Engine
    from recrawl.errors import ParameterError, RecrawlError
    from recrawl.estimate import Observations, check_estimator, estimate_change_rate, estimate_signal_quality
    from recrawl.model import Pages
    from recrawl.schedule import Pacer, Policy, Scheduler
    from recrawl.solver import Plan, solve

__version__ = "0.1.0"

# Public name -> the module that holds it; loaded on first use, so that `import recrawl` stays light.
_HOMES = {
    "Engine": "recrawl.engine",
    "ParameterError": "recrawl.errors",
    "RecrawlError": "recrawl.errors",
    "Observations": "recrawl.estimate",
    "Pacer": "recrawl.schedule",
    "Pages": "recrawl.model",
    "Plan": "recrawl.solver",
    "Policy": "recrawl.schedule",
    "Scheduler": "recrawl.schedule",
    "check_estimator": "recrawl.estimate",
    "estimate_change_rate": "recrawl.estimate",
    "estimate_signal_quality": "recrawl.estimate",
    "solve": "recrawl.solver",
}

__all__ = [
    "Engine",
    "Observations",
    "Pacer",
    "Pages",
    "ParameterError",
    "Plan",
    "Policy",
    "RecrawlError",
    "Scheduler",
    "check_estimator",
    "estimate_change_rate",
    "estimate_signal_quality",
    "solve",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recrawl' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
