"""Cycle of the addresses that a connection tries."""

from __future__ import annotations

from triclinium_core.kv.address import Address
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle

A, B, C, D = (Address(host, 11210) for host in "abcd")


def test_replaced_by_the_same() -> None:
    """If the new addresses equal the old ones, nothing changes."""
    addresses = AddressCycle((A, A, B))
    addresses.advance()
    addresses.advance()
    addresses.replace((A, A, B))

    assert B == addresses.advance()


def test_remark() -> None:
    """The remark about an address is kept until another remark replaces it."""
    addresses = AddressCycle((A,))
    addresses.explain("; because")
    explained = addresses.remark
    addresses.explain("")

    assert ("; because", "") == (explained, addresses.remark)
