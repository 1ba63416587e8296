"""Roles of a log's columns: by their names, or as ``--columns name=role,…`` says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from recrawl.errors import ParameterError

REQUIRED = ("url", "time", "changed")
COMPARED = ("digest", "etag", "last_modified", "length")  # what `changed` is computed from, the best first
USED = ("importance", "status", "failure", "gone", *COMPARED)
DETAILS = ("took", "final_url", "content_type", "requests", "flapping", "rolled_off")  # of recrawl's own exports
OWN = (*REQUIRED, *USED, *DETAILS)
_SIGNALS = re.compile(r"signals(_.*)?")
_IGNORE = "ignore"
# other names of columns; of several columns with the same role the first in this order counts
_NAMES = {
    "url": "url uri page_url request_url original loc page address link",
    "time": "time timestamp fetched_at crawled_at fetch_time crawl_time scraped_at retrieved_at began_at ts datetime "
    "date",
    "changed": "changed is_changed has_changed",
    "digest": "digest sha sha1 sha256 sha512 md5 hash checksum content_hash body_hash content_digest content_sha1 "
    "content_sha256 content_md5 body_sha1 body_sha256 body_md5 page_hash text_hash fingerprint content_fingerprint",
    "etag": "etag e_tag http_etag response_etag",
    "last_modified": "last_modified lastmod http_last_modified",
    "length": "length content_length bytes body_bytes_sent bytes_sent body_bytes body_length body_size "
    "response_length response_size size",
    "status": "status status_code statuscode http_status http_code response_status response_code code",
    "importance": "importance weight",
    "failure": "failure error exception",
}
_ONE_ONLY = ("url", "time")  # roles for which a second candidate is refused, unless one has the role's own name


@dataclass(frozen=True)
class LogOptions:
    """How a log is read: strict or lenient, the roles of its columns by name, and its encoding.

    Of other tools' stores: the list of jobs, seconds between two checks, and whether pages without a known URL count.
    """

    lenient: bool = False
    columns: dict[str, str] = field(default_factory=dict)
    encoding: str | None = None
    jobs: Path | None = None
    every: float | None = None
    nameless: bool = True


@dataclass(frozen=True)
class Header:
    """The role of each column, empty where it has none; ``own``: url, time and changed by these very names."""

    roles: list[str]
    own: bool
    unused: list[str]

    @property
    def used(self) -> set[str]:
        """The roles that there are."""
        return set(self.roles) - {""}

    @property
    def signals(self) -> list[str]:
        """The columns of signals."""
        return [role for role in self.roles if _SIGNALS.fullmatch(role)]

    @property
    def exported(self) -> bool:
        """Whether recrawl export wrote it."""
        return set(OWN) - {"length"} <= self.used


def parse_columns(texts: list[str]) -> dict[str, str]:
    """The roles given by ``--columns``.

    >>> parse_columns(["when=time", "sum=digest"])
    {'when': 'time', 'sum': 'digest'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, role = (part.strip().lower() for part in text.rpartition("="))
        if not sign or not name:
            raise ParameterError(f"--columns {text!r}: write NAME=ROLE, for example checksum=digest")
        if role not in (*REQUIRED, *USED, _IGNORE) and not _SIGNALS.fullmatch(role):
            known = ", ".join((*REQUIRED, *USED, "signals", _IGNORE))
            raise ParameterError(f"--columns {text!r}: {role!r} is not one of {known}")
        if name in found:
            raise ParameterError(f"--columns: {name} comes twice")
        found[name] = role
    return found


def header_of(path: Path, names: list[str], given: dict[str, str]) -> Header:
    """The roles of columns. ParameterError if url or time is missing, or anything that shows changes."""
    plain = [name.strip().lower() for name in names]
    doubled = [name for name, n in Counter(plain).items() if n > 1]
    if doubled:
        raise ParameterError(f"{path}: column {doubled[0]} comes twice")
    absent = [name for name in given if name not in plain]
    if absent:
        raise ParameterError(f"{path}: --columns names {absent[0]}, but the columns are {', '.join(plain)}")
    own = set(REQUIRED) <= set(plain) and not given
    roles = [name if name in OWN or _SIGNALS.fullmatch(name) else "" for name in plain]
    if not own:
        roles = _recognised(path, plain, given)
    found = Header(roles, own, [name for name, role in zip(plain, roles, strict=True) if not role])
    _check(path, found, plain)
    return found


def _recognised(path: Path, names: list[str], given: dict[str, str]) -> list[str]:
    roles = {name: given.get(name, name if _SIGNALS.fullmatch(name) else "") for name in names}
    free = {re.sub(r"[^a-z0-9]+", "_", name): name for name in reversed(names) if not roles[name]}
    for role, text in _NAMES.items():
        if role in roles.values() or (role == "length" and "urlkey" in names):
            continue  # the length of a CDX record is that of its compressed form
        found = [free[name] for name in text.split() if name in free]
        if len(found) > 1 and role in _ONE_ONLY and free.get(role) is None:
            both = f"columns {found[0]} and {found[1]} could both be {role}"
            raise ParameterError(f"{path}: {both}: choose one, such as --columns {found[0]}={role}")
        for name in found[: None if role == "digest" else 1]:
            roles[name] = role
    for role, n in Counter(role for role in roles.values() if role not in ("", _IGNORE, "digest")).items():
        if n > 1:
            raise ParameterError(f"{path}: {n} columns are {role}; only digest may be several")
    return ["" if roles[name] == _IGNORE else roles[name] for name in names]


def _check(path: Path, header: Header, names: list[str]) -> None:
    have = f"the columns are {', '.join(names)}"
    for role in ("url", "time"):
        if role not in header.used:
            raise ParameterError(f"{path}: column {role} is missing; {have} (--columns NAME={role} names it)")
    if not header.used & {"changed", *COMPARED}:
        instead = "a digest, etag, last_modified or length to compute it from"
        raise ParameterError(
            f"{path}: column changed is missing, and so is {instead}; {have} (--columns NAME=digest names one)"
        )
