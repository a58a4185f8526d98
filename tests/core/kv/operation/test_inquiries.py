"""Inquiries about a cluster, whose constructors check the arguments."""

from __future__ import annotations

import pytest

from triclinium_core import errors
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady, check_report_id
from triclinium_core.kv.operation.reports import ClusterState, EndpointState


@pytest.mark.parametrize("report_id", ["i", "x" * 250, "é\n"])
def test_the_name_of_a_report(report_id: str) -> None:
    """A report id may be any string of 1 to 250 characters."""
    assert report_id == Ping("travel", report_id).report_id


@pytest.mark.parametrize("report_id", ["", "x" * 251, None, 7, b"i"])
def test_invalid_report_ids(report_id: str) -> None:
    """An invalid report id raises an error that names the parameter, in an inquiry and in the check alone."""
    for make in (lambda: Ping(None, report_id), lambda: check_report_id(report_id)):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            make()

        assert "report_id" == caught.value.parameter


def test_the_desired_state() -> None:
    """By default a wait desires the state ONLINE."""
    assert ClusterState.ONLINE is WaitUntilReady(None).desired_state
    assert ClusterState.DEGRADED is WaitUntilReady("travel", ClusterState.DEGRADED).desired_state


@pytest.mark.parametrize("state", [ClusterState.OFFLINE, EndpointState.CONNECTED, "online", None])
def test_invalid_desired_states(state: ClusterState) -> None:
    """OFFLINE and other invalid states raise an error that names ``desired_state`` (RFC 0061)."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        WaitUntilReady(None, state)

    assert "desired_state" == caught.value.parameter


@pytest.mark.parametrize("bucket", ["", "a b", 7])
def test_invalid_bucket_names(bucket: str) -> None:
    """Inquiries have the same rules for bucket names as document operations."""
    for make in (lambda: Ping(bucket, "i"), lambda: WaitUntilReady(bucket)):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            make()

        assert "bucket" == caught.value.parameter
