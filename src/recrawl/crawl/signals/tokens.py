"""Tokens: who may call the HTTP interface. Of a token only its name, scopes, limits and a hash are kept.

A token has 256 random bits. Its SHA-256 hash needs no salt and no slow function: such a token cannot be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recrawl.crawl.signals.limits import Limit
from recrawl.errors import ParameterError, unknown

PREFIX = "token:"  # of the notes that hold tokens
SCOPES = ("read", "signal", "crawl", "admin")
MOST = 1000  # tokens of a database
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_LONGEST = 200  # characters of a token that is looked at


@dataclass(frozen=True)
class Token:
    """What is kept of a token."""

    name: str
    hash: str  # SHA-256, hexadecimal
    scopes: tuple[str, ...]
    made_at: float
    limit: Limit

    def allows(self, scope: str) -> bool:
        """Whether the token has a scope; admin has them all."""
        return scope in self.scopes or "admin" in self.scopes

    def as_note(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"scopes": list(self.scopes)}

    @classmethod
    def restore(cls, note: Mapping[str, Any]) -> Token:
        """The token of a note."""
        return cls(note["name"], note["hash"], tuple(note["scopes"]), note["made_at"], Limit(**note["limit"]))


def new_token(name: str, scopes: Sequence[str], made_at: float, limit: Limit | None = None) -> tuple[str, Token]:
    """A new token, and what is kept of it.

    >>> text, token = new_token("cms", ["signal"], made_at=0.0)
    >>> len(text), token.hash == hash_of(text)
    (43, True)
    """
    check_name(name)
    for scope in scopes:
        if scope not in SCOPES:
            raise unknown("scope", scope, SCOPES)
    if not scopes:
        raise ParameterError(f"token {name}: needs a scope: {', '.join(SCOPES)}")
    text = secrets.token_urlsafe(32)
    return text, Token(name, hash_of(text), tuple(dict.fromkeys(scopes)), made_at, limit or Limit())


def check_name(name: str) -> None:
    """Raise ParameterError unless a text can name a token."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"{name[:80]!r} is no name of a token: 1 to 64 letters, digits, dots, dashes and underscores"
        )


def hash_of(text: str) -> str:
    """The hash by which a token is known."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """The tokens of a database, by name.

    >>> text, token = new_token("cms", ["signal"], made_at=0.0)
    >>> tokens = Tokens([token])
    >>> tokens.find(text).name, tokens.find("guess")
    ('cms', None)
    """

    def __init__(self, tokens: Sequence[Token] = ()) -> None:
        self._tokens = {token.name: token for token in tokens}

    @classmethod
    def restore(cls, notes: Mapping[str, Any]) -> Tokens:
        """The tokens of notes; ``notes`` are those whose names begin with PREFIX."""
        return cls([Token.restore(note) for note in notes.values()])

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(sorted(self._tokens.values(), key=lambda token: token.name))

    def set(self, name: str, token: Token | None) -> None:
        """Add, replace or remove a token."""
        if token is None:
            self._tokens.pop(name, None)
        else:
            self._tokens[name] = token

    def replace(self, others: Tokens) -> None:
        """Have the tokens of others, and no further ones."""
        self._tokens = dict(others._tokens)

    def find(self, text: str) -> Token | None:
        """The token of a text. All tokens are compared, each in constant time."""
        if not text or len(text) > _LONGEST:
            return None
        given, found = hash_of(text), None
        for token in self._tokens.values():
            if hmac.compare_digest(token.hash, given):
                found = token
        return found
