"""Every command with its parameters, from the command's own definition: what is added later is covered by itself."""

import typer.main

from recrawl.cli import app


def commands(group=None, before=""):
    """Every command by its words: those of a group have two."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def options(command):
    """The long names of a command's options that take a value, and of its flags."""
    named = [(next((name for name in one.opts if name.startswith("--")), None), one) for one in command.params]
    given = [(name, getattr(one, "is_flag", False)) for name, one in named if name is not None]
    return [name for name, flag in given if not flag], [name for name, flag in given if flag]
