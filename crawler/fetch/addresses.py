"""Which addresses we may connect to: public unicast ones, and what `fetch.allow_addresses` adds.

The deny list is our own (IANA special-purpose registries for IPv4 and IPv6, cloud metadata services, this machine's own
addresses), because `ipaddress.is_global` lets embedded IPv4, multicast and some metadata addresses through.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from crawler.settings import FetchSettings

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

DENIED_V4 = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this_network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "metadata"),
        ("169.254.0.0/16", "link_local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "special"),
        ("192.0.2.0/24", "documentation"),
        ("192.31.196.0/24", "special"),
        ("192.52.193.0/24", "special"),
        ("192.88.99.0/24", "special"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "special"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
DENIED_V6 = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link_local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
        ("2001::/23", "special"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("2620:4f:8000::/48", "special"),
        ("3fff::/20", "documentation"),
    )
)
GLOBAL_UNICAST = IPv6Network("2000::/3")
NAT64 = IPv6Network("64:ff9b::/96")
ISATAP_MARKS = (0x00005EFE, 0x02005EFE)  # RFC 5214, 6.1: interface identifier before the embedded IPv4 address


def parse_networks(allow: Sequence[str]) -> tuple[Network, ...]:
    """The networks of a setting (CIDR or single addresses); ValueError names the entry that is neither."""
    return tuple(ip_network(entry.strip(), strict=False) for entry in allow)


def refuse_address(ip: str, allow: Sequence[Network] = ()) -> str | None:
    """None when `ip` may be connected to, else why not. Whatever is no IP literal is refused as `not_an_address`."""
    address = _parse(ip)
    if isinstance(address, str):
        return address
    if _is_in(address, allow):
        return None
    return _refuse_v4(address) if isinstance(address, IPv4Address) else _refuse_v6(address)


def _parse(ip: str) -> Address | str:
    """The address that a socket would reach (an IPv4-mapped one is its IPv4 address), or a refusal."""
    try:
        address = ip_address(ip)
    except ValueError:
        return "not_an_address"
    if isinstance(address, IPv4Address):
        return address
    return "link_local" if address.scope_id is not None else address.ipv4_mapped or address


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _refuse_v4(address: IPv4Address) -> str | None:
    return next((reason for network, reason in DENIED_V4 if address in network), None)


def _refuse_v6(address: IPv6Address) -> str | None:
    if address in NAT64:
        return _refuse_v4(_low_v4(address))
    listed = next((reason for network, reason in DENIED_V6 if address in network), None)
    if listed is not None:
        return listed
    if address not in GLOBAL_UNICAST:
        return "reserved"
    is_isatap = (int(address) >> 32) & 0xFFFFFFFF in ISATAP_MARKS
    return _refuse_v4(_low_v4(address)) if is_isatap else None


def _low_v4(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


class AddressPolicy:
    """Says of an IP literal whether it may be connected to; verdicts are remembered.

    `own` are addresses of this machine, refused even when public; None looks them up. With `only_allowed` public
    addresses are refused too, unless they are in `allow`.
    """

    def __init__(
        self, allow: Sequence[str] = (), own: Iterable[str] | None = None, *, only_allowed: bool = False
    ) -> None:
        self._allow = parse_networks(allow)
        self._only_allowed = only_allowed
        self._own = frozenset(ip_address(ip) for ip in (own_addresses() if own is None else own))
        self.refuse = lru_cache(maxsize=65_536)(self._refuse)

    def _refuse(self, ip: str) -> str | None:
        address = _parse(ip)
        if not isinstance(address, str) and address in self._own and not _is_in(address, self._allow):
            return "own_address"
        if self._only_allowed and not isinstance(address, str) and not _is_in(address, self._allow):
            return "not_allowed"
        return refuse_address(ip, self._allow)


def address_policy(fetch: FetchSettings) -> AddressPolicy:
    """The policy of the settings."""
    return AddressPolicy(fetch.allow_addresses, only_allowed=fetch.only_allowed)


def own_addresses() -> frozenset[str]:
    """The addresses of this machine's interfaces that can be found out without asking the network."""
    return frozenset(_own_v4_linux() | _own_v6_linux() | _own_by_name())


def _own_v4_linux() -> set[str]:
    """IPv4 addresses marked LOCAL in the kernel's routing trie: `|-- ADDRESS` followed by `/32 host LOCAL`."""
    found, last = set(), ""
    for line in _lines("/proc/net/fib_trie"):
        if "|--" in line:
            last = line.split()[-1]
        elif "/32 host LOCAL" in line:
            found.add(last)
    return found


def _own_v6_linux() -> set[str]:
    return {str(IPv6Address(int(line.split()[0], 16))) for line in _lines("/proc/net/if_inet6") if line.strip()}


def _own_by_name() -> set[str]:
    try:
        answers = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {str(answer[4][0]).split("%")[0] for answer in answers}


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
