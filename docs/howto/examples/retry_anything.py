"""Retries of any async function, with a quota that all calls share."""

from __future__ import annotations

import random

import trio
import trio.testing

import triclinium
from triclinium import StandardRetryStrategy
from triclinium.testing import retries

quota = StandardRetryStrategy(rng=random.Random(0))


class Printer:
    """A printer that fails a given number of times, then prints."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    async def print(self, page: str) -> str:
        """Print a page, or raise ConnectionError if there is no paper."""
        await trio.lowlevel.checkpoint()
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no paper")
        return f"printed {page}"


async def as_a_loop() -> None:
    """Retry a block."""
    printer = Printer(failures=2)
    async for attempt in triclinium.attempts(quota, on=ConnectionError):
        with attempt:
            print(f"attempt {attempt.number}:", await printer.print("a"))


async def as_a_call() -> None:
    """Retry one call, with its arguments."""
    printer = Printer(failures=1)
    print(await triclinium.retry(printer.print, "b", strategy=quota, on=ConnectionError))


@triclinium.retried(strategy=quota, on=ConnectionError)
async def print_once(printer: Printer) -> str:
    """Print a page. The decorator retries every call."""
    return await printer.print("c")


async def when_it_does_not_help() -> None:
    """Show the last error, and its attempts as data."""
    try:
        await print_once(Printer(failures=9))
    except ConnectionError as error:
        print("failed:", error)
        for record in triclinium.retries.attempts_of(error):
            print(f"  attempt {record.number} waited {record.delay:.3f} s, then {record.error!r}; {record.ending}")


async def before_the_deadline() -> None:
    """Show that the last error is raised immediately if the service requests a delay that ends after the deadline."""

    def busy(_: Exception) -> triclinium.retries.ErrorInfo:
        return triclinium.retries.ErrorInfo(is_retry_safe=True, is_throttling_error=True, retry_after=30.0)

    with trio.move_on_after(10) as scope:
        try:
            await triclinium.retry(Printer(failures=1).print, "d", strategy=quota, on=busy)
        except ConnectionError as error:
            print("not waited for:", triclinium.retries.attempts_of(error)[-1].ending)
    print("timed out:", scope.cancelled_caught)


async def a_second_for_each() -> None:
    """Limit each attempt to one second. The limit is inside the attempt, so that its timeout is retried."""
    naps = iter([5.0, 0.5])
    async for attempt in triclinium.attempts(quota, on=trio.TooSlowError):
        with attempt, trio.fail_after(1):
            await trio.sleep(next(naps))
    print("fast enough: attempt", attempt.number)


async def results_too() -> None:
    """Retry while the result is "busy"."""
    answers = iter(["busy", "busy", "done"])

    async def ask() -> str:
        await trio.lowlevel.checkpoint()
        return next(answers)

    with retries():  # in tests: no delays
        print(await triclinium.retry(ask, strategy=quota, retry_result=lambda answer: answer == "busy"))


async def main() -> None:
    """Run all examples, and print the remaining quota."""
    for show in (as_a_loop, as_a_call, when_it_does_not_help, before_the_deadline, a_second_for_each, results_too):
        await show()
        print(f"quota: {quota.available_quota()} of {quota.quota_capacity}")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
