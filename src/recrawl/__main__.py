"""``python -m recrawl`` is the command ``recrawl``."""

from recrawl.cli import main

main()
