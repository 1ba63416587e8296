"""Reload: other settings for a running crawl, as far as it can take them without a restart."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.config.shares import share_of
from recrawl.crawl.feeds.cache import floor_of
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.run.opening.notifiers import MAIL_SERVER, renew_notifiers
from recrawl.crawl.run.opening.pages import apply_rules
from recrawl.engine import Engine

NOTE = "reloaded"  # the note of the last reload
TAKES_RELOAD = "SIGHUP"  # what a crawl announces that reads its settings again when it gets this signal
LIVE = (
    "budget",
    "hours",
    "delay",
    "host_concurrency",
    "longest_delay",
    "longest_hint",
    "min_change_probability",
    "price",
    "very_stale",
    "very_stale_share",
    "feed_interval",
    "concurrency",
    "audit_share",
    "audit_draws",
    "rule",
    "notify",
    *MAIL_SERVER,
)  # settings that a running crawl can take; the others need a restart
_MANY = 5000  # pages that rules are applied to before other work has its turn


@dataclass(frozen=True)
class Reloaded:
    """What a reload did: the settings that changed, those that changed but need a restart, or why it was refused."""

    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()
    error: str | None = None

    def as_note(self, number: int) -> dict[str, Any]:
        """As plain values, with the number of the reload."""
        return {"number": number, **asdict(self)}


def compare(old: Settings, new: Settings) -> Reloaded:
    """Which settings differ, by whether a running crawl can take them."""
    different = [one.name for one in fields(old) if getattr(old, one.name) != getattr(new, one.name)]
    live = tuple(name for name in different if name in LIVE)
    return Reloaded(live, tuple(name for name in different if name not in LIVE))


def adopted(old: Settings, new: Settings) -> Settings:
    """The settings of a crawl after a reload: what needs a restart stays."""
    return replace(new, **{name: getattr(old, name) for name in compare(old, new).needs_restart})


async def reload_settings(components: Components, old: Settings, new: Settings) -> Reloaded:
    """Give a running crawl the live settings that changed; which these are, and which settings need a restart."""
    done = compare(old, new)
    changed = set(done.changed)
    engine, now = components.engine, components.clock.now()
    if changed & {"budget", "hours"} == {"hours"} and components.budget.text is None:
        components.budget.set_hours(new.opening(), now)  # the rate is another's to set
    elif changed & {"budget", "hours"}:
        components.budget.set_words(new.budget, len(engine), now, new.opening())
        if len(engine):
            engine.budget = new.rates(len(engine))[1]
    if changed & {"delay", "host_concurrency", "longest_delay"}:
        components.limiter.set_rules(**new.host_rules(), longest_delay=new.seconds("longest_delay"))
    if "longest_hint" in changed:
        components.recorder.longest_hint = new.seconds("longest_hint")
    if "min_change_probability" in changed:
        engine.min_change_probability = share_of(new.min_change_probability, "min_change_probability")
    if changed & {"price", "very_stale", "very_stale_share"}:
        _set_price(engine, new.choices())
    if "feed_interval" in changed:
        components.feeds.shortest = new.seconds("feed_interval")
    if "concurrency" in changed:
        components.pool.resize(new.concurrency)
        components.slots.resize(new.concurrency)
    if changed & {"audit_share", "audit_draws"}:
        components.audits.set_share(share_of(new.audit_share), new.audit_draws)
    if "rule" in changed:
        await _apply_rules(components, new.rules())
    if changed & {"notify", *MAIL_SERVER}:
        await renew_notifiers(components, old, adopted(old, new))
    if changed & {"rule", "hours"}:
        components.limiter.refresh_budgets()
    components.pool.wake()
    return done


def _set_price(engine: Engine, chosen: Mapping[str, Any]) -> None:
    """Another price and bound; one that is no longer given stays."""
    if "price" in chosen:
        engine.set_price(
            **{name: chosen[name] for name in ("price", "very_stale", "very_stale_share") if name in chosen}
        )


async def _apply_rules(components: Components, new: Rules) -> None:
    """Use other rules from now on: for requests at once, for the pages of the engine some thousands at a time."""
    engine, rules = components.engine, components.options.rules
    before = Rules(rules.rules)
    rules.replace(new.rules)
    ids = engine.ids()
    urls = engine.url(ids)
    for first in range(0, len(ids), _MANY):
        some, names = ids[first : first + _MANY], urls[first : first + _MANY]
        here = engine.addresses.known(names) == some  # others were removed meanwhile
        some, names = some[here], [name for name, known in zip(names, here, strict=True) if known]
        _release_floors(components, before, dict(zip(some.tolist(), names, strict=True)))
        apply_rules(engine, rules, some)
        await asyncio.sleep(0)


def _release_floors(components: Components, before: Rules, pages: Mapping[int, str]) -> None:
    """Pages whose ``max_interval`` is no longer given by a rule: that of their feed remains."""
    rules, feeds = components.options.rules, components.feeds
    floors = defaultdict[float, list[int]](list)
    for page, url in pages.items():
        if before.of(url).max_interval is not None and rules.of(url).max_interval is None:
            floors[floor_of(feeds.interval(url), None)].append(page)
    for floor, ids in floors.items():
        components.engine.set_floor(np.array(ids, np.int64), floor)
