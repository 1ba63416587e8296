"""Whether anybody listens at an address, before a library tries for minutes."""

import socket

from recrawl.errors import ParameterError

_WAIT = 5.0  # seconds


def knock(address: str) -> None:
    """Raise ParameterError unless a connection to HOST:PORT can be made."""
    host, _, port = address.rpartition(":")
    shown = address[:200].encode(errors="backslashreplace").decode()
    try:
        if not host:
            raise ValueError
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_WAIT):
            pass
    except (ValueError, OverflowError):
        raise ParameterError(f"{shown!r} is no address: write HOST:PORT") from None
    except OSError as problem:
        reason = problem.strerror or "no answer"
        raise ParameterError(f"nobody answers at {shown}: {reason}") from None
