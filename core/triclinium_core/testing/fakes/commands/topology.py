"""Commands of a fake node about the location of data: cluster config, manifest, collection ids.

Source: kv_engine docs/BinaryProtocol.md, 0xb5; docs/Collections.md, 0xba and 0xbb.
"""

from __future__ import annotations

from struct import Struct

from triclinium_core.kv.operation.validation import DEFAULT_NAME
from triclinium_core.kv.wire.config_version import CONFIG_VERSION
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.commands.read_request import Command, Needs, Part, Request
from triclinium_core.testing.fakes.store.cluster_map import ConfigVersion
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

_COLLECTION_ID = Struct(">QI")
"""UID of the manifest, id of the collection."""


def _get_cluster_config(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    """Return the selected bucket's config, or else the global one; an empty reply if the client's is not older."""
    if request.extras and HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION not in node.options.features:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "this node does not accept the client's version; omit it")
    bucket = node.cluster.buckets.get(connection.bucket)
    if bucket is not None and bucket.is_memcached:
        raise CommandRefused(Status.KEY_NOT_FOUND, "a memcached bucket has no cluster config")
    if request.extras:
        known = ConfigVersion(*CONFIG_VERSION.unpack(request.extras))
        if known >= node.map.version:
            connection.known_config = known
            return CommandAnswer()
    return CommandAnswer(
        value=node.config_for(connection),
        datatype=Datatype.JSON,
        deflates_with=HelloFeature.SNAPPY_EVERYWHERE,
    )


def _get_manifest(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    return CommandAnswer(value=node.collections_of(connection.bucket).encode(), datatype=Datatype.JSON)


def _get_collection_id(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    names = request.value.decode("ascii", "replace").split(".")
    if len(names) != 2:
        raise CommandRefused(
            Status.INVALID_ARGUMENTS, "the value must be a scope and a collection with a dot between them"
        )
    scope, collection = (name or DEFAULT_NAME for name in names)
    collections = node.collections_of(connection.bucket)
    collection_id = collections.id_of(scope, collection)
    return CommandAnswer(extras=_COLLECTION_ID.pack(collections.uid, collection_id))


# fmt: off
TOPOLOGY_COMMANDS = (
    Command(Opcode.GET_CLUSTER_CONFIG, _get_cluster_config, Needs.AUTHENTICATION, extras_sizes=(0, CONFIG_VERSION.size)),
    Command(Opcode.GET_COLLECTIONS_MANIFEST, _get_manifest, Needs.BUCKET),
    Command(Opcode.GET_COLLECTION_ID, _get_collection_id, Needs.BUCKET, value=Part.REQUIRED),
)
# fmt: on
