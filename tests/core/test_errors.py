"""Exceptions of SDK-RFC 0058: their tree, and the properties that each has."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import InvalidArgumentException

NUMBERS_OF_THE_RFC = {
    "CouchbaseException": 0,
    "TimeoutException": 1,
    "RequestCanceledException": 2,
    "InvalidArgumentException": 3,
    "ServiceNotAvailableException": 4,
    "InternalServerFailureException": 5,
    "AuthenticationFailureException": 6,
    "TemporaryFailureException": 7,
    "ParsingFailureException": 8,
    "CasMismatchException": 9,
    "BucketNotFoundException": 10,
    "CollectionNotFoundException": 11,
    "UnsupportedOperationException": 12,
    "AmbiguousTimeoutException": 13,
    "UnambiguousTimeoutException": 14,
    "FeatureNotAvailableException": 15,
    "ScopeNotFoundException": 16,
    "IndexNotFoundException": 17,
    "IndexExistsException": 18,
    "EncodingFailureException": 19,
    "DecodingFailureException": 20,
    "RateLimitedException": 21,
    "QuotaLimitedException": 22,
    "DocumentNotFoundException": 101,
    "DocumentUnretrievableException": 102,
    "DocumentLockedException": 103,
    "ValueTooLargeException": 104,
    "DocumentExistsException": 105,
    "DurabilityLevelNotAvailableException": 107,
    "DurabilityImpossibleException": 108,
    "DurabilityAmbiguousException": 109,
    "DurableWriteInProgressException": 110,
    "DurableWriteReCommitInProgressException": 111,
    "PathNotFoundException": 113,
    "PathMismatchException": 114,
    "PathInvalidException": 115,
    "PathTooBigException": 116,
    "PathTooDeepException": 117,
    "ValueTooDeepException": 118,
    "ValueInvalidException": 119,
    "DocumentNotJsonException": 120,
    "NumberTooBigException": 121,
    "DeltaInvalidException": 122,
    "PathExistsException": 123,
    "XattrUnknownMacroException": 124,
    "XattrInvalidKeyComboException": 126,
    "XattrUnknownVirtualAttributeException": 127,
    "XattrCannotModifyVirtualAttributeException": 128,
    "XattrNoAccessException": 130,
    "PlanningFailureException": 201,
    "IndexFailureException": 202,
    "PreparedStatementFailureException": 203,
    "DmlFailureException": 204,
    "CompilationFailureException": 301,
    "JobQueueFullException": 302,
    "DatasetNotFoundException": 303,
    "DataverseNotFoundException": 304,
    "DatasetExistsException": 305,
    "DataverseExistsException": 306,
    "LinkNotFoundException": 307,
    "ViewNotFoundException": 501,
    "DesignDocumentNotFoundException": 502,
    "CollectionExistsException": 601,
    "ScopeExistsException": 602,
    "UserNotFoundException": 603,
    "GroupNotFoundException": 604,
    "BucketExistsException": 605,
    "UserExistsException": 606,
    "BucketNotFlushableException": 607,
}
"""Errors and their numbers, copied by hand from SDK-RFC 0058 "Error Definitions"."""

NARROWER = {"BucketAccessException", "TlsException", "IndexNotReadyException"}
"""Classes of this project for errors for which the RFCs specify only the base class."""

WITHOUT_A_NUMBER = {
    "KeyValueException",
    "DocumentNotLockedException",
    "LinkExistsException",
    "InternalError",
} | NARROWER
"""Classes without a number: the base of key-value errors, a newer status, a name of RFC 0054, defects, and NARROWER."""

CLASSES: dict[str, type[errors.CouchbaseException]] = {
    name: thing
    for name, thing in vars(errors).items()
    if isinstance(thing, type) and issubclass(thing, errors.CouchbaseException)
}

CONTEXT = ErrorContext(operation="get", key="airline_10", retry_attempts=3, retry_reasons=frozenset({"KV_LOCKED"}))

each_class = rows("error", CLASSES.values())


def parent_of(name: str) -> type[BaseException]:
    """Return the base class that the RFC requires, directly or by the ranges of its numbers."""
    if name == "CouchbaseException":
        return Exception
    if name in {"AmbiguousTimeoutException", "UnambiguousTimeoutException"}:
        return errors.TimeoutException
    if name == "DocumentNotLockedException" or 100 <= NUMBERS_OF_THE_RFC.get(name, 0) < 200:
        return errors.KeyValueException
    return errors.CouchbaseException


def test_every_entry_has_one_class() -> None:
    """Each entry of the RFC has a class, whose name is that of the entry with the suffix."""
    assert set(NUMBERS_OF_THE_RFC) | WITHOUT_A_NUMBER == set(CLASSES)


@each_class
def test_tree(error: type[errors.CouchbaseException]) -> None:
    """Each class has one base, which is the one that the RFC requires."""
    assert [parent_of(error.__name__)] == [base for base in error.__bases__ if base is not ArgumentError]


def test_misuse_of_couchbase_is_misuse() -> None:
    """InvalidArgumentException is a subclass of ArgumentError, which is a subclass of ValueError."""
    assert ["InvalidArgumentException"] == [name for name, error in CLASSES.items() if issubclass(error, ArgumentError)]
    assert issubclass(ArgumentError, ValueError)
    assert not issubclass(ArgumentError, errors.CouchbaseException)


@each_class
def test_class_of_the_rfc(error: type[errors.CouchbaseException]) -> None:
    """``rfc_class`` is the class itself, or the base that the RFC specifies if the class is narrower."""
    expected = errors.CouchbaseException if error.__name__ in NARROWER else error

    assert expected is error.rfc_class


def test_a_class_of_ones_own_stands_for_itself() -> None:
    """If an application defines a subclass, ``rfc_class`` is that subclass."""

    class Mine(errors.TlsException):
        """Exception that an application defines."""

    assert Mine is Mine.rfc_class


@each_class
def test_the_docstring_has_the_number(error: type[errors.CouchbaseException]) -> None:
    """The docstring of each class contains its number in the RFC, if any."""
    number = re.search(r"RFC 0058, (\d+)\b(?! to)", inspect.getdoc(error) or "")

    assert NUMBERS_OF_THE_RFC.get(error.__name__) == (int(number[1]) if number else None)


def test_the_drawing_shows_every_class() -> None:
    """The tree in the module's docstring lists all classes and no others."""
    drawing = (errors.__doc__ or "").partition("\n``KeyValueException``")[0]
    drawn = set(re.findall(r"\w+(?:Exception|Error)\b", drawing))
    shortened = {f"{name}Exception" for name in re.findall(r"(\w+)…(?!Exception)", drawing)}
    completed = {
        name for name in CLASSES if any(name.startswith(short.removesuffix("Exception")) for short in shortened)
    }
    families = {name for name in CLASSES if name.startswith("Xattr")}

    assert "Xattr…Exception (five)" in drawing
    assert 5 == len(families)
    assert set(CLASSES) == drawn - {"Exception"} | completed | families


@each_class
def test_says_its_message(error: type[errors.CouchbaseException]) -> None:
    """The text of an error is its message, or else the name of its class, without the RFC's number."""
    raised = error("get 'airline_10': gone", CONTEXT)

    assert ("get 'airline_10': gone",) * 2 == (str(raised), raised.message)
    assert CONTEXT is raised.context
    assert (error.__name__, ErrorContext()) == (str(error()), error().context)


def pickled(error: Exception, protocol: int) -> Any:
    """Return the pickled copy of an error."""
    return pickle.loads(pickle.dumps(error, protocol))  # noqa: S301


COPIES: list[Callable[[Exception], Any]] = [
    *(copy.copy, copy.deepcopy),
    *(partial(pickled, protocol=protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
]


@rows("copied", COPIES)
@rows(
    "error",
    [
        *(error("gone", CONTEXT) for error in CLASSES.values()),
        ArgumentError("n=-1 must be more", parameter="n"),
        InvalidArgumentException("expiry=-1", CONTEXT, parameter="expiry"),
    ],
)
def test_survives_copying(error: Exception, copied: Callable[[Exception], Any]) -> None:
    """A copy or a pickle of an error has its class, text, context and parameter."""
    twin = copied(error)

    assert twin is not error
    assert (type(error), (str(error),), vars(error)) == (type(twin), twin.args, vars(twin))


def test_the_parameter_is_named_by_keyword_only() -> None:
    """The name of the parameter is passed by keyword only, and is empty if the server refused the request."""
    with pytest.raises(TypeError):
        InvalidArgumentException("expiry=-1", CONTEXT, "expiry")  # type: ignore[call-arg]

    assert "expiry" == InvalidArgumentException("expiry=-1", parameter="expiry").parameter
    assert "" == InvalidArgumentException("refused by the server").parameter
