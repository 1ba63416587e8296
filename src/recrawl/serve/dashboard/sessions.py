"""Sessions of people who signed in to the dashboard: by a token, or by the one-time link of a local crawl.

A session is a cookie with 256 random bits; only its hash is kept, in memory. It ends when its token is removed, after
some days, or with the process.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from recrawl.crawl.clock import Clock
from recrawl.crawl.signals.tokens import Token, Tokens, hash_of

READ, ADMIN = "read", "admin"
LIFETIME = 14 * 86400.0  # seconds that a session lasts
_MOST = 1000  # sessions; beyond it the oldest end
_CODE_LIFETIME = 3600.0  # seconds in which the one-time link can be used


@dataclass(frozen=True)
class Session:
    """Somebody who signed in. ``token`` is None for the one-time link."""

    name: str
    may_act: bool
    csrf: str  # must come with every request that changes something
    ends_at: float
    token: Token | None = None
    messages: list[str] = field(default_factory=list)  # what the next page says first

    def take_messages(self) -> list[str]:
        """The messages, which are shown once."""
        found = list(self.messages)
        self.messages.clear()
        return found


def may_sign_in(token: Token) -> bool:
    """Whether a token opens the dashboard."""
    return READ in token.scopes or ADMIN in token.scopes


class Sessions:
    """Who is signed in."""

    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens, self._clock = tokens, clock
        self._sessions: dict[str, Session] = {}  # by the hash of the cookie
        self._code: tuple[str, float] | None = None  # hash of the one-time code, and until when it can be used

    def new_code(self) -> str:
        """A one-time code for the link of a local crawl; an earlier one is no longer valid."""
        code = secrets.token_urlsafe(32)
        self._code = hash_of(code), self._clock.now() + _CODE_LIFETIME
        return code

    def by_code(self, code: str) -> str | None:
        """The cookie for a one-time code, which is used up; None if it is not valid."""
        known = self._code
        if known is None or self._clock.now() > known[1] or not hmac.compare_digest(known[0], hash_of(code)):
            return None
        self._code = None
        return self._begin("this machine", True, None)

    def by_token(self, text: str) -> str | None:
        """The cookie for a token; None if the token is not known or has neither scope."""
        token = self._tokens.find(text.strip())
        if token is None or not may_sign_in(token):
            return None
        return self._begin(token.name, ADMIN in token.scopes, token)

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie."""
        key = hash_of(cookie or "")
        session = self._sessions.get(key)
        if session is None:
            return None
        removed = session.token is not None and session.token not in list(self._tokens)
        if removed or self._clock.now() > session.ends_at:
            del self._sessions[key]
            return None
        return session

    def end(self, cookie: str | None) -> None:
        """Sign out."""
        self._sessions.pop(hash_of(cookie or ""), None)

    def _begin(self, name: str, may_act: bool, token: Token | None) -> str:
        cookie = secrets.token_urlsafe(32)
        ends_at = self._clock.now() + LIFETIME
        while len(self._sessions) >= _MOST:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[hash_of(cookie)] = Session(name, may_act, secrets.token_urlsafe(16), ends_at, token)
        return cookie
