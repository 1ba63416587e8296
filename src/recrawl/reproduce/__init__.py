"""The figures and tables of the papers as functions: tasks, claims, results, pictures."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.reproduce.catalogue import SETTINGS as SETTINGS
    from recrawl.reproduce.catalogue import choose as choose
    from recrawl.reproduce.catalogue import figures as figures
    from recrawl.reproduce.figure import Claim as Claim
    from recrawl.reproduce.figure import Figure as Figure
    from recrawl.reproduce.figure import Result as Result
    from recrawl.reproduce.floors import floors_of as floors_of
    from recrawl.reproduce.floors import misses as misses
    from recrawl.reproduce.run import Workers as Workers
    from recrawl.reproduce.run import reproduce as reproduce

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "catalogue": ["SETTINGS", "choose", "figures"],
        "figure": ["Claim", "Figure", "Result"],
        "floors": ["floors_of", "misses"],
        "run": ["Workers", "reproduce"],
    },
)
