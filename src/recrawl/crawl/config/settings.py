"""Settings of a crawl: from recrawl.toml, the environment and flags; later ones win, unknown ones are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypedDict

from recrawl._compile.first_use import COMPILE_FIRST
from recrawl.crawl.config.choices import CHOICES, choices_of
from recrawl.crawl.config.listening import check_public_url, host_port, listen_address
from recrawl.crawl.config.notify import Notify, parse_notify
from recrawl.crawl.config.rules import Rule, Rules, span
from recrawl.crawl.config.shares import share_of
from recrawl.crawl.deliver.notify.mail import TLS, MailServer
from recrawl.crawl.polite.hours import Hours, rates
from recrawl.engine.settings import REMOVED
from recrawl.errors import ParameterError, unknown
from recrawl.store.events import EventLimits
from recrawl.store.postgres.address import Address, is_postgres, shown

FILE = "recrawl.toml"
PREFIX = "RECRAWL_"
_SECRETS = ("webhook_secret", "smtp_password")  # never in a file of settings
_LEAST = {"host_concurrency": 0, "concurrency": 1, "keep": 0, "largest_body": 1, "event_rows": 0, "event_bytes": 0}
_LEAST |= {"audit_draws": 1, "event_text_keep": 0, "checkpoint_pages": 0}


class HostRules(TypedDict):
    """What holds for every host; None: no rule."""

    host_spacing: float | None
    host_concurrency: int | None


@dataclass(frozen=True)
class Settings:
    """All settings of a crawl; times are texts (``90 s``, ``2 h``) or seconds."""

    database: str = field(default="recrawl.db", repr=False)  # a file, or the address of a PostgreSQL database
    budget: str = "1/s"
    hours: str = ""  # when crawling is allowed, such as 22-6; empty: always
    contact: str = ""  # an address or URL by which site owners can reach you
    user_agent: str = ""  # instead of recrawl's own with the contact
    delay: str = "1 s"  # between two requests to a host
    longest_delay: str = "60 s"  # a crawl-delay of robots.txt beyond this counts as this
    longest_hint: str = "10 min"  # a page is not fetched while its cache headers call it good, up to this; 0 s: never
    host_concurrency: int = 1  # requests to a host at a time; 0: any number
    concurrency: int = 64
    robots: bool = True
    objective: str = ""  # freshness, harmonic or age; empty: as the database was crawled before, at first freshness
    policy: str = ""  # how pages are chosen: value, lambda, deadline, kab5 …; empty: as before, at first value
    price: str = ""  # staleness, times importance, that a crawl must save, such as 2 h; 0: none; empty: as before
    very_stale: str = ""  # with a price: a copy that is stale for so long is very stale
    very_stale_share: str = ""  # the share of very stale copies that crawls may find, such as 5%
    min_change_probability: str = "1%"  # a page less likely to have changed is not fetched; 0: any page is
    siblings: bool = True  # whether a change found on one page counts for others of its folder or host
    audit_share: str = ""  # share of the crawls that are audits, such as 1%; empty: none
    audit_draws: int = 100  # pages drawn for one audit
    detector: str = "main"
    feed_interval: str = "5 min"  # a feed is polled no more often than this to keep its items; 0 s: never for that
    listings: bool = True  # whether sitemaps that robots.txt names, feeds and index pages are polled for signals
    keep: int = 2  # bodies kept of each page; two show its newest change
    checkpoint_pages: int = 100_000  # from so many pages on, checkpoints of the engine are written; 0: never
    timeout: str = "60 s"  # for one fetch
    largest_body: int = 10 << 20  # bytes
    allow_private: bool = False  # private and local addresses
    browser: str = ""  # path of Chromium, for rules with render; empty: as it is found
    event_text: bool = False  # whether events carry the text of pages
    event_rows: int = 1_000_000  # events kept at most; beyond it the oldest are dropped
    event_bytes: int = 1 << 30  # the same in bytes
    event_text_keep: int = 20  # without event_text: newest events of a page whose texts are kept for notifications
    event_age: str = "30 days"  # how long events are kept that all subscribers have taken
    webhook: str = ""  # the URL that events are sent to; empty: none
    webhook_secret: str = field(default="", repr=False)  # only from the environment
    webhook_secret_file: str = ""  # a file that holds the secret
    webhook_timeout: str = "10 s"  # for one request
    listen: str = ""  # where the HTTP interface listens, such as 127.0.0.1:8321; empty: nowhere
    websub: bool = True  # whether hubs that pages name are subscribed to, if listen and public_url are given
    public_url: str = ""  # the URL under which others reach it
    signal_share: str = "3%"  # of the event loop's time, for signals by HTTP while the crawl wants it; empty: any
    smtp: str = ""  # the mail server of notifications, such as smtp.example.org:587; empty: none
    smtp_tls: str = "starttls"  # starttls, tls or none
    smtp_from: str = ""  # the sender's address
    smtp_user: str = ""  # empty: no login
    smtp_password: str = field(default="", repr=False)  # only from the environment
    smtp_password_file: str = ""  # a file that holds the password
    notify: tuple[Mapping[str, Any], ...] = ()
    rule: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if not self.database.strip():
            raise ParameterError("database is empty: give the name of a file")
        if is_postgres(self.database):
            Address.parse(self.database)
        spans = ("delay", "longest_delay", "longest_hint", "timeout", "feed_interval", "event_age", "webhook_timeout")
        for name in spans:
            _span(name, getattr(self, name))
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ParameterError(f"{name} is {getattr(self, name)}: must be at least {least}")
        if self.listen.strip():
            listen_address(self.listen)
        if self.public_url.strip():
            check_public_url(self.public_url)
        self.rates(1)
        self.rules()
        self.notifications()
        share_of(self.audit_share)
        share_of(self.min_change_probability, "min_change_probability")
        share_of(self.signal_share, "signal_share")
        self.choices()

    @classmethod
    def read(cls, file: Path | None = None, environment: Mapping[str, str] | None = None, **flags: Any) -> Settings:
        """The settings of a file (default: recrawl.toml, if there is one), environment and flags (None: not given)."""
        found = _from_file(Path(FILE), cls) if file is None and Path(FILE).is_file() else {}
        if file is not None:
            found = _from_file(file, cls)
        found |= _from_environment(environment or {}, cls)
        found |= {name: value for name, value in flags.items() if value is not None}
        return cls(**found)

    @property
    def database_name(self) -> str:
        """The database as it is printed: without the password of an address."""
        return shown(self.database)

    def rules(self) -> Rules:
        """The rules by URL pattern."""
        return Rules([Rule.parse(table, k + 1) for k, table in enumerate(self.rule)])

    def notifications(self) -> tuple[Notify, ...]:
        """The notifications for people."""
        found = parse_notify(self.notify)
        if any(one.mail for one in found) and not self.smtp.strip():
            raise ParameterError('notify: mail needs smtp = "smtp.example.org:587", and smtp_from')
        return found

    def opening(self) -> Hours | None:
        """When crawling is allowed; None: always."""
        return Hours(self.hours) if self.hours.strip() else None

    def rates(self, n_pages: int) -> tuple[float, float]:
        """Requests per second while crawling is allowed, and on average."""
        return rates(self.budget, n_pages, self.opening())

    def choices(self) -> dict[str, Any]:
        """How pages are chosen, as settings of the engine: those that are given, the others stay as they are stored."""
        return choices_of(**{name: getattr(self, name) for name in CHOICES})

    def callback_url(self) -> str:
        """Where hubs reach the crawler; empty: it subscribes to none."""
        return self.public_url.strip() if self.websub and self.listen.strip() else ""

    def signal_kinds(self) -> tuple[str, ...]:
        """The kinds of signal sources that are switched on."""
        received = ("websub", "indexnow", "webhook") if self.listen.strip() else ()
        return (*(("sitemap", "feed", "listing") if self.listings else ()), *received)

    def seconds(self, name: str) -> float:
        """A setting that is a span of time."""
        return _span(name, getattr(self, name))

    def host_rules(self) -> HostRules:
        """The rules of hosts as the engine takes them: none at all if any number may be asked without delay."""
        delay, most = self.seconds("delay"), self.host_concurrency or None
        return {"host_spacing": None if delay == 0 and most is None else delay, "host_concurrency": most}

    def event_limits(self) -> EventLimits:
        """How many events are kept."""
        limits = EventLimits(self.event_rows, self.event_bytes, self.seconds("event_age"))
        return limits if self.event_text else replace(limits, texts=self.event_text_keep)

    def secret(self) -> str:
        """The secret that signs requests to the webhook."""
        if self.webhook_secret or not self.webhook_secret_file:
            return self.webhook_secret
        return _secret_of("webhook_secret_file", self.webhook_secret_file)

    def mail_server(self) -> MailServer:
        """The mail server of notifications."""
        host, port = host_port(self.smtp, "smtp", 587)
        if self.smtp_tls not in TLS:
            raise unknown("smtp_tls", self.smtp_tls, list(TLS))
        password = self.smtp_password
        if not password and self.smtp_password_file:
            password = _secret_of("smtp_password_file", self.smtp_password_file)
        return MailServer(host, port, self.smtp_from.strip(), self.smtp_tls, self.smtp_user.strip(), password)

    def agent(self, version: str) -> str:
        """How the crawler names itself to servers."""
        if self.user_agent.strip():
            return self.user_agent
        if not self.contact.strip():
            raise ParameterError(
                "no contact is given: site owners must be able to reach you; "
                f'write --contact you@example.org, or contact = "…" in {FILE}'
            )
        return f"recrawl/{version} (+{self.contact.strip()})"


def _secret_of(setting: str, name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "not text in UTF-8"
        raise ParameterError(f"{setting} {name}: {why}") from None


def _span(name: str, value: str | float) -> float:
    return 0.0 if str(value).strip() in ("0", "0 s", "0s", "0.0") else span(value, name)


def _from_file(path: Path, kind: type[Settings]) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"{path}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ParameterError(f"{path}: {problem}") from None
    for name in set(_SECRETS) & set(table):
        raise ParameterError(
            f"{path}: {name} does not belong here; give it as {PREFIX}{name.upper()} in the environment, "
            f"or in a file that {name}_file names"
        )
    return checked_table(table, str(path), kind)


def checked_table(table: Mapping[str, Any], where: str, kind: type[Settings] = Settings) -> dict[str, Any]:
    """Values by setting as `Settings` takes them, or ParameterError that names the setting that is not one."""
    known = {field.name: str(field.type) for field in fields(kind)}
    for name in table:
        if name not in known:
            raise _unknown(f"{where}: setting", name, list(known))
    return {name: _checked(f"{where}: {name}", known[name], value) for name, value in table.items()}


def _unknown(where: str, name: str, known: list[str]) -> ParameterError:
    if name.removeprefix(PREFIX).lower() in REMOVED:
        return ParameterError(f"{where} {name} no longer exists: remove it")
    return unknown(where, name, known)


def _checked(where: str, kind: str, value: Any) -> Any:
    if kind.startswith("tuple"):
        if not isinstance(value, list | tuple) or not all(isinstance(one, dict) for one in value):
            name = where.rpartition(" ")[2]
            raise ParameterError(f"{where}: {name} is written as [[{name}]] tables")
        return tuple(value)
    right = {
        "str": isinstance(value, str | int | float) and not isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
    }
    if not right[kind]:
        names = {"str": "text", "int": "a whole number", "bool": "true or false"}
        raise ParameterError(f"{where}: {value!r} is not {names[kind]}")
    return str(value) if kind == "str" else value


def _from_environment(environment: Mapping[str, str], kind: type[Settings]) -> dict[str, Any]:
    known = {field.name: str(field.type) for field in fields(kind) if field.name not in ("rule", "notify")}
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable == COMPILE_FIRST:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in known:
            raise _unknown("environment: setting", variable, [PREFIX + one.upper() for one in known])
        found[name] = _parsed(variable, known[name], text)
    return found


def _parsed(variable: str, kind: str, text: str) -> Any:
    if kind == "str":
        return text
    if kind == "bool":
        if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise ParameterError(f"{variable}: {text!r} is not true or false")
        return text.lower() in ("true", "1", "yes")
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"{variable}: {text!r} is not a whole number") from None
