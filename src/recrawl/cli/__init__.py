"""The command ``recrawl``: one module per command, each a thin layer over the library.

Bad input ends in one line on standard error and exit code 2, never in a traceback.
"""

from __future__ import annotations

import errno
import sys
from typing import Annotated

import typer

from recrawl.cli import (
    add,
    audit,
    demo,
    estimate,
    events,
    export,
    import_log,
    plan,
    predict,
    reload,
    remove,
    reproduce,
    run,
    set,
    simulate,
    solve,
    status,
    trace,
    why,
)
from recrawl.errors import RecrawlError

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EPIPE, errno.EIO})  # files are named where they are written

app = typer.Typer(
    name="recrawl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command(name="demo", epilog=demo.EPILOG)(demo.demo)
app.command(name="add", epilog=add.EPILOG)(add.add)
app.command(name="run", epilog=run.EPILOG)(run.run)
app.command(name="status", epilog=status.EPILOG)(status.status)
app.command(name="events", epilog=events.EPILOG)(events.events)
app.command(name="audit", epilog=audit.EPILOG)(audit.audit)
app.command(name="why", epilog=why.EPILOG)(why.why)
app.command(name="import", epilog=import_log.EPILOG)(import_log.import_log)
app.command(name="export", epilog=export.EPILOG)(export.export)
app.command(name="remove", epilog=remove.EPILOG)(remove.remove)
app.command(name="set", epilog=set.EPILOG)(set.set_pages)
app.command(name="reload", epilog=reload.EPILOG)(reload.reload)
app.command(name="solve", epilog=solve.EPILOG)(solve.solve)
app.command(name="estimate", epilog=estimate.EPILOG)(estimate.estimate)
app.command(name="plan", epilog=plan.EPILOG)(plan.plan)
app.command(name="simulate", epilog=simulate.EPILOG)(simulate.simulate)
app.add_typer(predict.app, name="predict")
app.add_typer(trace.app, name="trace")
app.command(name="reproduce", epilog=reproduce.EPILOG)(reproduce.reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        from recrawl import __version__

        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
]


@app.callback()
def options(version: Version = False) -> None:
    """Keep copies of changing web pages as fresh as a request budget allows, and prove it."""


def main(argv: list[str] | None = None) -> None:
    """Run the command and exit: 0 after success, 2 after bad input, 130 when interrupted."""
    try:
        code = app(argv, prog_name="recrawl", standalone_mode=False)
        sys.stdout.flush()
    except RecrawlError as problem:
        code = _complain(str(problem))
    except OSError as problem:
        where = problem.filename or ("standard output" if problem.errno in _UNWRITABLE else None)
        code = _complain(f"{f'{where}: ' if where else ''}{problem.strerror or problem}")
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as problem:
        message = _usage_message(problem)
        if message is None:
            raise
        code = _complain(message) if message else 2
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    typer.echo(f"recrawl: {' '.join(message.split())}", err=True)
    return 2


def _usage_message(problem: Exception) -> str | None:
    # Depending on its version, Typer uses its own copy of click or the installed one; both have these attributes.
    describe = getattr(problem, "format_message", None)
    if describe is None:
        return None
    message = str(describe())
    context = getattr(problem, "ctx", None)
    return f"{message.rstrip('.')} (see {context.command_path} --help)" if message and context else message
