"""Rate limiter that learns from throttling: a pure machine with time as a parameter.

Until the first throttling answer nobody waits. From then on each send takes a token from a bucket, which fills at the
rate that is allowed: that falls to seven tenths with each throttling answer, and afterwards follows a cubic curve, which
climbs to where it was throttled, stays there for a while, and then tries more. It never exceeds twice what is measured.

A send that finds no token reserves the next one and is told how long that takes.

Source: botocore's adaptive mode, but for reservations and for the first window, which is half a second here and may be a
whole one there; decision S9.
"""

from __future__ import annotations

import math

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import is_number
from triclinium_core.shown import shown, total_repr

BETA = 0.7
"""The share of the rate that a throttling answer leaves."""

SCALE = 0.4
"""How steep the cubic curve is."""

SMOOTHING = 0.8
"""What the newest window weighs in the measured rate; all that went before weighs the rest."""

WINDOW = 0.5
"""Seconds in which answers are counted together."""

RATE_LEAST = 0.5
"""The least rate that is allowed, in requests a second."""

CAPACITY_LEAST = 1.0
"""Tokens that the bucket holds in any case; else no request could be sent at a rate below 1."""

HEADROOM = 2.0
"""How many times the measured rate may be allowed."""

WAIT_MAX = 20.0
"""Seconds that no send waits for longer. What would is told this much and reserves nothing: callers that give up without
saying so would keep all that come later waiting for tokens that nobody uses."""

_FAR = 1e300
"""No clock tells so many seconds, and differences and products of fewer can be reckoned with."""


class RateLimiter:
    """Ask ``acquire`` before each send, and tell every answer with ``on_success`` or ``on_throttle``.

    All methods take ``now`` in seconds; it must not go back.

    Raises:
        ArgumentError: from every method, where ``now`` is not finite, or lies before an instant that was told
            earlier; nothing has changed then.

    Source: botocore's rate limiter. Where its windows begin, and who waits, is decision S9.
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
        """Whether the service has throttled, so that sends may have to wait."""
        self.rate: float = 1.0
        """Requests a second that are allowed."""
        self.measured_rate: float = 0.0
        """Answers a second, smoothed, up to the last window that has ended."""
        self.level: float = 0.0
        """Tokens in the bucket when it was last asked; less than 0 where some are reserved."""
        self._now: float | None = None
        self._capacity = 1.0
        self._counted = 0
        self._window = 0.0
        # The rate at which the service throttled, and when it did.
        self._highest = 0.0
        self._throttled_at = 0.0

    @total_repr
    def __repr__(self) -> str:
        return f"<RateLimiter: {f'{self.rate:g} a second' if self.is_enabled else 'no limit'}>"

    def advance(self, now: float) -> None:
        """Let time pass until ``now``."""
        if not (is_number(now) and -_FAR < now < _FAR):
            raise ArgumentError(f"now={shown(now)} must be a finite number of seconds", parameter="now")
        if self._now is None:
            self._now = self._throttled_at = now
            self._window = _window_of(now)
        if now < self._now:
            raise ArgumentError(
                f"now={now!r} lies before {self._now!r}, which was told earlier; a rate limiter follows one clock, "
                "which does not go back",
                parameter="now",
            )
        self.level = min(self._capacity, self.level + (now - self._now) * self.rate)
        self._now = now

    def acquire(self, now: float) -> float:
        """Take a token for one send, or reserve the next that is free, and return the seconds until it may be sent.

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
        """Return the token of a send that will not take place."""
        self.level = min(self._capacity, self.level + 1.0)

    def on_success(self, now: float) -> None:
        """Count an answer that does not throttle, whatever else it says."""
        self.advance(now)
        self._measure(now)
        self._allow(cubic_rate(self._highest, now - self._throttled_at))

    def on_throttle(self, now: float) -> None:
        """Lower the rate for an answer that throttles; from now on sends may have to wait."""
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
        # What was reserved at a higher rate is sent in time; it must not keep others waiting at this one.
        self.level = min(max(self.level, -WAIT_MAX * self.rate), self._capacity)


def climbing_time(highest: float) -> float:
    """Return the seconds in which the curve climbs to ``highest`` again, the rate at which a service throttled."""
    return math.cbrt(highest * (1.0 - BETA) / SCALE)


def cubic_rate(highest: float, elapsed: float) -> float:
    """Return the requests a second that are allowed, headroom aside, ``elapsed`` seconds after it throttled."""
    beyond = elapsed - climbing_time(highest)
    # Not to the power of 3: that raises where a product is infinite, which is a rate like any other here.
    return SCALE * beyond * beyond * beyond + highest


def _window_of(now: float) -> float:
    return now // WINDOW * WINDOW
