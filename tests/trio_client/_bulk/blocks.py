"""Items, counts and log of the bulk blocks that tests run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from tests.trio_client.pair import Pair
from triclinium.bulk import BulkOutcomes, BulkWrites
from triclinium.testing import Opcode
from triclinium_core.kv.operation.results import MutationResult

SLOW = 1.0
"""Seconds by which a delayed response is late; shorter than the timeout of an operation."""


def pairs(count: int) -> list[tuple[str, int]]:
    """Return ``count`` pairs of a key and a value."""
    return [(f"k{number}", number) for number in range(count)]


def keys(count: int) -> list[str]:
    """Return the keys of ``pairs``."""
    return [key for key, _ in pairs(count)]


def stored(pair: Pair) -> list[str]:
    """Return those of the first 300 keys whose documents exist, in order."""
    documents = pair.fake.nodes.documents
    return [key for key in keys(300) if documents.get("travel", key) is not None]


def sent(pair: Pair, opcode: Opcode = Opcode.SET) -> list[bytes]:
    """Return the keys of the commands of one kind that the node received."""
    return [command.key for command in pair.fake.node.command_log if command.opcode == opcode]


def totals(outcomes: BulkWrites[MutationResult]) -> tuple[int, int, int, int]:
    """Return the four counts of a block."""
    return outcomes.taken, outcomes.succeeded, outcomes.not_applied_count, outcomes.ambiguous_count


class MineError(Exception):
    """Exception of a source or of a body."""


def broken(count: int, error: BaseException) -> Iterator[tuple[str, object]]:
    """Yield pairs, and then raise ``error``."""
    yield from pairs(count)
    raise error


async def run(block: BulkOutcomes[object], body: Callable[[], Awaitable[object]]) -> None:
    """Run a block with a body."""
    async with block:
        await body()
