"""``recrawl prepare``: compile the kernels of crawls ahead, such as when a container image is built."""

from __future__ import annotations

import asyncio
import json
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson
from recrawl.cli.shared.options.extras import need
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings

EPILOG = "Example:  recrawl prepare\n\nExample:  NUMBA_CACHE_DIR=/opt/kernels recrawl prepare --json"


def prepare(as_json: AsJson = False) -> None:
    """Compile the kernels that crawls and the service need, once per version: for container images, or before a run."""
    need("crawl")
    found = compile_all()
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(f"{found['kernels']} kernels are compiled, in {found['folder']}")


def compile_all() -> dict[str, Any]:
    """Use what crawls and the service use; how many kernels are on disk after it, and where."""
    from recrawl import _jit
    from recrawl._compiling import is_cached
    from recrawl._first_use import compile_first

    folder = _jit.cache_folder()
    if folder is None:
        raise ParameterError("there is no folder for compiled kernels that can be written: set NUMBA_CACHE_DIR")
    from recrawl.crawl.config.settings import Settings
    from recrawl.demo.live import warm_up

    compile_first()
    asyncio.run(warm_up())
    with TemporaryDirectory() as work:
        asyncio.run(_ask(Settings(database=f"{work}/recrawl.db", budget="100/s")))
    return {"kernels": sum(map(is_cached, _jit.KERNELS)), "folder": str(folder)}


async def _ask(settings: Settings) -> None:
    """Do with new pages what `recrawl run` and `recrawl serve` do, and what others ask of them."""
    from recrawl.crawl.run.opening.pages import warm_up
    from recrawl.desk import NewPage, open_desk
    from recrawl.desk.rehearsal import rehearse
    from recrawl.serve.crawls.database import DatabaseQuestions

    await rehearse()
    live, desk = await open_desk(settings)
    try:
        warm_up(sources=live.crawler.engine.settings.sources)
        await desk.add([NewPage(f"https://h{k % 5}.example/{k}") for k in range(30)])
        desk.pages()
        live.crawler.engine.explain(0, live.clock.now())
        questions, now = DatabaseQuestions(lambda: settings), live.clock.now()
        await asyncio.to_thread(lambda: (questions.snapshot(now), questions.status(now, "200/s")))
    finally:
        await live.close()
