"""Addresses of nodes."""

from __future__ import annotations

import pytest

from triclinium_core.kv.address import Address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (Address("10.0.0.1", 11210), "10.0.0.1:11210"),
        (Address("node.example", 1), "node.example:1"),
        (Address("::1", 11207), "[::1]:11207"),
        (Address("fe80::1%eth0", 5), "[fe80::1%eth0]:5"),
    ],
)
def test_shown(address: Address, expected: str) -> None:
    """The string form of an address is host and port, with brackets around an IPv6 address."""
    assert expected == str(address)


def test_addresses_are_values() -> None:
    """Addresses compare by value and are hashable."""
    assert {Address("h", 1)} == {Address("h", 1), Address("h", 1)} != {Address("h", 2)}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("LOCALHOST.", True),
        ("127.1.example", False),
        ("localhost.example", False),
        ("::2", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    """Addresses in 127.0.0.0/8, ::1 and the name localhost are loopback; other hosts are not."""
    assert expected == Address(host, 1).is_loopback
