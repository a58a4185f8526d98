"""Driver of the official client: one command per line on stdin, one result per line on stdout, as JSON.

It is a separate process, because the client's C++ core ends the process if it refuses a cluster config. A command is
``{"do": name, "key": key, ...}``, with ``"path": "scope.collection"`` unless the collection is the default one; a
result is ``{"result": ...}`` or ``{"error": name of the exception class}``.

Bytes are encoded as ``{"bytes": hexadecimal}``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from couchbase import subdocument, transcoder
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.durability import Durability, ServerDurability
from couchbase.exceptions import CouchbaseException
from couchbase.kv_range_scan import PrefixScan, RangeScan, SamplingScan, ScanTerm
from couchbase.options import (
    AppendOptions,
    ClusterOptions,
    ClusterTimeoutOptions,
    DecrementOptions,
    DeltaValue,
    GetOptions,
    IncrementOptions,
    InsertOptions,
    MutateInOptions,
    PrependOptions,
    RemoveOptions,
    ReplaceOptions,
    ScanOptions,
    SignedInt64,
    UpsertOptions,
)

Command = Mapping[str, Any]

_PATIENCE = timedelta(minutes=4)
PATIENT = ClusterTimeoutOptions(
    bootstrap_timeout=_PATIENCE,
    resolve_timeout=_PATIENCE,
    connect_timeout=_PATIENCE,
    kv_timeout=_PATIENCE,
    kv_durable_timeout=_PATIENCE,
)
"""Timeouts that are longer than any test. A command that must time out has a timeout of its own."""

TRANSCODERS: Mapping[str, Callable[[], Any]] = {
    "json": transcoder.JSONTranscoder,
    "string": transcoder.RawStringTranscoder,
    "binary": transcoder.RawBinaryTranscoder,
}


def _from_json(value: Any) -> Any:
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) and value.keys() == {"bytes"} else value


def _to_json(value: Any) -> Any:
    return {"bytes": value.hex()} if isinstance(value, bytes) else value


def _content(found: Any) -> dict[str, Any]:
    return {"content": _to_json(found.value), "cas": found.cas}


def _copy(found: Any) -> dict[str, Any]:
    return {"content": _to_json(found.value), "is_replica": found.is_replica}


def _scanned(store: Any, command: Command) -> list[list[Any]]:
    kind, arguments = command["type"], command["arguments"]
    scan_type = SCANS[kind](*arguments)
    ids_only = command.get("ids_only", False)
    options = ScanOptions(ids_only=ids_only, concurrency=command.get("concurrency", 1))
    return [[found.id, None if ids_only else found.content_as[int]] for found in store.scan(scan_type, options)]


SCANS: Mapping[str, Callable[..., Any]] = {
    "range": lambda start, end: RangeScan(ScanTerm(start), ScanTerm(end, exclusive=True)),
    "all": RangeScan,
    "prefix": PrefixScan,
    "sampling": SamplingScan,
}


def _coder(command: Command) -> Any:
    return TRANSCODERS[command.get("as", "json")]()


def _value(command: Command) -> Any:
    return _from_json(command["value"])


def _counter(options: Any, command: Command) -> Any:
    # Pass a negative initial value by default, because the client creates a counter for any other value.
    return options(
        delta=DeltaValue(command.get("delta", 1)), initial=SignedInt64(command.get("initial", -1)), **_durable(command)
    )


def _durable(command: Command) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "durability" in command:
        options["durability"] = ServerDurability(Durability[command["durability"]])
    if "timeout" in command:
        options["timeout"] = timedelta(seconds=command["timeout"])
    return options


def _spec(reported: Command) -> Any:
    """Return a spec: ``{"do": method, "path": path, "values": [...], ...options}``; a macro is ``{"macro": name}``."""
    values = [
        getattr(subdocument.MutationMacro, value["macro"])() if isinstance(value, dict) and "macro" in value else value
        for value in reported.get("values", ())
    ]
    options = {name: reported[name] for name in ("xattr", "create_parents") if name in reported}
    return getattr(subdocument, reported["do"])(*([reported["path"]] if "path" in reported else ()), *values, **options)


def _read(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except CouchbaseException as error:
        return {"error": type(error).__name__}


def _lookup_in(store: Any, key: str, command: Command) -> dict[str, Any]:
    specs = [_spec(reported) for reported in command["specs"]]
    found = store.lookup_in(key, specs)
    contents = [_read(partial(found.content_as[lambda content: content], index)) for index in range(len(specs))]
    return {"contents": contents, "cas": found.cas}


def _mutate_in(store: Any, key: str, command: Command) -> dict[str, Any]:
    specs = [_spec(reported) for reported in command["specs"]]
    options = _durable(command)
    if "store_semantics" in command:
        options["store_semantics"] = subdocument.StoreSemantics[command["store_semantics"]]
    if "cas" in command:
        options["cas"] = command["cas"]
    changed = store.mutate_in(key, specs, MutateInOptions(**options))
    contents = [changed.content_as[lambda content: content](index) for index in command.get("returns", ())]
    return {"contents": contents, "cas": changed.cas}


COMMANDS: Mapping[str, Callable[[Any, str, Command], Any]] = {
    "get": lambda store, key, command: _content(store.get(key, GetOptions(transcoder=_coder(command)))),
    "get_any_replica": lambda store, key, command: _copy(store.get_any_replica(key)),
    "get_all_replicas": lambda store, key, command: [_copy(found) for found in store.get_all_replicas(key)],
    "lookup_in_all_replicas": lambda store, key, command: [
        {"content": found.content_as[int](0), "is_replica": found.is_replica}
        for found in store.lookup_in_all_replicas(key, [subdocument.get(command["field"])])
    ],
    "scan": lambda store, key, command: _scanned(store, command),
    "exists": lambda store, key, command: store.exists(key).exists,
    "insert": lambda store, key, command: store.insert(key, _value(command), InsertOptions(**_durable(command))).cas,
    "upsert": lambda store, key, command: (
        store.upsert(key, _value(command), UpsertOptions(transcoder=_coder(command), **_durable(command))).cas
    ),
    "replace": lambda store, key, command: (
        store.replace(key, _value(command), ReplaceOptions(cas=command.get("cas", 0), **_durable(command))).cas
    ),
    "remove": lambda store, key, command: (
        store.remove(key, RemoveOptions(cas=command.get("cas", 0), **_durable(command))).cas
    ),
    "touch": lambda store, key, command: store.touch(key, timedelta(seconds=command["expiry"])).cas,
    "get_and_touch": lambda store, key, command: _content(
        store.get_and_touch(key, timedelta(seconds=command["expiry"]))
    ),
    "get_and_lock": lambda store, key, command: _content(store.get_and_lock(key, timedelta(seconds=command["time"]))),
    "unlock": lambda store, key, command: store.unlock(key, command["cas"]),
    "increment": lambda store, key, command: store.binary().increment(key, _counter(IncrementOptions, command)).content,
    "decrement": lambda store, key, command: store.binary().decrement(key, _counter(DecrementOptions, command)).content,
    "lookup_in": _lookup_in,
    "mutate_in": _mutate_in,
    "append": lambda store, key, command: (
        store.binary().append(key, _value(command), AppendOptions(**_durable(command))).cas
    ),
    "prepend": lambda store, key, command: (
        store.binary().prepend(key, _value(command), PrependOptions(**_durable(command))).cas
    ),
}


def answer_all(perform: Callable[[Command], Any]) -> None:
    """Report that the client is connected, and answer commands until the input ends."""
    say({"result": "connected"})
    for line in sys.stdin:
        try:
            say({"result": perform(json.loads(line))})
        except CouchbaseException as error:
            say({"error": type(error).__name__})


def say(answer: dict[str, Any]) -> None:
    """Print an answer."""
    print(json.dumps(answer), flush=True)  # noqa: T201 - the line is the output of this process


def main(connection_string: str, username: str, password: str, bucket: str, poll_seconds: str = "2.5") -> None:
    """Connect, and answer commands on documents. The client polls for a new config every ``poll_seconds``."""
    options = ClusterOptions(
        PasswordAuthenticator(username, password),
        timeout_options=PATIENT,
        config_poll_interval=timedelta(seconds=float(poll_seconds)),
    )
    cluster = Cluster.connect(connection_string, options)
    documents = cluster.bucket(bucket)

    def perform(command: Command) -> Any:
        scope, _, name = command.get("path", "_default._default").partition(".")
        return COMMANDS[command["do"]](documents.scope(scope).collection(name), command["key"], command)

    answer_all(perform)
    cluster.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
