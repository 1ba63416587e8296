"""Requests over one connection that is kept; each is sent again when its answer does not come."""

from __future__ import annotations

import http.client
import threading
import time
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
                kind = http.client.HTTPSConnection if service.secure else http.client.HTTPConnection
                self._connection = kind(service.host, service.port, timeout=service.timeout)
            try:
                self._connection.request(ask.method, service.target(ask), service.data(ask), service.headers)
                answer = self._connection.getresponse()
                return Answer(answer.status, seconds_asked(answer.headers.get("retry-after", "")), answer.read())
            except BaseException:
                self._connection.close()
                self._connection = None
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
