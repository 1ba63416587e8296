"""Canonical URLs, as everywhere in recrawl."""

from recrawl.urls import MOST as MOST
from recrawl.urls import canonical as canonical
from recrawl.urls import usable as usable
