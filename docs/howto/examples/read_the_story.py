"""Sources of information on a failed operation: the log, the error's context, the counters, and the retry rule."""

from __future__ import annotations

import json
import logging
import sys

import trio
import trio.testing

from triclinium.errors import CouchbaseException
from triclinium.testing import Opcode, hang_up, open_fake_cluster, temporary_failure
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.retry.couchbase.events import HandedOver, SocketClosed
from triclinium_core.retry.couchbase.tables.service import Service


async def main() -> None:
    """Write to a node that is busy once, and then closes the connection."""
    async with open_fake_cluster() as fake, fake.open_client(redact_logs=True) as cluster:
        people = cluster.bucket("default").default_collection()
        fake.node.faults.next(Opcode.SET, temporary_failure())
        fake.node.faults.next(Opcode.SET, hang_up())
        try:
            await people.upsert("ada", {"born": 1815})
        except CouchbaseException as error:
            print(f"\n{type(error).__name__}: {error}\n")
            context = json.loads(error.context.to_json())
            for name in ("operation", "idempotent", "retry_attempts", "retry_reasons", "refused_reason"):
                print(f"{name}: {context[name]}")
        print("retries so far:", {str(reason): n for reason, n in cluster.statistics().retries_by_reason.items()})


def why() -> None:
    """Print an explanation of the decision in sentences, with the clauses."""
    case = CouchbaseCase(service=Service.KV, operation="upsert", happened=SocketClosed(HandedOver.ALL))
    print()
    for sentence in explain(case).sentences():
        print("-", sentence)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
    logging.getLogger("triclinium.retry").setLevel(logging.DEBUG)
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    why()
