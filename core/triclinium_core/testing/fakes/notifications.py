"""How a fake node tells clients, unasked, that the cluster config has changed.

Source: kv_engine docs/BinaryProtocol.md, server request 0x01.
"""

from __future__ import annotations

from triclinium_core.kv.wire.compression import deflate
from triclinium_core.kv.wire.config_version import CONFIG_VERSION
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, ServerOpcode
from triclinium_core.kv.wire.frame import encode_server_request
from triclinium_core.testing.fakes.state import Connection, NodeState

_OPAQUE = 0xC0FF_EE00
"""A client's answer carries it; nobody looks at it."""


def encode_notification(node: NodeState, connection: Connection) -> bytes | None:
    """Return the notification of the present config; None for a client that has not asked for any.

    The brief form leaves the config out: the client has to fetch it.
    """
    is_brief = connection.has(HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF)
    if not (is_brief or connection.has(HelloFeature.CLUSTERMAP_NOTIFICATION)) or not connection.is_authenticated:
        return None
    value, datatype = b"", Datatype.RAW
    if not is_brief:
        value = node.config_for(connection)
        datatype = Datatype.JSON if connection.has(HelloFeature.JSON) else Datatype.RAW
        deflated = deflate(value) if connection.has(HelloFeature.SNAPPY_EVERYWHERE) else None
        if deflated is not None:
            value, datatype = deflated, datatype | Datatype.SNAPPY
    return encode_server_request(
        ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION,
        opaque=_OPAQUE,
        datatype=datatype,
        extras=CONFIG_VERSION.pack(*node.map.version),
        key=(connection.bucket or "").encode(),
        value=value,
    )
