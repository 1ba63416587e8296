"""Hubs in ``recrawl status``: subscriptions by state, what was delivered, and keys of pings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.store import BlockingStore, OwnedStore

_SHOWN = 3  # hubs that are denied or fail


def hub_figures(store: BlockingStore[OwnedStore], now: float) -> dict[str, Any]:
    """Subscriptions by state, deliveries so far, active hubs that are silent, and hubs that refuse or fail."""
    from recrawl.crawl.signals.indexnow.keys import PREFIX as KEYS
    from recrawl.crawl.signals.websub.subscription import Subscription
    from recrawl.crawl.signals.websub.subscriptions import PREFIX

    fields = set(Subscription.__slots__)
    notes = [{name: value for name, value in note.items() if name in fields} for note in store.notes(PREFIX).values()]
    found = [Subscription.of_note(note, now) for note in notes]
    keys = store.notes(KEYS).values()
    troubled = Counter(one.hub_url for one in found if one.denied or (one.failures and not one.active(now)))
    return {
        "subscriptions": len(found),
        "states": dict(sorted(Counter(one.state(now) for one in found).items())),
        "deliveries": sum(one.n_deliveries for one in found),
        "silent": sum(one.active(now) and not one.speaks(now) for one in found),
        "troubled": dict(troubled.most_common(_SHOWN)),
        "keys_valid": sum(note["valid"] is True for note in keys),
        "keys_refused": sum(note["valid"] is False for note in keys),
    }


def hub_rows(hubs: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines of ``recrawl status``."""
    rows = []
    if hubs["subscriptions"]:
        text = ", ".join(f"{n} {state}" for state, n in hubs["states"].items()) + f"; {hubs['deliveries']} deliveries"
        if hubs["silent"]:
            text += f"; {hubs['silent']} silent so far"
        if hubs["troubled"]:
            text += f"; refused or failed by {', '.join(hubs['troubled'])}"
        rows.append(("subscriptions to hubs", text))
    if hubs["keys_valid"] or hubs["keys_refused"]:
        rows.append(("keys of pings", f"{hubs['keys_valid']} valid, {hubs['keys_refused']} refused"))
    return rows
