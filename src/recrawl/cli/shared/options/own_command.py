"""How the user can run this command again, as it was run."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def own_command(*words: str) -> str:
    """A line for the shell: this command by the name or path that works there, and quoted words."""
    return f"{_program()} {shlex.join(words)}"


def _program() -> str:
    program = Path(sys.argv[0])
    if program.name == "__main__.py" and program.parent.name == "recrawl":
        return f"{_path(Path(sys.executable))} -m recrawl"
    found = shutil.which("recrawl")
    if not program.name.startswith("recrawl") or (found and os.path.realpath(found) == os.path.realpath(program)):
        return "recrawl"
    return _path(program)


def _path(program: Path) -> str:
    absolute, here = Path(os.path.abspath(program)), Path.cwd()
    return shlex.quote(str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute))
