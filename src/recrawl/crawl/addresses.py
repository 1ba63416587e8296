"""Which addresses may be connected to: those of the public internet, unless others are allowed."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

# Networks whose addresses carry an IPv4 address in their last four bytes, which is where a packet would end.
_CARRIES = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet.

    >>> [is_public(a) for a in ("93.184.216.34", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "2606:2800::1")]
    [True, False, False, False, True]
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        inner = _inner(parsed)
        if inner is not None:
            return _is_public(inner)
    return _is_public(parsed)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: mapped, 6to4, Teredo, NAT64, compatible."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _CARRIES):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
