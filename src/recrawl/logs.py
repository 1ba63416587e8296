"""Logs: one record per event, with an event name and fields, by the standard ``logging`` module.

Loggers are named after modules, below ``recrawl``. Library code calls `event`; a program calls `configure`, or adds
handlers of its own: the name is the record's message, the fields are its attribute ``fields``.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from recrawl._compile import compiling
from recrawl.errors import ParameterError

log = logging.getLogger(__name__)

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_ROOT = "recrawl"
_LONGEST = 1000  # characters of a value
_SECRET = re.compile(r"secret|password|token|authorization|cookie|headers", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@\s]+@")
_PLAIN = re.compile(r"[^\s\"=]+")
_silent = ContextVar("silent", default=False)

logging.getLogger(_ROOT).addHandler(logging.NullHandler())


def event(logger: logging.Logger, level: int, name: str, **fields: Any) -> None:
    """Log one event: a name such as ``crawl.failed``, and its fields."""
    if logger.isEnabledFor(level) and not _silent.get():
        logger.log(level, name, extra={"fields": fields})


def event_line(logger: logging.Logger, level: int, name: str, **fields: Any) -> None:
    """Log one event for handlers that know no fields, such as Scrapy's: they are in the message, too.

    The message is ``recrawl: scrapy.ready seconds=1.5 pages=7``; fields without a value are left out.
    """
    if logger.isEnabledFor(level) and not _silent.get():
        given = {key: value for key, value in fields.items() if value is not None}
        record = logging.makeLogRecord({"msg": name, "fields": given})
        logger.log(level, "recrawl: %s", text_of(record), extra={"fields": given})


@contextmanager
def silent() -> Iterator[None]:
    """Log no event of this task or thread, nor of tasks that it starts: what it does is not the user's crawl."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def configure(level: str = "warning", form: str = "text") -> None:
    """Write recrawl's records from ``level`` on to standard error, as ``text`` or as lines of ``json``."""
    if level not in LEVELS:
        raise ParameterError(f"log level is {level!r}: must be one of {', '.join(LEVELS)}")
    if form not in FORMATS:
        raise ParameterError(f"log format is {form!r}: must be one of {', '.join(FORMATS)}")
    logger = logging.getLogger(_ROOT)
    for handler in [one for one in logger.handlers if isinstance(one, StderrHandler)]:
        logger.removeHandler(handler)
    new = StderrHandler()
    new.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logger.addHandler(new)
    logger.setLevel(level.upper())
    compiling.say_by(_log_compiling if form == "json" else compiling.print_line)


def _log_compiling(progress: compiling.Progress) -> None:
    event(log, logging.INFO, "kernels.compiling", **progress._asdict())


class StderrHandler(logging.Handler):
    """Writes to whatever is standard error at the time, so that a live view on a terminal stays whole."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


class TextFormatter(logging.Formatter):
    """``2026-01-31T12:00:00Z WARNING recrawl.crawl.run.progress subscriber.failed subscriber=webhook failures=1``.

    Values with spaces are in double quotes.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line of text."""
        return " ".join([_time(record), record.levelname, record.name, text_of(record)])


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ``time``, ``level``, ``logger``, ``event``, and the fields beside them."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        head = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        return json.dumps({**head, "event": record.getMessage(), **fields_of(record)}, ensure_ascii=False)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record in plain values: secrets are left out, exceptions are one line, long texts are cut."""
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return {name: "***" if _SECRET.search(name) else plain(value) for name, value in fields.items()}


def text_of(record: logging.LogRecord) -> str:
    """The name of an event and its fields: ``host.held host=a.example seconds=60``."""
    return " ".join([record.getMessage(), *(f"{name}={_text(value)}" for name, value in fields_of(record).items())])


def plain(value: Any) -> Any:
    """A value as it may be logged: in one line, without the user and password of an address, not too long."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value)
    return _USER.sub("***@", " ".join(text.split()))[:_LONGEST]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
