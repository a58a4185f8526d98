"""Operation that reads the scopes and collections of a bucket.

Source: kv_engine ``docs/Collections.md``.
"""

from __future__ import annotations

from typing import ClassVar

from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.wire.constants import Opcode


class GetCollectionsManifest(Operation, frozen=True, gc=False):
    """Read all scopes and collections of a bucket from any of its nodes.

    The scope and the collection of ``keyspace`` have no effect.
    """

    name: ClassVar[str] = "get_collections_manifest"
    opcode: ClassVar[Opcode] = Opcode.GET_COLLECTIONS_MANIFEST
