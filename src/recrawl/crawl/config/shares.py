"""Shares in words."""

from __future__ import annotations

import math

from recrawl.errors import ParameterError


def share_of(text: str) -> float:
    """A share of the budget in words: "2%" or "0.02"; empty for none.

    >>> share_of("2%"), share_of("0.02"), share_of("")
    (0.02, 0.02, 0.0)
    """
    words = text.strip()
    if not words:
        return 0.0
    try:
        share = float(words.removesuffix("%")) / (100.0 if words.endswith("%") else 1.0)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise ParameterError(f"audit_share is {text!r}: a share such as 2% is expected, from 0 to below 100%")
    return share
