"""Maximum cost of one response, in calls: the largest documents, and salted passwords.

A call takes about half a microsecond; the size limits also bound the time of single C calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.core.kv.operation.test_operation_codec import response
from tests.core.kv.topology.test_cluster_config import changed
from tests.core.runtime.kv.connection.peer import Answering, as_frame, bootstrap_of, plan, take_apart
from tests.core.runtime.kv.counting import counted
from tests.core.runtime.kv.simulated import Recorded, client_options, get
from triclinium_core.contract.couchbase import Action, AuthenticatorChanged, Event
from triclinium_core.contract.neutral import BytesReceived
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.manifest.manifest_codec import MANIFEST_LIMITS
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.operation_codec import decode_response
from triclinium_core.kv.topology.cluster_config import HOLDERS_MAX, NODES_MAX, VBUCKETS_MAX, parse_cluster_config
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.retry.couchbase import parse_error_map
from triclinium_core.retry.couchbase.tables.error_map import ERROR_MAP_ENTRIES_MAX, ERROR_MAP_SIZE_BYTES_MAX, Attribute
from triclinium_core.runtime.kv.connection import scram

CALLS_MAX = 60_000
"""Maximum number of calls for one response, which take about thirty milliseconds."""


def largest_error_map() -> Callable[[], object]:
    """Return a function that parses an error map with the most statuses, and the most attributes in one status."""
    errors: dict[str, object] = {f"{code:x}": {"attrs": ["temp"]} for code in range(ERROR_MAP_ENTRIES_MAX)}
    size = len(json.dumps(errors, separators=(",", ":")))
    errors["0"] = {"attrs": [Attribute.DCP] * ((ERROR_MAP_SIZE_BYTES_MAX - size) // 6 - 10)}
    document = json.dumps({"version": 2, "revision": 9, "errors": errors}, separators=(",", ":"))
    assert ERROR_MAP_SIZE_BYTES_MAX - 100 < len(document)
    return lambda: parse_error_map(document)


def largest_config() -> Callable[[], object]:
    """Return a function that parses a config with the most nodes, vbuckets and copies."""
    holders = [[0] * HOLDERS_MAX] * VBUCKETS_MAX
    servers = [f"n{number}.example:11210" for number in range(NODES_MAX)]
    entries = [{"hostname": server[:-6], "services": {"kv": 11210}} for server in servers]
    fields = {"serverList": servers, "vBucketMap": holders, "vBucketMapForward": holders}
    document = changed(nodesExt=entries, vBucketServerMap=fields)
    return lambda: parse_cluster_config(document, host="h")


def largest_manifest() -> Callable[[], object]:
    """Return a function that decodes a manifest with the most collections."""
    collections = [{"uid": f"{number:x}", "name": "c" * 100} for number in range(MANIFEST_LIMITS.objects_max - 2)]
    manifest = {"uid": "1", "scopes": [{"uid": "8", "name": "s", "collections": collections}]}
    frame = response(value=json.dumps(manifest).encode())
    return lambda: decode_response(GetCollectionsManifest(Keyspace("travel")), frame, vbucket=0)


@pytest.mark.parametrize("prepare", [largest_error_map, largest_config, largest_manifest])
def test_the_largest_answer(prepare: Callable[[], Callable[[], object]]) -> None:
    """A document that reaches all limits is accepted, within a limited number of calls."""
    take = prepare()
    with counted() as calls:
        take()

    assert CALLS_MAX > calls.total()


def bootstrapped(salted_passwords: scram.SaltedPasswords, password: str = "secret") -> int:
    """Run a bootstrap, and return how often it salts the password."""
    authenticator = PasswordAuthenticator("ada", password)
    bootstrap = bootstrap_of(plan(authenticator=authenticator, salted_passwords=salted_passwords))
    node, salted = Answering(password=password), 0
    requests = take_apart(bootstrap.start())
    while requests:
        answer = as_frame(node.answer(requests.pop(0)))
        with counted() as calls:
            burst = bootstrap.receive(answer)
        requests += take_apart(burst)
        salted += calls["_salted_password"]
    assert bootstrap.is_done
    return salted


def test_a_password_is_salted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of salted passwords saves later connections the work, and drops its oldest password at the limit."""
    monkeypatch.setattr(scram, "SALTED_BY_SERVERS", Forgetful())
    remembered = scram.SaltedPasswords()
    passwords = ["secret", "secret", "other", *map(str, range(scram.SALTED_PASSWORDS_MAX - 1)), "other", "secret"]

    assert [1, 0, 1, *[1] * (scram.SALTED_PASSWORDS_MAX - 1), 0, 1] == [
        bootstrapped(remembered, each) for each in passwords
    ]


class Salting(Recorded):
    """Simulation that counts how often its client computes a salted password."""

    salted = 0

    def feed(self, event: Event) -> list[Action]:
        """Feed an event; if it brings bytes, count the salted passwords that the client computes."""
        with counted() as calls:
            actions = super().feed(event)
        self.salted += calls["_salted_password"] if isinstance(event, BytesReceived) else 0
        return actions


class Forgetful(scram.SaltedPasswords):
    """Cache of the test servers that stores nothing, so that the clients compute all salted passwords."""

    def of(self, digest: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Compute a salted password."""
        return scram.SaltedPasswords().of(digest, password, salt, iterations)


def test_a_client_salts_its_password_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client computes its salted password once for all connections, and again after its credentials change."""
    monkeypatch.setattr(scram, "SALTED_BY_SERVERS", Forgetful())
    simulation = Salting(options=client_options())
    simulation.finish(get())
    simulation.lose(simulation.newest)
    simulation.live(1.0)
    before = simulation.salted
    simulation.feed(AuthenticatorChanged(PasswordAuthenticator("Administrator", "password"), "n"))
    simulation.live(1.0)

    assert (1, 2) == (before, simulation.salted)
