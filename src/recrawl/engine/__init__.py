"""The engine: a policy that learns, keyed by URL, that can say why it decides as it does."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine as Engine
    from recrawl.engine.outcomes.lessons import Lessons as Lessons
    from recrawl.engine.settings import EngineOptions as EngineOptions
    from recrawl.engine.views.explain import Explanation as Explanation
    from recrawl.engine.views.forecast import Forecast as Forecast
    from recrawl.engine.views.ledger import Ledger as Ledger

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "engine": ["Engine"],
        "outcomes.lessons": ["Lessons"],
        "settings": ["EngineOptions"],
        "views.explain": ["Explanation"],
        "views.forecast": ["Forecast"],
        "views.ledger": ["Ledger"],
    },
)
