"""What becomes of exceptions that leave the asynchronous part of a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import click
import pytest
import trio

from triclinium._cli._output import OutputLost
from triclinium._cli._running import run_trio


async def double(number: int) -> int:
    """Return twice ``number``."""
    await trio.lowlevel.checkpoint()
    return 2 * number


async def raise_alone(error: BaseException) -> None:
    """Raise as it is."""
    await trio.lowlevel.checkpoint()
    raise error


async def raise_in_nurseries(error: BaseException) -> None:
    """Raise as a part of a group of groups."""
    async with trio.open_nursery() as outer:
        outer.start_soon(trio.sleep_forever)
        async with trio.open_nursery() as inner:
            inner.start_soon(raise_alone, error)


Work = Callable[[BaseException], Awaitable[None]]

each_way = pytest.mark.parametrize("work", [raise_alone, raise_in_nurseries])


def test_a_result_is_passed_on() -> None:
    """Arguments go in, the result comes out."""
    assert 42 == run_trio(double, 21)


@each_way
def test_control_c_aborts(work: Work) -> None:
    """Whether or not it struck in a nursery."""
    with pytest.raises(click.Abort):
        run_trio(work, KeyboardInterrupt())


@each_way
def test_lost_output_is_recognised(work: Work) -> None:
    """As the error that it is, out of whatever groups."""
    lost = OutputLost(BrokenPipeError())
    with pytest.raises(OutputLost) as caught:
        run_trio(work, lost)

    assert lost is caught.value


def test_any_other_exception_is_left_alone() -> None:
    """A defect shows with its traceback."""
    with pytest.raises(ExceptionGroup) as caught:
        run_trio(raise_in_nurseries, ZeroDivisionError())

    assert caught.group_contains(ZeroDivisionError, depth=2)
