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

``KeyValueException`` is not in the RFC. It is the base of the exceptions that only key-value operations raise, so that
a caller can catch all of them. ``BucketAccessException``, ``TlsException`` and ``IndexNotReadyException`` are not in
the RFC either: the RFCs prescribe the base class instead of them. The RFC's numbers are in the docstrings and not in
attributes, because the RFC forbids libraries from exposing the numbers. A class without a number is not in the RFC.
"""

from __future__ import annotations

from typing import ClassVar

from triclinium_core.argument_error import ArgumentError
from triclinium_core.error_context import ErrorContext
from triclinium_core.shown import printable


class CouchbaseException(Exception):
    """Base of the exceptions of the Couchbase client (RFC 0058, 0).

    ``context`` has the known facts about the request. ``str()`` returns one printable line of at most ``MESSAGE_MAX``
    characters, with the next step, if there is one.
    """

    rfc_class: ClassVar[type[CouchbaseException]]
    """Class that the RFCs prescribe: this class, or its substitute if the RFCs do not have this class."""
    context: ErrorContext

    def __init_subclass__(cls, *, rfc_class: type[CouchbaseException] | None = None) -> None:
        super().__init_subclass__()
        cls.rfc_class = rfc_class if rfc_class is not None else cls

    def __init__(self, message: str = "", context: ErrorContext | None = None) -> None:
        # A message may quote text from a node or a caller, with characters that a log must not contain.
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
    """The deadline passed, and the operation may or may not have been applied (RFC 0058, 13)."""


class UnambiguousTimeoutException(TimeoutException):
    """The deadline passed, and the operation was certainly not applied (RFC 0058, 14)."""


class RequestCanceledException(CouchbaseException):
    """The request failed without a timeout and is not retried; its outcome may be unknown (RFC 0058, 2)."""


class BucketAccessException(CouchbaseException, rfc_class=CouchbaseException):
    """The bucket does not exist, or the user may not access it; servers do not state which (BUCKET_ACCESS_ERROR).

    Source: SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)", which prescribes the base class; decision C32.
    """


class TlsException(CouchbaseException, rfc_class=CouchbaseException):
    """The TLS handshake failed, for example because one side refused the other's certificate (TLS_ERROR).

    Source: SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)", which prescribes the base class; decision C32.
    """


class InvalidArgumentException(CouchbaseException, ArgumentError):
    """An argument is of the wrong type or out of range; nothing was sent, unless the server refused it (RFC 0058, 3).

    It is also a ``ValueError``, because it is a subclass of
    :py:class:`triclinium_core.argument_error.ArgumentError`. The code that does not depend on Couchbase raises that
    class.

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
    """The cluster does not run the service that the request needs (RFC 0058, 4).

    The client never raises it: SDK-RFC 0049 has the retry reason SERVICE_NOT_AVAILABLE for such a request, because a
    node may get the service. The request raises TimeoutException at its deadline, or RequestCanceledException if the
    strategy refuses the retry (decision C32).
    """


class InternalServerFailureException(CouchbaseException):
    """The server reported an internal error (RFC 0058, 5)."""


class AuthenticationFailureException(CouchbaseException):
    """The credentials are wrong, or the user may not make the request (RFC 0058, 6)."""


class TemporaryFailureException(CouchbaseException):
    """The server is temporarily unable to serve the request (RFC 0058, 7)."""


class ParsingFailureException(CouchbaseException):
    """The server could not parse the statement (RFC 0058, 8)."""


class CasMismatchException(CouchbaseException):
    """The CAS of the document differs from the CAS in the request (RFC 0058, 9)."""


class BucketNotFoundException(CouchbaseException):
    """The bucket does not exist (RFC 0058, 10)."""


class CollectionNotFoundException(CouchbaseException):
    """The collection does not exist (RFC 0058, 11)."""


class UnsupportedOperationException(CouchbaseException):
    """The server does not support the operation (RFC 0058, 12)."""


class FeatureNotAvailableException(CouchbaseException):
    """The request needs a feature that this server or connection does not offer (RFC 0058, 15)."""


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

    If a write that was applied ends with this exception, the message states that. Without this statement, the write may
    or may not have been applied.
    """


class RateLimitedException(CouchbaseException):
    """The caller exceeded a rate limit; the context names it (RFC 0058, 21)."""


class QuotaLimitedException(CouchbaseException):
    """The caller exceeded a quota; the context names it (RFC 0058, 22)."""


class KeyValueException(CouchbaseException):
    """Base of the exceptions that only key-value operations raise (RFC 0058, 100 to 199)."""


class DocumentNotFoundException(KeyValueException):
    """The document does not exist (RFC 0058, 101)."""


class DocumentUnretrievableException(KeyValueException):
    """No copy of the document could be read (RFC 0058, 102)."""


class DocumentLockedException(KeyValueException):
    """This or another client has locked the document (RFC 0058, 103)."""


class ValueTooLargeException(KeyValueException):
    """The value is larger than the server permits (RFC 0058, 104)."""


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
    """The server is re-committing a durable write on the document after a failover (RFC 0058, 111)."""


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
    """The document of a sub-document operation is not JSON (RFC 0058, 120)."""


class NumberTooBigException(KeyValueException):
    """The existing number is outside the range for arithmetic (RFC 0058, 121)."""


class DeltaInvalidException(KeyValueException):
    """The delta, or the existing counter value, does not permit the arithmetic (RFC 0058, 122)."""


class PathExistsException(KeyValueException):
    """The path exists already (RFC 0058, 123)."""


class XattrUnknownMacroException(KeyValueException):
    """The server does not support the macro (RFC 0058, 124)."""


class XattrInvalidKeyComboException(KeyValueException):
    """One operation used several extended attributes (RFC 0058, 126)."""


class XattrUnknownVirtualAttributeException(KeyValueException):
    """The server does not support the virtual attribute (RFC 0058, 127)."""


class XattrCannotModifyVirtualAttributeException(KeyValueException):
    """The operation would modify a virtual attribute, which is read-only (RFC 0058, 128)."""


class XattrNoAccessException(KeyValueException):
    """The user may not access the system attribute (RFC 0058, 130)."""


class DocumentNotLockedException(KeyValueException):
    """The document to unlock is not locked (key-value status 0x0e, which is newer than the RFC and has no number)."""


class PlanningFailureException(CouchbaseException):
    """The query service could not plan the query (RFC 0058, 201)."""


class IndexFailureException(CouchbaseException):
    """The query index failed (RFC 0058, 202)."""


class PreparedStatementFailureException(CouchbaseException):
    """The query service could not use the prepared statement (RFC 0058, 203)."""


class DmlFailureException(CouchbaseException):
    """The query could not modify the data (RFC 0058, 204)."""


class CompilationFailureException(CouchbaseException):
    """The analytics service could not compile the statement (RFC 0058, 301)."""


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
    """The analytics link exists already (``AnalyticsLinkExistsException`` of RFC 0054, without a number)."""


class IndexNotReadyException(CouchbaseException, rfc_class=CouchbaseException):
    """The search index exists, but no node has a partition of it yet. The index may be new, or may be moving.

    Source: the search service's error text "no planPIndexes for indexName", for which the RFCs prescribe the base
    class.
    """


class ViewNotFoundException(CouchbaseException):
    """The view does not exist (RFC 0058, 501)."""


class DesignDocumentNotFoundException(CouchbaseException):
    """The design document does not exist (RFC 0058, 502).

    The client never raises it: the RFC reserves it for the management of views, which the client does not have. A query
    of a view in a missing design document raises ViewNotFoundException.
    """


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
    """The user exists already (RFC 0058, 606).

    The client never raises it: ``upsert_user`` creates or replaces a user.
    """


class BucketNotFlushableException(CouchbaseException):
    """The settings of the bucket do not permit a flush (RFC 0058, 607)."""


class InternalError(CouchbaseException):
    """This library has a defect; please report it together with the chained cause."""
