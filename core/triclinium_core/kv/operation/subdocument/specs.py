"""Path specs of a sub-document operation. Their constructors check the arguments.

Source: SDK-RFC 0053 "LookupIn", "MutateIn"; kv_engine ``docs/SubDocument.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, StrEnum, unique
from typing import TypeVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_choice, check_flag, check_integer, check_type
from triclinium_core.kv.operation.validation import check_value
from triclinium_core.kv.wire import subdocument
from triclinium_core.kv.wire.subdocument import MUTATIONS_SIZE_MAX, PATH_SIZE_MAX, SPECS_MAX
from triclinium_core.shown import shown
from triclinium_core.transcoding.transcoder import EncodedValue, Transcoder

DELTA_MAX = 2**63 - 1
"""Largest delta, because the server treats numbers in documents as signed 64-bit integers."""
_FLAGS_MAX = 0xFF
"""Highest value of the flags of a path, which are one byte on the wire."""

S = TypeVar("S")

_CONTAINERS = (dict, list, tuple, set, frozenset)


@unique
class LookupInMacro(StrEnum):
    """Virtual attributes with metadata of the document. Read them with ``LookupInSpec.get(…, xattr=True)``."""

    DOCUMENT = "$document"
    """One object with all of the following attributes."""
    EXPIRY_TIME = "$document.exptime"
    """Unix time at which the document expires, in seconds; 0 for never."""
    CAS = "$document.CAS"
    """Hexadecimal digits in a string."""
    SEQ_NO = "$document.seqno"
    """Hexadecimal digits in a string."""
    LAST_MODIFIED = "$document.last_modified"
    """Unix time of the last change in seconds, as digits in a string."""
    IS_DELETED = "$document.deleted"
    VALUE_SIZE_BYTES = "$document.value_bytes"
    REV_ID = "$document.revid"


@unique
class MutationMacro(Enum):
    """Values of extended attributes that the server replaces when it applies a mutation."""

    CAS = "${Mutation.CAS}"
    """The new CAS with reversed bytes, as hexadecimal digits in a string."""
    SEQ_NO = "${Mutation.seqno}"
    """The new sequence number, as hexadecimal digits in a string."""
    VALUE_CRC32C = "${Mutation.value_crc32c}"
    """The checksum of the new document, as hexadecimal digits in a string."""


@unique
class StoreSemantics(Enum):
    """Whether the document of a mutation must exist."""

    REPLACE = "replace"
    """The document must exist."""
    UPSERT = "upsert"
    """The server creates a missing document."""
    INSERT = "insert"
    """The document must not exist."""


class LookupInSpec(msgspec.Struct, frozen=True):
    """Lookup at one path. Create it with the methods below, which share these arguments and exceptions.

    Args:
        path: path in the document, such as ``address.city`` or ``children[-1].name``, up to 1024 bytes of UTF-8.
            Enclose a key that contains dots or brackets in backticks.
        xattr: whether the path is in the extended attributes, which are stored beside the document.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    opcode: subdocument.PathOpcode
    path: str
    xattr: bool = False

    def __post_init__(self) -> None:
        if type(self.opcode) is not subdocument.PathOpcode:
            check_choice(self.opcode, "opcode", subdocument.PathOpcode)
        check_flag(self.xattr, "xattr")
        _check_path(self.path, xattr=self.xattr)

    @classmethod
    def get(cls, path: str, *, xattr: bool = False) -> LookupInSpec:
        """Read the value at ``path``, or the complete document if ``path`` is empty."""
        return cls(subdocument.PathOpcode.GET if path or xattr else subdocument.PathOpcode.GET_DOCUMENT, path, xattr)

    @classmethod
    def exists(cls, path: str, *, xattr: bool = False) -> LookupInSpec:
        """Check whether ``path`` has a value. ``path`` must not be empty."""
        _require_path(path, "use Collection.exists for a document")
        return cls(subdocument.PathOpcode.EXISTS, path, xattr)

    @classmethod
    def count(cls, path: str, *, xattr: bool = False) -> LookupInSpec:
        """Count the elements of the array, or the keys of the object, at ``path``. An empty path means the document."""
        return cls(subdocument.PathOpcode.COUNT, path, xattr)


class EncodedMutation(msgspec.Struct, frozen=True):
    """Encoded mutation at one path. ``MutateInSpec.encode`` creates it.

    Raises:
        InvalidArgumentException: the path is invalid, or the value is not bytes.
        ValueTooLargeException: the value is larger than the server can store.
    """

    opcode: subdocument.PathOpcode
    flags: subdocument.PathFlag
    path: str
    value: bytes = b""

    def __post_init__(self) -> None:
        _check_path(self.path, xattr=self.xattr)
        check_value(self.value)

    @property
    def xattr(self) -> bool:
        """Whether the path is in the extended attributes."""
        return bool(self.flags & subdocument.PathFlag.XATTR)


class MutateInSpec(msgspec.Struct, frozen=True):
    """Mutation at one path. Create it with the methods below, which share these arguments and exceptions.

    Args:
        path: path in the document, as in ``LookupInSpec``.
        value, values: anything that the transcoder of the call can encode as JSON, or one ``MutationMacro``. A macro
            implies ``xattr=True``.
        xattr: whether the path is in the extended attributes, which are stored beside the document.
        create_parents: whether to create missing parent objects of ``path``.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    opcode: subdocument.PathOpcode
    flags: subdocument.PathFlag
    path: str
    values: tuple[object, ...] = ()
    delta: int | None = None

    def __post_init__(self) -> None:
        if type(self.opcode) is not subdocument.PathOpcode:
            check_choice(self.opcode, "opcode", subdocument.PathOpcode)
        if type(self.flags) is not subdocument.PathFlag or not 0 <= self.flags <= _FLAGS_MAX:
            check_integer(self.flags, "flags", 0, _FLAGS_MAX)
            check_choice(self.flags, "flags", subdocument.PathFlag)
        _check_path(self.path, xattr=bool(self.flags & subdocument.PathFlag.XATTR))

    @classmethod
    def insert(cls, path: str, value: object, *, xattr: bool = False, create_parents: bool = False) -> MutateInSpec:
        """Create the key at the end of ``path``. The key must not exist."""
        _require_path(path, "use Collection.insert for a whole document")
        return _of_value(subdocument.PathOpcode.INSERT, path, value, xattr, create_parents)

    @classmethod
    def upsert(cls, path: str, value: object, *, xattr: bool = False, create_parents: bool = False) -> MutateInSpec:
        """Create the key at the end of ``path``, or replace its value."""
        _require_path(path, "use MutateInSpec.replace or Collection.upsert for a whole document")
        return _of_value(subdocument.PathOpcode.UPSERT, path, value, xattr, create_parents)

    @classmethod
    def replace(cls, path: str, value: object, *, xattr: bool = False) -> MutateInSpec:
        """Replace the value at ``path``, which must exist, or the complete document if ``path`` is empty."""
        return _of_value(
            subdocument.PathOpcode.REPLACE if path or xattr else subdocument.PathOpcode.SET_DOCUMENT, path, value, xattr
        )

    @classmethod
    def remove(cls, path: str, *, xattr: bool = False) -> MutateInSpec:
        """Remove the value at ``path``, or the complete document if ``path`` is empty."""
        opcode = subdocument.PathOpcode.REMOVE if path or xattr else subdocument.PathOpcode.REMOVE_DOCUMENT
        return cls(opcode, _flags(xattr), path)

    @classmethod
    def array_append(
        cls, path: str, *values: object, xattr: bool = False, create_parents: bool = False
    ) -> MutateInSpec:
        """Append values to the array at ``path``. If ``path`` is empty, the document must be an array."""
        return _of_values(subdocument.PathOpcode.ARRAY_APPEND, path, values, xattr, create_parents)

    @classmethod
    def array_prepend(
        cls, path: str, *values: object, xattr: bool = False, create_parents: bool = False
    ) -> MutateInSpec:
        """Prepend values to the array at ``path``. If ``path`` is empty, the document must be an array."""
        return _of_values(subdocument.PathOpcode.ARRAY_PREPEND, path, values, xattr, create_parents)

    @classmethod
    def array_insert(cls, path: str, *values: object, xattr: bool = False) -> MutateInSpec:
        """Insert values before the element of an array at ``path``, such as ``tags[2]``."""
        _require_path(path, "name an element, such as [0]")
        return _of_values(subdocument.PathOpcode.ARRAY_INSERT, path, values, xattr)

    @classmethod
    def array_add_unique(
        cls, path: str, value: object, *, xattr: bool = False, create_parents: bool = False
    ) -> MutateInSpec:
        """Append a string, number, bool or None to the array at ``path``, unless the array contains it."""
        if isinstance(value, (*_CONTAINERS, MutationMacro)):
            raise errors.InvalidArgumentException(
                f"value={shown(value)} must be a string, a number, a bool or None",
                parameter="value",
            )
        return _of_value(subdocument.PathOpcode.ARRAY_ADD_UNIQUE, path, value, xattr, create_parents)

    @classmethod
    def increment(cls, path: str, delta: int = 1, *, xattr: bool = False, create_parents: bool = False) -> MutateInSpec:
        """Add ``delta``, from 1 to 2**63 - 1, to the number at ``path``. Create the number if it is missing."""
        return _counting(path, delta, 1, xattr, create_parents)

    @classmethod
    def decrement(cls, path: str, delta: int = 1, *, xattr: bool = False, create_parents: bool = False) -> MutateInSpec:
        """Subtract ``delta``, from 1 to 2**63 - 1, from the number at ``path``. Create the number if it is missing."""
        return _counting(path, delta, -1, xattr, create_parents)

    def encode(self, transcoder: Transcoder) -> EncodedMutation:
        """Return the encoded mutation.

        Raises:
            EncodingFailureException: the transcoder cannot encode a value.
            InvalidArgumentException: the transcoder returns something other than an ``EncodedValue``.
            ValueTooLargeException: the values are larger than the server can store.
        """
        value = b",".join(_encoded(each, transcoder) for each in self.values)
        if self.delta is not None:
            value = b"%d" % self.delta
        return EncodedMutation(self.opcode, self.flags, self.path, value)


def check_specs(specs: object, kind: type[S]) -> tuple[S, ...]:
    """Return the specs of one operation as a tuple.

    Raises:
        InvalidArgumentException: ``specs`` is not a sequence of ``kind``, is empty or exceeds ``SPECS_MAX``.
    """
    if not isinstance(specs, Sequence) or not all(isinstance(spec, kind) for spec in specs):
        raise errors.InvalidArgumentException(
            f"specs={shown(specs)} must be a list of {kind.__name__}, such as [{kind.__name__}.get('name')]"
            if kind is LookupInSpec
            else f"specs={shown(specs)} must be a list of {kind.__name__}",
            parameter="specs",
        )
    if not 1 <= len(specs) <= SPECS_MAX:
        raise errors.InvalidArgumentException(
            f"specs has {len(specs)} entries; one operation takes 1 to {SPECS_MAX}", parameter="specs"
        )
    return tuple(specs)


def check_mutations(specs: object) -> None:
    """Check that one request can carry these mutations.

    Raises:
        InvalidArgumentException: ``specs`` is not a sequence of mutations, is empty, has too many mutations, or has
            mutations that contradict each other.
        ValueTooLargeException: the request would exceed ``MUTATIONS_SIZE_MAX``.
    """
    mutations = check_specs(specs, EncodedMutation)
    on_body = [spec for spec in mutations if not spec.xattr]
    if len(on_body) > 1 and any(spec.opcode is subdocument.PathOpcode.REMOVE_DOCUMENT for spec in on_body):
        raise errors.InvalidArgumentException(
            "specs removes the whole document and contains another change to its body; omit one of the two",
            parameter="specs",
        )
    size = sum(subdocument.MUTATION_SPEC.size + len(spec.path.encode()) + len(spec.value) for spec in mutations)
    if size > MUTATIONS_SIZE_MAX:
        # The values cause the excess: all paths together have at most 16 KiB.
        raise errors.ValueTooLargeException(
            f"specs has {size} bytes; one request has at most {MUTATIONS_SIZE_MAX}; change fewer paths in one call, "
            "or pass smaller values"
        )


def _of_value(
    opcode: subdocument.PathOpcode, path: str, value: object, xattr: bool, create_parents: bool = False
) -> MutateInSpec:
    is_macro = isinstance(value, MutationMacro)
    return MutateInSpec(opcode, _flags(xattr, create_parents, is_macro=is_macro), path, (value,))


def _of_values(
    opcode: subdocument.PathOpcode, path: str, values: tuple[object, ...], xattr: bool, create_parents: bool = False
) -> MutateInSpec:
    if not values:
        raise errors.InvalidArgumentException("values must contain at least one value", parameter="values")
    is_macro = any(isinstance(value, MutationMacro) for value in values)
    if is_macro and len(values) > 1:
        raise errors.InvalidArgumentException(
            f"values={shown(values)} contains a macro, which the server expands only as a single value; pass it alone",
            parameter="values",
        )
    return MutateInSpec(opcode, _flags(xattr, create_parents, is_macro=is_macro), path, values)


def _counting(path: str, delta: int, sign: int, xattr: bool, create_parents: bool) -> MutateInSpec:
    _require_path(path, "use Collection.binary for a document that is a counter")
    check_integer(delta, "delta", 1, DELTA_MAX)
    return MutateInSpec(subdocument.PathOpcode.COUNT_BY, _flags(xattr, create_parents), path, delta=sign * delta)


def _flags(xattr: bool, create_parents: bool = False, *, is_macro: bool = False) -> subdocument.PathFlag:
    flags = subdocument.PathFlag.NONE
    # RFC 0053 §MutateIn: a macro implies an extended attribute.
    if check_flag(xattr, "xattr") or is_macro:
        flags |= subdocument.PathFlag.XATTR
    if check_flag(create_parents, "create_parents"):
        flags |= subdocument.PathFlag.CREATE_PARENTS
    return flags | subdocument.PathFlag.EXPAND_MACROS if is_macro else flags


def _encoded(value: object, transcoder: Transcoder) -> bytes:
    if isinstance(value, MutationMacro):
        return b'"%b"' % value.value.encode()
    encoded = transcoder.encode(value)
    check_type(encoded, "transcoder.encode(value)", EncodedValue)
    return encoded.data


def _require_path(path: str, instead: str) -> None:
    if path == "":
        raise errors.InvalidArgumentException(f"path={path!r} must not be empty; {instead}", parameter="path")


def _check_path(path: object, *, xattr: bool) -> None:
    check_flag(xattr, "xattr")
    if not isinstance(path, str):
        raise errors.InvalidArgumentException(
            f"path={shown(path)} must be a string, not {type(path).__name__}", parameter="path"
        )
    try:
        size = len(path.encode())
    except UnicodeEncodeError as error:
        raise errors.InvalidArgumentException(
            f"path={path[:40]!r} has a lone surrogate, which UTF-8 cannot encode", parameter="path"
        ) from error
    if size > PATH_SIZE_MAX:
        raise errors.InvalidArgumentException(
            f"path={path[:40]!r}… has {size} bytes of UTF-8; it must have at most {PATH_SIZE_MAX}", parameter="path"
        )
    if xattr and not path:
        raise errors.InvalidArgumentException(
            "path='' must not be empty with xattr=True; it begins with the key of an attribute", parameter="path"
        )
