"""Cost of a get, measured in triclinium's own function calls and module changes instead of time."""

from __future__ import annotations

import shutil

import pytest

from tests.bench.own_calls import GETS, OwnCalls, of_fake_cluster, of_memcached, own_calls
from tests.environment import missing
from tests.live.memcached import Memcached

pytestmark = pytest.mark.native

CALLS_MAX_ON_MEMCACHED, CHANGES_MAX_ON_MEMCACHED = 28, 20
"""Maxima on memcached.

A get among 64 tasks makes 22 calls and 17.8 module changes; more if responses arrive in small pieces.
"""
CALLS_MAX_IN_A_BUCKET, CHANGES_MAX_IN_A_BUCKET = 36, 26
"""Maxima in a bucket.

A get from the fake cluster makes 31 calls and 24 module changes, besides those of the node itself.
"""

TELEMETRY_CALLS_MAX = 2
TELEMETRY = ("gathering.", "histogram.", "durations.", "telemetry.", "calls.", "call_spans.", "past_attempts.")
"""Beginnings of the names of functions that report operations."""


def assert_straight(found: OwnCalls, calls_max: int, changes_max: int) -> None:
    """Compare the calls and module changes of a get with their maxima; a failure lists the most called functions."""
    most = "\n".join(f"{calls / GETS:6.2f} {name}" for name, calls in found.of.most_common(60))
    calls, changes = found.of.total() / GETS, found.module_changes / GETS

    assert calls <= calls_max, f"a get makes {calls:.1f} calls of our own:\n{most}"
    assert changes <= changes_max, f"a get changes the module {changes:.1f} times:\n{most}"


def test_a_get_from_a_bucket() -> None:
    """A get from a bucket stays within its maxima."""
    assert_straight(own_calls(of_fake_cluster()), CALLS_MAX_IN_A_BUCKET, CHANGES_MAX_IN_A_BUCKET)


def test_telemetry_adds_two_calls_at_most() -> None:
    """With default telemetry, a get makes at most two more calls; without telemetry, a get calls no function of it."""
    off = own_calls(of_fake_cluster(tracer=None, meter=None, orphans=None))
    on = own_calls(of_fake_cluster())

    assert (on.of.total() - off.of.total()) / GETS <= TELEMETRY_CALLS_MAX
    assert [] == [name for name in off.of if name.startswith(TELEMETRY)]


@pytest.mark.live
def test_a_get_from_memcached() -> None:
    """A get from memcached stays within its maxima."""
    program = shutil.which("memcached") or missing("memcached", "on Debian: apt-get install memcached")
    with Memcached(program) as server:
        found = own_calls(of_memcached(server.connection_string))

    assert_straight(found, CALLS_MAX_ON_MEMCACHED, CHANGES_MAX_ON_MEMCACHED)
