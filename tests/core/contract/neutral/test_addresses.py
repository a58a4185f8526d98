"""Addresses in events."""

from __future__ import annotations

import pytest

from triclinium_core.contract.neutral.addresses import address_of


@pytest.mark.parametrize(
    ("expected", "name"),
    [
        ("127.0.0.1:11210", ("127.0.0.1", 11210)),
        ("[::1]:11210", ("::1", 11210, 0, 0)),
        ("", "/run/socket"),
    ],
)
def test_addresses_include_their_ports(expected: str, name: object) -> None:
    """An IPv6 address is in brackets, and a socket without a port has no address."""
    assert expected == address_of(name)
