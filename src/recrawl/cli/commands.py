"""All commands under one name, and what their errors print."""

from __future__ import annotations

import errno
import sys
from functools import cache
from io import TextIOWrapper
from typing import Annotated, Any

import typer
import typer.main

from recrawl._compile import compiling
from recrawl.cli.crawl import add, audit, events, notify, reload, remove, run, set, signals, status, why
from recrawl.cli.database import backup, copy, export, import_log
from recrawl.cli.planning import estimate, plan, predict, solve
from recrawl.cli.service import cluster, prepare, serve, token, urlfrontier
from recrawl.cli.shared.options.command_classes import Command, Group
from recrawl.cli.shared.options.extras import missing_package
from recrawl.cli.simulation import demo, reproduce, simulate, trace
from recrawl.errors import RecrawlError

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EPIPE, errno.EIO})  # files are named where they are written

app = typer.Typer(
    name="recrawl",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command(name="demo", epilog=demo.EPILOG, cls=Command)(demo.demo)
app.command(name="prepare", epilog=prepare.EPILOG, cls=Command)(prepare.prepare)
app.command(name="add", epilog=add.EPILOG, cls=Command)(add.add)
app.command(name="run", epilog=run.EPILOG, cls=Command)(run.run)
app.command(name="serve", epilog=serve.EPILOG, cls=Command)(serve.serve)
app.command(name="urlfrontier", epilog=urlfrontier.EPILOG, cls=Command)(urlfrontier.urlfrontier)
app.command(name="status", epilog=status.EPILOG, cls=Command)(status.status)
app.command(name="events", epilog=events.EPILOG, cls=Command)(events.events)
app.command(name="notify", epilog=notify.EPILOG, cls=Command)(notify.notify)
app.command(name="audit", epilog=audit.EPILOG, cls=Command)(audit.audit)
app.command(name="why", epilog=why.EPILOG, cls=Command)(why.why)
app.command(name="signals", epilog=signals.EPILOG, cls=Command)(signals.signals)
app.command(name="import", epilog=import_log.EPILOG, cls=Command)(import_log.import_log)
app.command(name="export", epilog=export.EPILOG, cls=Command)(export.export)
app.command(name="backup", epilog=backup.EPILOG, cls=Command)(backup.backup)
app.command(name="copy", epilog=copy.EPILOG, cls=Command)(copy.copy)
app.command(name="remove", epilog=remove.EPILOG, cls=Command)(remove.remove)
app.command(name="set", epilog=set.EPILOG, cls=Command)(set.set_pages)
app.add_typer(cluster.app, name="cluster", cls=Group)
app.add_typer(token.app, name="token", cls=Group)
app.command(name="reload", epilog=reload.EPILOG, cls=Command)(reload.reload)
app.command(name="solve", epilog=solve.EPILOG, cls=Command)(solve.solve)
app.command(name="estimate", epilog=estimate.EPILOG, cls=Command)(estimate.estimate)
app.command(name="plan", epilog=plan.EPILOG, cls=Command)(plan.plan)
app.command(name="simulate", epilog=simulate.EPILOG, cls=Command)(simulate.simulate)
app.add_typer(predict.app, name="predict", cls=Group)
app.add_typer(trace.app, name="trace", cls=Group)
app.command(name="reproduce", epilog=reproduce.EPILOG, cls=Command)(reproduce.reproduce)


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


@cache
def _command() -> Any:
    return typer.main.get_command(app)


def call(argv: list[str] | None = None) -> int:
    """Run the command; its exit code. Errors of the user print one line."""
    compiling.announce()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    try:
        code = _command()(argv, prog_name="recrawl", standalone_mode=False)
        sys.stdout.flush()
    except RecrawlError as problem:
        return _complain(str(problem))
    except OSError as problem:
        where = problem.filename or ("standard output" if problem.errno in _UNWRITABLE else None)
        return _complain(f"{f'{where}: ' if where else ''}{problem.strerror or problem}")
    except typer.Abort:
        return 130
    except Exception as problem:
        message = missing_package(problem) if isinstance(problem, ImportError) else _usage_message(problem)
        if message is None:
            raise
        return _complain(message) if message else 2
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    line = " ".join(message.split()).encode("utf-8", "backslashreplace").decode()
    typer.echo(f"recrawl: {line}", err=True)
    return 2


def _usage_message(problem: Exception) -> str | None:
    # Depending on its version, Typer uses its own copy of click or the installed one; both have these attributes.
    describe = getattr(problem, "format_message", None)
    if describe is None:
        return None
    message = str(describe())
    context = getattr(problem, "ctx", None)
    return f"{message.rstrip('.')} (see {context.command_path} --help)" if message and context else message
