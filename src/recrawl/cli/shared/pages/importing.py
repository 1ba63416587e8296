"""Import of crawl logs and tables of pages into a database."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.histories.readers import importance_of
from recrawl.cli.shared.logs.crawl_log import CrawlLog, read_crawl_log, remarks
from recrawl.cli.shared.logs.log_replay import log_sources, replay_crawls, replay_signals
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.cli.shared.options.crawl_options import engine_of
from recrawl.cli.shared.pages.page_states import PageStates, read_page_states, with_states
from recrawl.cli.shared.pages.warc_files import WarcBodies
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.semantics import failure_of
from recrawl.crawl.run.opening.pages import add_pages, save_pages
from recrawl.crawl.signals.sources import engine_sources
from recrawl.engine import Engine
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, Outcome, OwnedStore
from recrawl.urls import canonical

Array = NDArray[np.float64]
_BATCH, _WITH_BODIES = 20_000, 200  # outcomes written at a time


@dataclass(frozen=True)
class Imported:
    """What is imported: a log, a table of pages, or both. ``urls`` are the pages, those of the table first."""

    log: CrawlLog | None
    states: PageStates | None
    urls: list[str]
    log_urls: list[str]  # of the log's pages, canonical
    requests: Array | None = None  # of readers, for each page
    notes: list[str] = field(default_factory=list)  # about them

    @classmethod
    def read(
        cls, log: Path | None, pages: Path | None, options: LogOptions, access_log: Path | None = None
    ) -> Imported:
        """Read the files. ParameterError for bad URLs, duplicates and times in the future."""
        states = None if pages is None else read_page_states(pages)
        read = None if log is None else read_crawl_log(log, options)
        mine = [] if read is None or log is None else _canonical_urls(read, log)
        listed = dict.fromkeys([] if states is None else states.urls)
        urls = list(listed | dict.fromkeys(mine))
        requests, notes = (None, []) if access_log is None else importance_of(access_log, urls)
        return cls(read, states, urls, mine, requests, notes)

    def part(self, mine: Sequence[int]) -> Imported:
        """Some of the pages, by their positions, with their crawls."""
        urls = [self.urls[k] for k in mine]
        chosen = set(urls)
        requests = None if self.requests is None else self.requests[list(mine)]
        states = None if self.states is None else self.states.part(chosen)
        pages = np.flatnonzero([url in chosen for url in self.log_urls])
        log = None if self.log is None else self.log.part(pages)
        return replace(
            self, log=log, states=states, urls=urls, log_urls=[self.log_urls[k] for k in pages], requests=requests
        )

    @property
    def importance(self) -> Array:
        """The importance of each page: its requests, else the table's, else the log's, else 1."""
        if self.requests is not None:
            return self.requests
        known = dict.fromkeys(self.urls, 1.0)
        if self.log is not None and self.log.importance is not None:
            known |= dict(zip(self.log_urls, self.log.importance.tolist(), strict=True))
        if self.states is not None:
            known |= dict(zip(self.states.urls, self.states.importance.tolist(), strict=True))
        return np.array([known[url] for url in self.urls])


def import_pages(
    read: Imported, store: BlockingStore[OwnedStore], settings: Settings, bodies: WarcBodies | None = None
) -> dict[str, Any]:
    """Add pages to a database. An empty database takes the trained engine, another one each page's rate."""
    now = time.time()
    trained = _trained(read, settings, now)
    engine, known, notes = store.run(engine_of(store.store, settings, now)), 0, dict[str, Any]()
    log = read.log
    has_signals = log is not None and bool(log.sources)
    is_new = len(engine) == 0
    if is_new:
        engine, new = trained, trained.ids()
        notes = log_sources(log.sources)[0].note() if log is not None and has_signals else notes
    else:
        known = int((engine.addresses.known(read.urls) >= 0).sum())
        gamma, rows = trained.beliefs.gamma(trained.ids()), trained.rows()
        belief = {"change_rate": gamma.mean, "evidence": gamma.shape, "fetched_at": rows["fetched_at"]}
        new = add_pages(engine, settings.rules(), read.urls, now, importance=read.importance, **belief)
    store.run(save_pages(engine, store.store, new, notes=notes))
    if log is not None:
        _save(_outcomes(log, read.log_urls, set(engine.url(new))), store, bodies)
    return {
        "pages": len(read.urls),
        "rows": len(read.urls) if log is None else log.n_rows,
        "added": len(new),
        "known": known,
        "bodies": 0 if bodies is None else bodies.n_used,
        "repairs": {} if log is None else dict(log.repairs),
        "remarks": [*([] if log is None else remarks(log)), *read.notes],
        "signals": 0.0 if log is None or not is_new else float(log.rows.signals.sum()),
        "signals_left_out": has_signals and not is_new,
    }


def _canonical_urls(log: CrawlLog, path: Path) -> list[str]:
    if float(log.rows.time.max(initial=0.0)) > time.time() + 60.0:
        raise ParameterError(f"{path}: has times that lie in the future")
    urls: dict[str, str] = {}
    for url in log.urls:
        try:
            one = canonical(url)
        except ParameterError as problem:
            raise ParameterError(f"{path}: {problem}") from None
        if one in urls:
            raise ParameterError(f"{path}: {urls[one]} and {url} are the same page")
        urls[one] = url
    return list(urls)


def _trained(read: Imported, settings: Settings, now: float) -> Engine:
    """An engine that has recorded every crawl of the log, with the pages of the table as they are there."""
    log = read.log
    end = now if log is None else float(log.rows.time.max())
    sources, numbers = log_sources([] if log is None else log.sources)
    begin = end if log is None or not numbers else float(log.rows.time.min())
    engine = Engine(
        settings.rates(len(read.urls))[1],
        start=begin,
        sources=engine_sources(sources.names, ()) or 1,
        **settings.host_rules(),
    )
    engine.add(read.urls, begin, importance=read.importance)
    if log is not None and numbers:
        replay_signals(engine, log, engine.id(read.log_urls), numbers)
    elif log is not None:
        replay_crawls(engine, log, engine.id(read.log_urls), end)
    return engine if read.states is None else with_states(engine, read.states, max(end, now))


def _outcomes(log: CrawlLog, urls: list[str], new: set[str]) -> Iterator[Outcome]:
    """The crawls of new pages: those that recrawl exported as they were, in their order; others in order of time."""
    rows = log.rows
    order = np.argsort(rows.row if log.details else rows.time, kind="stable")
    for j in order.tolist():
        url = urls[rows.page[j]]
        if url in new:
            yield _exported(url, log.details[j]) if log.details else _foreign(url, log, j)


def _foreign(url: str, log: CrawlLog, j: int) -> Outcome:
    """A crawl of another crawler: its digests and validators belong to copies that are not there."""
    rows = log.rows
    status = None if np.isnan(rows.status[j]) else int(rows.status[j])
    gone, failed = bool(rows.gone[j]), bool(rows.failed[j])
    failure = failure_of(status or 0, conditional=True) or "bad-response" if failed and not gone else None
    changed = None if rows.changed[j] < 0 else bool(rows.changed[j])
    return Outcome(url, float(rows.time[j]), status=status, changed=changed, failure=failure, gone=gone)


def _exported(url: str, cells: dict[str, Any]) -> Outcome:
    text = {name: str(cells[name]) or None for name in _TEXTS if cells[name] is not None}
    flags = {name: _is_true(cells[name]) or False for name in ("gone", "flapping", "rolled_off")}
    status = None if cells["status"] in (None, "") else int(float(cells["status"]))
    took, requests = float(cells["took"] or 0.0), int(float(cells["requests"] or 0))
    known = {"took": took, "requests": requests, "status": status, "changed": _is_true(cells["changed"])}
    return Outcome(url, float(cells["time"]), **known, **text, **flags)  # type: ignore[arg-type]


_TEXTS = ("digest", "failure", "final_url", "etag", "last_modified", "content_type")


def _is_true(cell: Any) -> bool | None:
    return None if cell in (None, "") else str(cell).strip().lower() in ("true", "1", "1.0")


def _save(outcomes: Iterable[Outcome], store: BlockingStore[OwnedStore], bodies: WarcBodies | None) -> None:
    iterator = iter(outcomes if bodies is None else (replace(one, body=bodies.of(one)) for one in outcomes))
    while batch := list(islice(iterator, _BATCH if bodies is None else _WITH_BODIES)):
        store.save(batch)
