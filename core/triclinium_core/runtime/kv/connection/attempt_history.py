"""History of the streams of one connection: counts, whether one was open or ready, and the end of the last stream."""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure, FailureKind


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """End of a stream that was lost, or that could not be opened."""

    error: str | None = None
    """Reason, with the name of the node; None in ``NO_END``."""
    is_refused: bool = False
    """Whether all addresses were tried, and the client refused to authenticate with the last node (decision C6)."""
    is_unsupported: bool = False
    """Whether the client cannot use the node: all addresses were tried and the last node speaks another protocol, or
    the type of the bucket is unsupported."""
    lacks_bucket: bool = False
    """Whether the node does not have the bucket, or does not permit the user to open it."""


NO_END = StreamEnd()
"""Value of ``last_end`` before any stream has ended, and after the connection has become ready."""


class AttemptHistory:
    """Attempts of one connection, over all its streams.

    Args:
        earlier_failures: failed attempts to open the bucket before the client forgot it; they count for the backoff.
    """

    def __init__(self, *, earlier_failures: int = 0) -> None:
        self.attempts: int = 0
        """Number of streams that the client has begun."""
        self.failures: int = 0
        """Number of consecutive streams that ended before the node responded to a request after the bootstrap."""
        self.losses: int = 0
        """Number of streams that were lost, or could not be opened, since the connection was last ready."""
        self.was_reached: bool = False
        """Whether any stream to the node was ever opened."""
        self.was_ready: bool = False
        """Whether the connection was ever ready."""
        self.had_corrupt_error_map: bool = False
        """Whether the node sent a corrupt error map while renegotiation was enabled. The client then requests neither
        XERROR nor the error map on later streams."""
        self.last_end: StreamEnd = NO_END
        """End of the last stream; ``NO_END`` once the connection is ready again."""
        self._earlier_failures = earlier_failures
        self._faulty_streams = 0
        """Number of streams that the client closed after a decoder fault, since it last closed one for another reason."""

    @property
    def unavailable_reason(self) -> RetryReason:
        """Retry reason of an operation that the connection cannot send now. It does not consider terminal states."""
        if self.last_end.is_refused:
            return RetryReason.AUTHENTICATION_ERROR
        return RetryReason.SOCKET_NOT_AVAILABLE if self.was_reached else RetryReason.NODE_NOT_AVAILABLE

    @property
    def all_failures(self) -> int:
        """Number of consecutive failed attempts, including the attempts before the client forgot the bucket."""
        return self.failures + self._earlier_failures

    @property
    def backoff_failures(self) -> int:
        """Number of failures that determines the backoff before the next stream."""
        # If a decoder fails on every stream, the client must not open a stream every few milliseconds.
        return max(self.all_failures, self._faulty_streams)

    def begun(self) -> None:
        """Record that the client begins a stream."""
        self.attempts += 1

    def opened(self) -> None:
        """Record that a stream is open."""
        self.was_reached = True

    def became_ready(self) -> int:
        """Record that the connection is ready. Return the number of losses since it was last ready."""
        losses, self.losses, self._earlier_failures = self.losses, 0, 0
        self.was_ready, self.last_end = True, NO_END
        return losses

    def proven(self) -> None:
        """Record that the node has responded to a request after the bootstrap.

        Reset the count of consecutive failures.
        """
        self.failures = 0

    def map_is_corrupt(self) -> None:
        """Record that the error map is corrupt and renegotiation is enabled."""
        self.had_corrupt_error_map = True

    def closed(self, *, after_fault: bool) -> None:
        """Record that the client closes the stream, and whether a failed decoder is the reason."""
        self._faulty_streams = self._faulty_streams + 1 if after_fault else 0

    def lost(
        self,
        error: str,
        failure: BootstrapFailure | None,
        *,
        was_proven: bool,
        address_count: int,
        lacks_bucket: bool = False,
        is_of_no_use: bool = False,
    ) -> None:
        """Record that the stream is lost, or could not be opened.

        Args:
            failure: failure of the bootstrap, if it failed.
            was_proven: whether the node responded to a request on the stream after the bootstrap.
            address_count: number of addresses to try in turn.
            lacks_bucket: whether the node does not have the bucket, or does not permit the user to open it.
            is_of_no_use: whether the type of the bucket is unsupported.
        """
        self.losses += 1
        if not was_proven:
            self.failures += 1
        # Until all addresses have been tried, the failure is not terminal, because another address may succeed.
        kind = failure.kind if failure is not None and self.failures >= address_count else None
        self.last_end = StreamEnd(
            error,
            is_refused=kind is FailureKind.UNPROVEN_NODE,
            is_unsupported=kind is FailureKind.NOT_COUCHBASE or is_of_no_use,
            lacks_bucket=lacks_bucket,
        )
