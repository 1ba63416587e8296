"""Rules by URL pattern: importance, intervals, change detection and request headers of pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from recrawl.crawl.detect.detector import UNSPECIFIED, Detection, detector_for
from recrawl.errors import ParameterError, unknown
from recrawl.model.budget import parse_budget, unit_seconds
from recrawl.model.pages import MOST_IMPORTANT

_SPAN = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)", re.ASCII | re.IGNORECASE)
_HOSTS = re.compile(r"(?:[a-z*]+://)?([^/:]+)(?::[0-9*]+)?(?:/\*)?", re.IGNORECASE)
DISCOVER = ("sitemap", "feed", "links")  # what can name new pages
_BROKEN = re.compile(r"[\x00-\x1f\x7f]")


def span(text: str | float, what: str = "span") -> float:
    """Seconds from a text such as ``90 s``, ``15 min``, ``2 h`` or ``7 days``; a plain number is seconds.

    >>> span("1.5 h"), span("7d"), span(30)
    (5400.0, 604800.0, 30.0)
    """
    match = _SPAN.fullmatch(str(text).strip())
    if isinstance(text, bool) or match is None:
        raise ParameterError(f"{what} {text!r} is not a span of time; write for example 90 s, 15 min, 2 h or 7 days")
    try:
        seconds = float(match[1]) * (unit_seconds(match[2]) if match[2] else 1.0)
    except ParameterError as problem:
        raise ParameterError(f"{what} {text!r}: {problem}") from None
    if seconds <= 0:
        raise ParameterError(f"{what} {text!r}: must be above 0")
    return seconds


@dataclass(frozen=True, slots=True)
class Rule:
    """Options of the URLs that ``match`` (``*`` stands for any text). Intervals in seconds; None: not specified.

    ``min_interval`` is the least time between two crawls, ``max_interval`` the most: a page with an older copy comes
    before all others. ``every`` sets both to one interval. A page with ``never`` is not crawled. ``detector`` and the
    fields after it specify what counts as a change (see docs/reference/detectors.md).
    """

    match: str
    importance: float | None = None
    min_interval: float | None = None
    max_interval: float | None = None
    every: float | None = None
    never: bool | None = None
    budget: str | None = None  # requests that each host of the pattern may get
    discover: tuple[str, ...] | None = None  # what may name new pages of the pattern: sitemap, feed, links
    discover_limit: int | None = None  # new pages per host and day
    detector: str | None = None
    select: str | None = None  # what the detectors css and json look for
    ignore: tuple[str, ...] = ()
    similarity: int | None = None
    flapping: bool | None = None
    render: bool | str | None = None  # whether a browser runs the scripts of the page; auto: if it has no text
    wait_for: str | None = None  # a CSS selector that a rendered page waits for
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, table: Mapping[str, Any], number: int) -> Rule:
        """A rule from a table of settings; ``number`` counts from 1, for messages, which never show secrets."""
        where = f"rule {number}"
        known = [f.name for f in fields(cls)]
        for name in table:
            if name not in known:
                raise unknown(f"{where}: setting", name, known)
        if not isinstance(table.get("match"), str) or not table["match"]:
            raise ParameterError(f'{where}: match is missing; write for example match = "https://shop.example/*"')
        given = dict(table)
        for name in ("min_interval", "max_interval", "every"):
            if name in given:
                given[name] = span(given[name], f"{where}: {name}")
        for name in ("headers", "cookies"):
            given[name] = _texts(given.get(name, {}), f"{where}: {name}")
        given["ignore"] = _lines(given.get("ignore", ()), f"{where}: ignore")
        _check_discovery(given, where)
        _check(given, where)
        _check_budget(given, where)
        _check_detection(given, where)
        _check_rendering(given, where)
        return cls(**given)


def _check(given: Mapping[str, Any], where: str) -> None:
    importance = given.get("importance")
    if importance is not None and (
        isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= MOST_IMPORTANT
    ):
        raise ParameterError(f"{where}: importance is {importance!r}: must be a number from 0 to {MOST_IMPORTANT:g}")
    if not isinstance(given.get("never", False), bool):
        raise ParameterError(f"{where}: never is {given['never']!r}: must be true or false")
    least, most = given.get("min_interval"), given.get("max_interval")
    if least is not None and most is not None and least > most:
        raise ParameterError(f"{where}: min_interval is longer than max_interval")


def _check_discovery(given: dict[str, Any], where: str) -> None:
    if "discover" in given:
        given["discover"] = _lines(given["discover"], f"{where}: discover")
        for name in given["discover"]:
            if name not in DISCOVER:
                raise unknown(f"{where}: discover", name, list(DISCOVER))
    limit = given.get("discover_limit", 0)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ParameterError(f"{where}: discover_limit is {limit!r}: must be a whole number, 0 or more")


def _check_budget(given: Mapping[str, Any], where: str) -> None:
    text = given.get("budget")
    if text is None:
        return
    if not isinstance(text, str):
        raise ParameterError(f'{where}: budget is {text!r}: must be text such as "100/day"')
    try:
        parse_budget(text)
    except ParameterError as problem:
        raise ParameterError(f"{where}: {problem}") from None
    if hosts_of(given["match"]) is None:
        raise ParameterError(
            f'{where}: budget goes with whole hosts, such as match = "https://shop.example.org/*", '
            f"not with {given['match']!r}"
        )


def hosts_of(match: str) -> str | None:
    """The pattern of the hosts that a URL pattern covers as a whole; None if it covers only a part of them.

    >>> hosts_of("https://shop.example.org/*"), hosts_of("*"), hosts_of("https://a.example/docs/*")
    ('shop.example.org', '*', None)
    """
    found = _HOSTS.fullmatch(match)
    return None if found is None or not match.endswith("*") else found[1].lower()


def _check_detection(given: Mapping[str, Any], where: str) -> None:
    kinds = {"detector": (str, "a name"), "select": (str, "a text"), "flapping": (bool, "true or false")}
    for name, (kind, expected) in kinds.items():
        if name in given and not isinstance(given[name], kind):
            raise ParameterError(f"{where}: {name} is {given[name]!r}: must be {expected}")
    bits = given.get("similarity", 0)
    if isinstance(bits, bool) or not isinstance(bits, int) or not 0 <= bits <= 32:
        raise ParameterError(f"{where}: similarity is {bits!r}: must be a whole number from 0 to 32, of 64 bits")
    if "select" in given and "detector" not in given:
        raise ParameterError(f'{where}: select goes with detector = "css" or "json"')
    try:
        detector_for(Detection(given.get("detector"), given.get("select"), given["ignore"]))
    except ParameterError as problem:
        raise ParameterError(f"{where}: {problem}") from None


def _check_rendering(given: Mapping[str, Any], where: str) -> None:
    render, wait_for = given.get("render"), given.get("wait_for")
    if render is not None and not isinstance(render, bool) and render != "auto":
        raise ParameterError(f'{where}: render is {render!r}: must be true, false or "auto"')
    if wait_for is None:
        return
    if not isinstance(wait_for, str) or not wait_for.strip():
        raise ParameterError(f"{where}: wait_for is {wait_for!r}: must be a CSS selector")
    if not render:
        raise ParameterError(f'{where}: wait_for goes with render = true or "auto"')


def _lines(given: Any, where: str) -> tuple[str, ...]:
    patterns = (given,) if isinstance(given, str) else given
    if not isinstance(patterns, list | tuple) or not all(isinstance(one, str) and one for one in patterns):
        raise ParameterError(f"{where}: must be a pattern or a list of patterns")
    return tuple(patterns)


def _texts(table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise ParameterError(f"{where}: must be a table of names and texts")
    for name, value in table.items():
        if not isinstance(value, str) or _BROKEN.search(value) or _BROKEN.search(name) or not name.isascii():
            raise ParameterError(f"{where}: {name!r} must be a line of text")
    return dict(table)


@dataclass(frozen=True, slots=True)
class Ruling:
    """The options of one URL, from all rules that match it; ``headers`` are ready to be sent."""

    importance: float | None = None
    min_interval: float | None = None
    max_interval: float | None = None
    never: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    detection: Detection = UNSPECIFIED
    discover: tuple[str, ...] | None = None
    discover_limit: int | None = None
    render: str | None = None  # always or auto; None: the page is not rendered
    wait_for: str | None = None


_NOTHING = Ruling()
_RENDER: Mapping[bool | str, str | None] = {True: "always", "auto": "auto", False: None}


class Rules:
    """Rules in order: where several specify an option of a URL, the last one wins; headers, cookies and ignore add up.

    >>> rules = Rules([Rule("*", importance=1.0), Rule("https://a.example/*", importance=5.0, max_interval=3600.0)])
    >>> rules.of("https://a.example/x").importance, rules.of("https://b.example/").importance
    (5.0, 1.0)
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self.replace(rules)

    def replace(self, rules: Sequence[Rule]) -> None:
        """Other rules from now on, for all who use this object."""
        self.rules = tuple(rules)
        self._patterns = [(pattern(rule.match), rule) for rule in self.rules]
        limits = [(hosts_of(rule.match), rule.budget) for rule in self.rules if rule.budget is not None]
        self._budgets = [(pattern(hosts or ""), budget) for hosts, budget in limits]

    def budget_of(self, host: str) -> str | None:
        """The budget of a host, by the last rule that gives one; None: no limit.

        >>> Rules([Rule("https://a.example/*", budget="100/day")]).budget_of("a.example")
        '100/day'
        """
        return next((budget for hosts, budget in reversed(self._budgets) if hosts.fullmatch(host)), None)

    def of(self, url: str) -> Ruling:
        """The options of a URL."""
        if not self._patterns:
            return _NOTHING
        mine = [rule for pattern, rule in self._patterns if pattern.fullmatch(url)]
        if not mine:
            return _NOTHING
        found: dict[str, Any] = {}
        headers: dict[str, str] = {}
        cookies: dict[str, str] = {}
        seen: dict[str, Any] = {"ignore": ()}
        for rule in mine:
            for name in ("importance", "min_interval", "max_interval", "never", "discover", "discover_limit"):
                if getattr(rule, name) is not None:
                    found[name] = getattr(rule, name)
            if rule.every is not None:
                found["min_interval"] = found["max_interval"] = rule.every
            if rule.render is not None:
                found |= {"render": _RENDER[rule.render], "wait_for": rule.wait_for}
            if rule.detector is not None:
                seen |= {"detector": rule.detector, "select": rule.select}
            seen |= {name: value for name in ("similarity", "flapping") if (value := getattr(rule, name)) is not None}
            seen["ignore"] += tuple(one for one in rule.ignore if one not in seen["ignore"])
            headers |= rule.headers
            cookies |= rule.cookies
        if cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        return Ruling(**found, headers=headers, detection=Detection(**seen))


def pattern(match: str) -> re.Pattern[str]:
    """The regular expression of a URL pattern: * stands for any text."""
    return re.compile(".*".join(re.escape(part) for part in match.split("*")), re.DOTALL)
