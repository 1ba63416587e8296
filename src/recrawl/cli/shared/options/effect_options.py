"""The option that switches siblings off."""

from __future__ import annotations

from typing import Annotated

import typer

NoSiblings = Annotated[bool, typer.Option("--no-siblings", help="Ignore changes on sibling pages.")]


def without_siblings(policies: list[str]) -> list[str]:
    """Names of policies, with siblings switched off in ``learned`` and ``learned:siblings``.

    >>> without_siblings(["learned", "uniform"])
    ['learned:none', 'uniform']
    """
    return ["learned:none" if name in ("learned", "learned:siblings") else name for name in policies]
