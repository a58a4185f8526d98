"""Commands of a fake node on parts of a document.

Specs of extended attributes must precede those of the body; each spec sees the result of the earlier specs. A mutation
is stored only when all specs have succeeded.

Source: kv_engine docs/SubDocument.md, daemon/subdocument.cc, daemon/subdocument_context.cc.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import msgspec

from triclinium_core.kv.wire import subdocument
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, Datatype, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.commands.document import mutation_answer
from triclinium_core.testing.fakes.commands.read_request import Command, Needs, Part, Request
from triclinium_core.testing.fakes.commands.subdocument_requests import Spec, SubdocumentRequest, read_subdocument
from triclinium_core.testing.fakes.store.attributes import is_virtual, stored, tree_of, virtual_tree
from triclinium_core.testing.fakes.store.documents import Document, FakeDocuments, is_json
from triclinium_core.testing.fakes.store.json_values import Change, PathFailed, change, decode_json, look_up, parse_path
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

_ARRAYS = (
    subdocument.PathOpcode.ARRAY_APPEND,
    subdocument.PathOpcode.ARRAY_PREPEND,
    subdocument.PathOpcode.ARRAY_ADD_UNIQUE,
)
_NOTHING = Document(value=b"", flags=0, cas=0, sequence_number=0, datatype=Datatype.RAW)


def _multi_lookup(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    wanted = read_subdocument(node, connection, request, is_mutation=False)
    documents = node.documents
    with_remains = subdocument.DocumentFlag.ACCESS_DELETED in wanted.flags
    document = node.read(request.address, in_replica=request.reads_replica, with_remains=with_remains)
    if subdocument.DocumentFlag.REVIVE in wanted.flags and not document.is_deleted:
        raise CommandRefused(Status.SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS)
    if request.cas and request.cas != documents.visible_cas(document):
        raise CommandRefused(Status.KEY_EXISTS)
    body, has_failed = b"", False
    for spec in wanted.specs:
        status, value = Status.SUCCESS, b""
        try:
            value = _look_up(documents, document, request.address.vbucket, spec)
        except PathFailed as failed:
            status, has_failed = failed.status, True
        body += subdocument.LOOKUP_OUTCOME.pack(status, len(value)) + value
    overall = Status.SUBDOC_MULTI_PATH_FAILURE if has_failed else Status.SUCCESS
    if document.is_deleted:
        overall = Status.SUBDOC_MULTI_PATH_FAILURE_DELETED if has_failed else Status.SUBDOC_SUCCESS_DELETED
    return CommandAnswer(overall, cas=documents.visible_cas(document), value=body)


def _look_up(documents: FakeDocuments, document: Document, vbucket: int, spec: Spec) -> bytes:
    if spec.opcode is subdocument.PathOpcode.GET_DOCUMENT:
        if not document.value:
            raise PathFailed(Status.SUBDOC_PATH_NOT_FOUND)
        return document.value
    tree: object
    if not spec.xattr:
        tree = _body_tree(document.value)
    elif is_virtual(spec.path):
        tree = virtual_tree(spec.path, documents, document, vbucket)
    else:
        tree = tree_of(document.xattrs)
    return look_up(spec.opcode, tree, parse_path(spec.path))


def _multi_mutation(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    wanted = read_subdocument(node, connection, request, is_mutation=True)
    documents = node.documents
    existing = _find_for_writing(documents, request, wanted.flags)
    document = existing or _created(wanted)
    draft = _Draft(document)
    outcomes = b""
    for index, spec in enumerate(wanted.specs):
        try:
            returned = draft.change(
                spec, creates=wanted.flags & (subdocument.DocumentFlag.UPSERT | subdocument.DocumentFlag.INSERT) != 0
            )
        except PathFailed as failed:
            return CommandAnswer(
                Status.SUBDOC_MULTI_PATH_FAILURE, value=subdocument.MUTATION_OUTCOME.pack(index, failed.status)
            )
        if returned:
            outcomes += (
                subdocument.MUTATION_OUTCOME.pack(index, Status.SUCCESS)
                + subdocument.MUTATION_VALUE.pack(len(returned))
                + returned
            )
    if len(draft.value) > VALUE_SIZE_MAX:
        raise CommandRefused(Status.TOO_BIG)
    stays_deleted = document.is_deleted and subdocument.DocumentFlag.REVIVE not in wanted.flags
    expires_at = documents.expires_at(wanted.expiry)
    if existing is not None and request.preserves_expiry:
        expires_at = existing.expires_at
    written = documents.rewrite(
        request.address,
        draft.value,
        partial(stored, draft.attributes, draft.value),
        flags=document.flags,
        expires_at=math.inf if stays_deleted or draft.is_removed else expires_at,
        is_deleted=stays_deleted or draft.is_removed,
    )
    answer = mutation_answer(node, connection, request, written, value=outcomes)
    return msgspec.structs.replace(answer, status=Status.SUBDOC_SUCCESS_DELETED) if stays_deleted else answer


def _reads_replica(extras: bytes) -> bool:
    return len(extras) == 1 and subdocument.DocumentFlag.REPLICA_READ in subdocument.DocumentFlag(extras[0])


def _find_for_writing(documents: FakeDocuments, request: Request, flags: subdocument.DocumentFlag) -> Document | None:
    """Return the document to change; None if the command has to create it."""
    document = documents.find_for_writing(request.address, request.cas)
    if document is None and subdocument.DocumentFlag.ACCESS_DELETED in flags:
        document = documents.find_remains(request.address)
    if document is None:
        if not flags & (subdocument.DocumentFlag.UPSERT | subdocument.DocumentFlag.INSERT):
            raise CommandRefused(Status.KEY_NOT_FOUND)
        return None
    if subdocument.DocumentFlag.INSERT in flags or (document.is_deleted and request.cas not in (0, document.cas)):
        raise CommandRefused(Status.KEY_EXISTS)
    if subdocument.DocumentFlag.REVIVE in flags and not document.is_deleted:
        raise CommandRefused(Status.SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS)
    return document


def _created(wanted: SubdocumentRequest) -> Document:
    """Return the empty document that a mutation starts from; its first path determines whether it is an array."""
    if subdocument.DocumentFlag.CREATE_AS_DELETED in wanted.flags:
        return replace(_NOTHING, is_deleted=True)
    for spec in wanted.specs:
        if spec.opcode is not subdocument.PathOpcode.SET_DOCUMENT:
            is_array = spec.path.startswith("[") or (not spec.path and spec.opcode in _ARRAYS)
            return replace(_NOTHING, value=b"[]" if is_array else b"{}")
    return _NOTHING


def _body_tree(value: bytes) -> object:
    try:
        if is_json(value):
            return decode_json(value)
    except ValueError:
        pass
    raise PathFailed(Status.SUBDOC_DOCUMENT_NOT_JSON)


class _Draft:
    """A document under modification."""

    def __init__(self, document: Document) -> None:
        self.value: bytes = document.value
        self.attributes: dict[str, object] = tree_of(document.xattrs)
        self.is_removed: bool = False

    def change(self, spec: Spec, *, creates: bool) -> bytes:
        """Apply one spec and return its result; with ``creates``, create the missing parents of its path."""
        if spec.opcode is subdocument.PathOpcode.SET_DOCUMENT:
            self.value = spec.value
            return b""
        if spec.opcode is subdocument.PathOpcode.REMOVE_DOCUMENT:
            self.value, self.is_removed = b"", True
            self.attributes = {key: value for key, value in self.attributes.items() if key.startswith("_")}
            return b""
        if spec.opcode is subdocument.PathOpcode.REPLACE_BODY_WITH_XATTR:
            self.value = look_up(subdocument.PathOpcode.GET, self.attributes, parse_path(spec.path))
            return b""
        values = spec.value if spec.macro is None else spec.macro
        step = Change(parse_path(spec.path), values, creates or subdocument.PathFlag.CREATE_PARENTS in spec.flags)
        if spec.xattr:
            return change(spec.opcode, self.attributes, step)
        tree = _body_tree(self.value)
        returned = change(spec.opcode, tree, step)
        self.value = msgspec.json.encode(tree)
        return returned


_command = partial(Command, needs=Needs.DOCUMENT, key=Part.REQUIRED, value=Part.OPTIONAL, cas=Part.OPTIONAL)

SUBDOCUMENT_COMMANDS: tuple[Command, ...] = (
    _command(Opcode.SUBDOC_MULTI_LOOKUP, _multi_lookup, extras_sizes=(0, 1), reads_replica=_reads_replica),
    _command(
        Opcode.SUBDOC_MULTI_MUTATION,
        _multi_mutation,
        extras_sizes=(0, 1, 4, 5),
        may_preserve_expiry=True,
        may_be_durable=True,
    ),
)
