"""Names under .localhost are this machine (RFC 6761), also where the system's resolver does not know it."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult


class LoopbackResolver(AbstractResolver):
    """Resolves names under .localhost to 127.0.0.1, and no others."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The address of a name."""
        if not host.endswith(".localhost"):
            raise OSError(f"{host} is not of the demo")
        return [
            ResolveResult(
                hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=socket.AI_NUMERICHOST
            )
        ]

    async def close(self) -> None:
        """Nothing to give back."""
