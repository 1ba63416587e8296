"""``recrawl prepare``: compile the kernels of crawls ahead, such as when a container image is built."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson
from recrawl.cli.shared.options.extras import need
from recrawl.errors import ParameterError

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
    from recrawl._compile import jit
    from recrawl._compile.compiling import is_cached
    from recrawl._compile.first_use import compile_first

    folder = jit.writable_folder()
    if folder is None:
        raise ParameterError("there is no folder for compiled kernels that can be written: set NUMBA_CACHE_DIR")
    from recrawl.demo.live import warm_up
    from recrawl.serve.rehearsal import rehearse_service

    compile_first()
    asyncio.run(warm_up())
    asyncio.run(rehearse_service())
    return {"kernels": sum(map(is_cached, jit.KERNELS)), "folder": str(folder)}
