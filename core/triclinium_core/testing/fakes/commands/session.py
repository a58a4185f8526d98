"""Commands of a fake node that prepare a connection: HELLO, error map, SASL, bucket; and NOOP.

Source: kv_engine docs/BinaryProtocol.md; RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode
from triclinium_core.options import OAUTHBEARER
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.scram import MECHANISMS as SCRAM_MECHANISMS, ScramError, username_in
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.commands.read_request import Command, Needs, Part, Request
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

NO_BUCKET = b"@no bucket@"
"""Name that a client selects to deselect its bucket."""

_REQUIRED_FEATURES: Mapping[HelloFeature, HelloFeature] = {
    HelloFeature.CLUSTERMAP_NOTIFICATION: HelloFeature.DUPLEX,
    HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF: HelloFeature.DUPLEX,
    HelloFeature.VATTR: HelloFeature.XATTR,
    HelloFeature.SUBDOC_DOCUMENT_MACRO: HelloFeature.XATTR,
}
"""Feature that HELLO must also request, for each feature that needs it. Source: kv_engine, "buildRequestVector"."""


def _hello(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    """Replace the features of the connection, and return the new ones in the requested order."""
    if len(request.value) % 2:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "the value must have two bytes for each feature")
    _refuse_in_flight(node, connection)
    # A server ignores the features that it does not know, before it checks the others.
    unknown = IMPLEMENTED_FEATURES - node.options.features
    asked = dict.fromkeys(code for (code,) in struct.iter_unpack(">H", request.value))
    wanted = [code for code in asked if code not in unknown]
    for feature, required in _REQUIRED_FEATURES.items():
        if feature in wanted and required not in asked:
            raise CommandRefused(Status.INVALID_ARGUMENTS, f"feature 0x{feature:02x} requires {required.name}")
    if HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF in wanted and HelloFeature.CLUSTERMAP_NOTIFICATION in wanted:
        wanted.remove(HelloFeature.CLUSTERMAP_NOTIFICATION)
    granted = [HelloFeature(code) for code in wanted if code in node.options.features]
    connection.features = frozenset(granted)
    if HelloFeature.SNAPPY_EVERYWHERE in granted:
        connection.features |= {HelloFeature.SNAPPY}
    return CommandAnswer(value=struct.pack(f">{len(granted)}H", *granted))


def _get_error_map(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    if node.options.error_map is None:
        raise CommandRefused(Status.UNKNOWN_COMMAND)
    if len(request.value) != 2:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "the version must have two bytes")
    version = int.from_bytes(request.value, "big")
    if version == 0:
        raise CommandRefused(Status.KEY_NOT_FOUND, "version 0 does not exist; versions begin at 1")
    return CommandAnswer(value=node.options.error_map.encode(min(version, 2)), datatype=Datatype.JSON)


def _sasl_list_mechanisms(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    return CommandAnswer(value=" ".join(node.options.offered_mechanisms).encode())


def _sasl_auth(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    """Start authentication, even of an authenticated connection, unless a certificate authenticated it.

    Authentication by password deselects the bucket, as in servers up to 7.2. Servers that support tokens are newer, and
    keep the bucket.
    """
    if connection.has_certificate:
        raise CommandRefused(Status.NOT_SUPPORTED, "the client is already authenticated by its certificate")
    if connection.exchange is not None:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "authentication is in progress; expected SASL_STEP")
    connection.is_authenticated = False
    mechanism = request.key.decode("ascii", "replace")
    if mechanism not in node.options.offered_mechanisms:
        raise CommandRefused(Status.AUTH_ERROR, f"the mechanism {mechanism!a} is not offered")
    if mechanism == OAUTHBEARER:
        return _authenticate_bearer(node, connection, request.value)
    connection.bucket = None
    if mechanism not in SCRAM_MECHANISMS:
        return _authenticate_plain(node, connection, request.value)
    try:
        exchange = node.new_exchange(mechanism, username_in(request.value))
        challenge = exchange.first(request.value)
    except ScramError as error:
        raise CommandRefused(Status.AUTH_ERROR, str(error)) from error
    connection.exchange = exchange
    return CommandAnswer(Status.AUTH_CONTINUE, value=challenge)


def _authenticate_plain(node: NodeState, connection: ClientConnection, message: bytes) -> CommandAnswer:
    acting, _, given = message.partition(b"\0")
    username, _, password = given.partition(b"\0")
    created = node.cluster.services.users.password_of(username.decode("utf-8", "replace"))
    is_known = (username, password) == (node.options.username.encode(), node.options.password.encode()) or (
        created is not None and password == created.encode()
    )
    # The name before the first NUL is the user to act as. It must be empty, or name the same user.
    if acting not in (b"", username) or not is_known:
        raise CommandRefused(Status.AUTH_ERROR, "unknown user, wrong password, or a request to act as another user")
    connection.is_authenticated = True
    return CommandAnswer()


def _authenticate_bearer(node: NodeState, connection: ClientConnection, message: bytes) -> CommandAnswer:
    # RFC 7628 §3.1. An identity in the header must be that of the token; this node does not check it.
    header, _, fields = message.partition(b"\x01")
    tokens = [token.encode() for token in node.options.tokens]
    if not header.startswith(b"n,") or fields not in [b"auth=Bearer %b\x01\x01" % token for token in tokens]:
        raise CommandRefused(Status.AUTH_ERROR, "the message is malformed, or its token is not accepted")
    connection.is_authenticated = True
    return CommandAnswer()


def _sasl_step(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    exchange, connection.exchange = connection.exchange, None
    if exchange is None:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "no authentication is in progress; expected SASL_AUTH")
    try:
        signature = exchange.final(request.value)
    except ScramError as error:
        raise CommandRefused(Status.AUTH_ERROR, str(error)) from error
    connection.is_authenticated = True
    return CommandAnswer(value=signature)


def _select_bucket(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    _refuse_in_flight(node, connection)
    name = request.key.decode("utf-8", "replace")
    bucket = node.cluster.buckets.get(name)
    if request.key == NO_BUCKET:
        connection.bucket = None
    elif bucket is None:
        raise CommandRefused(Status.NO_ACCESS, f"the bucket {name!a} does not exist, or this user may not access it")
    elif not node.has_learned_of(bucket):
        # The reply of a real node to a user who may access all buckets.
        raise CommandRefused(Status.KEY_NOT_FOUND, f"the bucket {name!a} does not exist on this node")
    else:
        connection.bucket = name
    connection.known_config = None
    return CommandAnswer()


def _noop(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    return CommandAnswer()


def _refuse_in_flight(node: NodeState, connection: ClientConnection) -> None:
    # Source: "getNumberOfCookies" in hello_packet_executor.cc and select_bucket_executor.cc.
    if connection.pipeline.is_shared(node.documents.now):
        raise CommandRefused(
            Status.NOT_SUPPORTED, "commands that may be reordered were in flight; wait for their replies first"
        )


# fmt: off
SESSION_COMMANDS = (
    Command(Opcode.HELLO, _hello, Needs.NOTHING, key=Part.OPTIONAL, value=Part.OPTIONAL),
    Command(Opcode.GET_ERROR_MAP, _get_error_map, Needs.NOTHING, value=Part.REQUIRED),
    Command(Opcode.SASL_LIST_MECHS, _sasl_list_mechanisms, Needs.NOTHING),
    Command(Opcode.SASL_AUTH, _sasl_auth, Needs.NOTHING, key=Part.REQUIRED, value=Part.OPTIONAL),
    Command(Opcode.SASL_STEP, _sasl_step, Needs.NOTHING, key=Part.REQUIRED, value=Part.OPTIONAL),
    Command(Opcode.SELECT_BUCKET, _select_bucket, Needs.AUTHENTICATION, key=Part.REQUIRED),
    Command(Opcode.NOOP, _noop, Needs.AUTHENTICATION),
)
# fmt: on
