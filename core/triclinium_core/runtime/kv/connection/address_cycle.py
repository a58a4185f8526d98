"""Addresses of one connection. Each new stream tries the next address."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.kv.address import Address


class AddressCycle:
    """Addresses that one connection tries in turn.

    Args:
        addresses: the addresses to try, at least one.
        is_seeking: whether any node of the cluster will do. The addresses are then those of the seeds and of the known
            nodes.
    """

    def __init__(self, addresses: Sequence[Address], *, is_seeking: bool = False) -> None:
        self.current: Address = addresses[0]
        """Address of the current stream or, without one, of the stream to be opened or of the last stream."""
        self.is_seeking: bool = is_seeking
        """Whether the connection may reach any node of the cluster."""
        self.remark: str = ""
        """Reason why the client uses the address, appended to errors until the stream is open. Often empty."""
        self._addresses, self._position = addresses, 0

    def __len__(self) -> int:
        return len(self._addresses)

    def advance(self) -> Address:
        """Advance to the next address, and return it."""
        self.current = self._addresses[self._position % len(self._addresses)]
        self._position += 1
        return self.current

    def replace(self, addresses: Sequence[Address]) -> None:
        """Replace the addresses.

        The next stream tries the address after the current one, or the first address if the list lacks the current one.
        """
        if addresses != self._addresses:
            self._position = addresses.index(self.current) + 1 if self.current in addresses else 0
            self._addresses = addresses

    def stay(self) -> None:
        """Drop all addresses except the current one."""
        self._addresses = (self.current,)
        self.is_seeking = False

    def explain(self, remark: str) -> None:
        """Set the remark for errors of a stream that is being opened. An empty remark clears it."""
        self.remark = remark
