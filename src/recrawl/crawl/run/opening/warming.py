"""Warming up: every part of an engine once, so that no call of a crawl waits until its kernels are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl._compile.first_use import compile_first
from recrawl._system.threads import in_thread
from recrawl.crawl.listings.worth import Worth, poll_value
from recrawl.engine.rehearsal import rehearse

_HOUR = 3600.0


def warm_up(**settings: Any) -> None:
    """Use every part of an engine once, so that compilation on first use does not delay a crawl."""
    compile_first()
    rehearse(**settings)
    poll_value([Worth(), Worth()], np.array([_HOUR, _HOUR]))


async def warm_up_beside(**settings: Any) -> None:
    """The same in a thread: the event loop goes on meanwhile, and a signal ends the program at once."""
    await in_thread(lambda: warm_up(**settings), "recrawl-warming")
