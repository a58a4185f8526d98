"""Exceptions of SDK-RFC 0058, one class per entry::

    CouchbaseException
    ├── TimeoutException
    │   ├── AmbiguousTimeoutException
    │   └── UnambiguousTimeoutException
    ├── RequestCanceledException
    ├── BucketAccessException
    ├── TlsException
    ├── InvalidArgumentException
    ├── ServiceNotAvailableException
    ├── InternalServerFailureException
    ├── AuthenticationFailureException
    ├── TemporaryFailureException
    ├── ParsingFailureException
    ├── CasMismatchException
    ├── BucketNotFoundException
    ├── CollectionNotFoundException
    ├── UnsupportedOperationException
    ├── FeatureNotAvailableException
    ├── ScopeNotFoundException
    ├── IndexNotFoundException
    ├── IndexExistsException
    ├── EncodingFailureException
    ├── DecodingFailureException
    ├── RateLimitedException
    ├── QuotaLimitedException
    ├── KeyValueException
    │   ├── DocumentNotFoundException        ├── PathNotFoundException
    │   ├── DocumentUnretrievableException   ├── PathMismatchException
    │   ├── DocumentLockedException          ├── PathInvalidException
    │   ├── DocumentNotLockedException       ├── PathTooBigException
    │   ├── ValueTooLargeException           ├── PathTooDeepException
    │   ├── DocumentExistsException          ├── PathExistsException
    │   ├── DurabilityLevelNotAvailable…     ├── ValueTooDeepException
    │   ├── DurabilityImpossibleException    ├── ValueInvalidException
    │   ├── DurabilityAmbiguousException     ├── DocumentNotJsonException
    │   ├── DurableWriteInProgressException  ├── NumberTooBigException
    │   ├── DurableWriteReCommitInProgress…  ├── DeltaInvalidException
    │   └── Xattr…Exception (five)
    ├── PlanningFailureException, IndexFailureException, PreparedStatementFailureException, DmlFailureException (query)
    ├── CompilationFailureException, JobQueueFullException, DatasetNotFoundException, DatasetExistsException,
    │   DataverseNotFoundException, DataverseExistsException, LinkNotFoundException, LinkExistsException (analytics)
    ├── IndexNotReadyException (search)
    ├── ViewNotFoundException, DesignDocumentNotFoundException (views)
    ├── BucketExistsException, BucketNotFlushableException, ScopeExistsException, CollectionExistsException,
    │   UserNotFoundException, UserExistsException, GroupNotFoundException (management)
    └── InternalError (a defect of this library, never of the caller or the server)

``KeyValueException`` is an addition: it groups the exceptions that only KV raises, so that a caller can catch the
group. ``BucketAccessException``, ``TlsException`` and ``IndexNotReadyException`` are additions too, because the RFCs
raise the base class there. The RFC's numbers are only in the docstrings; the RFC forbids exposing them.
"""

from __future__ import annotations

from typing import ClassVar

from triclinium_core.argument_error import ArgumentError
from triclinium_core.error_context import ErrorContext
from triclinium_core.shown import printable


class CouchbaseException(Exception):
    """Base of all exceptions of triclinium (RFC 0058, 0).

    ``context`` has the known facts about the request. ``str()`` is one printable line of at most ``MESSAGE_MAX``
    characters. It ends with the next step, if there is one.
    """

    rfc_class: ClassVar[type[CouchbaseException]]
    """Exception that the RFCs raise in place of this class: the class itself, unless the RFCs lack it."""
    context: ErrorContext

    def __init_subclass__(cls, *, rfc_class: type[CouchbaseException] | None = None) -> None:
        super().__init_subclass__()
        cls.rfc_class = rfc_class if rfc_class is not None else cls

    def __init__(self, message: str = "", context: ErrorContext | None = None) -> None:
        # A message may quote a node or a caller.
        message = printable(message)
        super().__init__(message)
        self.message: str = message
        self.context = context if context is not None else ErrorContext()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.context)

    def __str__(self) -> str:
        return self.message or type(self).__name__


CouchbaseException.rfc_class = CouchbaseException


class TimeoutException(CouchbaseException):
    """The request did not complete before its deadline (RFC 0058, 1)."""


class AmbiguousTimeoutException(TimeoutException):
    """The deadline passed and the operation may, or may not, have been applied (RFC 0058, 13)."""


class UnambiguousTimeoutException(TimeoutException):
    """The deadline passed and the operation was certainly not applied (RFC 0058, 14)."""


class RequestCanceledException(CouchbaseException):
    """The request was abandoned, and its outcome is unknown or not retryable (RFC 0058, 2)."""


class BucketAccessException(CouchbaseException, rfc_class=CouchbaseException):
    """The bucket does not exist, or the user has no access; servers do not state which (reason BUCKET_ACCESS_ERROR).

    Source: SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)", which raises the base class; decision C32.
    """


class TlsException(CouchbaseException, rfc_class=CouchbaseException):
    """TLS could not be established: one side refused the other's certificate, or the node lacks TLS (reason TLS_ERROR).

    Source: SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)", which raises the base class; decision C32.
    """


class InvalidArgumentException(CouchbaseException, ArgumentError):
    """An argument is of the wrong type or out of range; nothing was sent (RFC 0058, 3).

    It is also a ``ValueError``, as a subclass of :py:class:`triclinium_core.argument_error.ArgumentError`, which the
    parts of this package raise that do not depend on Couchbase.

    Args:
        message: text of the error.
        context: facts about the request.
        parameter: name of the invalid parameter, or ``""`` if the server refused the request as invalid.
    """

    def __init__(self, message: str = "", context: ErrorContext | None = None, *, parameter: str = "") -> None:
        CouchbaseException.__init__(self, message, context)
        self.parameter = parameter

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.context), {"parameter": self.parameter}


class ServiceNotAvailableException(CouchbaseException):
    """The cluster does not run the service that the request needs (RFC 0058, 4)."""


class InternalServerFailureException(CouchbaseException):
    """The server reported an internal error (RFC 0058, 5)."""


class AuthenticationFailureException(CouchbaseException):
    """The credentials are wrong, or do not permit the request (RFC 0058, 6)."""


class TemporaryFailureException(CouchbaseException):
    """The server is temporarily unable to serve the request (RFC 0058, 7)."""


class ParsingFailureException(CouchbaseException):
    """The server could not parse the statement (RFC 0058, 8)."""


class CasMismatchException(CouchbaseException):
    """The document has another CAS than the one given (RFC 0058, 9)."""


class BucketNotFoundException(CouchbaseException):
    """The bucket does not exist (RFC 0058, 10)."""


class CollectionNotFoundException(CouchbaseException):
    """The collection does not exist (RFC 0058, 11)."""


class UnsupportedOperationException(CouchbaseException):
    """The server does not know or support the operation (RFC 0058, 12)."""


class FeatureNotAvailableException(CouchbaseException):
    """A feature was used that this server or connection does not offer (RFC 0058, 15)."""


class ScopeNotFoundException(CouchbaseException):
    """The scope does not exist (RFC 0058, 16)."""


class IndexNotFoundException(CouchbaseException):
    """The index does not exist (RFC 0058, 17)."""


class IndexExistsException(CouchbaseException):
    """The index exists already (RFC 0058, 18)."""


class EncodingFailureException(CouchbaseException):
    """The value could not be encoded; nothing was sent (RFC 0058, 19)."""


class DecodingFailureException(CouchbaseException):
    """A value does not fit the requested type, or a response could not be decoded (RFC 0058, 20).

    If it ends a write, that write was applied if the message states so, and otherwise may have been.
    """


class RateLimitedException(CouchbaseException):
    """The caller exceeded a rate limit; the context names it (RFC 0058, 21)."""


class QuotaLimitedException(CouchbaseException):
    """The caller exceeded a quota; the context names it (RFC 0058, 22)."""


class KeyValueException(CouchbaseException):
    """Base of the exceptions of the key-value service only (RFC 0058, 100 to 199)."""


class DocumentNotFoundException(KeyValueException):
    """The document does not exist (RFC 0058, 101)."""


class DocumentUnretrievableException(KeyValueException):
    """No replica could return the document (RFC 0058, 102)."""


class DocumentLockedException(KeyValueException):
    """The document is locked by someone else (RFC 0058, 103)."""


class ValueTooLargeException(KeyValueException):
    """The value exceeds what the server stores (RFC 0058, 104)."""


class DocumentExistsException(KeyValueException):
    """The document exists already (RFC 0058, 105)."""


class DurabilityLevelNotAvailableException(KeyValueException):
    """The durability level is not available on this bucket (RFC 0058, 107)."""


class DurabilityImpossibleException(KeyValueException):
    """Too few replicas are online for the durability level (RFC 0058, 108)."""


class DurabilityAmbiguousException(KeyValueException):
    """The durable write may or may not have been applied (RFC 0058, 109)."""


class DurableWriteInProgressException(KeyValueException):
    """Another durable write on the document is pending (RFC 0058, 110)."""


class DurableWriteReCommitInProgressException(KeyValueException):
    """The document is being re-committed after a failover (RFC 0058, 111)."""


class PathNotFoundException(KeyValueException):
    """The path does not exist in the document (RFC 0058, 113)."""


class PathMismatchException(KeyValueException):
    """The path does not fit the structure of the document (RFC 0058, 114)."""


class PathInvalidException(KeyValueException):
    """The path is not syntactically correct (RFC 0058, 115)."""


class PathTooBigException(KeyValueException):
    """The path is too long or has too many components (RFC 0058, 116)."""


class PathTooDeepException(KeyValueException):
    """The document has too many levels to parse (RFC 0058, 117)."""


class ValueTooDeepException(KeyValueException):
    """The value would make the document too deep (RFC 0058, 118)."""


class ValueInvalidException(KeyValueException):
    """The value would invalidate the JSON structure of the document (RFC 0058, 119)."""


class DocumentNotJsonException(KeyValueException):
    """A sub-document operation met a document that is not JSON (RFC 0058, 120)."""


class NumberTooBigException(KeyValueException):
    """The existing number is outside the range for arithmetic (RFC 0058, 121)."""


class DeltaInvalidException(KeyValueException):
    """The delta, or the existing counter value, does not permit the arithmetic (RFC 0058, 122)."""


class PathExistsException(KeyValueException):
    """The path exists already (RFC 0058, 123)."""


class XattrUnknownMacroException(KeyValueException):
    """The server does not know the macro (RFC 0058, 124)."""


class XattrInvalidKeyComboException(KeyValueException):
    """Several extended attributes were used in one operation (RFC 0058, 126)."""


class XattrUnknownVirtualAttributeException(KeyValueException):
    """The virtual attribute is not known (RFC 0058, 127)."""


class XattrCannotModifyVirtualAttributeException(KeyValueException):
    """A virtual attribute cannot be modified (RFC 0058, 128)."""


class XattrNoAccessException(KeyValueException):
    """The user may not access the system attribute (RFC 0058, 130)."""


class DocumentNotLockedException(KeyValueException):
    """The document to unlock is not locked (KV status 0x0e; newer than the RFC, which has no number for it)."""


class PlanningFailureException(CouchbaseException):
    """The query could not be planned (RFC 0058, 201)."""


class IndexFailureException(CouchbaseException):
    """The query index failed (RFC 0058, 202)."""


class PreparedStatementFailureException(CouchbaseException):
    """The prepared statement could not be used (RFC 0058, 203)."""


class DmlFailureException(CouchbaseException):
    """The query's data modification failed (RFC 0058, 204)."""


class CompilationFailureException(CouchbaseException):
    """The analytics statement could not be compiled (RFC 0058, 301)."""


class JobQueueFullException(CouchbaseException):
    """The analytics job queue is full (RFC 0058, 302)."""


class DatasetNotFoundException(CouchbaseException):
    """The analytics dataset does not exist (RFC 0058, 303)."""


class DataverseNotFoundException(CouchbaseException):
    """The analytics dataverse does not exist (RFC 0058, 304)."""


class DatasetExistsException(CouchbaseException):
    """The analytics dataset exists already (RFC 0058, 305)."""


class DataverseExistsException(CouchbaseException):
    """The analytics dataverse exists already (RFC 0058, 306)."""


class LinkNotFoundException(CouchbaseException):
    """The analytics link does not exist (RFC 0058, 307)."""


class LinkExistsException(CouchbaseException):
    """The analytics link exists already (``AnalyticsLinkExistsException`` of RFC 0054, which has no number for it)."""


class IndexNotReadyException(CouchbaseException, rfc_class=CouchbaseException):
    """The search index exists, but no node has a partition of it yet: it was just created, or is being moved.

    Source: the text "no planPIndexes for indexName" of the search service, for which the RFCs raise the base class.
    """


class ViewNotFoundException(CouchbaseException):
    """The view does not exist (RFC 0058, 501)."""


class DesignDocumentNotFoundException(CouchbaseException):
    """The design document does not exist (RFC 0058, 502)."""


class CollectionExistsException(CouchbaseException):
    """The collection exists already (RFC 0058, 601)."""


class ScopeExistsException(CouchbaseException):
    """The scope exists already (RFC 0058, 602)."""


class UserNotFoundException(CouchbaseException):
    """The user does not exist (RFC 0058, 603)."""


class GroupNotFoundException(CouchbaseException):
    """The group of users does not exist (RFC 0058, 604)."""


class BucketExistsException(CouchbaseException):
    """The bucket exists already (RFC 0058, 605)."""


class UserExistsException(CouchbaseException):
    """The user exists already (RFC 0058, 606)."""


class BucketNotFlushableException(CouchbaseException):
    """The bucket may not be flushed: its settings do not permit it (RFC 0058, 607)."""


class InternalError(CouchbaseException):
    """A defect of this library: please report it together with the chained cause."""
