"""Classes of commands and groups whose help shows flags without a value."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters of the command, and its help option."""
        return without_value(super().get_params(ctx))


class Group(TyperGroup):
    """A command that has commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters of the group, and its help option."""
        return without_value(super().get_params(ctx))


def without_value(parameters: list[Any]) -> list[Any]:
    """Parameters of which flags show no type in help: they take no value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
