"""Numbers of the memcached binary protocol.

Source: kv_engine ``include/mcbp/protocol/{magic,opcode,datatype,feature}.h``, ``docs/BinaryProtocol.md``.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag, unique

HEADER_SIZE = 24
OPCODE_OFFSET = 1
FRAME_SIZE_MAX = 30 * 1024 * 1024
"""Maximum size of a frame in bytes. Servers refuse larger frames, so the client treats them as invalid."""
VALUE_SIZE_MAX = 20 * 1024 * 1024
"""Maximum size of a document that a server stores, in bytes."""
KEY_SIZE_MAX = 250
"""Maximum size of a document id in the default collection, in bytes of UTF-8."""
KEY_SIZE_MAX_IN_COLLECTION = 246
"""Maximum size of a document id outside the default collection, in bytes of UTF-8."""


@unique
class Magic(IntEnum):
    """First byte of a frame. It determines the direction of the frame and the layout of its header."""

    CLIENT_REQUEST = 0x80
    CLIENT_RESPONSE = 0x81
    FLEXIBLE_CLIENT_REQUEST = 0x08
    FLEXIBLE_CLIENT_RESPONSE = 0x18
    SERVER_REQUEST = 0x82
    SERVER_RESPONSE = 0x83


@unique
class Opcode(IntEnum):
    """Opcodes of requests from client to server."""

    GET = 0x00
    SET = 0x01
    ADD = 0x02
    REPLACE = 0x03
    DELETE = 0x04
    INCREMENT = 0x05
    DECREMENT = 0x06
    NOOP = 0x0A
    APPEND = 0x0E
    PREPEND = 0x0F
    TOUCH = 0x1C
    GET_AND_TOUCH = 0x1D
    HELLO = 0x1F
    SASL_LIST_MECHS = 0x20
    SASL_AUTH = 0x21
    SASL_STEP = 0x22
    GET_REPLICA = 0x83
    SELECT_BUCKET = 0x89
    OBSERVE_SEQNO = 0x91
    OBSERVE = 0x92
    GET_AND_LOCK = 0x94
    UNLOCK = 0x95
    GET_META = 0xA0
    GET_CLUSTER_CONFIG = 0xB5
    GET_COLLECTIONS_MANIFEST = 0xBA
    GET_COLLECTION_ID = 0xBB
    SUBDOC_MULTI_LOOKUP = 0xD0
    SUBDOC_MULTI_MUTATION = 0xD1
    RANGE_SCAN_CREATE = 0xDA
    RANGE_SCAN_CONTINUE = 0xDB
    RANGE_SCAN_CANCEL = 0xDC
    GET_ERROR_MAP = 0xFE


@unique
class ServerOpcode(IntEnum):
    """Opcodes of requests from server to client (magic 0x82)."""

    CLUSTERMAP_CHANGE_NOTIFICATION = 0x01


class Datatype(IntFlag):
    """Bits of the datatype byte, which describe the value."""

    RAW = 0x00
    JSON = 0x01
    SNAPPY = 0x02
    XATTR = 0x04


@unique
class HelloFeature(IntEnum):
    """Features that HELLO negotiates."""

    TCP_NODELAY = 0x03
    MUTATION_SEQNO = 0x04
    XATTR = 0x06
    XERROR = 0x07
    SELECT_BUCKET = 0x08
    SNAPPY = 0x0A
    JSON = 0x0B
    DUPLEX = 0x0C
    CLUSTERMAP_NOTIFICATION = 0x0D
    UNORDERED_EXECUTION = 0x0E
    TRACING = 0x0F
    ALT_REQUEST = 0x10
    SYNC_REPLICATION = 0x11
    COLLECTIONS = 0x12
    SNAPPY_EVERYWHERE = 0x13
    PRESERVE_TTL = 0x14
    VATTR = 0x15
    SUBDOC_CREATE_AS_DELETED = 0x17
    SUBDOC_DOCUMENT_MACRO = 0x18
    REPLACE_BODY_WITH_XATTR = 0x19
    REPORT_UNIT_USAGE = 0x1A
    NON_BLOCKING_THROTTLING = 0x1B
    SUBDOC_REPLICA_READ = 0x1C
    GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION = 0x1D
    DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP = 0x1E
    CLUSTERMAP_NOTIFICATION_BRIEF = 0x1F


SERVER_REQUEST_MAGIC, SNAPPY_BIT, RANGE_SCAN_CONTINUE_OPCODE = (
    int(Magic.SERVER_REQUEST),
    int(Datatype.SNAPPY),
    int(Opcode.RANGE_SCAN_CONTINUE),
)
"""Plain numbers of enum members. The lookup of a member of an enum takes about 900 instructions in CPython 3.11. With
lookups of these members, and of the members for which other modules have aliases, a get would take about a fifth more
instructions (callgrind, ``tests.bench --only core``)."""
