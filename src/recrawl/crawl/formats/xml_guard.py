"""XML from anybody: a parser that loads and resolves nothing, and a check that no entities are declared."""

from __future__ import annotations

from typing import Any

from lxml import etree

_DECLARATION = b"<!ENTITY"
_MARKED = tuple(_DECLARATION.decode().encode(charset) for charset in ("utf-8", "utf-16-le", "utf-16-be"))
_KEPT = 2 * len(_DECLARATION)  # bytes of a piece that may begin a declaration


class DeclaresEntities(Exception):
    """A document with entities of its own: a bomb, or a way to files of this machine."""


class EntityGuard:
    """Finds declarations of entities in a document that comes in pieces.

    A declaration counts wherever it stands: also in text that only looks like one, which no listing has.

    >>> EntityGuard().check(b"<urlset><url/></urlset>")
    """

    def __init__(self) -> None:
        self._rest = b""

    def check(self, piece: bytes) -> None:
        """Raise DeclaresEntities if a declaration ends in this piece."""
        data = self._rest + piece
        if any(mark in data for mark in _MARKED):
            raise DeclaresEntities
        self._rest = data[-_KEPT:]


def pull_parser(target: Any) -> etree.XMLParser:
    """A parser that calls ``target`` for each element; no tree is built, no entity is resolved, nothing is loaded."""
    return etree.XMLParser(
        target=target, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_pis=True
    )
