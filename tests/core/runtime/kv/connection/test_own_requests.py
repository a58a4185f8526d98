"""Requests of one connection that the client sends without an operation."""

from __future__ import annotations

import math

from triclinium_core.runtime.kv.connection.grace_period import SECONDS_MAX
from triclinium_core.runtime.kv.connection.own_requests import OwnRequests


def test_pending_config() -> None:
    """A config request is pending until its response arrives, the stream is lost, or the request is too old."""
    own = OwnRequests()
    pending = [own.is_config_pending(0.0, 2.0)]
    for end in (own.config_answered, own.stream_lost):
        own.config_requested(1.0)
        pending += own.is_config_pending(2.5, 2.0), own.is_config_pending(3.0, 2.0)
        end()
        pending.append(own.is_config_pending(1.5, 2.0))

    assert [False, True, False, False, True, False, False] == pending


def test_floor() -> None:
    """The minimum interval between config requests also applies after a response and on the next stream."""
    own = OwnRequests()
    never = own.config_allowed_at(0.05)
    own.config_requested(1.0)
    own.config_answered()
    own.stream_lost()

    assert (-math.inf, 1.5) == (never, own.config_allowed_at(0.5))


def test_announced() -> None:
    """Until it is dropped, an announced config counts as newer if the known config is older or missing."""
    own = OwnRequests()
    nothing = own.announces_newer(None)
    own.config_announced(1, 7)
    own.stream_lost()
    news = [own.announces_newer(known) for known in (None, (1, 6), (1, 7), (2, 1))]
    own.forget_announced()

    assert (False, [True, True, False, False], False) == (nothing, news, own.announces_newer(None))


def test_ignored() -> None:
    """The time without responses starts at the first request, and ends with any response or with the stream."""
    for end in (OwnRequests.answered, OwnRequests.config_answered, OwnRequests.stream_lost):
        own = OwnRequests()
        early = own.are_ignored(0.0, read_at=0.0)
        late = own.are_ignored(SECONDS_MAX, read_at=SECONDS_MAX)
        unread = own.are_ignored(SECONDS_MAX, read_at=SECONDS_MAX - 1)
        end(own)

        assert (False, True, False) == (early, late, unread)
        assert not own.are_ignored(SECONDS_MAX, read_at=SECONDS_MAX)
