"""Driver of the official client's services: one command per line on stdin, one result per line on stdout.

A command is ``{"do": name, ...}``; a result is ``{"result": ...}`` or ``{"error": name of the exception class}``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.management.buckets import BucketType, CreateBucketSettings
from couchbase.management.search import SearchIndex
from couchbase.management.users import Role, User
from couchbase.options import ClusterOptions, QueryOptions
from couchbase.search import MatchQuery, SearchRequest

from tests.live.official_worker import PATIENT, Command, answer_all


def _query(cluster: Any, command: Command) -> Any:
    options = QueryOptions(
        adhoc=command.get("adhoc", True),
        positional_parameters=command.get("positional", []),
        named_parameters=command.get("named", {}),
    )
    return list(cluster.query(command["statement"], options).rows())


def _create_bucket(cluster: Any, command: Command) -> Any:
    settings = CreateBucketSettings(name=command["bucket"], bucket_type=BucketType.COUCHBASE, ram_quota_mb=100)
    return cluster.buckets().create_bucket(settings)


def _bucket(cluster: Any, command: Command) -> Any:
    return cluster.bucket(command["bucket"])


def _collections(cluster: Any, command: Command) -> Any:
    return _bucket(cluster, command).collections()


def _collection(cluster: Any, command: Command) -> Any:
    return _bucket(cluster, command).scope(command["scope"]).collection(command["collection"])


def _indexes(cluster: Any, command: Command) -> Any:
    return _collection(cluster, command).query_indexes()


def _listed_indexes(cluster: Any, command: Command) -> Any:
    return [[index.name, index.state] for index in _indexes(cluster, command).get_all_indexes()]


def _user(cluster: Any, command: Command) -> Any:
    cluster.users().upsert_user(User(username="ada", password="secret", roles=[Role("data_reader", bucket="*")]))
    return [user.user.username for user in cluster.users().get_all_users()]


def _search(cluster: Any, command: Command) -> Any:
    cluster.search_indexes().upsert_index(SearchIndex(name=command["index"], source_name="default"))
    return [row.id for row in cluster.search(command["index"], SearchRequest.create(MatchQuery("x"))).rows()]


COMMANDS: Mapping[str, Callable[[Any, Command], Any]] = {
    "query": _query,
    "analytics": lambda cluster, command: list(cluster.analytics_query(command["statement"]).rows()),
    "search": _search,
    "view": lambda cluster, command: [
        row.key for row in _bucket(cluster, command).view_query("people", "by_name").rows()
    ],
    "create_bucket": _create_bucket,
    "drop_bucket": lambda cluster, command: cluster.buckets().drop_bucket(command["bucket"]),
    "create_scope": lambda cluster, command: _collections(cluster, command).create_scope(command["scope"]),
    "create_collection": lambda cluster, command: _collections(cluster, command).create_collection(
        command["scope"], command["collection"]
    ),
    "drop_collection": lambda cluster, command: _collections(cluster, command).drop_collection(
        command["scope"], command["collection"]
    ),
    "list": lambda cluster, command: {
        scope.name: [collection.name for collection in scope.collections]
        for scope in _collections(cluster, command).get_all_scopes()
    },
    "upsert": lambda cluster, command: _collection(cluster, command).upsert("ada", command["value"]).cas > 0,
    "get": lambda cluster, command: _collection(cluster, command).get("ada").content_as[int],
    "create_index": lambda cluster, command: _indexes(cluster, command).create_index("it", ["a"]),
    "drop_index": lambda cluster, command: _indexes(cluster, command).drop_index("it"),
    "indexes": _listed_indexes,
    "user": _user,
    "ping": lambda cluster, command: {
        service.value: {endpoint.state.value for endpoint in endpoints} == {"ok"}
        for service, endpoints in cluster.ping().endpoints.items()
    },
}


def main(connection_string: str, username: str, password: str, _bucket: str) -> None:
    """Connect, and answer commands."""
    options = ClusterOptions(PasswordAuthenticator(username, password), timeout_options=PATIENT)
    cluster = Cluster.connect(connection_string, options)
    answer_all(lambda command: COMMANDS[command["do"]](cluster, command))
    cluster.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
