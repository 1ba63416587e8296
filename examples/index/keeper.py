"""A subscriber that keeps a vector index in step with the events of a crawl."""

from __future__ import annotations

from collections import Counter

from vectors import VectorIndex

from recrawl.store import Event


class IndexKeeper:
    """Adds, replaces and deletes pages. A batch that is delivered twice leaves the index as it is.

    A page whose new copy has no text, such as a picture or a text above 256 KiB, leaves the index: its chunks are old.

    ``counts`` has the number of added, replaced and deleted pages, and of chunks embedded for added and replaced ones.
    """

    def __init__(self, index: VectorIndex) -> None:
        self.index = index
        self.counts: Counter[str] = Counter()

    def __call__(self, events: list[Event], missed: int) -> None:
        """Take a batch of events; if this raises, the batch is delivered again."""
        if missed:
            raise RuntimeError(f"{missed} events were dropped: rebuild the index from recrawl events --snapshot")
        for event in events:
            if event.kind == "gone" or event.new_text is None:
                self.counts["deleted"] += self.index.delete(event.url)
            else:
                what = "replaced" if event.url in self.index else "added"
                self.counts[what] += 1
                self.counts[f"embedded for {what}"] += self.index.put(event.url, event.new_text)
