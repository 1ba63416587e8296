"""The engine: a policy that learns, keyed by URL, that can say why it decides as it does."""

from recrawl.engine.account import Account
from recrawl.engine.core import PARTS
from recrawl.engine.engine import Engine
from recrawl.engine.explain import Explanation
from recrawl.engine.forecast import Forecast

__all__ = ["PARTS", "Account", "Engine", "Explanation", "Forecast"]
