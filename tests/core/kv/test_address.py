"""Where a node listens."""

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
    """As people write it, with an IPv6 address in brackets."""
    assert expected == str(address)


def test_addresses_are_values() -> None:
    """Equal by what they say, and usable as keys."""
    assert {Address("h", 1)} == {Address("h", 1), Address("h", 1)} != {Address("h", 2)}
