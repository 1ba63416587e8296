"""What ``recrawl run`` says on standard error while it runs: mistakes, followers that take nothing, dropped events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

_MOST = 20  # mistakes told in full


class Log:
    """Hears what a crawler tells, and says the part that someone should look at, in one line each."""

    def __init__(self) -> None:
        self._errors = 0

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Something happened."""
        if name == "error":
            self._error(fields)
        elif name == "not taken" and _is_power_of_two(fields["failures"]):
            tries = f", {fields['failures']} times in a row" if fields["failures"] > 1 else ""
            _say(f"{fields['follower']}: events were not taken: {fields['why']}{tries}; they are kept and tried again")
        elif name == "dropped":
            _say(f"{fields['follower']}: {fields['n']} events were dropped before it took them; it must start anew")

    def _error(self, fields: Mapping[str, Any]) -> None:
        self._errors += 1
        problem = fields["problem"]
        if self._errors <= _MOST:
            _say(f"{fields['url']}: a mistake of the crawler's own: {type(problem).__name__}: {problem}")
        if self._errors == _MOST:
            _say("further mistakes are counted as errors and not told")


def _say(words: str) -> None:
    typer.echo(f"recrawl: {' '.join(words.split())[:1000]}", err=True)


def _is_power_of_two(n: int) -> bool:
    return n & (n - 1) == 0
