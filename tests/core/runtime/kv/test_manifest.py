"""Manifests of a bucket's collections, which any node can send."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import HOTEL_ID, Recorded, ready
from tests.core.runtime.kv.test_cluster import RecordedCluster
from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionsManifest
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.testing.fakes.faults import Fault, hang_up_after_applying, temporary_failure
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

QUESTION = GetCollectionsManifest(Keyspace("travel"))


def names(simulation: Recorded) -> dict[str, dict[str, int]]:
    """Return the id of each collection in the manifest."""
    manifest = simulation.result(QUESTION)
    assert isinstance(manifest, CollectionsManifest)
    return {scope.name: {each.name: each.id for each in scope.collections} for scope in manifest.scopes}


def test_all_of_a_bucket() -> None:
    """The first operation can be a manifest request; its result has all collections with their ids."""
    assert {"_default": {"_default": 0}, "inventory": {"hotel": HOTEL_ID}} == names(Recorded())


def test_a_manifest_is_requested_each_time() -> None:
    """Each operation requests the manifest again, so that the result has new collections."""
    simulation = RecordedCluster()
    before = names(simulation)
    simulation.nodes.collections.create("inventory", "airline")
    after = names(simulation)

    assert after["inventory"].keys() - before["inventory"].keys() == {"airline"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (temporary_failure(), RetryReason.KV_TEMPORARY_FAILURE),
        (hang_up_after_applying(), RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT),
    ],
)
def test_a_manifest_request_is_retried(fault: Fault, reason: RetryReason) -> None:
    """A manifest request is retried after a temporary failure or a lost connection, because it is idempotent."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET_COLLECTIONS_MANIFEST, fault)

    assert "inventory" in names(simulation)
    assert 1 == simulation.machine.statistics().retries_by_reason[reason]


def test_a_server_without_collections() -> None:
    """If the server supports no collections, the operation fails unsent."""
    simulation = ready(features=IMPLEMENTED_FEATURES - {HelloFeature.COLLECTIONS})
    simulation.failure(errors.FeatureNotAvailableException, QUESTION)

    assert [] == simulation.commands(Opcode.GET_COLLECTIONS_MANIFEST)
