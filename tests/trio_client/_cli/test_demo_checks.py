"""Each demand of a scenario can fail, and by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trio_client._cli.plays import FRAMES, PLAY, SCENARIO, decided, frame
from triclinium import RetryReason
from triclinium._cli._demo_checks import Check, check
from triclinium._cli._demo_play import Play
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.kv_status import Status

FIRST, _, _, _, LATER, _ = PLAY.entries


def failing(play: Play) -> list[Check]:
    """Return the checks that do not hold."""
    return [found for found in check(play) if not found.holds]


def test_all_hold() -> None:
    """Where everything is as demanded, every check says so in the same words twice, or with a limit."""
    assert [
        Check("reasons", "2 x KV_LOCKED", "2 x KV_LOCKED", True),
        Check("retries", "2", "2", True),
        Check("delays", "1, 2 ms", "1, 2 ms", True),
        Check("outcome", "success", "success", True),
        Check("answer", "done", "done", True),
        Check("frames at the node", "3", "3", True),
        Check("times applied", "1", "1", True),
        Check("waits by the node's clock", "at least 1, 2 ms", "2, 3 ms", True),
        Check("statistics", "2 x KV_LOCKED", "2 x KV_LOCKED", True),
    ] == check(PLAY)


@pytest.mark.parametrize(
    ("play", "expected"),
    [
        (
            replace(
                PLAY,
                entries=(decided(100.002, 0.001, "UNKNOWN"), LATER),
                retries_by_reason={"UNKNOWN": 1, "KV_LOCKED": 1},
            ),
            [Check("reasons", "2 x KV_LOCKED", "UNKNOWN, KV_LOCKED", False)],
        ),
        (
            replace(PLAY, entries=(decided(100.002, 0.001), decided(100.004, 0.0015))),
            [Check("delays", "1, 2 ms", "1, 1.5 ms", False)],
        ),
        (
            replace(PLAY, outcome="InternalError"),
            [Check("outcome", "success", "InternalError", False)],
        ),
        (replace(PLAY, answer="undone"), [Check("answer", "done", "undone", False)]),
        (
            replace(PLAY, commands=(*FRAMES, frame(0.007, Status.SUCCESS))),
            [Check("frames at the node", "3", "4", False)],
        ),
        (
            replace(PLAY, commands=(FRAMES[0], frame(0.002, applied=True), FRAMES[2])),
            [Check("times applied", "1", "2", False)],
        ),
        (
            replace(PLAY, commands=(FRAMES[0], frame(0.004), FRAMES[2])),
            [Check("waits by the node's clock", "at least 1, 2 ms", "4, 1 ms", False)],
        ),
        (
            replace(PLAY, retries_by_reason={"KV_LOCKED": 1, "UNKNOWN": 1}),
            [Check("statistics", "2 x KV_LOCKED", "1 x KV_LOCKED, 1 x UNKNOWN", False)],
        ),
        (
            replace(PLAY, context=ErrorContext(retry_attempts=3, retry_reasons=frozenset({"KV_LOCKED"}))),
            [
                Check(
                    "error context",
                    "2 retries for KV_LOCKED, refused for KV_LOCKED",
                    "3 retries for KV_LOCKED, refused for nothing",
                    False,
                )
            ],
        ),
    ],
)
def test_a_demand_that_is_not_met(play: Play, expected: list[Check]) -> None:
    """One thing differs, and one check says what was demanded and what was observed."""
    assert expected == failing(play)


def test_a_retry_that_was_not_logged() -> None:
    """The reasons, their number and the client's own counts tell."""
    play = replace(PLAY, entries=(decided(100.002, 0.001),))

    assert ["reasons", "retries", "statistics"] == [found.name for found in failing(play)]


def test_what_concerns_other_operations_does_not_count() -> None:
    """Neither decisions about other documents nor other commands do."""
    entries = (decided(100.001, 0.5, key="grace"), *PLAY.entries)
    commands = (frame(0.0, key="grace"), frame(0.0, opcode=0x00), *FRAMES)

    assert [] == failing(replace(PLAY, entries=entries, commands=commands))


REFUSED = replace(
    PLAY,
    scenario=replace(
        SCENARIO,
        demand=replace(
            SCENARIO.demand,
            reasons=(RetryReason.KV_LOCKED,),
            outcome="DocumentLockedException",
            answer=None,
            frames=1,
            applied=0,
        ),
    ),
    entries=(FIRST, decided(100.002, None)),
    commands=(FRAMES[0],),
    outcome="DocumentLockedException",
    message="locked",
    answer=None,
    retries_by_reason={},
    context=ErrorContext(refused_reason="KV_LOCKED"),
)


def test_a_refusal() -> None:
    """The last decision is no retry, and the error says the same."""
    assert [
        Check("reasons", "KV_LOCKED", "KV_LOCKED", True),
        Check("retries", "0", "0", True),
        Check("delays", "none", "none", True),
        Check("outcome", "DocumentLockedException", "DocumentLockedException", True),
        Check("frames at the node", "1", "1", True),
        Check("times applied", "0", "0", True),
        Check("statistics", "no retries", "no retries", True),
        Check(
            "error context",
            "0 retries for nothing, refused for KV_LOCKED",
            "0 retries for nothing, refused for KV_LOCKED",
            True,
        ),
    ] == check(REFUSED)


def test_a_failure_that_was_not_logged() -> None:
    """An exception without a refusal in the log is no refusal."""
    assert ["reasons", "error context"] == [found.name for found in failing(replace(REFUSED, entries=()))]


PATIENT = replace(
    PLAY,
    scenario=replace(
        SCENARIO,
        demand=replace(
            SCENARIO.demand, reasons=(RetryReason.KV_LOCKED,), then=frozenset({RetryReason.SOCKET_NOT_AVAILABLE})
        ),
    ),
)


@pytest.mark.parametrize("further", [0, 1, 2])
def test_reasons_that_may_follow(further: int) -> None:
    """Any number of them does, after those that must come."""
    more = [decided(100.003, 0.002 * 2**number, "SOCKET_NOT_AVAILABLE") for number in range(further)]
    counted = {"KV_LOCKED": 1} | ({"SOCKET_NOT_AVAILABLE": further} if further else {})

    assert [] == failing(replace(PATIENT, entries=(decided(100.002, 0.001), *more), retries_by_reason=counted))


def test_reasons_that_may_not_follow() -> None:
    """Any other does not, nor do they replace what must come."""
    assert ["reasons"] == [found.name for found in failing(PATIENT)]
    assert ["reasons", "retries"] == [
        found.name for found in failing(replace(PATIENT, entries=(), retries_by_reason={}))
    ]
