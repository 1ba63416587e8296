"""Ignoring: patterns of a user for what does not count, within bounds that no pattern and no page can break.

Patterns are RE2's: each pass is linear in the length of the text. A pattern is looked for within lines, and lines are
cut at 10,000 bytes, so that the end of each match is found within that; there are at most 20,000 matches of a pattern
in one text. What lies beyond stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from recrawl.crawl.detect.remove_matches import remove_matches
from recrawl.errors import ParameterError

PATTERNS = 20  # of one rule
_LONGEST = 500  # characters of a pattern
_MEMORY = 8 << 20  # bytes of a compiled pattern
_LINE = 10_000  # bytes
_MATCHES = 20_000
_LONG_LINE = re.compile(rb"[^\n]{%d}" % _LINE)


class Ignoring:
    """Takes out of a text what the patterns match.

    >>> Ignoring([r"Stock: \\d+"])(b"Price: 5\\nStock: 12 left")
    b'Price: 5\\n left'
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        if len(patterns) > PATTERNS:
            raise ParameterError(f"ignore has {len(patterns)} patterns: at most {PATTERNS}")
        self._patterns = [_compiled(pattern) for pattern in patterns]

    def __call__(self, text: bytes) -> bytes:
        """The text without what is ignored."""
        if max(map(len, text.split(b"\n"))) > _LINE:
            text = _LONG_LINE.sub(rb"\g<0>\n", text)
        for pattern in self._patterns:
            text = remove_matches(pattern, text, _MATCHES)
        return text


def _compiled(pattern: str) -> Any:
    import re2

    if len(pattern) > _LONGEST:
        raise ParameterError(f"ignore: a pattern of {len(pattern)} characters: at most {_LONGEST}")
    options = re2.Options()
    options.max_mem, options.log_errors, options.never_nl, options.never_capture = _MEMORY, False, True, True
    try:
        compiled = re2.compile(f"(?m){pattern}", options)
    except (re2.error, UnicodeEncodeError) as problem:
        message = problem.args[0] if problem.args else problem
        reason = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise ParameterError(f"ignore: {pattern!r} is not a pattern of RE2: {reason}") from None
    if compiled.search(b"") is not None:
        raise ParameterError(f"ignore: {pattern!r} matches nothing at all; it would be found everywhere")
    return compiled
