"""How pages are chosen, from settings written as text: objective, policy, price, bound on very stale copies."""

from __future__ import annotations

from typing import Any

from recrawl.crawl.config.rules import span
from recrawl.crawl.config.shares import share_of
from recrawl.engine.settings import Settings as EngineSettings
from recrawl.errors import ParameterError, unknown
from recrawl.model.kinds import OBJECTIVES

_NONE = ("0", "0 s", "0s", "0.0", "none")
CHOICES = ("objective", "policy", "price", "very_stale", "very_stale_share")


def choices_of(**texts: str) -> dict[str, Any]:
    """Settings of the engine from those of a crawl; what is empty is left out.

    >>> choices_of(objective="", price="2 h", very_stale="8 h", very_stale_share="5%")
    {'price': 7200.0, 'very_stale': 28800.0, 'very_stale_share': 0.05}
    """
    given = {name: text.strip() for name, text in texts.items() if text.strip()}
    found: dict[str, Any] = {}
    for name, text in given.items():
        if name == "objective" and text not in OBJECTIVES:
            raise unknown("objective", text, OBJECTIVES)
        found[name] = _READ.get(name, _as_it_is)(name, text)
    if found.get("price") == 0.0:
        found = {"very_stale": 0.0, "very_stale_share": 0.0, **found}
    EngineSettings(**found)  # refuses what does not go together
    return found


def _as_it_is(name: str, text: str) -> str:
    return text


def _time(name: str, text: str) -> float:
    if text in _NONE:
        return 0.0
    try:
        return span(text, name)
    except ParameterError:
        what = "the staleness, times importance, that a crawl must save" if name == "price" else "a time"
        raise ParameterError(f"{name} is {text!r}: {what} is expected, such as 2 h") from None


def _share(name: str, text: str) -> float:
    return 0.0 if text == "none" else share_of(text, name)


_READ = {"price": _time, "very_stale": _time, "very_stale_share": _share}
