"""What a user may ask about the cluster rather than of a document: values, checked when they are made.

An inquiry is submitted like an operation and settled once, but it goes to connections instead of a document's node, and
no retry strategy is asked about it.

Source: SDK-RFC 0061.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from triclinium_core.checks import check_type
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation import validation as check
from triclinium_core.kv.operation.reports import ClusterState
from triclinium_core.shown import shown

REPORT_ID_SIZE_MAX = 250
"""Characters of a report's name."""


class Inquiry(msgspec.Struct, frozen=True):
    """Base of all inquiries. Every one raises InvalidArgumentException when an argument is wrong.

    ``name`` is the word for it in errors and reports.
    """

    name: ClassVar[str] = ""
    idempotent: ClassVar[bool] = True

    bucket: str | None
    """Whose connections it is about; None for the cluster."""

    def __post_init__(self) -> None:
        if self.bucket is not None:
            check.check_name(self.bucket, "bucket")


class Ping(Inquiry, frozen=True):
    """Have each connection answer a NOOP; of the cluster, those of every node and of every bucket that was opened."""

    name: ClassVar[str] = "ping"

    report_id: str

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        check_report_id(self.report_id)


class WaitUntilReady(Inquiry, frozen=True):
    """Wait until the connections are in a state, for as long as it takes."""

    name: ClassVar[str] = "wait_until_ready"

    desired_state: ClusterState = ClusterState.ONLINE

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        check_type(self.desired_state, "desired_state", ClusterState)
        # RFC 0061 "The waitUntilReady Command": "It is a hard error if OFFLINE is passed in".
        if self.desired_state is ClusterState.OFFLINE:
            raise InvalidArgumentException(
                "desired_state=ClusterState.OFFLINE is nothing to wait for; give ONLINE or DEGRADED",
                parameter="desired_state",
            )


def check_report_id(value: object) -> str:
    """Return what a report is called.

    Raises:
        InvalidArgumentException: not a string, empty, or too long.
    """
    if not isinstance(value, str) or not 1 <= len(value) <= REPORT_ID_SIZE_MAX:
        raise InvalidArgumentException(
            f"report_id={shown(value)} must be a string of 1 to {REPORT_ID_SIZE_MAX} characters",
            parameter="report_id",
        )
    return value
