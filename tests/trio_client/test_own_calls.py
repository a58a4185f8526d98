"""No detour comes back on the way of a get: the calls that our own code makes for it are counted, not timed."""

from __future__ import annotations

import shutil

import pytest

from tests.bench.own_calls import GETS, OwnCalls, of_fake_cluster, of_memcached, own_calls
from tests.environment import missing
from tests.live.memcached import Memcached

pytestmark = pytest.mark.native

CALLS_MAX_ON_MEMCACHED, CHANGES_MAX_ON_MEMCACHED = 28, 20
"""A get of 64 tasks at work makes 22, and changes the module 17.8 times; more where answers arrive in small pieces."""
CALLS_MAX_IN_A_BUCKET, CHANGES_MAX_IN_A_BUCKET = 36, 26
"""One of the fake cluster makes 31 and 24, every time, beside those of the node that answers inside of the process."""

TELEMETRY_CALLS_MAX = 2
TELEMETRY = ("gathering.", "histogram.", "durations.", "telemetry.", "calls.", "call_spans.", "past_attempts.")
"""Modules that tell of operations."""


def assert_straight(found: OwnCalls, calls_max: int, changes_max: int) -> None:
    """Compare the way of a get with how long it may be; a failure lists the functions that are called most."""
    most = "\n".join(f"{calls / GETS:6.2f} {name}" for name, calls in found.of.most_common(60))
    calls, changes = found.of.total() / GETS, found.module_changes / GETS

    assert calls <= calls_max, f"a get makes {calls:.1f} calls of our own:\n{most}"
    assert changes <= changes_max, f"a get changes the module {changes:.1f} times:\n{most}"


def test_a_get_from_a_bucket() -> None:
    """The way of a get from a bucket is no longer than it was."""
    assert_straight(own_calls(of_fake_cluster()), CALLS_MAX_IN_A_BUCKET, CHANGES_MAX_IN_A_BUCKET)


def test_what_telemetry_costs() -> None:
    """All on, as they are by default, make two calls more at most than all off; then nothing of telemetry is called."""
    off = own_calls(of_fake_cluster(tracer=None, meter=None, orphans=None))
    on = own_calls(of_fake_cluster())

    assert (on.of.total() - off.of.total()) / GETS <= TELEMETRY_CALLS_MAX
    assert [] == [name for name in off.of if name.startswith(TELEMETRY)]


@pytest.mark.live
def test_a_get_from_memcached() -> None:
    """The way of a get from a memcached is no longer than it was."""
    program = shutil.which("memcached") or missing("memcached", "on Debian: apt-get install memcached")
    with Memcached(program) as server:
        found = own_calls(of_memcached(server.connection_string))

    assert_straight(found, CALLS_MAX_ON_MEMCACHED, CHANGES_MAX_ON_MEMCACHED)
