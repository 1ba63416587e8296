"""``recrawl trace``: make recorded traces of page changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.command_classes import Command

if TYPE_CHECKING:
    from recrawl.simulate.trace import Trace

EPILOG = "Example:  recrawl trace git ~/src/docs --path content --out docs-trace"

app = typer.Typer(no_args_is_help=True, help="Make recorded traces of page changes.", epilog=EPILOG)


@app.command(name="git", epilog=EPILOG, cls=Command)
def git(
    repository: Annotated[Path, typer.Argument(metavar="DIR", help="A git repository.")],
    out: Annotated[Path, typer.Option(help="Folder to write pages.parquet and changes.parquet to.")],
    path: Annotated[str, typer.Option(help="Only files under this path of the repository.")] = "",
    since: Annotated[str | None, typer.Option(help="Ignore commits before this date, e.g. 2024-01-01.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="A renamed file stays the same page.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Turn a git history into a recorded trace: each file a page, each commit of the main line a change."""
    from rich.console import Console

    from recrawl.simulate.traces.files import pyarrow, write_trace
    from recrawl.simulate.traces.git import git_trace

    pyarrow()  # fail before the work
    with Console(stderr=True).status(f"reading {repository}") as status:

        def show(commits: int) -> None:
            status.update(f"reading {repository}: {commits:,} commits")

        trace = git_trace(repository, path=path, since=since, follow=follow, progress=show)
        status.update(f"writing {out}")
        write_trace(out, trace)
    figures = _figures(trace)
    if as_json:
        typer.echo(json.dumps({"out": str(out), **figures}))
        return
    typer.echo("{pages:,} pages ({live:,} live at the end), {changes:,} changes, {first} to {last}".format(**figures))
    typer.echo(f"written to {out}")


def _figures(trace: Trace) -> dict[str, Any]:
    first, last = (datetime.fromtimestamp(when, UTC).date().isoformat() for when in (trace.start, trace.end))
    live = int((trace.deleted_at >= trace.end).sum())
    return {"pages": len(trace), "live": live, "changes": len(trace.changed_at), "first": first, "last": last}
