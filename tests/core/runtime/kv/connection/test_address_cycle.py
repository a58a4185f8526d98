"""Cycle of the addresses that a connection tries."""

from __future__ import annotations

from triclinium_core.kv.address import Address
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle

A, B, C, D = (Address(host, 11210) for host in "abcd")


def test_in_turn() -> None:
    """Each new stream uses the next address; after the last address, the first one follows."""
    addresses = AddressCycle((A, B))
    before = addresses.current
    taken = [addresses.advance() for _ in range(3)]

    assert (A, [A, B, A], 2) == (before, taken, len(addresses))
    assert A == addresses.current


def test_replaced() -> None:
    """If new addresses contain the current one, the next address after it follows; otherwise the first one does."""
    addresses = AddressCycle((A, B))
    addresses.advance()
    addresses.replace((C, A, D))
    after_current = addresses.advance()
    addresses.replace((B, C))
    from_the_first = addresses.advance()

    assert (D, B) == (after_current, from_the_first)


def test_replaced_by_the_same() -> None:
    """If the new addresses equal the old ones, nothing changes."""
    addresses = AddressCycle((A, A, B))
    addresses.advance()
    addresses.advance()
    addresses.replace((A, A, B))

    assert B == addresses.advance()


def test_stays() -> None:
    """After a connection has found its node, it tries no other address."""
    addresses = AddressCycle((A, B), is_seeking=True)
    addresses.advance()
    addresses.advance()
    addresses.stay()

    assert ([B, B], False, 1) == ([addresses.advance() for _ in range(2)], addresses.is_seeking, len(addresses))


def test_remark() -> None:
    """The remark about an address is kept until another remark replaces it."""
    addresses = AddressCycle((A,))
    addresses.explain("; because")
    explained = addresses.remark
    addresses.explain("")

    assert ("; because", "") == (explained, addresses.remark)
