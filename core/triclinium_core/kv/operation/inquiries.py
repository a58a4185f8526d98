"""Pings and waits as values. Their constructors check the arguments.

A driver submits an inquiry like an operation, and the client settles it once. But the client sends the requests of an
inquiry to connections and services instead of a document's node, and does not consult a retry strategy.

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
"""Maximum number of characters in the id of a report."""
MANIFEST_UID_MAX = COUNTER_MAX
"""Highest uid of a manifest."""


class Inquiry(msgspec.Struct, frozen=True):
    """Base of all inquiries. The constructors raise InvalidArgumentException if an argument is invalid.

    ``name`` is the name of the inquiry in errors and telemetry.
    """

    name: ClassVar[str] = ""
    idempotent: ClassVar[bool] = True

    bucket: str | None
    """Bucket whose connections the inquiry covers; None for the cluster."""

    def __post_init__(self) -> None:
        if self.bucket is not None:
            validation.check_bucket_name(self.bucket)

    @property
    def services(self) -> Sequence[Service]:
        """Services that the inquiry covers, if the cluster has them: each once, in the order of ``Service``."""
        return tuple(Service)


class Ping(Inquiry, frozen=True):
    """Ping of the requested services of each node; for key-value, a NOOP on each connection.

    A ping of the cluster covers the connections to every node for every bucket that was opened.
    """

    name: ClassVar[str] = "ping"

    report_id: str
    service_types: Collection[Service] | None = None
    """Requested services; None for all services of the cluster."""

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        check_report_id(self.report_id)
        check_service_types(self.service_types)

    @property
    def services(self) -> Sequence[Service]:
        """Requested services, or all services if none are requested."""
        return named(self.service_types)


class WaitUntilReady(Inquiry, frozen=True):
    """Wait without a timeout until the key-value connections reach a state and the other services respond."""

    name: ClassVar[str] = "wait_until_ready"

    desired_state: ClusterState = ClusterState.ONLINE
    service_types: Collection[Service] | None = None
    """Requested services; None for all services of the cluster."""

    @property
    def services(self) -> Sequence[Service]:
        """Requested services, or all services if none are requested.

        Without a bucket, views are included only if they are requested, because views belong to buckets.

        Source: SDK-RFC 0061 "The waitUntilReady Command".
        """
        services = named(self.service_types)
        has_views = self.bucket is not None or self.service_types is not None
        return services if has_views else [service for service in services if service is not Service.VIEWS]

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        check_service_types(self.service_types)
        check_type(self.desired_state, "desired_state", ClusterState)
        # RFC 0061 "The waitUntilReady Command" requires this: "It is a hard error if OFFLINE is passed in".
        if self.desired_state is ClusterState.OFFLINE:
            raise errors.InvalidArgumentException(
                "desired_state=ClusterState.OFFLINE must be ONLINE or DEGRADED; OFFLINE cannot be awaited",
                parameter="desired_state",
            )


class WaitForNodes(Inquiry, frozen=True):
    """Wait until every key-value node in the bucket's map serves the bucket, for at most the management timeout.

    This is the last step of a call that has changed the cluster, for example the scopes of a bucket. The wait is not
    idempotent: if it is abandoned, its error states that the change may have been applied.
    """

    name: ClassVar[str] = "wait_for_nodes"
    idempotent: ClassVar[bool] = False

    manifest_uid: int | None = None
    """Minimum uid of the collections manifest on each node; None for any manifest."""

    @property
    def services(self) -> Sequence[Service]:
        """Key-value, the only service that the wait covers."""
        return (Service.KV,)

    def __post_init__(self) -> None:
        Inquiry.__post_init__(self)
        if self.bucket is None:
            raise errors.InvalidArgumentException("bucket=None must be the name of a bucket", parameter="bucket")
        if self.manifest_uid is not None:
            check_integer(self.manifest_uid, "manifest_uid", 0, MANIFEST_UID_MAX)


def named(service_types: Collection[Service] | None) -> Sequence[Service]:
    """Return ``service_types`` in the order of ``Service``; all services for None."""
    return [service for service in Service if service_types is None or service in service_types]


def check_service_types(value: Collection[Service] | None) -> None:
    """Check that ``value`` is a collection of at least one service, or None.

    Raises:
        InvalidArgumentException: ``value`` is neither None nor a collection of services, or is empty.
    """
    # Exclude a single service: it is a string, which is a collection of characters in Python.
    is_several = isinstance(value, Collection) and not isinstance(value, str)
    if value is not None and not (is_several and value and all(isinstance(each, Service) for each in value)):
        raise errors.InvalidArgumentException(
            f"service_types={shown(value)} must be a list or set of one or more services, such as [Service.KV], or None"
            " for all",
            parameter="service_types",
        )


def check_report_id(value: object) -> str:
    """Return ``value`` if it is a valid id of a report.

    Raises:
        InvalidArgumentException: ``value`` is not a string, is empty or is too long.
    """
    if not isinstance(value, str) or not 1 <= len(value) <= REPORT_ID_SIZE_MAX:
        raise errors.InvalidArgumentException(
            f"report_id={shown(value)} must be a string of 1 to {REPORT_ID_SIZE_MAX} characters",
            parameter="report_id",
        )
    return value
