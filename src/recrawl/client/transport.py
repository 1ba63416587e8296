"""Requests over one connection that is kept; each is sent again when its answer does not come."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, TypeVar

from recrawl.client.calls import Ask
from recrawl.client.tries import Answer, Service, Tries, result_of, seconds_asked

T = TypeVar("T")


class Transport:
    """Sends JSON to a service and gets JSON; safe to use from several threads, one request at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    def call(self, ask: Ask[T]) -> T:
        """The answer to a request, or ServiceError."""
        tries, found = Tries(self._service, ask), self._try(ask)
        while (wait := tries.wait_after(found)) is not None:
            time.sleep(wait)
            found = self._try(ask)
        assert isinstance(found, Answer)
        return result_of(self._service, ask, found)

    def _try(self, ask: Ask[Any]) -> Answer | Exception:
        """An answer, or why none came."""
        try:
            return self._send(ask)
        except (OSError, http.client.HTTPException) as problem:
            return problem

    def _send(self, ask: Ask[Any]) -> Answer:
        service = self._service
        with self._lock:
            if self._connection is None:
                self._connection = self._connected()
            try:
                self._connection.request(ask.method, service.target(ask), service.data(ask), service.headers)
                return _whole(self._connection.getresponse())
            except BaseException:
                self._connection.close()
                self._connection = None
                raise

    def lines(self, ask: Ask[Any]) -> Iterator[bytes]:
        """The lines of an answer without end, over a connection of its own, until that is cut off."""
        tries = Tries(self._service, ask)
        while True:
            with closing(self._connected()) as connection:
                found = self._begin(connection, ask)
                if isinstance(found, http.client.HTTPResponse):
                    yield from _lines_of(found)
                    return
            time.sleep(tries.wait_after(found) or 0.0)

    def _begin(
        self, connection: http.client.HTTPConnection, ask: Ask[Any]
    ) -> http.client.HTTPResponse | Answer | Exception:
        """A stream that has begun, or why it has not."""
        try:
            connection.request(ask.method, self._service.target(ask), None, self._service.headers)
            answer = connection.getresponse()
            return answer if answer.status == 200 else _whole(answer)
        except (OSError, http.client.HTTPException) as problem:
            return problem

    def _connected(self) -> http.client.HTTPConnection:
        service = self._service
        kind = http.client.HTTPSConnection if service.secure else http.client.HTTPConnection
        return kind(service.host, service.port, timeout=service.timeout)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _whole(answer: http.client.HTTPResponse) -> Answer:
    """An answer that is read to its end."""
    return Answer(answer.status, seconds_asked(answer.headers.get("retry-after", "")), answer.read())


def _lines_of(stream: http.client.HTTPResponse) -> Iterator[bytes]:
    with stream:
        try:
            while line := stream.readline():
                yield line
        except (OSError, http.client.HTTPException):
            return
