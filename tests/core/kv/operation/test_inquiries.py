"""Inquiries about a cluster, which are checked when they are created."""

from __future__ import annotations

import pytest

from triclinium_core import errors
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady, check_report_id
from triclinium_core.kv.operation.reports import ClusterState, EndpointState


@pytest.mark.parametrize("report_id", ["i", "x" * 250, "é\n"])
def test_the_name_of_a_report(report_id: str) -> None:
    """A report id is any string of limited size."""
    assert report_id == Ping("travel", report_id).report_id


@pytest.mark.parametrize("report_id", ["", "x" * 251, None, 7, b"i"])
def test_invalid_report_ids(report_id: str) -> None:
    """An invalid report id is rejected by name, with or without an inquiry."""
    for make in (lambda: Ping(None, report_id), lambda: check_report_id(report_id)):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            make()

        assert "report_id" == caught.value.parameter


def test_the_desired_state() -> None:
    """The default of the desired state is ONLINE."""
    assert ClusterState.ONLINE is WaitUntilReady(None).desired_state
    assert ClusterState.DEGRADED is WaitUntilReady("travel", ClusterState.DEGRADED).desired_state


@pytest.mark.parametrize("state", [ClusterState.OFFLINE, EndpointState.CONNECTED, "online", None])
def test_invalid_desired_states(state: ClusterState) -> None:
    """OFFLINE and other invalid states are rejected (RFC 0061)."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        WaitUntilReady(None, state)

    assert "desired_state" == caught.value.parameter


@pytest.mark.parametrize("bucket", ["", "a b", 7])
def test_invalid_bucket_names(bucket: str) -> None:
    """Bucket names follow the same rules as for documents."""
    for make in (lambda: Ping(bucket, "i"), lambda: WaitUntilReady(bucket)):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            make()

        assert "bucket" == caught.value.parameter
