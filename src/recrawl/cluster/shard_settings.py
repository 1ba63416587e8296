"""Settings of one shard's crawl."""

from __future__ import annotations

from dataclasses import replace

from recrawl.crawl.config.settings import Settings

_LEAST = 1e-9  # requests per second: the budget of a shard without a share, for forecasts


def shard_settings(settings: Settings, share: float | None) -> Settings:
    """The settings of a shard: its budget is its share, in requests per second."""
    return replace(settings, budget=f"{max(share or 0.0, _LEAST):.12g}/s")


def without_notify(settings: Settings) -> Settings:
    """The settings of a shard's crawl: notifications are sent for all shards together."""
    return replace(settings, notify=())


def callback_of_shard(callback_url: str, shard: int) -> str:
    """Where hubs reach a shard, whichever worker answers: below this URL are the callbacks of its subscriptions.

    >>> callback_of_shard("https://crawl.example.org/", 7)
    'https://crawl.example.org/shards/7'
    """
    return f"{callback_url.rstrip('/')}/shards/{shard}"
