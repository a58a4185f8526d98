"""Driver of the official client over TLS, which continues like ``official_worker`` after connecting.

The arguments are the connection string, a file with the trusted authority, a bucket, and the authenticator as JSON: the
name of its class and its arguments. A further command is ``{"do": "set_authenticator", "who": ...}``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from couchbase import auth
from couchbase.cluster import Cluster
from couchbase.exceptions import CouchbaseException
from couchbase.options import ClusterOptions

from tests.live.official_worker import COMMANDS, PATIENT, Command, answer_all, say


def authenticator(who: Sequence[str]) -> Any:
    """Return an authenticator by the name of its class."""
    kind, *arguments = who
    return getattr(auth, kind)(*arguments)


def main(connection_string: str, trust_store: str, bucket: str, who: str) -> None:
    """Connect and report the result; if connected, answer commands until the input ends."""
    try:
        options = ClusterOptions(authenticator(json.loads(who)), trust_store_path=trust_store, timeout_options=PATIENT)
        cluster = Cluster.connect(connection_string, options)
    except CouchbaseException as error:
        say({"error": type(error).__name__})
        return
    collection = cluster.bucket(bucket).default_collection()

    def perform(command: Command) -> Any:
        if command["do"] == "set_authenticator":
            return cluster.set_authenticator(authenticator(command["who"]))
        return COMMANDS[command["do"]](collection, command["key"], command)

    answer_all(perform)
    cluster.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
