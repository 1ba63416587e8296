"""Policies compared on the same traces."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.simulate.compare.comparison import Row as Row
    from recrawl.simulate.compare.comparison import Task as Task
    from recrawl.simulate.compare.comparison import compare as compare
    from recrawl.simulate.compare.comparison import summary as summary
    from recrawl.simulate.compare.sources import Drawn as Drawn
    from recrawl.simulate.compare.sources import Recorded as Recorded

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "comparison": ["Row", "Task", "compare", "summary"],
        "sources": ["Drawn", "Recorded"],
    },
)
