"""Which addresses may be connected to: those of the public internet, unless others are allowed."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# Networks whose addresses carry an IPv4 address in their last four bytes, which is where a packet would end.
_CARRIES = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))

# Not for crawlers, though ipaddress (of some versions of Python) calls them global.
_REFUSED_4 = (
    IPv4Network("168.63.129.16/32"),  # the host agent of a cloud
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
)
_REFUSED_6 = (
    IPv6Network("64:ff9b:1::/48"),  # a network's own translation to IPv4
    IPv6Network("2001::/23"),
    IPv6Network("fec0::/10"),
    IPv6Network("3fff::/20"),
    IPv6Network("5f00::/16"),
)


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet.

    >>> [is_public(a) for a in ("93.184.216.34", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "2606:2800::1")]
    [True, False, False, False, True]
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return _is_public_4(parsed)
    inner = _inner(parsed)
    if inner is not None:
        return _is_public_4(inner)
    return _is_unicast(parsed) and not any(parsed in network for network in _REFUSED_6)


def _is_public_4(address: IPv4Address) -> bool:
    return _is_unicast(address) and not any(address in network for network in _REFUSED_4)


def _is_unicast(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: mapped, 6to4, NAT64, compatible."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if any(address in network for network in _CARRIES):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
