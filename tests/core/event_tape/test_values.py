"""Codec of values: every class that an event may contain, the allow-list, and objects of the user."""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.core.kv.operation.examples import HOTELS, VALID
from tests.rows import rows
from triclinium_core.contract import couchbase, neutral
from triclinium_core.decoder_faults import Decoder, DecoderFault
from triclinium_core.errors import CasMismatchException, TimeoutException
from triclinium_core.event_tape import values
from triclinium_core.event_tape.user_code import StandIn, stand_in
from triclinium_core.event_tape.values import InvalidValue, UserObject, decode_value, encode_value
from triclinium_core.kv.operation import inquiries
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.document_operations import Get
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCreate
from triclinium_core.kv.operation.scan.scans import Sample
from triclinium_core.options import ClientOptions, JwtAuthenticator, PasswordAuthenticator
from triclinium_core.retry.backoff import exponential
from triclinium_core.retry.combined.strategies import TokenScope
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, ErrorMapRetryStrategy, RetryAction, Service
from triclinium_core.services.management import buckets, collections, search_indexes, users
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.search import facets, queries, search_request, sorting, vectors
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.statement.parameters import Parameters, RawOptions
from triclinium_core.services.views.options import ViewOptions
from triclinium_core.telemetry.span_names import WrappingCall


class Color(StrEnum):
    """Enumeration of a user, whose members are strings."""

    RED = "red"

    def __str__(self) -> str:
        return "not the value"


SEARCH = search_request.SearchRequest(
    queries.BooleanQuery(
        must=queries.ConjunctionQuery(queries.TermQuery("inn"), queries.PhraseQuery("a", "b")),
        should=[queries.NumericRangeQuery(1, 2.5), queries.GeoPolygonQuery([(1.0, 2.0), (3.0, 4.0), (5.0, 0.5)])],
        must_not=queries.RawQuery({"match": "x", "deep": [{"a": None}]}),
    ),
    vectors.VectorSearch([vectors.VectorQuery("v", [0.5, 1.0], prefilter=queries.MatchAllQuery())]),
)
OPTIONS = search_request.SearchOptions(
    sort=["-_score", sorting.SortField("price")],
    facets={"price": facets.NumericFacet("price", [facets.NumericRange("low", max=5.0)], limit=3)},
    consistent_with=[MutationToken("b", 1, 2, 3)],
)
QUERY = QueryRequest(
    statement="SELECT $a", parameters=Parameters([1, "é"], {"a": {"b": [None]}}), raw=RawOptions({"x": 1})
)
FIELDS: dict[str, object] = {
    "answer": RetryAction.no_retry(CasMismatchException, because="no"),
    "authenticator": JwtAuthenticator("a.b.c"),
    "bucket": "travel",
    "bucket_name": "travel",
    "cause": neutral.LossCause.RESET,
    "collection_name": "hotel",
    "count": 2,
    "data": b"\x00\xff",
    "design_document": "design",
    "document": {"name": "é", "list": [1, 2.5, None]},
    "group": users.Group(name="g", roles=[users.Role("admin")]),
    "group_name": "g",
    "index_name": "hotels",
    "inquiry": inquiries.Ping("travel", "id", frozenset({Service.KV, Service.QUERY})),
    "name": next(iter(WrappingCall)),
    "new_password": "secret",
    "nonce": "n" * 24,
    "operation": Get(HOTELS, "k"),
    "query": QUERY,
    "report_id": "id",
    "request": QUERY,
    "scope_name": "inventory",
    "search": SEARCH,
    "seconds": 0.25,
    "service": "_couchbase._tcp.x",
    "statement": "SELECT 1",
    "stream": 3,
    "submissions": (couchbase.OperationSubmitted(neutral.Token(1), Get(HOTELS, "k")),),
    "token": 2**62,
    "user": users.User(username="u", password="secret", roles=[users.Role("admin")]),
    "username": "u",
    "view_name": "view",
}
"""Value of each required field, by its name."""
OF_CLASS: dict[str, dict[str, object]] = {
    **{kind.__name__: {"keyspace": HOTELS, **fields} for kind, fields in VALID.items()},
    "CreateBucket": {
        "settings": buckets.CreateBucketSettings(name="b", ram_quota_mb=100, max_expiry=timedelta(days=1))
    },
    "SearchQueryRequest": {"index": "hotels", "options": OPTIONS},
    "StreamLost": {"text": "lone \ud800", "handed_over": 5},
    "TimePassed": {"unsent": {neutral.StreamId(3): 5}, "unread": frozenset({1, 2})},
    "UpdateBucket": {"settings": buckets.BucketSettings(name="b", ram_quota_mb=100)},
    "UpdateCollection": {"settings": collections.UpdateCollectionSettings(max_expiry=60)},
    "UpsertSearchIndex": {"index": search_indexes.SearchIndex(name="i", source_name="b", params={"mapping": {}})},
    "ViewRequest": {"options": ViewOptions(keys=["a", 1], limit=3)},
}
"""Fields that differ from ``FIELDS`` or that are optional, by class."""


def _subclasses(base: type) -> Iterator[Any]:
    for kind in list[Any](base.__subclasses__()):
        if kind.__module__.startswith("triclinium_core."):
            yield kind
        yield from _subclasses(kind)


CONTRACT: tuple[Any, ...] = (
    *typing.get_args(couchbase.Event),
    *OPERATIONS,
    *_subclasses(inquiries.Inquiry),
    *(kind for kind in _subclasses(ServiceRequest) if kind.name),
)
"""Every event, operation, inquiry and request that a machine accepts."""


def example(kind: Any) -> object:
    """Return an instance of a class with all required fields."""
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    own = OF_CLASS.get(kind.__name__, {})
    return kind(**{name: FIELDS[name] for name in required - own.keys()}, **own)


def round_trip(value: object) -> Any:
    """Encode ``value`` as on a tape, and return the value that is decoded from it."""
    return decode_value(msgspec.json.decode(msgspec.json.encode(encode_value(value))), _stand_in)


def _stand_in(name: str, number: int, role: str) -> object:
    return stand_in(None, name, number, role)  # type: ignore[arg-type]  # no stand-in of these tests answers


@rows("kind", CONTRACT)
def test_every_class_of_the_contract_returns(kind: Any) -> None:
    """Each event, operation, inquiry and request is read from a tape as an equal instance of the same class."""
    value = example(kind)
    transcoder = getattr(value, "transcoder", None)

    found = round_trip(value)
    if isinstance(found, msgspec.Struct) and isinstance(getattr(found, "transcoder", None), StandIn):
        found = msgspec.structs.replace(found, transcoder=transcoder)

    assert (kind, value) == (type(found), found)


def test_fields_have_allowed_classes() -> None:
    """Each concrete class of the core in a type of a field is in the allow-list, so that no event has a placeholder."""
    seen, waiting = set[Any](), [*CONTRACT, ClientOptions, *_subclasses(queries.SearchQuery)]
    while waiting:
        kind = waiting.pop()
        if not isinstance(kind, list) and kind not in seen:
            seen.add(kind)
            waiting += _parts_of(kind)
    mentioned = {kind for kind in seen if isinstance(kind, type) and kind.__module__.startswith("triclinium_core.")}
    data = {kind for kind in mentioned if issubclass(kind, msgspec.Struct | Enum) or dataclasses.is_dataclass(kind)}

    # ``slots=True`` creates a dataclass twice, and its base may still list the first one: compare the names.
    assert {"HttpRequest", "ServiceRequest"} == {kind.__name__ for kind in data} - values.CLASSES.keys()


def _parts_of(kind: Any) -> list[Any]:
    """Return the types of the fields of a class, or the arguments of a generic type or a union."""
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)):
        names = (
            {field.name for field in dataclasses.fields(kind)}
            if dataclasses.is_dataclass(kind)
            else set(kind.__struct_fields__)
        )
        return [hint for name, hint in typing.get_type_hints(kind).items() if name in names]
    return list(typing.get_args(kind))


@rows(
    "value",
    [
        2**127,
        -(2**63),
        math.inf,
        -math.inf,
        0.1,
        "\x1b[31m é \ud800",
        b"\x00",
        (1, [2, (3,)], {"a": {1.5: None}}),
        frozenset({"a", "b"}),
        timedelta(microseconds=1),
        PasswordAuthenticator("u", "p", ("PLAIN",)),
        RangeScanCreate(HOTELS, 3, Sample(1, 2)),
        RetryAction.after(0.5, within=1.0),
        exponential(first=0.1, jitter=0.5),
    ],
)
def test_plain_values_return(value: object) -> None:
    """Numbers, texts, bytes, containers and settings are read from a tape unchanged."""
    assert value == round_trip(value)


def test_strategies_of_the_core_return() -> None:
    """The core's strategies are created again, with their own backoffs and strategies inside."""
    strategy = ErrorMapRetryStrategy(BestEffortRetryStrategy(exponential(first=0.2)))

    assert repr(strategy) == repr(round_trip(strategy))


def test_exceptions_return_with_their_nearest_base() -> None:
    """An exception of the user is an instance of its nearest base in the core; its class has the same name."""

    class TooSlow(TimeoutException):
        pass

    fault = DecoderFault(Decoder.ROWS, "KeyError", "'x'")
    found = round_trip(TooSlow("late"))

    assert ("TooSlow", "late", True) == (type(found).__name__, str(found), isinstance(found, TimeoutException))
    assert "KeyError" == type(round_trip(KeyError("x"))).__name__
    assert (fault.kind, str(fault)) == (round_trip(fault).kind, str(round_trip(fault)))
    assert issubclass(round_trip(RetryAction.no_retry(TooSlow)).error, TimeoutException)


def test_objects_of_the_user_become_placeholders() -> None:
    """An object of the user is not on the tape, only its class name; one that JSON expresses is a JSON value."""

    class Mine:
        secret = "planted"

    class Closed(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError("closed")

    @dataclasses.dataclass
    class Document:
        name: str

    found = round_trip(
        {"mine": Mine(), "closed": Closed(), "document": Document("x"), "proxy": MappingProxyType({"a": 1})}
    )

    assert ("Mine", "Closed") == (found["mine"].name, found["closed"].name)
    assert isinstance(found["mine"], UserObject)
    assert ({"name": "x"}, {"a": 1}) == (found["document"], found["proxy"])
    assert "planted" not in json.dumps(encode_value(Mine()))


@rows(
    "value", [Color.RED, Decimal("1.50"), datetime(2020, 1, 2, tzinfo=UTC), UUID(int=7), {"when": [date(2020, 1, 2)]}]
)
def test_values_of_documents_keep_their_json(value: object) -> None:
    """A value of another class that JSON can express, such as a number or a time, keeps its JSON on the tape."""
    assert msgspec.json.encode(value) == msgspec.json.encode(round_trip(value))


def test_deep_values_are_cut() -> None:
    """A value with more levels than the maximum, even one that contains itself, ends in a placeholder."""
    endless: list[object] = []
    endless.append(endless)

    assert "$user" in json.dumps(encode_value(endless))
    assert isinstance(round_trip(endless), list)


@rows(
    "data",
    [
        {"$": "Popen"},
        {"$": "Service"},
        {"$": ["Get"]},
        {"$": "Get", "key": "k"},
        {"$": "Get", "keyspace": {"$": "Keyspace", "bucket": "b"}, "key": "", "more": 1},
        {"$": "TokenScope", "strategy": None, "token_scope": "a"},
        {"$": "BestEffortRetryStrategy", "": 1, "more": 2},
        {"$enum": ["Service", "NOPE"]},
        {"$enum": ["os", "x"]},
        {"$enum": ["Get", "key"]},
        {"$class": ["Popen", "BaseException"]},
        {"$error": ["not a name", "Exception", ""]},
        {"$bytes": "!"},
        {"$float": "1"},
        {"$int": "f" * 100},
        {"$map": [1]},
        {"$map": [[{"$list": []}, 1]]},
        {"$user": ["x", 1, "door"]},
        {"$nope": 1},
        {},
        2**200,
    ],
)
def test_invalid_values_are_refused(data: object) -> None:
    """A name outside of the allow-list, invalid fields and an unknown tag raise InvalidValue, and nothing else."""
    with pytest.raises(InvalidValue):
        decode_value(data, _stand_in)


def test_scope_of_a_token_strategy_returns() -> None:
    """A token scope is created again around the stand-in of its strategy."""
    data = {"$": "TokenScope", "strategy": {"$user": ["Mine", 3, "token strategy"]}, "token_scope": "a"}

    found = decode_value(data, _stand_in)

    assert isinstance(found, TokenScope)
    assert data == encode_value(found)
