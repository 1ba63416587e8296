"""Server: the service on a port, in the event loop of the crawl."""

from __future__ import annotations

import inspect
import logging
import sqlite3
from collections.abc import Mapping
from functools import wraps
from typing import Any

import grpc
import grpc.aio

from recrawl.contrib.urlfrontier.api.service import Handler
from recrawl.contrib.urlfrontier.api.wire import CALLS, SERVICE, message
from recrawl.errors import ParameterError, StoreError
from recrawl.logs import event

PORT = 7071
LARGEST_MESSAGE = 4 << 20  # bytes
_STREAMS = 1000  # calls at once of one connection
_GRACE = 5.0  # seconds that calls have to end after close()
_OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", 2 * LARGEST_MESSAGE),  # what was put comes back with its queue's names
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.max_concurrent_streams", _STREAMS),
    ("grpc.so_reuseport", 0),
)
log = logging.getLogger(__name__)


class GrpcServer:
    """A server that runs until ``close``; ``port`` is where it listens."""

    def __init__(self, host: str, port: int) -> None:
        self._server = grpc.aio.server(options=_OPTIONS)
        named = f"[{host}]" if ":" in host else host
        try:
            self.port = self._server.add_insecure_port(f"{named}:{port}")
        except (RuntimeError, UnicodeEncodeError):
            place = f"{named}:{port}".encode(errors="backslashreplace").decode()
            raise ParameterError(
                f"{place}: cannot listen there: the port is in use, or the address is not of this machine"
            ) from None
        self.address = f"{named}:{self.port}"

    async def start(self, handlers: Mapping[str, Handler]) -> None:
        """Accept calls from now on."""
        methods = {name: _method(name, handler) for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        await self._server.start()
        event(log, logging.INFO, "urlfrontier.started", address=self.address)

    async def close(self, grace: float = _GRACE) -> None:
        """Accept no more calls and end; streams that clients keep open are cut after ``grace`` seconds."""
        await self._server.stop(grace)


def _method(name: str, handler: Handler) -> Any:
    """A handler as gRPC wants it."""
    call = CALLS[name]
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[call.streams]
    return make(
        _guarded(handler),
        request_deserializer=message(call.takes).FromString,
        response_serializer=message(call.gives).SerializeToString,
    )


def _guarded(handler: Handler) -> Handler:
    """A handler that says UNAVAILABLE where the file cannot be read or written."""
    if inspect.isasyncgenfunction(handler):

        @wraps(handler)
        async def stream(request: Any, context: Any) -> Any:
            try:
                async for one in handler(request, context):
                    yield one
            except (sqlite3.Error, StoreError) as problem:
                await _refuse(context, problem)

        return stream

    @wraps(handler)
    async def single(request: Any, context: Any) -> Any:
        try:
            return await handler(request, context)
        except (sqlite3.Error, StoreError) as problem:
            await _refuse(context, problem)

    return single


async def _refuse(context: Any, problem: Exception) -> None:
    event(log, logging.ERROR, "urlfrontier.failed", error=str(problem))
    await context.abort(grpc.StatusCode.UNAVAILABLE, " ".join(str(problem).split()))
