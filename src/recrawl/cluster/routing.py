"""Commands of a cluster: each goes to the queues of the shards that its pages belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recrawl.cluster.hosts import shards_of
from recrawl.errors import ParameterError

TOKENS = 0  # the shard that has the tokens of a cluster, and the sources named after them
_OF_PAGES = ("add", "remove", "set", "pause")


def routed(commands: Sequence[Mapping[str, Any]], n_shards: int) -> dict[int, list[dict[str, Any]]]:
    """The commands of each shard.

    >>> found = routed([{"remove": ["https://a.example/", "https://b.example/"]}], 2)
    >>> sorted(url for mine in found.values() for one in mine for url in one["remove"])
    ['https://a.example/', 'https://b.example/']
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for command in commands:
        for shard, mine in _parts(command, n_shards).items():
            found.setdefault(shard, []).append(mine)
    return found


def _parts(command: Mapping[str, Any], n_shards: int) -> dict[int, dict[str, Any]]:
    """A command by shards; columns of pages are divided with their pages."""
    name = next((name for name in _OF_PAGES if name in command), None)
    if name is None:
        return {_shard(command, n_shards): dict(command)}
    urls = list(command[name])
    found: dict[int, dict[str, Any]] = {}
    shards = shards_of(urls, n_shards).tolist()
    for shard in dict.fromkeys(shards):
        rows = [k for k, one in enumerate(shards) if one == shard]
        found[shard] = {
            key: [value[k] for k in rows] if isinstance(value, list) else value for key, value in command.items()
        }
    return found


def _shard(command: Mapping[str, Any], n_shards: int) -> int:
    if "token" in command:
        return TOKENS
    if "listing" in command or "follow" in command:
        url = command.get("listing") or str(command["follow"]).partition(":")[2]
        return int(shards_of([url], n_shards)[0])
    raise ParameterError(f"a cluster takes no command {next(iter(command), '')!r}")
