"""Subdocuments of the official client, release 4.6, with ``triclinium serve``: alone, and in turns with triclinium."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.live.line_process import LineProcess
from tests.live.test_official_client import NOT_FOUND
from triclinium import Cas, Collection, errors
from triclinium.subdocument import LookupInSpec, MutateInSpec, MutationMacro, StoreSemantics

pytestmark = pytest.mark.live

ADA = {"name": "Ada", "address": {"city": "London"}, "tags": ["poet", 1815], "visits": 3}


def spec(do: str, path: str, *values: object, **options: object) -> dict[str, Any]:
    """Return a spec in the worker's format."""
    return {"do": do, "path": path, "values": values, **options}


def error(name: str) -> dict[str, str]:
    """Return the worker's answer for an exception."""
    return {"error": f"{name}Exception"}


# -- The official client alone.


def test_lookups(official: LineProcess, key: str) -> None:
    """The client reads, counts and finds existing parts; a missing part raises without affecting the other parts."""
    ask = partial(official.ask, key=key)
    stored = ask(do="insert", value=ADA)["result"]
    specs = [
        spec("get", "address.city"),
        spec("exists", "tags[1]"),
        spec("exists", "tags[2]"),
        spec("count", "tags"),
        spec("get", "tags[-1]"),
        spec("get", "nothing"),
        spec("get", "name.first"),
        spec("get", "a..b"),
        spec("get", "$document.exptime", xattr=True),
    ]

    assert {
        "contents": [
            "London",
            True,
            False,
            2,
            1815,
            error("PathNotFound"),
            error("PathMismatch"),
            error("PathInvalid"),
            0,
        ],
        "cas": stored,
    } == ask(do="lookup_in", specs=specs)["result"]


def test_a_missing_document(official: LineProcess, key: str) -> None:
    """By default, lookups and changes of a missing document raise an exception, and do not create the document."""
    ask = partial(official.ask, key=key)

    assert NOT_FOUND == ask(do="lookup_in", specs=[spec("get", "a")])
    assert NOT_FOUND == ask(do="mutate_in", specs=[spec("upsert", "a", 1)])
    assert {"result": False} == ask(do="exists")


def test_changes(official: LineProcess, key: str) -> None:
    """Every kind of change is applied in one operation, which returns the numbers."""
    ask = partial(official.ask, key=key)
    stored = ask(do="insert", value=ADA)["result"]
    specs = [
        spec("upsert", "address.city", "Bath"),
        spec("insert", "born.year", 1815, create_parents=True),
        spec("replace", "name", "Countess"),
        spec("array_append", "tags", 1, [2]),
        spec("array_prepend", "tags", None),
        spec("array_insert", "tags[1]", 0.5),
        spec("array_addunique", "known", "Babbage", create_parents=True),
        spec("increment", "visits", 4),
        spec("decrement", "left", 1),
        spec("remove", "tags[2]"),
    ]
    changed = ask(do="mutate_in", specs=specs, cas=stored, returns=[7, 8])["result"]

    assert [7, -1] == changed["contents"]
    assert {
        "content": {
            "name": "Countess",
            "address": {"city": "Bath"},
            "tags": [None, 0.5, 1815, 1, [2]],
            "visits": 7,
            "born": {"year": 1815},
            "known": ["Babbage"],
            "left": -1,
        },
        "cas": changed["cas"],
    } == ask(do="get")["result"]


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("PathNotFound", spec("replace", "nothing", 1)),
        ("PathNotFound", spec("upsert", "a.b", 1)),
        ("PathExists", spec("insert", "name", 1)),
        ("PathExists", spec("array_addunique", "tags", "poet")),
        ("PathMismatch", spec("upsert", "name.first", 1)),
        ("PathMismatch", spec("increment", "name", 1)),
        ("PathInvalid", spec("upsert", "tags[0", 1)),
    ],
)
def test_a_failed_change_changes_nothing(official: LineProcess, key: str, name: str, failing: dict[str, Any]) -> None:
    """A failed change raises the exception of its path, and the node applies none of the other changes."""
    ask = partial(official.ask, key=key)
    stored = ask(do="insert", value=ADA)["result"]

    assert error(name) == ask(do="mutate_in", specs=[spec("upsert", "visits", 99), failing])
    assert {"content": ADA, "cas": stored} == ask(do="get")["result"]


def test_store_semantics(official: LineProcess, key: str) -> None:
    """INSERT accepts only a missing document, REPLACE only an existing one, and UPSERT both."""
    ask = partial(official.ask, key=key, do="mutate_in")

    assert NOT_FOUND == ask(specs=[spec("upsert", "d", 1)], store_semantics="REPLACE")
    assert "result" in ask(key=f"{key} 2", specs=[spec("upsert", "c", 1)], store_semantics="UPSERT")
    assert {"c": 1} == ask(key=f"{key} 2", do="get")["result"]["content"]
    assert "result" in ask(specs=[spec("upsert", "a.b", 1)], store_semantics="INSERT")
    assert error("DocumentExists") == ask(specs=[spec("upsert", "c", 1)], store_semantics="INSERT")
    assert "result" in ask(specs=[spec("upsert", "c", 1)], store_semantics="UPSERT")
    assert "result" in ask(specs=[spec("upsert", "d", 1)], store_semantics="REPLACE")
    assert {"a": {"b": 1}, "c": 1, "d": 1} == ask(do="get")["result"]["content"]
    assert error("CasMismatch") == ask(specs=[spec("upsert", "d", 2)], cas=1)
    assert {"a": {"b": 1}, "c": 1, "d": 1} == ask(do="get")["result"]["content"]


def test_complete_documents(official: LineProcess, key: str) -> None:
    """The empty path is the complete document."""
    ask = partial(official.ask, key=key)
    ask(do="insert", value=ADA)

    assert "result" in ask(do="mutate_in", specs=[spec("replace", "", [1, 2])])
    assert [[1, 2], 2] == ask(do="lookup_in", specs=[{"do": "get_full"}, spec("count", "")])["result"]["contents"]
    assert "result" in ask(do="mutate_in", specs=[spec("remove", "")])
    assert NOT_FOUND == ask(do="get")


def test_attributes_and_macros(official: LineProcess, key: str) -> None:
    """Extended attributes are stored next to the document, and the node expands macros to verifiable values."""
    ask = partial(official.ask, key=key)
    ask(do="insert", value=ADA)
    specs = [
        spec("upsert", "name", "Countess"),
        spec("upsert", "meta.cas", {"macro": "cas"}, create_parents=True),
        spec("upsert", "meta.seqno", {"macro": "seq_no"}),
        spec("upsert", "meta.crc", {"macro": "value_crc32c"}),
        spec("insert", "meta.by", "test", xattr=True),
    ]
    changed = ask(do="mutate_in", specs=specs)["result"]
    asked = [spec("get", "meta", xattr=True), spec("get", "$document", xattr=True), spec("get", "name")]
    meta, document, name = ask(do="lookup_in", specs=asked)["result"]["contents"]

    assert changed["cas"] == int.from_bytes(bytes.fromhex(meta["cas"].removeprefix("0x")), "little")
    assert (document["seqno"], document["value_crc32c"], "test") == (meta["seqno"], meta["crc"], meta["by"])
    assert ("Countess", changed["cas"]) == (name, int(document["CAS"], 16))
    assert {"json", "xattr"} == set(document["datatype"])


# -- Both clients on the same documents.


async def test_parts_are_exchanged(official: LineProcess, ours: Collection, key: str) -> None:
    """Each client reads the changes of the other, with the same CAS."""
    ask = partial(official.ask, key=key)
    created = await ours.mutate_in(
        key,
        [
            MutateInSpec.upsert("a.b", [1, "é", None]),
            MutateInSpec.upsert("meta.cas", MutationMacro.CAS),
            MutateInSpec.upsert("meta.by", "ours", xattr=True),
        ],
        store_semantics=StoreSemantics.INSERT,
    )
    theirs = ask(do="lookup_in", specs=[spec("get", "a.b"), spec("get", "meta.by", xattr=True)])["result"]
    assert {"contents": [[1, "é", None], "ours"], "cas": created.cas} == theirs

    changed = Cas(ask(do="mutate_in", specs=[spec("increment", "n", 5)], cas=created.cas)["result"]["cas"])
    found = await ours.lookup_in(key, [LookupInSpec.get("n"), LookupInSpec.get("x"), LookupInSpec.count("a")])

    assert (changed, 5, 1) == (found.cas, found.content_as(int, 0), found.content_as(int, 2))
    with pytest.raises(errors.PathNotFoundException):
        found.content_as(int, 1)
    with pytest.raises(errors.CasMismatchException):
        await ours.mutate_in(key, [MutateInSpec.remove("n")], cas=created.cas)
