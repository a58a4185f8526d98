"""State of the client's own requests on one connection: the pending config request, and missing responses."""

from __future__ import annotations

import math

from triclinium_core.runtime.kv.connection.grace_period import GracePeriod


class OwnRequests:
    """State of the requests for cluster configs and collection ids.

    The node may leave a few of these requests unanswered, but not all of them during a complete grace period.
    """

    def __init__(self) -> None:
        self._config_pending_since = -math.inf
        """Time of the unanswered config request; ``-inf`` without one."""
        self._config_requested_at = -math.inf
        """Time of the last config request, answered or not."""
        self._announced: tuple[int, int] | None = None
        """Epoch and revision of the config that the node announced last; None after the next response to a config
        request on a ready connection."""
        self._silence = GracePeriod()

    def is_config_pending(self, now: float, seconds: float) -> bool:
        """Return whether a config request is unanswered and younger than ``seconds``."""
        return now - self._config_pending_since < seconds

    def config_allowed_at(self, floor: float) -> float:
        """Return the time from which the client may send the next config request.

        Args:
            floor: minimum number of seconds between two config requests.
        """
        return self._config_requested_at + floor

    def config_requested(self, now: float) -> None:
        """Record that the client sends a config request."""
        self._config_pending_since = self._config_requested_at = now

    def config_answered(self) -> None:
        """Record the response to the config request."""
        self._config_pending_since = -math.inf
        self._silence.reset()

    def config_announced(self, epoch: int, revision: int) -> None:
        """Record that the node has announced another config."""
        self._announced = epoch, revision

    def announces_newer(self, known: tuple[int, int] | None) -> bool:
        """Return whether the node announced a config that is newer than ``known``."""
        return self._announced is not None and (known is None or known < self._announced)

    def forget_announced(self) -> None:
        """Drop the announcement after the response to a config request on a ready connection."""
        self._announced = None

    def answered(self) -> None:
        """Record the response to a request that is not for a config."""
        self._silence.reset()

    def are_ignored(self, now: float, *, read_at: float) -> bool:
        """Return whether the node responded to none of these requests during the grace period.

        The period starts with the first call after a response or a lost stream.

        Args:
            read_at: time at which the driver last read all received bytes.
        """
        return self._silence.try_at(now, read_at=read_at)

    def stream_lost(self) -> None:
        """Reset the state of the lost stream. Keep the announcement and the time of the last config request."""
        self._config_pending_since = -math.inf
        self._silence.reset()
