"""The command ``recrawl``: one module per command, each a thin layer over the library.

Bad input ends in one line on standard error and exit code 2, never in a traceback. This file imports nothing else, so
that Ctrl-C ends the command quietly also while modules are loaded.
"""

import sys
from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.cli.commands import app as app

__getattr__, __dir__, __all__ = attach(__name__, {"commands": ["app"]})


def main(argv: list[str] | None = None) -> None:
    """Run the command and exit: 0 after success, 2 after bad input, 130 when interrupted."""
    try:
        from recrawl.cli.commands import call

        code = call(argv)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
