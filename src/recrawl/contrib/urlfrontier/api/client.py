"""Client: the calls of a service by their names, for tests, checks and small tools."""

from __future__ import annotations

from typing import Any

import grpc.aio

from recrawl.contrib.urlfrontier.api.wire import CALLS, SERVICE, message


class FrontierClient:
    """Calls of a service at ``host:port``: ``await client.GetStats(key="…")``, ``client.GetURLs(…)`` as a stream.

    Fields of the message are given by name. Calls that take a stream take messages (`wire.py`)
    from an iterator.
    """

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._calls: dict[str, Any] = {}
        kinds = {(False, False): "unary_unary", (False, True): "unary_stream", (True, True): "stream_stream"}
        for name, call in CALLS.items():
            make = getattr(self._channel, kinds[call.streams])
            self._calls[name] = make(
                f"/{SERVICE}/{name}",
                request_serializer=message(call.takes).SerializeToString,
                response_deserializer=message(call.gives).FromString,
            )

    def __getattr__(self, name: str) -> Any:
        try:
            call = self._calls[name]
        except KeyError:
            raise AttributeError(f"there is no call {name}") from None
        takes, streams = CALLS[name].takes, CALLS[name].streams[0]
        return call if streams else lambda **fields: call(message(takes)(**fields))

    async def __aenter__(self) -> FrontierClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()
