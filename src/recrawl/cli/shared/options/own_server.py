"""What commands say of the HTTP interface that they serve."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from recrawl.serve import HttpServer


def print_sign_in(server: HttpServer) -> None:
    """Print the one-time link to the dashboard, on a terminal alone: a link in a log would let its readers in."""
    if not sys.stderr.isatty():
        return
    link = server.sign_in_url()
    typer.echo(f"dashboard: {link or server.url}" + (" (one time, within an hour)" if link else ""), err=True)
