"""Signatures of deliveries: HMAC over the body with the secret of the subscription."""

from __future__ import annotations

import hashlib
import hmac

METHODS = ("sha1", "sha256", "sha384", "sha512")
_LONGEST = 200  # characters of the header


def sign(secret: str, body: bytes, method: str = "sha256") -> str:
    """What a hub sends as ``X-Hub-Signature``.

    >>> sign("key", b"The quick brown fox jumps over the lazy dog", "sha1")
    'sha1=de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9'
    """
    return f"{method}={hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()}"


def is_signed(secret: str, header: str, body: bytes) -> bool:
    """Whether a delivery was signed with the secret, by any of the four methods."""
    method, found, given = header.strip().partition("=")
    method = method.lower()
    if not found or method not in METHODS or len(header) > _LONGEST or not given.isascii():
        return False
    right = sign(secret, body, method).partition("=")[2]
    return hmac.compare_digest(right.encode(), given.lower().encode())
