"""What blocks lend to the operations in them."""

from __future__ import annotations

import pytest
import trio

from triclinium import client_context, retrying
from triclinium._context import block_values, strategy_for
from triclinium.errors import InvalidArgumentException
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, RetryAction, RetryReason, RetryRequest


class Patient:
    """An asynchronous strategy."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Give up."""
        return RetryAction.no_retry()


OUTER, INNER, OWN = BestEffortRetryStrategy(), Patient(), BestEffortRetryStrategy()


def test_the_innermost_block_lends_its_strategy() -> None:
    """Blocks nest, and each gives back what was there before."""
    seen = [strategy_for(None)]
    with retrying(OUTER):
        seen.append(strategy_for(None))
        with retrying(INNER):
            seen.append(strategy_for(None))
        seen.append(strategy_for(None))
    seen.append(strategy_for(None))

    assert [None, OUTER, INNER, OUTER, None] == seen


def test_a_calls_own_strategy_comes_first() -> None:
    """A block does not overrule a call."""
    with retrying(OUTER):
        strategy = strategy_for(OWN)

    assert OWN is strategy


def test_a_block_gives_back_what_it_found_when_it_fails() -> None:
    """An exception ends the loan as well."""
    with pytest.raises(ValueError, match="mine"), retrying(OUTER), client_context(is_robot=True):
        raise ValueError("mine")

    assert strategy_for(None) is None
    assert block_values.get() is None


def test_client_contexts_add_up() -> None:
    """An inner block adds to those around it, and wins where it repeats one."""
    seen = [block_values.get()]
    with client_context(is_robot=True, tenant="a"):
        with client_context(tenant="b", attempt=1):
            seen.append(block_values.get())
        seen.append(block_values.get())

    assert [None, {"is_robot": True, "tenant": "b", "attempt": 1}, {"is_robot": True, "tenant": "a"}] == seen


def test_a_client_context_cannot_be_changed() -> None:
    """A strategy looks at it, and changes it for nobody else."""
    with client_context(is_robot=True):
        values = block_values.get()

    assert not hasattr(values, "__setitem__")


async def test_tasks_inherit_what_was_lent_when_they_were_started() -> None:
    """A task keeps what its starter had, and its starter does not see what it sets."""
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
def test_what_is_no_strategy_is_refused(strategy: object) -> None:
    """A class in the place of an object of it is a mistake too."""
    with pytest.raises(InvalidArgumentException, match="must be an object") as caught, retrying(strategy):  # type: ignore[arg-type]
        pass

    assert "retry_strategy" == caught.value.parameter
