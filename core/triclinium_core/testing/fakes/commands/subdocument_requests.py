"""Parser that converts sub-document bodies to specs. It refuses a body if any part is invalid.

Source: kv_engine daemon/subdocument_validators.cc, daemon/subdocument_traits.h.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from triclinium_core.kv.operation.subdocument.specs import MutationMacro
from triclinium_core.kv.wire import subdocument
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.subdocument import PATH_SIZE_MAX, SPECS_MAX
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandRefused
from triclinium_core.testing.fakes.commands.read_request import Request
from triclinium_core.testing.fakes.store.attributes import is_valid_key, is_virtual, read_macro
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

_EXPIRY = Struct(">I")


class Traits(NamedTuple):
    """Flags and parts that may accompany an opcode."""

    path_flags: subdocument.PathFlag
    document_flags: subdocument.DocumentFlag
    is_mutation: bool = True
    has_value: bool = True
    path_may_be_empty: bool = False
    is_whole_document: bool = False


class Spec(NamedTuple):
    """Operation on one path."""

    opcode: subdocument.PathOpcode
    flags: subdocument.PathFlag
    path: str
    value: bytes
    macro: MutationMacro | None = None

    @property
    def xattr(self) -> bool:
        """Whether the path is in the extended attributes."""
        return subdocument.PathFlag.XATTR in self.flags


class SubdocumentRequest(NamedTuple):
    """A command on one or more paths; an expiry of 0 means never."""

    specs: Sequence[Spec]
    flags: subdocument.DocumentFlag
    expiry: int


def _traits() -> Mapping[subdocument.PathOpcode, Traits]:
    path, whole, op = subdocument.PathFlag, subdocument.DocumentFlag, subdocument.PathOpcode
    deleted = whole.ACCESS_DELETED | whole.REVIVE
    reading = deleted | whole.REPLICA_READ
    creating = deleted | whole.UPSERT | whole.INSERT | whole.CREATE_AS_DELETED
    placing = path.CREATE_PARENTS | path.XATTR | path.EXPAND_MACROS
    # fmt: off
    return {
        op.GET_DOCUMENT: Traits(path.NONE, reading, is_mutation=False, has_value=False, path_may_be_empty=True, is_whole_document=True),
        op.SET_DOCUMENT: Traits(path.NONE, whole.UPSERT | whole.INSERT, path_may_be_empty=True, is_whole_document=True),
        op.REMOVE_DOCUMENT: Traits(path.NONE, deleted, has_value=False, path_may_be_empty=True, is_whole_document=True),
        op.GET: Traits(path.XATTR, reading, is_mutation=False, has_value=False),
        op.EXISTS: Traits(path.XATTR, reading, is_mutation=False, has_value=False),
        op.COUNT: Traits(path.XATTR, reading, is_mutation=False, has_value=False, path_may_be_empty=True),
        op.INSERT: Traits(placing, creating),
        op.UPSERT: Traits(placing, creating),
        op.REMOVE: Traits(path.XATTR, deleted, has_value=False),
        op.REPLACE: Traits(path.XATTR | path.EXPAND_MACROS, deleted | whole.INSERT),
        op.ARRAY_APPEND: Traits(placing, creating, path_may_be_empty=True),
        op.ARRAY_PREPEND: Traits(placing, creating, path_may_be_empty=True),
        op.ARRAY_INSERT: Traits(path.XATTR | path.EXPAND_MACROS, creating & ~whole.UPSERT),
        op.ARRAY_ADD_UNIQUE: Traits(path.CREATE_PARENTS | path.XATTR, creating, path_may_be_empty=True),
        op.COUNT_BY: Traits(path.CREATE_PARENTS | path.XATTR, creating),
        op.REPLACE_BODY_WITH_XATTR: Traits(path.XATTR, deleted, has_value=False),
    }
    # fmt: on


TRAITS = _traits()


_FLAG_FEATURES: Mapping[subdocument.DocumentFlag, HelloFeature] = {
    subdocument.DocumentFlag.CREATE_AS_DELETED: HelloFeature.SUBDOC_CREATE_AS_DELETED,
    # The flag has no feature; it came with this one in version 7.0 (MB-41550).
    subdocument.DocumentFlag.REVIVE: HelloFeature.REPLACE_BODY_WITH_XATTR,
    subdocument.DocumentFlag.REPLICA_READ: HelloFeature.SUBDOC_REPLICA_READ,
}
"""Features of the servers that know a flag. Other servers refuse it; the connection need not negotiate the feature."""


def read_subdocument(
    node: NodeState, connection: ClientConnection, request: Request, *, is_mutation: bool
) -> SubdocumentRequest:
    """Return the specs, flags and expiry of a command.

    Raises:
        CommandRefused: they are invalid, not negotiated, or newer than the node.
    """
    expiry = _EXPIRY.unpack_from(request.extras)[0] if len(request.extras) >= _EXPIRY.size else 0
    flags = (
        subdocument.DocumentFlag(request.extras[-1])
        if len(request.extras) % _EXPIRY.size
        else subdocument.DocumentFlag.NONE
    )
    _check_document_flags(flags, request.cas, node.options.features)
    specs = list(_read_specs(request.value, is_mutation=is_mutation))
    if HelloFeature.REPLACE_BODY_WITH_XATTR not in node.options.features and any(
        spec.opcode is subdocument.PathOpcode.REPLACE_BODY_WITH_XATTR for spec in specs
    ):
        raise CommandRefused(Status.SUBDOC_INVALID_COMBO, "this node does not have REPLACE_BODY_WITH_XATTR")
    if not 1 <= len(specs) <= SPECS_MAX:
        raise CommandRefused(
            Status.SUBDOC_INVALID_COMBO, f"there are {len(specs)} paths; there must be 1 to {SPECS_MAX}"
        )
    checked = [_check(connection, spec, flags, is_mutation=is_mutation) for spec in specs]
    _check_order(checked)
    return SubdocumentRequest(checked, flags, expiry)


def _check_document_flags(flags: subdocument.DocumentFlag, cas: int, features: Collection[HelloFeature]) -> None:
    for flag, feature in _FLAG_FEATURES.items():
        if flag in flags and feature not in features:
            raise CommandRefused(Status.INVALID_ARGUMENTS, f"this node does not have the document flag {flag.name}")
    if subdocument.DocumentFlag.INSERT in flags and (cas or subdocument.DocumentFlag.UPSERT in flags):
        raise CommandRefused(Status.INVALID_ARGUMENTS, "INSERT permits neither a CAS nor UPSERT")
    if subdocument.DocumentFlag.REVIVE in flags and not flags & subdocument.DocumentFlag.ACCESS_DELETED:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "reviving a document requires access to deleted documents")
    if subdocument.DocumentFlag.REVIVE in flags and subdocument.DocumentFlag.CREATE_AS_DELETED in flags:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "a document cannot be both revived and created as deleted")


def _read_specs(body: bytes, *, is_mutation: bool) -> Iterator[Spec]:
    start, layout = 0, subdocument.MUTATION_SPEC if is_mutation else subdocument.LOOKUP_SPEC
    while start < len(body):
        if start + layout.size > len(body):
            raise CommandRefused(Status.INVALID_ARGUMENTS, "the body ends within a spec")
        opcode, flags, path_size, *sizes = layout.unpack_from(body, start)
        start += layout.size
        value_size = sizes[0] if sizes else 0
        if start + path_size + value_size > len(body):
            raise CommandRefused(Status.INVALID_ARGUMENTS, "a path or a value extends past the end of the body")
        path, value = body[start : start + path_size], body[start + path_size : start + path_size + value_size]
        start += path_size + value_size
        if path_size > PATH_SIZE_MAX:
            raise CommandRefused(
                Status.INVALID_ARGUMENTS, f"a path has {path_size} bytes; the maximum is {PATH_SIZE_MAX}"
            )
        try:
            yield Spec(subdocument.PathOpcode(opcode), subdocument.PathFlag(flags), path.decode(), value)
        except UnicodeDecodeError as error:
            raise CommandRefused(Status.INVALID_ARGUMENTS, f"a path is not UTF-8: {error}") from error
        except ValueError as error:
            raise CommandRefused(Status.SUBDOC_INVALID_COMBO, f"the opcode 0x{opcode:02x} is not for a path") from error


def _check(connection: ClientConnection, spec: Spec, flags: subdocument.DocumentFlag, *, is_mutation: bool) -> Spec:
    traits = TRAITS[spec.opcode]
    if traits.is_mutation is not is_mutation:
        raise CommandRefused(Status.SUBDOC_INVALID_COMBO, "one command cannot both read and write")
    if spec.flags & ~int(traits.path_flags) or flags & ~int(traits.document_flags):
        raise CommandRefused(
            Status.INVALID_ARGUMENTS,
            f"{spec.opcode.name} does not take the path flags 0x{spec.flags:02x} with the document flags 0x{flags:02x}",
        )
    if traits.is_whole_document and spec.path:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "a command on the complete document must not have a path")
    if spec.xattr:
        _check_attribute(connection, spec, is_mutation=is_mutation)
    elif spec.opcode is subdocument.PathOpcode.REPLACE_BODY_WITH_XATTR:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "the new body is taken from an extended attribute only")
    elif subdocument.PathFlag.EXPAND_MACROS in spec.flags:
        raise CommandRefused(Status.SUBDOC_XATTR_INVALID_FLAG_COMBO, "macros are expanded in extended attributes only")
    elif not spec.path and not traits.path_may_be_empty:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "a path is required")
    if bool(spec.value) is not traits.has_value:
        raise CommandRefused(
            Status.INVALID_ARGUMENTS, f"a value is {'required' if traits.has_value else 'not allowed'}"
        )
    macro = read_macro(spec.value) if subdocument.PathFlag.EXPAND_MACROS in spec.flags else None
    return spec._replace(macro=macro)


def _check_attribute(connection: ClientConnection, spec: Spec, *, is_mutation: bool) -> None:
    if not connection.has(HelloFeature.XATTR):
        raise CommandRefused(Status.NOT_SUPPORTED, "extended attributes were not negotiated")
    if not is_valid_key(spec.path):
        raise CommandRefused(Status.XATTR_INVALID, f"the path {spec.path!a} does not begin with an attribute's key")
    if is_mutation and is_virtual(spec.path):
        raise CommandRefused(Status.SUBDOC_XATTR_CANNOT_MODIFY_VATTR)
    if subdocument.PathFlag.EXPAND_MACROS in spec.flags and read_macro(spec.value) is None:
        raise CommandRefused(Status.SUBDOC_XATTR_UNKNOWN_MACRO)


def _check_order(specs: Sequence[Spec]) -> None:
    on_body = [spec for spec in specs if not spec.xattr]
    if [spec.xattr for spec in specs] != [True] * (len(specs) - len(on_body)) + [False] * len(on_body):
        raise CommandRefused(Status.SUBDOC_INVALID_XATTR_ORDER)
    if len(on_body) > 1 and any(spec.opcode is subdocument.PathOpcode.REMOVE_DOCUMENT for spec in on_body):
        raise CommandRefused(Status.SUBDOC_INVALID_COMBO, "one command cannot both remove and change a document")
