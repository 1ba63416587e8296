"""Shares written as text."""

from __future__ import annotations

import math

from recrawl.errors import ParameterError


def share_of(text: str, name: str = "audit_share") -> float:
    """A share as text: "2%" or "0.02"; empty for none.

    >>> share_of("2%"), share_of("0.02"), share_of("")
    (0.02, 0.02, 0.0)
    """
    stripped = text.strip()
    if not stripped:
        return 0.0
    try:
        share = float(stripped.removesuffix("%")) / (100.0 if stripped.endswith("%") else 1.0)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise ParameterError(f"{name} is {text!r}: a share such as 2% is expected, from 0 to below 100%")
    return share
