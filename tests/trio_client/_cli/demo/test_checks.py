"""Checks of a demo scenario, and the log entries that they count."""

from __future__ import annotations

from dataclasses import replace

from tests.rows import rows
from tests.trio_client._cli.plays import PLAY, SCENARIO, decided, frame
from triclinium._cli.demo.checks import Check, check
from triclinium._cli.demo.recorder import NodeTook, Play
from triclinium.retries import RetryReason
from triclinium_core.error_context import ErrorContext

TAKEN = [entry for entry in PLAY.entries if isinstance(entry, NodeTook)]


def failing(play: Play) -> list[Check]:
    """Return the checks that fail."""
    return [found for found in check(play) if not found.holds]


def test_a_correct_play_passes_all_checks() -> None:
    """A run of a scenario that meets every demand passes all nine checks."""
    assert (9, []) == (len(check(PLAY)), failing(PLAY))


def test_a_retry_that_was_not_logged() -> None:
    """A retry that is missing from the log fails the checks of reasons, retries and statistics."""
    play = replace(PLAY, entries=(decided(100.002, 0.001), *TAKEN))

    assert ["reasons", "retries", "statistics"] == [found.name for found in failing(play)]


def test_entries_of_other_operations_do_not_count() -> None:
    """Decisions about other documents and commands of other operations do not affect the checks."""
    others = (NodeTook(100.0, frame(0.0, key="grace")), NodeTook(100.0, frame(0.0, opcode=0x00)))
    entries = (decided(100.001, 0.5, key="grace"), *others, *PLAY.entries)

    assert [] == failing(replace(PLAY, entries=entries))


REFUSED = replace(
    PLAY,
    scenario=replace(
        SCENARIO, reasons=(RetryReason.KV_LOCKED,), outcome="DocumentLockedException", answer=None, frames=1, applied=0
    ),
    entries=(TAKEN[0], decided(100.002, None)),
    outcome="DocumentLockedException",
    message="locked",
    answer=None,
    retries_by_reason={},
    context=ErrorContext(retry_reasons=frozenset({"KV_LOCKED"}), refused_reason="KV_LOCKED"),
)


def test_a_refused_retry_passes_the_checks() -> None:
    """A refused retry and an error whose context gives the same reason pass all checks."""
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
            "0 retries for KV_LOCKED, refused for KV_LOCKED",
            "0 retries for KV_LOCKED, refused for KV_LOCKED",
            True,
        ),
    ] == check(REFUSED)


def test_a_failure_that_was_not_logged() -> None:
    """An exception without a refusal in the log fails the checks of reasons and error context."""
    assert ["reasons", "error context"] == [found.name for found in failing(replace(REFUSED, entries=(TAKEN[0],)))]


@rows(("prepared", "held"), [(0, False), (1, True), (2, False)])
def test_a_statement_is_planned_as_often_as_demanded(prepared: int, held: bool) -> None:
    """The check passes only if the node planned the statement exactly as often as the scenario demands."""
    play = replace(PLAY, scenario=replace(SCENARIO, prepared=1), prepared=prepared)

    assert ([] if held else ["times prepared"]) == [found.name for found in failing(play)]


PATIENT = replace(
    PLAY,
    scenario=replace(SCENARIO, reasons=(RetryReason.KV_LOCKED,), then=frozenset({RetryReason.SOCKET_NOT_AVAILABLE})),
)


@rows("further", [0, 1, 2])
def test_optional_reasons_may_follow(further: int) -> None:
    """Any number of retries for an optional reason may follow the required ones."""
    more = [decided(100.003, 0.002 * 2**number, "SOCKET_NOT_AVAILABLE") for number in range(further)]
    counted = {"KV_LOCKED": 1} | ({"SOCKET_NOT_AVAILABLE": further} if further else {})

    assert [] == failing(replace(PATIENT, entries=(decided(100.002, 0.001), *more, *TAKEN), retries_by_reason=counted))


def test_optional_reasons_do_not_replace_required_ones() -> None:
    """A run fails the check of reasons if it retries twice for a required reason, or never."""
    assert ["reasons"] == [found.name for found in failing(PATIENT)]
    assert ["reasons", "retries"] == [
        found.name for found in failing(replace(PATIENT, entries=(*TAKEN,), retries_by_reason={}))
    ]
