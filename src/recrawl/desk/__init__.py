"""The desk: which page next, for crawlers of others.

A `Desk` stands below every protocol. It shares engine, store, budget, host rules and recorder with the crawler of the
same process (`recrawl.crawl.run.opening.assemble.open_crawl`), so that both may run at once.

- ``await desk.pick(n, lease=300.0, hosts=None, wanted=None, wait=0.0, validators=True)``: at most n pages, each as a
  `Picked` with an unguessable lease, its validators for a conditional request (unless nobody wants ``validators``), and
  until when nobody else gets the page. Host delays, holds and the budget are kept. ``wanted`` says of a URL whether it
  may be picked; ``wait`` is how many seconds the call may wait for work.
- ``await desk.record([Report(lease=…, status=200, body=…)])``: what came of leases, one word each: ``recorded``,
  ``late`` (recorded after the lease ended), ``repeated``, ``outdated`` (a newer copy is known), ``released``,
  ``removed`` (the page is no more) or ``unknown``. An outcome counts once, however often it is sent.
- ``await desk.release([lease, …])``: crawls that do not happen; one word each.
- ``await desk.add([NewPage(url), …])``, ``update([PageChange(url, importance=…, paused=…), …])``, ``remove(urls)``,
  ``pages(cursor, n)``: the pages.

Every call returns after what it says is committed; calls that are made at the same time share a transaction. Calls
that cannot be used raise `ParameterError` with the row, and nothing of them is done.
"""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.desk.desk import Desk as Desk
    from recrawl.desk.opening import open_desk as open_desk
    from recrawl.desk.pages import NewPage as NewPage
    from recrawl.desk.pages import PageChange as PageChange
    from recrawl.desk.pages import PageFacts as PageFacts
    from recrawl.desk.picks import Picked as Picked
    from recrawl.desk.reports import Report as Report

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "desk": ["Desk"],
        "opening": ["open_desk"],
        "pages": ["NewPage", "PageChange", "PageFacts"],
        "picks": ["Picked"],
        "reports": ["Report"],
    },
)
