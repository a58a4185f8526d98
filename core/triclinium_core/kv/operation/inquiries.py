"""Pings and waits as values, checked when they are made.

An inquiry is submitted like an operation and settled once, but it goes to connections and services instead of a
document's node, and no retry strategy is asked about it.

Source: SDK-RFC 0061.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_integer, check_type
from triclinium_core.kv.operation import validation
from triclinium_core.kv.operation.reports import ClusterState
from triclinium_core.kv.wire.config_version import COUNTER_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import shown

REPORT_ID_SIZE_MAX = 250
"""Characters of a report's name."""
MANIFEST_UID_MAX = COUNTER_MAX
"""The highest uid of a manifest."""


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
            validation.check_name(self.bucket, "bucket")

    @property
    def services(self) -> Sequence[Service]:
        """The services that it is about, as far as the cluster has them: each once, in the order of ``Service``."""
        return tuple(Service)


class Ping(Inquiry, frozen=True):
    """Have each service of each node answer; of key-value, each connection a NOOP.

    Of the cluster these are the connections of every node and of every bucket that was opened.
    """

    name: ClassVar[str] = "ping"

    report_id: str
    service_types: Collection[Service] | None = None
    """None for all that the cluster has."""

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        check_report_id(self.report_id)
        check_service_types(self.service_types)

    @property
    def services(self) -> Sequence[Service]:
        """Those that were named, or all."""
        return named(self.service_types)


class WaitUntilReady(Inquiry, frozen=True):
    """Wait until the key-value connections are in a state and the other services answer, for as long as it takes."""

    name: ClassVar[str] = "wait_until_ready"

    desired_state: ClusterState = ClusterState.ONLINE
    service_types: Collection[Service] | None = None
    """None for all that the cluster has."""

    @property
    def services(self) -> Sequence[Service]:
        """Those that were named, or all; but views belong to buckets, so without one they are waited for if they are named.

        Source: SDK-RFC 0061 "The waitUntilReady Command".
        """
        services = named(self.service_types)
        has_views = self.bucket is not None or self.service_types is not None
        return services if has_views else [service for service in services if service is not Service.VIEWS]

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        check_service_types(self.service_types)
        check_type(self.desired_state, "desired_state", ClusterState)
        # RFC 0061 "The waitUntilReady Command": "It is a hard error if OFFLINE is passed in".
        if self.desired_state is ClusterState.OFFLINE:
            raise errors.InvalidArgumentException(
                "desired_state=ClusterState.OFFLINE is nothing to wait for; give ONLINE or DEGRADED",
                parameter="desired_state",
            )


class WaitForNodes(Inquiry, frozen=True):
    """Wait until every key-value node of the bucket's map serves the bucket, for the management timeout at most.

    It ends a call that has changed something, such as the scopes. Whoever gives it up is told so: the change may be there.
    """

    name: ClassVar[str] = "wait_for_nodes"
    idempotent: ClassVar[bool] = False

    manifest_uid: int | None = None
    """Of the collections manifest that each node is to have, or a later one; None for whichever it has."""

    @property
    def services(self) -> Sequence[Service]:
        """Key-value alone."""
        return (Service.KV,)

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        if self.bucket is None:
            raise errors.InvalidArgumentException("bucket=None: nodes serve a bucket; name one", parameter="bucket")
        if self.manifest_uid is not None:
            check_integer(self.manifest_uid, "manifest_uid", 0, MANIFEST_UID_MAX)


def named(service_types: Collection[Service] | None) -> Sequence[Service]:
    """Return the services that somebody named, in the order of ``Service``; all for None."""
    return [service for service in Service if service_types is None or service in service_types]


def check_service_types(value: Collection[Service] | None) -> None:
    """Check which services an inquiry is to be about.

    Raises:
        InvalidArgumentException: neither None nor a collection of services, or an empty one.
    """
    # A lone string, as a service is one, is a collection of letters to Python.
    is_several = isinstance(value, Collection) and not isinstance(value, str)
    if value is not None and not (is_several and value and all(isinstance(each, Service) for each in value)):
        raise errors.InvalidArgumentException(
            f"service_types={shown(value)} must be one or more of triclinium.Service, such as [Service.KV], or None for "
            "all",
            parameter="service_types",
        )


def check_report_id(value: object) -> str:
    """Return what a report is called.

    Raises:
        InvalidArgumentException: not a string, empty, or too long.
    """
    if not isinstance(value, str) or not 1 <= len(value) <= REPORT_ID_SIZE_MAX:
        raise errors.InvalidArgumentException(
            f"report_id={shown(value)} must be a string of 1 to {REPORT_ID_SIZE_MAX} characters",
            parameter="report_id",
        )
    return value
