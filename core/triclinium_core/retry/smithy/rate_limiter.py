"""Rate limiter that adapts to throttling: a pure machine with time as a parameter.

Sends are not delayed until the first throttling response. After that each send takes a token from a bucket that fills
at the allowed rate. Each throttling response lowers the rate to 70 %. The rate then follows a cubic curve: it climbs to
the rate at which the service throttled, stays there for a while, and climbs beyond it. It never exceeds twice the
measured rate.

A send that finds no token reserves the next one and gets the delay until that token is available.

Source: botocore's adaptive mode, except for reservations and for the first window, which is half a second here and
may be a whole one there; decision S9.
"""

from __future__ import annotations

import math

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import is_number
from triclinium_core.shown import shown, total_repr

BETA = 0.7
"""Factor by which a throttling response multiplies the rate."""

SCALE = 0.4
"""Steepness of the cubic curve."""

SMOOTHING = 0.8
"""Weight of the newest window in the measured rate; all earlier windows share the rest."""

WINDOW = 0.5
"""Length of a window in which responses are counted, in seconds."""

RATE_LEAST = 0.5
"""Minimum allowed rate, in requests per second."""

CAPACITY_LEAST = 1.0
"""Minimum capacity of the bucket, in tokens; with less no request could be sent at a rate below 1."""

HEADROOM = 2.0
"""Maximum ratio of the allowed rate to the measured rate."""

WAIT_MAX = 20.0
"""Maximum delay of a send, in seconds. A send that would need more gets this delay and reserves nothing; otherwise
callers that give up without ``abandon`` would delay all later sends for tokens that remain unused."""

_FAR = 1e300
"""Bound on times in seconds: no clock reaches it, and differences and products of smaller values are finite."""


class RateLimiter:
    """Rate limiter: call ``acquire`` before each send, and ``on_success`` or ``on_throttle`` for each response.

    All methods that take ``now`` expect seconds that do not go back.

    Raises:
        ArgumentError: ``now`` is not finite, or lies before an earlier ``now``; nothing has changed then. Each method
            with a ``now`` raises it.

    Source: botocore's rate limiter. The start of its windows and the waiting of sends are decision S9.
    """

    __slots__ = (
        "_capacity",
        "_counted",
        "_highest",
        "_now",
        "_throttled_at",
        "_window",
        "is_enabled",
        "level",
        "measured_rate",
        "rate",
    )

    def __init__(self) -> None:
        self.is_enabled: bool = False
        """Whether the service has throttled, so that sends may be delayed."""
        self.rate: float = 1.0
        """Allowed rate, in requests per second."""
        self.measured_rate: float = 0.0
        """Smoothed rate of responses per second, up to the end of the last complete window."""
        self.level: float = 0.0
        """Tokens in the bucket at the last call; negative if tokens are reserved."""
        self._now: float | None = None
        self._capacity = 1.0
        self._counted = 0
        self._window = 0.0
        # Rate at which the service last throttled, and the time of that.
        self._highest = 0.0
        self._throttled_at = 0.0

    @total_repr
    def __repr__(self) -> str:
        return f"<RateLimiter: {f'{self.rate:g} a second' if self.is_enabled else 'no limit'}>"

    def advance(self, now: float) -> None:
        """Advance the time to ``now``."""
        if not (is_number(now) and -_FAR < now < _FAR):
            raise ArgumentError(f"now={shown(now)} must be a finite number of seconds", parameter="now")
        if self._now is None:
            self._now = self._throttled_at = now
            self._window = _window_of(now)
        if now < self._now:
            raise ArgumentError(
                f"now={now!r} is before the last time, {self._now!r}; a rate limiter needs one monotonic clock",
                parameter="now",
            )
        self.level = min(self._capacity, self.level + (now - self._now) * self.rate)
        self._now = now

    def acquire(self, now: float) -> float:
        """Take a token for one send, or reserve the next free one. Return the seconds until the send.

        ``WAIT_MAX`` means that nothing was reserved.
        """
        self.advance(now)
        if not self.is_enabled:
            return 0.0
        wait = max(0.0, (1.0 - self.level) / self.rate)
        if wait >= WAIT_MAX:
            return WAIT_MAX
        self.level -= 1.0
        return wait

    def give_back(self) -> None:
        """Return the token of a send that will not be made."""
        self.level = min(self._capacity, self.level + 1.0)

    def on_success(self, now: float) -> None:
        """Count a response that does not throttle, even if it is an error."""
        self.advance(now)
        self._measure(now)
        self._allow(cubic_rate(self._highest, now - self._throttled_at))

    def on_throttle(self, now: float) -> None:
        """Count a throttling response and lower the rate. After this, sends may be delayed."""
        self.advance(now)
        self._measure(now)
        self._highest = min(self.measured_rate, self.rate) if self.is_enabled else self.measured_rate
        self._throttled_at = now
        self.is_enabled = True
        self._allow(cubic_rate(self._highest, 0.0))

    def _measure(self, now: float) -> None:
        self._counted += 1
        window = _window_of(now)
        if window > self._window:
            self.measured_rate = (
                SMOOTHING * self._counted / (window - self._window) + (1.0 - SMOOTHING) * self.measured_rate
            )
            self._counted, self._window = 0, window

    def _allow(self, rate: float) -> None:
        rate = min(rate, HEADROOM * self.measured_rate)
        self.rate = max(rate, RATE_LEAST)
        self._capacity = max(rate, CAPACITY_LEAST)
        # Reservations made at a higher rate are sent on time; they must not delay others at this rate.
        self.level = min(max(self.level, -WAIT_MAX * self.rate), self._capacity)


def climbing_time(highest: float) -> float:
    """Return the seconds until the curve reaches ``highest`` again, the rate at which the service throttled."""
    return math.cbrt(highest * (1.0 - BETA) / SCALE)


def cubic_rate(highest: float, elapsed: float) -> float:
    """Return the allowed rate in requests per second, before headroom, ``elapsed`` seconds after throttling."""
    beyond = elapsed - climbing_time(highest)
    # Multiply instead of using ``** 3``, which raises OverflowError; an infinite rate is valid here.
    return SCALE * beyond * beyond * beyond + highest


def _window_of(now: float) -> float:
    return now // WINDOW * WINDOW
