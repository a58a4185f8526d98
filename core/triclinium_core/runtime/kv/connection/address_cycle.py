"""Addresses of a node, tried in turn, one for each stream."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.kv.address import Address


class AddressCycle:
    """Addresses of one connection.

    Args:
        addresses: at least one.
        is_seeking: whether the connection may be to any node of the cluster, so that the addresses are those of the
            seeds.
    """

    def __init__(self, addresses: Sequence[Address], *, is_seeking: bool = False) -> None:
        self.current: Address = addresses[0]
        """Address of the current stream, of the next one, or of the last one."""
        self.is_seeking: bool = is_seeking
        """Whether the connection may be to any node of the cluster."""
        self.remark: str = ""
        """Addition to the errors of a stream that is not open yet: why the client uses its address. Often empty."""
        self._addresses, self._position = addresses, 0

    def __len__(self) -> int:
        return len(self._addresses)

    def advance(self) -> Address:
        """Advance to the next address, and return it."""
        self.current = self._addresses[self._position % len(self._addresses)]
        self._position += 1
        return self.current

    def replace(self, addresses: Sequence[Address]) -> None:
        """Replace the addresses. Continue with the one after the current one."""
        if addresses != self._addresses:
            self._position = addresses.index(self.current) + 1 if self.current in addresses else 0
            self._addresses = addresses

    def stay(self) -> None:
        """Keep the current address only."""
        self._addresses = (self.current,)
        self.is_seeking = False

    def explain(self, remark: str) -> None:
        """Set the remark for the errors of the next stream. It is empty once the stream is open."""
        self.remark = remark
