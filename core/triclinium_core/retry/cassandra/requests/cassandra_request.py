"""Properties of a request that do not change during its executions."""

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
"""Default timeout of a complete request, in seconds, as in the Java driver."""
TIMEOUT_MAX = 1e9
"""Maximum finite timeout in seconds, about thirty years. ``inf`` means no timeout."""


def check_timeout(timeout: object, parameter: str) -> float:
    """Return the timeout in seconds. Raise ArgumentError unless it is above 0, and at most TIMEOUT_MAX or infinite."""
    return check_duration(timeout, parameter, above_zero=True, most=TIMEOUT_MAX, endless=True)  # type: ignore[arg-type]


@unique
class RequestKind(StrEnum):
    """Kind of a request, which determines the rules for its errors."""

    STATEMENT = "STATEMENT"
    """Execution of a statement, prepared or not, or of a batch."""
    PREPARE = "PREPARE"
    """Preparation of a statement. It counts as idempotent, because it changes no data. It has no consistency level and
    no speculative executions."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CassandraRequest:
    """Properties of a request that do not change during its executions.

    Args:
        policy: policy that decides about failures of the request.
        idempotent: whether executing the request twice is harmless; ignored for a PREPARE.
        kind: a statement, or a PREPARE that the caller requested.
        consistency: consistency level. With None, the driver chooses the level. A PREPARE has no level.
        serial_consistency: level for the condition of a lightweight transaction, SERIAL or LOCAL_SERIAL. With None, the
            driver chooses the level. No policy changes this level: it applies to every ``Send`` of the request.
        timeout: time from submission until the request fails with a DriverTimeout, at most 1e9 seconds; ``inf`` for no
            timeout.
        speculation: policy that decides about speculative executions.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range, or a PREPARE has a consistency level.
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
        """Whether the request is a PREPARE."""
        return self.kind is RequestKind.PREPARE

    @property
    def may_repeat(self) -> bool:
        """Whether executing the request twice is harmless."""
        return self.idempotent or self.is_prepare

    @property
    def may_speculate(self) -> bool:
        """Whether the request may be sent to several nodes at the same time."""
        return self.idempotent and not self.is_prepare


def _check_level(level: ConsistencyLevel, parameter: str, kind: RequestKind) -> None:
    check_choice(level, parameter, ConsistencyLevel)
    if kind is RequestKind.PREPARE:
        raise ArgumentError(
            f"{parameter}={level.name} does not apply to a PREPARE, which has no consistency; omit it",
            parameter=parameter,
        )
    if parameter == "serial_consistency" and not level.is_serial:
        raise ArgumentError(f"{parameter}={level.name} must be SERIAL or LOCAL_SERIAL", parameter=parameter)
