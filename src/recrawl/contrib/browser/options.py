"""How pages are rendered: which of them, what is waited for, and what a page may take at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recrawl.errors import ParameterError

BLOCKED = frozenset({"image", "media", "font", "stylesheet", "manifest", "texttrack", "ping", "other"})


@dataclass(frozen=True, slots=True)
class Render:
    """Whether a page is rendered: always, or (``auto``) only if its plain answer has no text.

    ``wait_for`` is a CSS selector: the page is complete when an element matches. Without one it is complete when its
    requests have ended.
    """

    mode: Literal["always", "auto"] = "auto"
    wait_for: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("always", "auto"):
            raise ParameterError(f"render is {self.mode!r}: must be always or auto")


@dataclass(frozen=True, slots=True)
class BrowserLimits:
    """What one rendered page may take at most, and how much the browser may keep."""

    total: float = 30.0  # seconds for a page, without its plain answer
    settling: float = 10.0  # seconds until a page whose requests do not end counts as complete
    quiet: float = 0.5  # seconds without a request after which it does
    requests: int = 60  # further requests of a page
    body: int = 10 << 20  # bytes of the rendered page, and of all further answers together
    heap: int = 256  # MiB of JavaScript
    memory: int = 1024  # MiB of each process of the browser
    pages: int = 4  # rendered at a time
    contexts: int = 8  # hosts whose context is kept
    restart: int = 500  # pages after which the browser is started again

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ParameterError(f"limit {name} is {getattr(self, name)}: must be positive")
