"""The two policies of the Cassandra Java driver. Their docstrings have tables that follow the driver's page.

Source: the retry page of the Cassandra Java driver, "Behavior"; decisions A1 and A4 to A7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra import errors, verdicts
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.checks import check_flag, check_integer
from triclinium_core.shown import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShippedPolicy:
    """Base of both policies: verdicts on errors of a single node, which another node may not have.

    These methods ignore the retry count. The number of retries is limited anyway, because each one takes another node
    from the query plan (decision A1).
    """

    rethrow_cas_write_unknown: bool = False

    def __post_init__(self) -> None:
        check_flag(self.rethrow_cas_write_unknown, "rethrow_cas_write_unknown")

    def on_request_aborted(self, *, error: errors.RequestAborted, retry_count: int) -> verdicts.RetryVerdict:
        """Return RETRY_NEXT if the connection was lost, RETHROW if the response is unreadable."""
        check_integer(retry_count, "retry_count")
        _require_error(error, errors.RequestAborted)
        return (
            verdicts.RETRY_NEXT
            if isinstance(error, errors.ClosedConnection | errors.HeartbeatFailure)
            else verdicts.RETHROW
        )

    def on_error_response(self, *, error: errors.CoordinatorError, retry_count: int) -> verdicts.RetryVerdict:
        """Return RETHROW for ReadFailure and WriteFailure, RETRY_NEXT for any other error.

        If ``rethrow_cas_write_unknown`` is True, return RETHROW also for CasWriteUnknown.
        """
        check_integer(retry_count, "retry_count")
        _require_error(error, errors.CoordinatorError)
        if isinstance(error, errors.CasWriteUnknown) and self.rethrow_cas_write_unknown:
            return verdicts.RETHROW
        return verdicts.RETHROW if isinstance(error, errors.ReadFailure | errors.WriteFailure) else verdicts.RETRY_NEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRetryPolicy(_ShippedPolicy):
    """Policy that retries a request if a retry is safe and likely to succeed. It never changes the request.

    ==================  =======================================================  ==========
    failure             condition                                                verdict
    ==================  =======================================================  ==========
    read timeout        not retried yet, enough answers, none with the data      RETRY_SAME
    write timeout       not retried yet, BATCH_LOG                               RETRY_SAME
    unavailable         not retried yet                                          RETRY_NEXT
    request aborted     closed connection or heartbeat failure                   RETRY_NEXT
    error response      other than ReadFailure and WriteFailure                  RETRY_NEXT
    anything else                                                                RETHROW
    ==================  =======================================================  ==========

    Args:
        rethrow_cas_write_unknown: whether to raise CAS_WRITE_UNKNOWN in the caller. Default: False, as in the driver,
            which sends the request to the next node although the transaction may have been applied (decision A7).

    Raises:
        ArgumentError: ``rethrow_cas_write_unknown`` is not a bool. Each method also raises it for an argument of the
            wrong type or out of range.
    """

    def on_read_timeout(
        self, *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool, retry_count: int
    ) -> verdicts.RetryVerdict:
        """Return RETRY_SAME before the first retry if enough replicas responded, but none of them with the data."""
        errors.check_read(consistency, block_for, received, data_present)
        check_integer(retry_count, "retry_count")
        return (
            verdicts.RETRY_SAME if retry_count == 0 and received >= block_for and not data_present else verdicts.RETHROW
        )

    def on_write_timeout(
        self, *, consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int, retry_count: int
    ) -> verdicts.RetryVerdict:
        """Return RETRY_SAME for a batch log before the first retry: the coordinator then selects live replicas for it."""
        errors.check_write(consistency, write_type, block_for, received)
        check_integer(retry_count, "retry_count")
        return verdicts.RETRY_SAME if retry_count == 0 and write_type is WriteType.BATCH_LOG else verdicts.RETHROW

    def on_unavailable(
        self, *, consistency: ConsistencyLevel, required: int, alive: int, retry_count: int
    ) -> verdicts.RetryVerdict:
        """Return RETRY_NEXT before the first retry, because the coordinator itself may be isolated from the replicas."""
        errors.check_unavailable(consistency, required, alive)
        check_integer(retry_count, "retry_count")
        return verdicts.RETRY_NEXT if retry_count == 0 else verdicts.RETHROW


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyDowngradingRetryPolicy(_ShippedPolicy):
    """Policy that prefers a lower consistency level to a failure.

    After a timeout or an Unavailable error, it retries at most once, usually at a level that replicas satisfy. This
    breaks the guarantees of the levels that the application chose. A write that succeeded at ONE may be invisible to a
    read at QUORUM, and the policy replaces a level that is local to a datacenter with a level that is not. Use the
    policy only if that is harmless.

    ==================  =======================================================  ==================
    failure             condition, the first that holds                          verdict
    ==================  =======================================================  ==================
    any of the three    retried already                                          RETHROW
    read timeout        SERIAL or LOCAL_SERIAL                                   RETHROW
    .                   fewer answers than needed                                downgrade(received)
    .                   none of the answers with the data                        RETRY_SAME
    .                   else                                                     RETHROW
    write timeout       SIMPLE or BATCH, at least one acknowledgement            IGNORE
    .                   UNLOGGED_BATCH                                           downgrade(received)
    .                   BATCH_LOG                                                RETRY_SAME
    .                   else                                                     RETHROW
    unavailable         SERIAL or LOCAL_SERIAL                                   RETRY_NEXT
    .                   else                                                     downgrade(alive)
    request aborted     as ``DefaultRetryPolicy``
    error response      as ``DefaultRetryPolicy``
    ==================  =======================================================  ==================

    ``downgrade(n)`` is RETRY_SAME at the level THREE if ``n`` is at least three, at TWO if it is two, and at ONE if it
    is one. If ``n`` is zero, it is RETHROW; but for a request at EACH_QUORUM, it is RETRY_SAME at ONE. The policy does
    not compare the new level with the level that failed, so the new level may be equal or higher (decision A6).

    Args:
        rethrow_cas_write_unknown: whether to raise CAS_WRITE_UNKNOWN in the caller. Default: False, as in the driver,
            which sends the request to the next node although the transaction may have been applied (decision A7).

    Raises:
        ArgumentError: ``rethrow_cas_write_unknown`` is not a bool. Each method also raises it for an argument of the
            wrong type or out of range.
    """

    def on_read_timeout(
        self, *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool, retry_count: int
    ) -> verdicts.RetryVerdict:
        """Return a first retry: at a level that the responses satisfy, or at the same level if only data is missing."""
        errors.check_read(consistency, block_for, received, data_present)
        check_integer(retry_count, "retry_count")
        if retry_count > 0 or consistency.is_serial:
            return verdicts.RETHROW
        if received < block_for:
            return _downgrade(received, consistency)
        return verdicts.RETHROW if data_present else verdicts.RETRY_SAME

    def on_write_timeout(
        self, *, consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int, retry_count: int
    ) -> verdicts.RetryVerdict:
        """Return the verdict that the table in the docstring of the class has for the type of the write."""
        errors.check_write(consistency, write_type, block_for, received)
        check_integer(retry_count, "retry_count")
        if retry_count > 0:
            return verdicts.RETHROW
        match write_type:
            case WriteType.SIMPLE | WriteType.BATCH:
                return verdicts.IGNORE if received > 0 else verdicts.RETHROW
            case WriteType.UNLOGGED_BATCH:
                return _downgrade(received, consistency)
            case WriteType.BATCH_LOG:
                return verdicts.RETRY_SAME
            case WriteType.COUNTER | WriteType.CAS | WriteType.VIEW | WriteType.CDC:
                return verdicts.RETHROW
            case _:
                assert_never(write_type)

    def on_unavailable(
        self, *, consistency: ConsistencyLevel, required: int, alive: int, retry_count: int
    ) -> verdicts.RetryVerdict:
        """Return a first retry: at a level that live replicas satisfy, or for a serial level on the next node."""
        errors.check_unavailable(consistency, required, alive)
        check_integer(retry_count, "retry_count")
        if retry_count > 0:
            return verdicts.RETHROW
        return verdicts.RETRY_NEXT if consistency.is_serial else _downgrade(alive, consistency)


_LADDER: Mapping[int, verdicts.RetryVerdict] = {
    1: verdicts.RetryVerdict(verdicts.RetryDecision.RETRY_SAME, ConsistencyLevel.ONE),
    2: verdicts.RetryVerdict(verdicts.RetryDecision.RETRY_SAME, ConsistencyLevel.TWO),
    3: verdicts.RetryVerdict(verdicts.RetryDecision.RETRY_SAME, ConsistencyLevel.THREE),
}
_LADDER_TOP = max(_LADDER)


def _downgrade(replicas: int, consistency: ConsistencyLevel) -> verdicts.RetryVerdict:
    if replicas > 0:
        return _LADDER[min(replicas, _LADDER_TOP)]
    # EACH_QUORUM needs a quorum in every datacenter. ``replicas`` may count only the replicas of a datacenter
    # without a quorum, and other datacenters may have live replicas.
    return _LADDER[1] if consistency is ConsistencyLevel.EACH_QUORUM else verdicts.RETHROW


def _require_error(error: object, kind: type[Exception]) -> None:
    if not isinstance(error, kind):
        raise ArgumentError(f"error={shown(error)} must be of type {kind.__name__}", parameter="error")


PolicyClass = type[DefaultRetryPolicy] | type[ConsistencyDowngradingRetryPolicy]

POLICIES: Mapping[str, PolicyClass] = {
    "default": DefaultRetryPolicy,
    "DefaultRetryPolicy": DefaultRetryPolicy,
    "downgrading": ConsistencyDowngradingRetryPolicy,
    "ConsistencyDowngradingRetryPolicy": ConsistencyDowngradingRetryPolicy,
}
"""Policies of this module, by their short names and by their names in the driver's configuration."""


def policy_class(name: str) -> PolicyClass:
    """Return the policy class with the name ``name``.

    Raises:
        ArgumentError: the name is unknown.
    """
    if not isinstance(name, str) or name not in POLICIES:
        raise ArgumentError(
            f"policy={shown(name)} is not known; choose one of {', '.join(POLICIES)}", parameter="policy"
        )
    return POLICIES[name]
