"""Numbers and layouts of the sub-document commands.

Source: kv_engine ``docs/SubDocument.md``, ``include/mcbp/protocol/opcode.h``, ``include/memcached/protocol_binary.h``.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag, unique

from triclinium_core.kv.wire.constants import FRAME_SIZE_MAX

SPECS_MAX = 16
"""Maximum number of paths in one command."""
PATH_SIZE_MAX = 1024
"""Maximum size of a path in bytes of UTF-8."""

MUTATIONS_SIZE_MAX = FRAME_SIZE_MAX - 1024
"""Maximum size in bytes of all mutations in one command: that of a frame, minus space for header, extras and key."""

LOOKUP_SPEC = struct.Struct(">BBH")
"""Layout of the spec of a lookup: opcode, flags, length of the path. The path follows."""
MUTATION_SPEC = struct.Struct(">BBHI")
"""Layout of the spec of a mutation: opcode, flags, lengths of path and value. Path and value follow."""
LOOKUP_OUTCOME = struct.Struct(">HI")
"""Layout of the outcome of each path of a lookup: status, length of the value. The value follows."""
MUTATION_OUTCOME = struct.Struct(">BH")
"""Layout of the outcome of each path of a mutation that failed or returned a value: index, status."""
MUTATION_VALUE = struct.Struct(">I")
"""Layout of the length of the value, after the status of a path that succeeded. The value follows."""


@unique
class PathOpcode(IntEnum):
    """Operation on one path. The first three operations apply to the complete document and require an empty path."""

    GET_DOCUMENT = 0x00
    SET_DOCUMENT = 0x01
    REMOVE_DOCUMENT = 0x04
    GET = 0xC5
    EXISTS = 0xC6
    INSERT = 0xC7
    UPSERT = 0xC8
    REMOVE = 0xC9
    REPLACE = 0xCA
    ARRAY_APPEND = 0xCB
    ARRAY_PREPEND = 0xCC
    ARRAY_INSERT = 0xCD
    ARRAY_ADD_UNIQUE = 0xCE
    COUNT_BY = 0xCF
    COUNT = 0xD2
    REPLACE_BODY_WITH_XATTR = 0xD3


class PathFlag(IntFlag):
    """Flags of the operation on one path."""

    NONE = 0x00
    CREATE_PARENTS = 0x01
    XATTR = 0x04
    EXPAND_MACROS = 0x10
    BINARY = 0x20


class DocumentFlag(IntFlag):
    """Flags of a command that apply to the complete document."""

    NONE = 0x00
    UPSERT = 0x01
    INSERT = 0x02
    ACCESS_DELETED = 0x04
    CREATE_AS_DELETED = 0x08
    REVIVE = 0x10
    REPLICA_READ = 0x20
