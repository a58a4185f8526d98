"""Numbers and layouts of the sub-document commands.

Source: kv_engine ``docs/SubDocument.md``, ``include/mcbp/protocol/opcode.h``, ``include/memcached/protocol_binary.h``.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag, unique

from triclinium_core.kv.wire.constants import FRAME_SIZE_MAX

SPECS_MAX = 16
"""Paths of one command."""
PATH_SIZE_MAX = 1024
"""Largest path in bytes of UTF-8."""

MUTATIONS_SIZE_MAX = FRAME_SIZE_MAX - 1024
"""Bytes of all mutations of one command: a frame's, less more than its header, its extras and its key can take."""

LOOKUP_SPEC = struct.Struct(">BBH")
"""Of a lookup: opcode, flags, length of the path, which follows."""
MUTATION_SPEC = struct.Struct(">BBHI")
"""Of a mutation: opcode, flags, lengths of path and value, which follow in this order."""
LOOKUP_OUTCOME = struct.Struct(">HI")
"""For every path of a lookup: status, length of the value, which follows."""
MUTATION_OUTCOME = struct.Struct(">BH")
"""For the paths of a mutation that have something to tell: index, status."""
MUTATION_VALUE = struct.Struct(">I")
"""After the status of a path that succeeded: length of the value, which follows."""


@unique
class PathOpcode(IntEnum):
    """What is done at one path; the first three are done to the whole document, at an empty path."""

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


class PathFlag(IntFlag):
    """How it is done."""

    NONE = 0x00
    CREATE_PARENTS = 0x01
    XATTR = 0x04
    EXPAND_MACROS = 0x10
    BINARY = 0x20


class DocumentFlag(IntFlag):
    """What a command may do with the document as a whole."""

    NONE = 0x00
    UPSERT = 0x01
    INSERT = 0x02
    ACCESS_DELETED = 0x04
    CREATE_AS_DELETED = 0x08
    REVIVE = 0x10
    REPLICA_READ = 0x20
