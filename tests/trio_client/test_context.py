"""Values that blocks set for the operations in them."""

from __future__ import annotations

import pytest
import trio

from triclinium import client_context, retrying
from triclinium._context import block_values, strategy_for
from triclinium.errors import InvalidArgumentException
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, RetryAction, RetryReason, RetryRequest


class Patient:
    """Asynchronous strategy, which refuses every retry."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry."""
        return RetryAction.no_retry()


OUTER, INNER, OWN = BestEffortRetryStrategy(), Patient(), BestEffortRetryStrategy()


def test_the_innermost_strategy_applies() -> None:
    """Blocks nest, and the end of a block restores the previous strategy."""
    seen = [strategy_for(None)]
    with retrying(OUTER):
        seen.append(strategy_for(None))
        with retrying(INNER):
            seen.append(strategy_for(None))
        seen.append(strategy_for(None))
    seen.append(strategy_for(None))

    assert [None, OUTER, INNER, OUTER, None] == seen


def test_a_calls_own_strategy_comes_first() -> None:
    """The strategy of a call takes precedence over that of a block."""
    with retrying(OUTER):
        strategy = strategy_for(OWN)

    assert OWN is strategy


def test_a_failing_block_restores_the_values() -> None:
    """A block that raises restores the previous values, too."""
    with pytest.raises(ValueError, match="mine"), retrying(OUTER), client_context(is_robot=True):
        raise ValueError("mine")

    assert strategy_for(None) is None
    assert block_values.get() is None


def test_client_contexts_add_up() -> None:
    """An inner block adds its values to those of the outer block, and replaces a value that has the same name."""
    seen = [block_values.get()]
    with client_context(is_robot=True, tenant="a"):
        with client_context(tenant="b", attempt=1):
            seen.append(block_values.get())
        seen.append(block_values.get())

    assert [None, {"is_robot": True, "tenant": "b", "attempt": 1}, {"is_robot": True, "tenant": "a"}] == seen


def test_a_client_context_is_read_only() -> None:
    """The client context that a strategy sees cannot be changed."""
    with client_context(is_robot=True):
        values = block_values.get()

    assert not hasattr(values, "__setitem__")


async def test_tasks_inherit_the_values_of_their_starter() -> None:
    """A task inherits the values of its starter, and its own values do not affect the starter."""
    seen: list[object] = []

    async def child() -> None:
        await trio.lowlevel.checkpoint()
        seen.append(strategy_for(None))
        with retrying(INNER), client_context(tenant="b"):
            await trio.lowlevel.checkpoint()
            seen.append(block_values.get())

    async with trio.open_nursery() as nursery:
        with retrying(OUTER), client_context(tenant="a"):
            nursery.start_soon(child)
        seen.append(strategy_for(None))
    seen.append(block_values.get())

    assert [None, OUTER, {"tenant": "b"}, None] == seen


@pytest.mark.parametrize("strategy", [None, "best effort", BestEffortRetryStrategy, object()])
def test_an_invalid_strategy_is_refused(strategy: object) -> None:
    """An invalid strategy, or a class in place of an instance, raises InvalidArgumentException."""
    with pytest.raises(InvalidArgumentException, match="must be an object") as caught, retrying(strategy):  # type: ignore[arg-type]
        pass

    assert "retry_strategy" == caught.value.parameter
