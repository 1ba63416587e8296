"""``recrawl demo``: a changing web on loopback, crawled live, and how fresh the copies truly were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, LogFormat, LogLevel
from recrawl.cli.shared.options.extras import has, need
from recrawl.errors import ParameterError
from recrawl.logs import configure

if TYPE_CHECKING:
    from recrawl.store import BlockingStore, SqliteStore

EPILOG = "Example:  recrawl demo --for 30s --budget 10/s --seed 7 --plot demo.png"
_NOTE = "demo"  # by which a database of the demo is known


def demo(
    duration: Annotated[str, typer.Option("--for", help="How long to crawl.")] = "60s",
    budget: Annotated[str, typer.Option(help="Requests allowed.")] = "15/s",
    seed: Annotated[int, typer.Option(help="Which world is drawn.", min=0)] = 1,
    database: Annotated[Path, typer.Option(help="Where the crawler keeps its database.")] = Path("demo.db"),
    plot: Annotated[Path | None, typer.Option(help="Draw freshness over time (PNG).")] = None,
    log_level: LogLevel = "error",  # failing hosts are part of the web
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> None:
    """Crawl a changing web on this machine, live, and compare with what is true and with other policies."""
    from recrawl.cli.shared.files.outputs import check_outputs
    from recrawl.model.budget import parse_budget

    configure(log_level, log_format)
    check_outputs(None, plot)
    need("crawl")
    from recrawl.cli.views import demo_report as report
    from recrawl.crawl.config.rules import span
    from recrawl.demo.live import LiveDemo, check

    seconds, rate = span(duration, "--for"), parse_budget(budget, 500)
    check(seconds, rate)
    store = _fresh_store(database, seed)
    try:
        live = LiveDemo(store.store, seconds=seconds, budget=rate, seed=seed)
        if has("serve"):
            from recrawl.serve.receive.pings import by_http

            live.receiver = by_http
        verdict = report.watched(live, quiet=as_json)
    finally:
        store.close()
    if plot is not None:
        from recrawl.cli.views.plots.demo_plot import draw_verdict

        draw_verdict(verdict, plot)
    if as_json:
        typer.echo(json.dumps({**verdict.as_dict(), "database": str(database)}, allow_nan=False))
        return
    report.print_verdict(verdict, database, live.example, [] if plot is None else [plot])


def _fresh_store(path: Path, seed: int) -> BlockingStore[SqliteStore]:
    """An empty database; one that an earlier demo left is replaced, any other file is not touched."""
    from recrawl.store import BlockingStore, SqliteStore

    if path.exists():
        with BlockingStore(SqliteStore(path, exclusive=False)) as old:
            if not old.notes(_NOTE):
                raise ParameterError(f"{path} is not a database of the demo: move it, or give another --database")
        BlockingStore(SqliteStore(path)).close()  # refused while a crawler has it
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            path.with_name(name).unlink(missing_ok=True)
    store = BlockingStore(SqliteStore(path))
    store.save(notes={_NOTE: {"seed": seed}})
    return store
