"""The addresses at which a node may be, tried in turn, one for each stream."""

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
        """Whether any node of the cluster will do."""
        self.remark: str = ""
        """Addition to the errors of a stream that is not open yet: why the client uses its address. Often empty."""
        self._addresses, self._position = addresses, 0

    def __len__(self) -> int:
        return len(self._addresses)

    def advance(self) -> Address:
        """Take the next address, and return it."""
        self.current = self._addresses[self._position % len(self._addresses)]
        self._position += 1
        return self.current

    def replace(self, addresses: Sequence[Address]) -> None:
        """Try these addresses from now on, beginning with the one after the current one."""
        if addresses != self._addresses:
            self._position = addresses.index(self.current) + 1 if self.current in addresses else 0
            self._addresses = addresses

    def stay(self) -> None:
        """Try no other address from now on than the current one."""
        self._addresses = (self.current,)
        self.is_seeking = False

    def explain(self, remark: str) -> None:
        """Add a remark to the errors of the stream that is opened next; an empty one once it is open."""
        self.remark = remark
