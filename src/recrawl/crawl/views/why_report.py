"""The text of ``recrawl why``: an explanation, with what the store knows of the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from recrawl.crawl.views.reasons import Fate, outcome_text, state_text
from recrawl.model.spans import format_span

if TYPE_CHECKING:
    from recrawl.crawl.feeds.polling import Feed
    from recrawl.engine.views.explain import Explanation
    from recrawl.store.protocol import Copy


def why_lines(found: Explanation, fate: Fate, copy: Copy | None, feed: Feed | None) -> list[str]:
    """All lines about one page."""
    lines = str(replace(found, state=state_text(found, fate))).splitlines()
    last = fate.last
    if found.n_crawls == 0:
        lines[0] = (
            "not compared yet; expected to " + lines[0].replace("changes", "change", 1).split("; 0 changes")[0] + ")"
        )
    if copy is None:
        lines[2] = "there is no copy yet"
    if last is not None and not last.fetched:
        ago = format_span(max(found.now - last.began_at, 0.0))
        lines[2] += f"; last tried {ago} ago" + (
            "" if found.reasons else f": {outcome_text(last, fate.robots_failure)}"
        )
    if copy is not None and copy.final_url:
        lines.append(f"redirects to {copy.final_url}")
    return [*lines, *(silent_sources(found) if copy is not None else []), *remarks(copy, feed)]


def silent_sources(found: Explanation) -> list[str]:
    """Sources that have signalled the page, but not since its copy was fetched."""
    silent = [one for one in found.signals if not one.heard]
    return [f"no signal of {one.name or f'source {one.source}'} since its copy ({one.right})" for one in silent]


def remarks(copy: Copy | None, feed: Feed | None) -> list[str]:
    """Remarks on a page: nothing selected, flapping content, feed items."""
    lines = []
    if copy is not None and copy.digest is not None and copy.digest.endswith(":nothing"):
        lines.append("the selector of its rule (select) matched nothing in the last copy")
    if copy is not None and copy.n_flaps:
        times = "once" if copy.n_flaps == 1 else f"{copy.n_flaps} times"
        lines.append(f"flapping: returned {times} to content seen before, which is not counted as a change")
    if feed is not None:
        every = format_span(1.0 / feed.rate) if feed.rate > 0 else format_span(math.inf)
        text = f"a feed of {feed.length} items, a new one about every {every}"
        text += f"; items rolled off between polls {feed.rolled} times" if feed.rolled else ""
        if feed.interval is not None:
            text += f"; polled at least every {format_span(feed.interval)} to keep them"
        elif feed.rolled_in_row:
            text += "; new items come faster than it may be polled"
        lines.append(text)
    return lines
