"""Retry schedules of CouchbaseMock's error map, which it verifies: one for each algorithm of SDK-RFC 0013.

The result depends on milliseconds, so a busy machine can spoil an attempt, which is then repeated. A wrong schedule
fails every time.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import triclinium
from tests.live.couchbase_mock import CouchbaseMock
from tests.never_retry import NeverRetry
from triclinium import errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import ErrorMapEntry, RetryStrategy

pytestmark = pytest.mark.live

SECONDS_MAX = 1.0
"""Limit for a strategy without one, which is longer than the ``max-duration`` of each schedule, 0.5 s."""
TOLERANCE_MS = 30
ATTEMPTS = 100
"""Number of spoiled attempts after which the schedule counts as wrong."""
KEY = "ada"

CONSTANT, LINEAR, EXPONENTIAL = 0x7FF0, 0x7FF1, 0x7FF2
ALGORITHMS = {CONSTANT: "constant", LINEAR: "linear", EXPONENTIAL: "exponential"}

each_algorithm = pytest.mark.parametrize("status", ALGORITHMS, ids=ALGORITHMS.get)


class OtherSchedule:
    """Strategy that follows a given entry of the error map instead of the entry for the status."""

    def __init__(self, entry: ErrorMapEntry) -> None:
        self._entry = entry

    def retry_after(
        self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason
    ) -> triclinium.retries.RetryAction:
        """Decide by the given entry."""
        return triclinium.ErrorMapRetryStrategy().retry_after(replace(request, error_map_entry=self._entry), reason)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Prevent garbage collections from delaying a retry."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def verdict(
    mock: CouchbaseMock,
    strategy: RetryStrategy,
    status: int,
    error: type[errors.CouchbaseException] = errors.TemporaryFailureException,
    seconds_max: float = math.inf,
) -> tuple[str, int]:
    """Return the verifier's complaint, and the number of attempts of a read that must fail with a status."""
    async with mock.open_client() as (_, store):
        await store.upsert(KEY, 1)
        place = {"bucket": mock.bucket, "idx": mock.owner_of(KEY)}
        mock.fail(status, opcode=Opcode.GET)
        mock.do("START_RETRY_VERIFY", **place)
        with without_garbage_collection(), pytest.raises(error) as caught, triclinium.fail_after(seconds_max):
            await store.get(KEY, retry_strategy=strategy)
        sent = sum(mock.commands(Opcode.GET))
        answer = mock.ask("CHECK_RETRY_VERIFY", opcode=Opcode.GET, errcode=status, fuzz_ms=TOLERANCE_MS, **place)
    assert error is type(caught.value)
    return "" if answer["status"] == "ok" else str(answer["error"]), sent


@each_algorithm
async def test_the_schedule_of_the_map_is_followed(
    safety_net: None, couchbase_mock: CouchbaseMock, status: int
) -> None:
    """``after``, ``interval``, ``ceil`` and ``max-duration`` are followed, and then the status's error is raised."""
    complaints = []
    for _ in range(ATTEMPTS):
        complaint, sent = await verdict(couchbase_mock, triclinium.ErrorMapRetryStrategy(), status)
        if not complaint:
            break
        complaints.append(complaint)
    else:
        pytest.fail(f"the verifier minds: {complaints}")

    assert sent > 5


@each_algorithm
async def test_the_verifier_rejects_other_strategies(
    safety_net: None, couchbase_mock: CouchbaseMock, status: int
) -> None:
    """The verifier rejects a strategy without a schedule, and a read without retries."""
    too_soon, _ = await verdict(
        couchbase_mock, triclinium.BestEffortRetryStrategy(), status, errors.UnambiguousTooSlowError, SECONDS_MAX
    )
    none, sent = await verdict(couchbase_mock, NeverRetry(), status)

    # Accept either complaint: which one the verifier finds first depends on the load of the machine.
    assert "FirstRetryTooSoonException" in too_soon or "DurationExceededException" in too_soon
    assert ("No commands executed" in none, 1) == (True, sent)


@pytest.mark.parametrize(
    ("status", "followed", "interval_ms"),
    # Leave out (CONSTANT, LINEAR), whose delays in the first half second may be equal within the tolerance.
    [
        (CONSTANT, EXPONENTIAL, 2),
        # The map's constant interval is 10 ms. A busy machine can lengthen it to 20 ms, which is within the tolerance of
        # every linear delay: these grow from 2 ms to 50 ms. An interval of 50 ms is too long for the first delays, and
        # no load makes it shorter.
        (LINEAR, CONSTANT, 50),
        (LINEAR, EXPONENTIAL, 2),
        (EXPONENTIAL, CONSTANT, 10),
        (EXPONENTIAL, LINEAR, 2),
    ],
    ids=lambda value: ALGORITHMS.get(value, str(value)),
)
async def test_the_verifier_rejects_other_algorithms(
    safety_net: None, couchbase_mock: CouchbaseMock, status: int, followed: int, interval_ms: int
) -> None:
    """The verifier rejects a strategy that follows the algorithm of another status."""
    entry = couchbase_mock.error_map.entries[followed]
    assert entry.retry is not None
    strategy = OtherSchedule(replace(entry, retry=replace(entry.retry, interval_ms=interval_ms)))
    complaint, sent = await verdict(couchbase_mock, strategy, status)

    assert complaint
    assert sent > 2
