"""Fixed properties of a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import Duration
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.policy import RetryPolicy, require_policy
from triclinium_core.retry.cassandra.requests.speculation import (
    NoSpeculativeExecution,
    SpeculativeExecutionPolicy,
    require_speculation,
)
from triclinium_core.retry.checks import check_choice, check_duration, check_flag

_ONE_EXECUTION = NoSpeculativeExecution()

TIMEOUT_DEFAULT = 2.0
"""Seconds for a whole request, as the Java driver has it."""
TIMEOUT_MAX = 1e9
"""Thirty years: whoever wants to wait for longer says ``inf``."""


def check_timeout(timeout: object, parameter: str) -> float:
    """Return the seconds; raise ArgumentError unless they are above 0, and up to the maximum or infinite."""
    return check_duration(timeout, parameter, above_zero=True, most=TIMEOUT_MAX, endless=True)  # type: ignore[arg-type]


@unique
class RequestKind(StrEnum):
    """What a request asks for."""

    STATEMENT = "STATEMENT"
    """To execute a statement, prepared or not, or a batch."""
    PREPARE = "PREPARE"
    """To prepare one. It changes nothing and so counts as idempotent, has no consistency level, and is never sent
    speculatively."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CassandraRequest:
    """What is fixed about a request.

    Args:
        policy: who decides about its failures.
        idempotent: whether it may be executed twice without harm; of a PREPARE it is not asked.
        kind: a statement, or a PREPARE that the caller asked for.
        consistency: the level that it is sent with; None leaves that to the driver. A PREPARE has none.
        serial_consistency: the level of the condition of a lightweight transaction, SERIAL or LOCAL_SERIAL, likewise. No
            policy changes it: every ``Send`` of the request has it.
        timeout: from its submission until the caller gets a DriverTimeout, up to 1e9 seconds; ``inf`` for never.
        speculation: who decides about speculative executions.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range, or a PREPARE is given a level.
    """

    policy: RetryPolicy
    idempotent: bool = False
    kind: RequestKind = RequestKind.STATEMENT
    consistency: ConsistencyLevel | None = None
    serial_consistency: ConsistencyLevel | None = None
    timeout: float = TIMEOUT_DEFAULT
    speculation: SpeculativeExecutionPolicy = _ONE_EXECUTION

    def __init__(
        self,
        *,
        policy: RetryPolicy,
        idempotent: bool = False,
        kind: RequestKind = RequestKind.STATEMENT,
        consistency: ConsistencyLevel | None = None,
        serial_consistency: ConsistencyLevel | None = None,
        timeout: Duration = TIMEOUT_DEFAULT,
        speculation: SpeculativeExecutionPolicy = _ONE_EXECUTION,
    ) -> None:
        require_policy(policy)
        check_flag(idempotent, "idempotent")
        check_choice(kind, "kind", RequestKind)
        for name, level in (("consistency", consistency), ("serial_consistency", serial_consistency)):
            if level is not None:
                _check_level(level, name, kind)
        require_speculation(speculation)
        for name, value in (
            ("policy", policy),
            ("idempotent", idempotent),
            ("kind", kind),
            ("consistency", consistency),
            ("serial_consistency", serial_consistency),
            ("timeout", check_timeout(timeout, "timeout")),
            ("speculation", speculation),
        ):
            object.__setattr__(self, name, value)

    @property
    def is_prepare(self) -> bool:
        """Whether it is a PREPARE."""
        return self.kind is RequestKind.PREPARE

    @property
    def may_repeat(self) -> bool:
        """Whether executing it twice does no harm."""
        return self.idempotent or self.is_prepare

    @property
    def may_speculate(self) -> bool:
        """Whether it may be sent to two nodes at a time."""
        return self.idempotent and not self.is_prepare


def _check_level(level: ConsistencyLevel, parameter: str, kind: RequestKind) -> None:
    check_choice(level, parameter, ConsistencyLevel)
    if kind is RequestKind.PREPARE:
        raise ArgumentError(
            f"{parameter}={level.name} does not go with a PREPARE, which has none; leave it out", parameter=parameter
        )
    if parameter == "serial_consistency" and not level.is_serial:
        raise ArgumentError(f"{parameter}={level.name} must be SERIAL or LOCAL_SERIAL", parameter=parameter)
