"""Rate limiter that adapts to throttling: a pure state machine whose methods receive the time.

Before the first throttling response, the limiter delays no send. After it, each send takes a token from a bucket, which
fills at the allowed rate. Each throttling response sets the rate to 70 % of the measured rate, or of the allowed rate
if that is lower. The rate then follows a cubic curve: it climbs to the rate at which the service throttled, stays near
it for a while, and then climbs above it. It exceeds twice the measured rate only at the minimum, ``RATE_LEAST``. If the
bucket has no token, a send reserves the next one, and is delayed until that token is available; ``WAIT_MAX`` limits the
delay.

Source: botocore's adaptive mode. It differs in the reservations, and in the first window, which has half a second here
and may have a full second in botocore; decision S9.
"""

from __future__ import annotations

import math

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import is_number
from triclinium_core.shown import shown, total_repr

BETA = 0.7
"""Factor by which a throttling response multiplies the rate."""

SCALE = 0.4
"""Factor of the cubic term of the curve, which determines how steeply the rate climbs."""

SMOOTHING = 0.8
"""Weight of the newest window in the measured rate. All earlier windows together have the remaining weight."""

WINDOW = 0.5
"""Length in seconds of a window in which the limiter counts responses."""

RATE_LEAST = 0.5
"""Minimum allowed rate, in requests per second."""

CAPACITY_LEAST = 1.0
"""Minimum capacity of the bucket, in tokens. With less, every send at a rate below 1 per second would be delayed, even
after a long pause."""

HEADROOM = 2.0
"""Maximum ratio of the allowed rate to the measured rate, unless the allowed rate is ``RATE_LEAST``."""

WAIT_MAX = 20.0
"""Maximum delay of a send, in seconds. A send that would need a longer delay has this delay, and reserves no token.
Otherwise callers that give up without ``abandon`` would leave reservations that delay all later sends."""

_FAR = 1e300
"""Limit of times in seconds. No clock reaches it, and below it, differences of times and their products with the rate
are finite."""


class RateLimiter:
    """State of a rate limiter.

    The caller calls ``acquire`` before each send, and ``on_success`` or ``on_throttle`` for each response. ``now`` is
    the time in seconds, which must never decrease.

    Raises:
        ArgumentError: ``now`` is not finite, or is less than in an earlier call. Each method with a parameter ``now``
            raises it, and then changes nothing.

    Source: botocore's rate limiter. Decision S9 explains the start of the windows and the delays of sends.
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
        """Smoothed number of responses per second, up to the end of the last complete window."""
        self.level: float = 0.0
        """Number of tokens in the bucket at the time of the last call; negative if sends have reserved tokens."""
        self._now: float | None = None
        self._capacity = 1.0
        self._counted = 0
        self._window = 0.0
        # Rate at which the service throttled last, and the time at which it did.
        self._highest = 0.0
        self._throttled_at = 0.0

    @total_repr
    def __repr__(self) -> str:
        return f"<RateLimiter: {f'{self.rate:g} a second' if self.is_enabled else 'no limit'}>"

    def advance(self, now: float) -> None:
        """Advance the time to ``now``."""
        if not (is_number(now) and -_FAR < now < _FAR):
            raise ArgumentError(
                f"now={shown(now)} must be a number of seconds between -1e300 and 1e300", parameter="now"
            )
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
        """Take a token for one send, or reserve the next token. Return the number of seconds to wait before the send.

        If the result is ``WAIT_MAX``, no token was reserved.
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
        """Put the token of a send that will not be made back into the bucket."""
        self.level = min(self._capacity, self.level + 1.0)

    def on_success(self, now: float) -> None:
        """Count a response that does not throttle, possibly an error, and update the rate."""
        self.advance(now)
        self._measure(now)
        self._allow(cubic_rate(self._highest, now - self._throttled_at))

    def on_throttle(self, now: float) -> None:
        """Count a throttling response, and lower the rate. From now on, sends may be delayed."""
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
        # Sends that reserved tokens at a higher rate keep their delays. At the lower rate, their reservations must not
        # delay later sends by more than WAIT_MAX.
        self.level = min(max(self.level, -WAIT_MAX * self.rate), self._capacity)


def climbing_time(highest: float) -> float:
    """Return the seconds from throttling until the curve reaches ``highest``, the rate at the time of throttling."""
    return math.cbrt(highest * (1.0 - BETA) / SCALE)


def cubic_rate(highest: float, elapsed: float) -> float:
    """Return the rate that the curve allows ``elapsed`` seconds after throttling, in requests per second.

    The measured rate may limit it further (``HEADROOM``).
    """
    beyond = elapsed - climbing_time(highest)
    # On overflow, ``** 3`` would raise OverflowError. The multiplication returns infinity, which is a valid rate.
    return SCALE * beyond * beyond * beyond + highest


def _window_of(now: float) -> float:
    return now // WINDOW * WINDOW
