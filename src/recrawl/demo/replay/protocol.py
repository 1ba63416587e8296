"""The engine in a simulation, driven by its protocol as the loop of a crawl drives it: the replay without a crawler."""

from __future__ import annotations

from typing import Any

from recrawl.crawl.config.settings import Settings
from recrawl.engine import Engine
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.run import Contender


class ByProtocol:
    """An engine that the simulator drives by its protocol, slot by slot, since it does not know its class.

    As in the loop of a crawl, refits and clocks are left to pieces. They are done after a crawl is recorded, all before
    the next slot: a slot of a replay lasts a minute or more, and a piece is due a millisecond after the last.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        engine.refits_in_pieces = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def record(self, *given: Any, **columns: Any) -> None:
        """Record, then do all pieces."""
        self._engine.record(*given, **columns)
        while self._engine.maintain():
            pass


def by_protocol() -> Contender:
    """The policy ``learned`` with the host rules of a crawl, which `replay_trace` equals bit for bit.

    The compiled loop of ``learned`` has no host rules: it takes pages of equal value in another order.
    """
    make = learning(host_concurrency=Settings().host_concurrency)
    return Contender("learned", lambda *given: ByProtocol(make(*given)), admit_unknown)  # type: ignore[arg-type]
