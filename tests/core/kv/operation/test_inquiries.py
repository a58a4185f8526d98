"""What may be asked about a cluster is checked where it is made."""

from __future__ import annotations

import pytest

from triclinium_core import errors
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady, check_report_id
from triclinium_core.kv.operation.reports import ClusterState, EndpointState


@pytest.mark.parametrize("report_id", ["i", "x" * 250, "é\n"])
def test_the_name_of_a_report(report_id: str) -> None:
    """Any text that is not too long."""
    assert report_id == Ping("travel", report_id).report_id


@pytest.mark.parametrize("report_id", ["", "x" * 251, None, 7, b"i"])
def test_what_no_report_is_called(report_id: str) -> None:
    """The error names the parameter, also where there is no inquiry around it."""
    for make in (lambda: Ping(None, report_id), lambda: check_report_id(report_id)):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            make()

        assert "report_id" == caught.value.parameter


def test_what_is_waited_for() -> None:
    """ONLINE unless it is said otherwise."""
    assert ClusterState.ONLINE is WaitUntilReady(None).desired_state
    assert ClusterState.DEGRADED is WaitUntilReady("travel", ClusterState.DEGRADED).desired_state


@pytest.mark.parametrize("state", [ClusterState.OFFLINE, EndpointState.CONNECTED, "online", None])
def test_what_nobody_waits_for(state: ClusterState) -> None:
    """RFC 0061: OFFLINE is a hard error."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        WaitUntilReady(None, state)

    assert "desired_state" == caught.value.parameter


@pytest.mark.parametrize("bucket", ["", "a b", 7])
def test_what_no_bucket_is_called(bucket: str) -> None:
    """The rules are those of documents."""
    for make in (lambda: Ping(bucket, "i"), lambda: WaitUntilReady(bucket)):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            make()

        assert "bucket" == caught.value.parameter
