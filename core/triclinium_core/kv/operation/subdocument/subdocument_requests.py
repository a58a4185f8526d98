"""Operations on parts of documents. Their constructors check the arguments.

Source: SDK-RFC 0053 "LookupIn", "MutateIn".
"""

from __future__ import annotations

from typing import ClassVar

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_integer, check_type
from triclinium_core.kv.operation import validation
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, DocumentOperation, Mutation
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.operation.subdocument.specs import (
    EncodedMutation,
    LookupInSpec,
    StoreSemantics,
    check_mutations,
    check_specs,
)
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.transcoding.transcoder import Transcoder


class LookupIn(DocumentOperation, frozen=True, gc=False):
    """Read parts of a document. With ``access_deleted``, also read the tombstone of a removed document."""

    name: ClassVar[str] = "lookup_in"
    opcode: ClassVar[Opcode] = Opcode.SUBDOC_MULTI_LOOKUP

    specs: tuple[LookupInSpec, ...]
    access_deleted: bool = False
    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        check_type(self.specs, "specs", tuple)
        check_specs(self.specs, LookupInSpec)
        check_flag(self.access_deleted, "access_deleted")
        validation.check_transcoder(self.transcoder)


class MutateIn(Mutation, frozen=True, gc=False):
    """Change parts of a document. The server applies all changes or none. ``transcoder`` decodes returned values.

    With ``access_deleted``, the mutation also applies to the extended attributes of a removed document. With
    ``create_as_deleted``, a created document has only extended attributes, and readers see it as removed.
    """

    name: ClassVar[str] = "mutate_in"
    opcode: ClassVar[Opcode] = Opcode.SUBDOC_MULTI_MUTATION

    specs: tuple[EncodedMutation, ...]
    cas: Cas = Cas(0)
    expiry: int = 0
    preserve_expiry: bool = False  # type: ignore[misc]  # as with the key
    store_semantics: StoreSemantics = StoreSemantics.REPLACE
    access_deleted: bool = False
    create_as_deleted: bool = False
    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        Mutation.__post_init__(self)
        check_type(self.specs, "specs", tuple)
        check_mutations(self.specs)
        check_integer(self.cas, "cas", 0, validation.UINT64_MAX)
        check_integer(self.expiry, "expiry", 0, validation.UINT32_MAX)
        check_flag(self.preserve_expiry, "preserve_expiry")
        check_type(self.store_semantics, "store_semantics", StoreSemantics)
        check_flag(self.access_deleted, "access_deleted")
        check_flag(self.create_as_deleted, "create_as_deleted")
        validation.check_transcoder(self.transcoder)
        if self.cas and self.store_semantics is StoreSemantics.INSERT:
            raise errors.InvalidArgumentException(
                f"cas={self.cas} requires an existing document, but INSERT creates one; omit one of the two",
                parameter="cas",
            )
        if self.create_as_deleted and self.store_semantics is StoreSemantics.REPLACE:
            raise errors.InvalidArgumentException(
                "create_as_deleted=True creates a document, which REPLACE does not; use UPSERT or INSERT",
                parameter="create_as_deleted",
            )
