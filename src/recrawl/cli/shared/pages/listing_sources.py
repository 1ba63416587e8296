"""What ``recrawl add`` leaves to the crawl: listings to poll, and sites whose new pages are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recrawl.crawl.listings.discovery import Site
from recrawl.crawl.listings.listing import new_listing
from recrawl.crawl.listings.reading import INDEX_PAGE, SITEMAP
from recrawl.crawl.run.commands import follow_command, listing_command
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError
from recrawl.model.spans import count

if TYPE_CHECKING:
    from recrawl.store import BlockingStore, OwnedStore


@dataclass(frozen=True)
class Followed:
    """Listings by URL with their kinds, and sites."""

    listings: dict[str, str]
    sites: list[Site]

    def part(self, mine: Sequence[int]) -> Followed:
        """Some of them, by their positions: listings first, then sites."""
        listings, chosen = list(self.listings.items()), set(mine)
        sites = [site for k, site in enumerate(self.sites, len(listings)) if k in chosen]
        return Followed(dict(one for k, one in enumerate(listings) if k in chosen), sites)

    def commands(self) -> list[dict[str, Any]]:
        """The commands for a running crawl."""
        return [listing_command(*one) for one in self.listings.items()] + [follow_command(one) for one in self.sites]

    def save(self, store: BlockingStore[OwnedStore]) -> None:
        """Write them to a database; listings that it has already stay as they are."""
        known = {one.url for one in store.listings()}
        new = [new_listing(url, kind) for url, kind in self.listings.items() if url not in known]
        notes = {name: note for site in self.sites for name, note in site.note().items()}
        if new or notes:
            store.save(listings=new, notes=notes)

    def figures(self) -> dict[str, Any]:
        """For the output as JSON, where there are any."""
        found: dict[str, Any] = {"listings": list(self.listings)} if self.listings else {}
        return found | ({"followed": [one.match for one in self.sites]} if self.sites else {})

    def words(self) -> str:
        """The same in words."""
        text = f"; {count(len(self.listings), 'listing')} to be polled" if self.listings else ""
        return text + (f"; new pages of {', '.join(one.match for one in self.sites)} are found" if self.sites else "")


def follow(
    pages: Sequence[str], sitemaps: Sequence[str], listings: Sequence[str], importance: float | None
) -> Followed:
    """What is to be polled and followed; with ``importance``, the sites of all URLs among the pages are followed."""
    found = {canonical(one): SITEMAP for one in sitemaps if _is_url(one)}
    for one in listings:
        if not _is_url(one):
            raise ParameterError(f"listing {one!r} is no http or https URL")
        found.setdefault(canonical(one), INDEX_PAGE)
    fronts = [one for one in pages if _is_url(one)] if importance is not None else []
    if importance is not None and not fronts:
        raise ParameterError("--discover goes with the URLs of front pages, such as https://docs.example.org/")
    return Followed(found, [Site.of(one, importance or 0.0) for one in fronts])


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))
