from __future__ import annotations

import pytest

from crawler.fetch import addresses
from crawler.fetch.addresses import AddressPolicy, address_policy, own_addresses, parse_networks, refuse_address
from crawler.settings import FetchSettings

REFUSED = {
    "0.0.0.0": "this_network", "0.1.2.3": "this_network", "10.0.0.1": "private", "10.255.255.255": "private",
    "100.64.0.1": "shared", "100.100.100.200": "shared", "127.0.0.1": "loopback", "127.255.0.9": "loopback",
    "168.63.129.16": "metadata", "169.254.169.254": "link_local", "172.16.0.1": "private", "172.31.255.255": "private",
    "192.0.0.8": "special", "192.0.0.192": "special", "192.0.2.1": "documentation", "192.31.196.1": "special",
    "192.52.193.1": "special", "192.88.99.0": "special", "192.168.1.1": "private", "192.175.48.6": "special",
    "198.18.0.1": "benchmarking", "198.19.255.255": "benchmarking", "198.51.100.7": "documentation",
    "203.0.113.9": "documentation", "224.0.0.1": "multicast", "239.255.255.250": "multicast", "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified", "::1": "loopback", "::127.0.0.1": "reserved", "::8.8.8.8": "reserved",
    "::ffff:127.0.0.1": "loopback", "::ffff:a9fe:a9fe": "link_local", "::ffff:0:127.0.0.1": "reserved",
    "64:ff9b::127.0.0.1": "loopback", "64:ff9b::a00:1": "private", "64:ff9b:1::8.8.8.8": "reserved",
    "100::1": "reserved", "2001::1": "special", "2001:2::1": "special", "2001:20::1": "special",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "special", "2001:db8::1": "documentation", "2002:7f00:1::": "6to4",
    "2002:808:808::1": "6to4", "2620:4f:8000::1": "special", "3fff::1": "documentation", "4000::1": "reserved",
    "5f00::1": "reserved", "fc00::1": "private", "fd00:ec2::254": "private", "fe80::1": "link_local",
    "fe80::1%eth0": "link_local", "2606:4700::1%1": "link_local", "fec0::1": "private", "ff02::1": "multicast",
    "2606:4700::5efe:7f00:1": "loopback", "2606:4700::200:5efe:a00:1": "private",
    "": "not_an_address", "localhost": "not_an_address", "2130706433": "not_an_address", "0x7f.1": "not_an_address",
    "127.1": "not_an_address", "0177.0.0.1": "not_an_address", "127.0.0.1 ": "not_an_address",
    "[::1]": "not_an_address", "8.8.8.8:80": "not_an_address",
}  # fmt: skip
PASSED = ("8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255", "11.0.0.1")
PASSED_V6 = ("2606:4700::1111", "2001:4860:4860::8888", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "2606:4700::5efe:808:808")


@pytest.mark.parametrize(("address", "reason"), REFUSED.items())
def test_what_is_not_public_is_refused(address: str, reason: str) -> None:
    assert refuse_address(address) == reason
    assert AddressPolicy(own=()).refuse(address) == reason


@pytest.mark.parametrize("address", PASSED + PASSED_V6)
def test_public_addresses_pass(address: str) -> None:
    assert refuse_address(address) is None


@pytest.mark.parametrize(
    ("allow", "address", "is_allowed"),
    [
        ("127.0.0.0/8", "127.8.9.10", True),
        ("127.0.0.0/8", "::ffff:127.0.0.1", True),
        ("127.0.0.0/8", "64:ff9b::127.0.0.1", False),
        ("127.0.0.0/8", "::1", False),
        ("127.0.0.0/8", "10.0.0.1", False),
        ("127.0.0.0/8", "8.8.8.8", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.4", False),
        ("10.1.2.3/8", "10.9.9.9", True),
        ("::1", "::1", True),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "fc12::1", False),
    ],
)
def test_networks_are_allowed_in_addition(allow: str, address: str, is_allowed: bool) -> None:
    assert (AddressPolicy([allow]).refuse(address) is None) is is_allowed


def test_a_setting_that_is_no_network_is_named() -> None:
    with pytest.raises(ValueError, match="example"):
        parse_networks(["example.com"])


def test_own_public_addresses_are_refused_unless_allowed() -> None:
    assert AddressPolicy(own=["8.8.8.8"]).refuse("8.8.8.8") == "own_address"
    assert AddressPolicy(own=["8.8.8.8"]).refuse("::ffff:8.8.8.8") == "own_address"
    assert AddressPolicy(own=["8.8.8.8"]).refuse("8.8.4.4") is None
    assert AddressPolicy(["8.8.8.8"], own=["8.8.8.8"]).refuse("8.8.8.8") is None


def test_only_allowed_refuses_public_addresses_too() -> None:
    policy = address_policy(FetchSettings(allow_addresses=("127.77.0.0/16", "9.9.9.9"), only_allowed=True))
    assert policy.refuse("8.8.8.8") == "not_allowed"
    assert policy.refuse("127.0.0.1") == "own_address"
    assert policy.refuse("127.77.3.4") is None
    assert policy.refuse("9.9.9.9") is None


def test_addresses_of_this_machine_are_read_as_the_kernel_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/net/fib_trie": "Main:\n  |-- 8.8.0.0\n     /24 link UNICAST\n  |-- 8.8.8.8\n     /32 host LOCAL\n"
        "  |-- 8.8.8.255\n     /32 link BROADCAST\n",
        "/proc/net/if_inet6": "26064700000000000000000000001111 02 40 00 80     eth0\n\n",
    }
    monkeypatch.setattr(addresses, "_lines", lambda path: files[path].splitlines())
    monkeypatch.setattr(addresses, "_own_by_name", set)
    assert own_addresses() == {"8.8.8.8", "2606:4700::1111"}


def test_the_loopback_address_of_this_machine_is_found() -> None:
    assert own_addresses() & {"127.0.0.1", "::1"}
