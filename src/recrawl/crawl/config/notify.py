"""Settings of notifications: which events of which pages are sent to whom, and when."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recrawl.crawl.config.rules import pattern, span
from recrawl.crawl.deliver.notify.hook import Template, check_template, check_url
from recrawl.crawl.deliver.notify.mail import check_address
from recrawl.crawl.polite.hours import Hours
from recrawl.errors import ParameterError, unknown
from recrawl.store.events import KINDS, Event

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_LISTS = ("match", "kinds", "mail")


@dataclass(frozen=True)
class Notify:
    """One ``[[notify]]`` table. Either ``mail`` or ``webhook`` is given.

    ``digest`` is a span of time after the first event, or a time of day; None: events are sent at once. Nothing is sent
    in the hours ``quiet``; times of day are those of ``zone``, or local ones.
    """

    name: str
    match: tuple[str, ...] = ("*",)
    kinds: tuple[str, ...] = ("changed", "gone")
    mail: tuple[str, ...] = ()
    webhook: str = field(default="", repr=False)  # may hold a secret
    template: Template | None = None
    allow_private: bool = False
    diff: bool = True
    digest: str | None = None
    quiet: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_patterns", [pattern(one) for one in self.match])
        object.__setattr__(self, "_zone", _zone_of(self.zone))
        object.__setattr__(self, "_quiet", None if self.quiet is None else Hours(self.quiet, self._zone))
        object.__setattr__(self, "_span", _span_of(self.digest))

    _patterns: list[re.Pattern[str]] = field(init=False, repr=False, compare=False, default_factory=list)
    _zone: tzinfo | None = field(init=False, repr=False, compare=False, default=None)
    _quiet: Hours | None = field(init=False, repr=False, compare=False, default=None)
    _span: float | None = field(init=False, repr=False, compare=False, default=None)  # None: a time of day

    @classmethod
    def parse(cls, table: Mapping[str, Any], number: int) -> Notify:
        """A notification from a table of settings; ``number`` counts from 1, for messages, which show no secret."""
        where = f"notify {number}"
        known = [one.name for one in fields(cls) if one.init]
        for name in table:
            if name not in known:
                raise unknown(f"{where}: setting", name, known)
        given = dict(table)
        name = given.setdefault("name", str(number))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ParameterError(f"{where}: name is {name!r}: must be up to 64 letters, digits, dots or hyphens")
        where = f"notify {name}"
        for one in _LISTS:
            if one in given:
                given[one] = _texts(given[one], f"{where}: {one}")
        for one in ("allow_private", "diff"):
            if not isinstance(given.get(one, False), bool):
                raise ParameterError(f"{where}: {one} is {given[one]!r}: must be true or false")
        for one in ("quiet", "zone"):
            if not isinstance(given.get(one, ""), str):
                raise ParameterError(f"{where}: {one} is {given[one]!r}: must be a text")
        for kind in given.get("kinds", ()):
            if kind not in KINDS:
                raise unknown(f"{where}: kind", kind, list(KINDS))
        _check_target(given, where)
        try:
            return cls(**given)
        except ParameterError as problem:
            raise ParameterError(f"{where}: {problem}") from None

    def wants(self, event: Event) -> bool:
        """Whether an event is sent."""
        return event.kind in self.kinds and self.matches(event.url)

    def matches(self, url: str) -> bool:
        """Whether events of a page may be sent."""
        return any(one.fullmatch(url) for one in self._patterns)

    def due_at(self, since: float, now: float) -> float:
        """When events are sent of which the first came at ``since``: when the digest is due, not in quiet hours."""
        at = since if self.digest is None else since + self._span if self._span is not None else self._next(since)
        at = max(at, now)
        return self._quiet.next_change(at) if self._quiet is not None and self._quiet.open(at) else at

    def _next(self, since: float) -> float:
        """The next time of day after a time."""
        found = _CLOCK.fullmatch((self.digest or "").strip())
        assert found is not None
        then = datetime.fromtimestamp(since, self._zone)
        at = then.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
        return at.timestamp() if at > then else (at + timedelta(days=1)).timestamp()

    def url(self, environment: Mapping[str, str] = os.environ) -> str:
        """The URL of the webhook; ``$NAME`` stands for a variable of the environment."""
        if not self.webhook.startswith("$"):
            return self.webhook
        variable = self.webhook[1:]
        if not environment.get(variable):
            raise ParameterError(f"notify {self.name}: webhook: the environment has no variable {variable}")
        check_url(environment[variable], f"notify {self.name}: webhook: {variable}")
        return environment[variable]


def parse_notify(tables: tuple[Mapping[str, Any], ...]) -> tuple[Notify, ...]:
    """All notifications; each has a name of its own."""
    found = tuple(Notify.parse(table, k + 1) for k, table in enumerate(tables))
    for k, one in enumerate(found):
        if one.name in [other.name for other in found[:k]]:
            raise ParameterError(f"notify {one.name}: there are two of that name")
    return found


def _check_target(given: Mapping[str, Any], where: str) -> None:
    if bool(given.get("mail")) == bool(given.get("webhook")):
        raise ParameterError(f'{where}: give either mail = "you@example.org" or webhook = "https://…"')
    for address in given.get("mail", ()):
        check_address(address, f"{where}: mail")
    webhook = given.get("webhook", "")
    if not isinstance(webhook, str):
        raise ParameterError(f"{where}: webhook must be a text")
    if webhook and not re.fullmatch(r"\$[A-Za-z_][A-Za-z0-9_]*", webhook, re.ASCII):
        check_url(webhook, f"{where}: webhook")
    if "template" in given:
        if not webhook:
            raise ParameterError(f"{where}: template goes with webhook")
        if not isinstance(given["template"], Mapping | str):
            raise ParameterError(f"{where}: template must be a table or a text")
        check_template(given["template"], f"{where}: template")


def _texts(given: Any, where: str) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(one, str) and one for one in texts):
        raise ParameterError(f"{where}: must be a text or a list of texts")
    return tuple(texts)


def _zone_of(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise ParameterError(f'zone {name!r} is not known; write for example "Europe/Berlin" or "UTC"') from None


def _span_of(digest: Any) -> float | None:
    if digest is None or (isinstance(digest, str) and _CLOCK.fullmatch(digest.strip())):
        return None
    seconds = span(digest, "digest")
    if not seconds < math.inf:
        raise ParameterError(f"digest {digest!r}: must be finite")
    return seconds
