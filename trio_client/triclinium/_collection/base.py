"""Base class of a collection's groups of operations, and checks of their arguments."""

from __future__ import annotations

import time
from datetime import datetime

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._telemetry.wrapping import Wrapping
from triclinium_core.checks import Duration
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Keyspace
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.operation.validation import check_transcoder, encode_expiry
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.attributes import keyspace_attributes
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan
from triclinium_core.transcoding.transcoder import Transcoder

ANY_CAS = Cas(0)
"""CAS that matches any version of a document."""


class CollectionBase:
    """Base class with the driver and the keyspace of a collection."""

    def __init__(self, driver: ClusterDriver, keyspace: Keyspace) -> None:
        self._driver = driver
        self._keyspace = keyspace

    @total_repr
    def __repr__(self) -> str:
        keyspace = self._keyspace
        return f"<{type(self).__name__} {keyspace.bucket}.{keyspace.scope}.{keyspace.collection}>"

    def _wrapping(self, call: WrappingCall, parent: RequestSpan | None) -> Wrapping:
        """Return the description of a call that makes several operations, for its span."""
        keyspace = self._keyspace
        return Wrapping(call, parent, keyspace_attributes(keyspace.bucket, keyspace.scope, keyspace.collection))


def expiry_field(expiry: Duration | datetime | None) -> int:
    """Return the number that represents an expiry on the wire.

    Raises:
        InvalidArgumentException: ``expiry`` has the wrong type, has no time zone, is not in the future, or is too late.
    """
    return 0 if expiry is None else encode_expiry(expiry, wall_seconds=time.time())


def transcoder_or_json(transcoder: Transcoder | None) -> Transcoder:
    """Return the transcoder of a call; JSON by default.

    Raises:
        InvalidArgumentException: the transcoder lacks a method, or is a class rather than an instance.
    """
    if transcoder is None:
        return JSON_TRANSCODER
    check_transcoder(transcoder)
    return transcoder
