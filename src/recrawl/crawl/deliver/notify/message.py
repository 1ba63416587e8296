"""Messages about events: subject, text and HTML. What pages say is text in each of them, whatever it holds."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from recrawl.crawl.detect.diff import ADDED, REMOVED, Diff, diff
from recrawl.store.events import Event

SHOWN = 50  # events of a message that are described; the others are counted
_DIFFS = 20  # of them with a difference
_LINES = 40  # changed lines of each difference
_SUBJECT = 120  # characters
_WORDS = {"changed": "changed", "new": "new", "gone": "gone", "redirected": "moved"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
_STYLES = {ADDED: "background:#dafbe1", REMOVED: "background:#ffebe9;text-decoration:line-through"}


@dataclass(frozen=True, slots=True)
class Item:
    """One event in a message."""

    url: str
    kind: str
    at: float
    title: str
    diff: Diff | None = None  # None: the texts are not kept

    @property
    def when(self) -> str:
        """The time in UTC."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True, slots=True)
class Message:
    """A message about events; ``id`` is the same when it is sent again."""

    id: str
    subject: str
    items: tuple[Item, ...]
    left_out: int = 0

    def text(self) -> str:
        """The message as plain text."""
        parts = ["\n".join(filter(None, (_head(item), _below(item)))) for item in self.items]
        return "\n\n".join([*parts, *([f"… and {self.left_out} further changes"] if self.left_out else [])]) + "\n"

    def html(self) -> str:
        """The message as HTML without scripts, images or styles from elsewhere."""
        more = f"<p>… and {self.left_out} further changes</p>" if self.left_out else ""
        return f"<!doctype html><html><body>{''.join(html_item(item) for item in self.items)}{more}</body></html>\n"


def one_line(text: str, longest: int = 200) -> str:
    """A text without control characters and line breaks, cut.

    >>> one_line("Prices\\r\\nBcc: all@example.org")
    'Prices Bcc: all@example.org'
    """
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def item_of(event: Event, *, shows_diff: bool = True) -> Item:
    """What a message says of an event; the title is the first line of the page's text, else its URL."""
    text = event.new_text if event.new_text is not None else event.old_text
    first = next(iter((text or "").lstrip().splitlines()), "")
    found = None
    if shows_diff and event.kind == "changed" and event.old_text is not None and event.new_text is not None:
        found = diff(event.old_text, event.new_text, most=_LINES)
    url = one_line(event.url, 2000)
    return Item(url, event.kind, event.at, one_line(first, 80) or one_line(event.url, 80), found)


def message_of(events: Sequence[Event], *, diffs: bool = True, n_more: int = 0) -> Message:
    """The message about events, and about further ones that are only counted."""
    shown = events[:SHOWN]
    items = tuple(item_of(event, shows_diff=diffs and k < _DIFFS) for k, event in enumerate(shown))
    n, n_pages = len(events) + n_more, len({event.url for event in events})
    if n_pages == 1 and not n_more:
        subject = f"{_WORDS[items[-1].kind]}: {items[-1].title}"
    else:
        hosts = list(dict.fromkeys(urlsplit(item.url).hostname or item.url for item in items))
        what = f"{n} pages changed" if n == n_pages else f"{n} changes"  # some of the same page, or of unknown pages
        subject = f"{what}: {', '.join(hosts[:3])}{' …' if len(hosts) > 3 else ''}"
    return Message(shown[0].id, one_line(subject, _SUBJECT), items, n - len(items))


def _head(item: Item) -> str:
    title = "" if item.title == one_line(item.url, 80) else f"{item.title}\n"
    return f"{title}{_WORDS[item.kind]} {item.when}: {item.url}"


def _below(item: Item) -> str:
    return "" if item.diff is None else "\n".join(f"  {line}" for line in item.diff.as_text().splitlines())


def html_item(item: Item) -> str:
    """One event as HTML; everything that a page says is escaped."""
    title, url = html.escape(item.title), html.escape(item.url)
    safe = item.url.startswith(("http://", "https://"))
    head = f'<a href="{url}">{title}</a>' if safe else title
    return f"<h3>{head}</h3><p>{_WORDS[item.kind]} {item.when}: {url}</p>{html_diff(item.diff)}"


def html_diff(found: Diff | None) -> str:
    """A difference as HTML."""
    if found is None:
        return ""
    lines = []
    for sign, text in found.lines:
        style = f' style="{_STYLES[sign]}"' if sign in _STYLES else ""
        lines.append(f"<div{style}>{html.escape(f'{sign} {one_line(text, 1000)}')}</div>")
    more = f"<div>… {found.left_out} further changed lines</div>" if found.left_out else ""
    return f'<div style="font-family:monospace">{"".join(lines)}{more}</div>'
