"""No detour comes back on the way of a get: the calls that our own code makes for it are counted, not timed."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from tests.bench.own_calls import GETS, of_fake_cluster, of_memcached, own_calls
from tests.environment import missing
from tests.live.memcached import Memcached

pytestmark = pytest.mark.native

CALLS_MAX_ON_MEMCACHED = 28
"""A get of 64 tasks at work makes 27.3, and some more where answers arrive in small pieces."""
CALLS_MAX_IN_A_BUCKET = 38
"""One of the fake cluster makes 38.2, every time, with a dozen of the node that answers inside of the process."""


def assert_straight(found: Counter[str], calls_max: int) -> None:
    """Compare the calls of a get with what they may be; a failure lists the functions that are called most."""
    most = "\n".join(f"{calls / GETS:6.2f} {name}" for name, calls in found.most_common(60))

    assert found.total() / GETS <= calls_max, f"a get makes {found.total() / GETS:.1f} calls of our own:\n{most}"


def test_a_get_from_a_bucket() -> None:
    """A get from a bucket makes no more calls than it did."""
    assert_straight(own_calls(of_fake_cluster()), CALLS_MAX_IN_A_BUCKET)


@pytest.mark.live
def test_a_get_from_memcached() -> None:
    """A get from a memcached makes no more calls than it did."""
    program = shutil.which("memcached") or missing("memcached", "on Debian: apt-get install memcached")
    with Memcached(program) as server:
        found = own_calls(of_memcached(server.connection_string))

    assert_straight(found, CALLS_MAX_ON_MEMCACHED)
